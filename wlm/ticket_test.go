package wlm_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/wlmserver/wlmserver/wlm"
)

// TestWaitAgain: a second call says what the first one said.
func TestWaitAgain(t *testing.T) {
	h := newHarness(t)
	defer h.done()
	r := wlm.Request{Group: h.create("g", limits("group", 1, -1, 1))}
	enter := func(ctx context.Context) *wlm.Ticket {
		ticket, err := h.Enter(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		return ticket
	}
	running := enter(t.Context())
	permit, err := running.Wait(t.Context())
	if again, err2 := running.Wait(t.Context()); again != permit || err != nil || err2 != nil {
		t.Errorf("the permit, then %v, %v", again, err2)
	}
	ctx, cancel := context.WithCancel(t.Context())
	parked := enter(ctx)
	cancel()
	for range 3 {
		var ce *wlm.CancelledError
		if _, err := parked.Wait(ctx); !errors.As(err, &ce) {
			t.Errorf("a cancelled search waits again: %v", err)
		}
	}
	granted := enter(t.Context())
	permit.Close()
	permit, err = granted.Wait(t.Context())
	if again, err2 := granted.Wait(t.Context()); again != permit || err != nil || err2 != nil {
		t.Errorf("the permit after a wait, then %v, %v", again, err2)
	}
	permit.Close()
}

// TestTicketIsSmall: each search has a ticket, and processors that take turns at a bucket pass tickets on by the cache line.
func TestTicketIsSmall(t *testing.T) {
	const line = 64
	if size := reflect.TypeFor[wlm.Ticket]().Size(); size > line {
		t.Errorf("a ticket has %d bytes, more than a cache line", size)
	}
}
