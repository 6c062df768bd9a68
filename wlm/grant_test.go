package wlm_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/sharedtier"
	"github.com/wlmserver/wlmserver/wlm"
)

// late is a search whose context has ended and whose goroutine has not come to notice it yet.
type late struct {
	*wlm.Ticket
	ctx context.Context
}

// enterLate sends a search and cancels it before anybody waits for its ticket.
func (h *harness) enterLate(r wlm.Request) late {
	h.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	ticket, err := h.Enter(ctx, r)
	if err != nil {
		h.Fatal(err)
	}
	cancel(errUser)
	return late{ticket, ctx}
}

func (l late) checkEvicted(t *testing.T, queued bool) {
	t.Helper()
	permit, err := l.Wait(l.ctx)
	var e *wlm.CancelledError
	if permit != nil || !errors.As(err, &e) || !errors.Is(err, errUser) || e.Queued != queued {
		t.Errorf("the cancelled one: permit %v, %v", permit != nil, err)
	}
}

// TestGrantMeetsCancelled: what frees passes by a waiter that was cancelled, whoever gives it and however, to the next one.
func TestGrantMeetsCancelled(t *testing.T) {
	for _, c := range []struct {
		name, limits string
		free         func(h *harness, running *search)
		tracked      bool // the next one's permit
	}{
		{"the end of a search frees a node permit", limits("group", 1, -1, 5), func(_ *harness, s *search) { s.finish() }, true},
		{"the end of a search frees a shared permit", limits("group", -1, 1, 5), func(_ *harness, s *search) { s.finish() }, true},
		{"a raised node limit", limits("group", 1, -1, 5), func(h *harness, _ *search) { h.update("g", `{"throttling":{"node_limit":2}}`) }, true},
		{"a raised shared limit", limits("group", -1, 1, 5), func(h *harness, _ *search) { h.update("g", `{"throttling":{"shared_limit":2}}`) }, true},
		{"a limit that goes", limits("group", 1, -1, 5), func(h *harness, _ *search) { h.update("g", unlimited) }, false},
		{"a group that goes", limits("group", 1, 1, 5), func(h *harness, _ *search) { h.remove("g") }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t)
				defer h.done()
				r := wlm.Request{Group: h.create("g", c.limits)}
				running := h.startAll(1, r)
				if c.limits == limits("group", 1, 1, 5) {
					running = append(running, h.startAll(1, r)...) // one of each tier
				}
				first := h.enterLate(r)
				next := h.startAll(1, r)
				c.free(h, running[0])
				synctest.Wait()
				first.checkEvicted(t, true)
				if !next[0].running() || next[0].tracked() != c.tracked {
					t.Errorf("the next one runs: %v, tracked %v", next[0].running(), next[0].tracked())
				}
				if running[0].running() {
					finishAll(running)
				} else {
					finishAll(running[1:])
				}
				finishAll(next)
			})
		})
	}
}

// TestAnswerMeetsCancelled: the owner's yes to a search that may not wait and was cancelled meanwhile goes back.
func TestAnswerMeetsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := &handLink{}
		h := newHarness(t, wlm.WithLink(func(*wlm.Admission) wlm.Link { return link }))
		defer h.done()
		key := wlm.BucketKey{Group: h.create("g", limits("group", -1, 1, 0)), Attribute: groups.ByGroup}
		s := h.enterLate(wlm.Request{Group: key.Group})
		asked := link.take()
		h.Receive(key, link, sharedtier.Message{Kind: sharedtier.Granted, Permit: permit(7), Try: asked[0].Try})
		s.checkEvicted(t, false)
		if sent := link.take(); len(sent) != 1 || sent[0].Kind != sharedtier.Release || sent[0].Permit != permit(7) {
			t.Errorf("then sent %v", sent)
		}
	})
}

// changeOnTheWay is a context that makes a change while an arrival is between reading the policy and its bucket's lock.
type changeOnTheWay struct {
	context.Context
	change func()
}

func (c *changeOnTheWay) Err() error {
	if change := c.change; change != nil {
		c.change = nil
		change()
	}
	return c.Context.Err()
}

// TestChangeMeetsArrival: an arrival is decided by the policy of the moment when it is decided, not by the one that it came under.
func TestChangeMeetsArrival(t *testing.T) {
	const parked, running, refused = "parked", "running", "refused"
	for _, c := range []struct {
		name, limits string
		before       int // searches that came before
		change       func(h *harness)
		want         string
	}{
		{"limits go", limits("group", 1, -1, 5), 2, func(h *harness) { h.update("g", unlimited) }, running},
		{"limits go from an empty bucket", limits("username", 1, -1, 5), 0, func(h *harness) { h.update("g", unlimited) }, running},
		{"the group goes", limits("group", 1, -1, 5), 2, func(h *harness) { h.remove("g") }, running},
		{"the mode goes", limits("group", 1, -1, 5), 2, func(h *harness) { h.SetMode(wlm.ModeDisabled) }, running},
		{"another attribute", limits("group", 1, -1, 5), 2, func(h *harness) { h.update("g", `{"throttling":{"attribute":"username"}}`) }, running},
		{"a raised limit", limits("group", 1, -1, 5), 2, func(h *harness) { h.update("g", `{"throttling":{"node_limit":3}}`) }, running},
		{"a lowered limit", limits("group", 3, -1, 5), 2, func(h *harness) { h.update("g", `{"throttling":{"node_limit":2}}`) }, parked},
		{"the queue goes", limits("group", 1, -1, 5), 1, func(h *harness) { h.update("g", `{"queue":{"size_per_bucket":0}}`) }, refused},
		{"the node stops", limits("group", 1, -1, 5), 1, func(h *harness) { h.Stop() }, refused},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t)
				defer h.done()
				r := wlm.Request{Group: h.create("g", c.limits), Principal: wlm.Principal{User: "u"}}
				all := h.startAll(c.before, r)
				ctx, cancel := context.WithCancelCause(context.Background())
				s := h.startWith(&changeOnTheWay{ctx, func() { c.change(h) }}, cancel, r)
				synctest.Wait()
				got := "gone"
				switch {
				case s.running():
					got = running
				case s.parked():
					got = parked
				case s.failure() != nil:
					got = refused
				}
				if got != c.want {
					t.Errorf("it is %s (%v), want %s", got, s.failure(), c.want)
				}
				finishAll(append(all, s))
			})
		})
	}
}

// TestReleaseTeachesNothing: when all are let go at once, that says nothing of how long a wait takes.
func TestReleaseTeachesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		defer h.done()
		block := limits("group", 1, -1, 5)
		r := wlm.Request{Group: h.create("g", block)}
		all := h.startAll(3, r)
		time.Sleep(4 * time.Second)
		h.update("g", unlimited)
		h.update("g", "{"+block+"}")
		all = append(all, h.startAll(2, r)...)
		status, ok := h.Survey().Status(all[4].ticket)
		if !ok || status.State != wlm.StateWaiting || status.HasEstimate {
			t.Errorf("status %+v, %v", status, ok)
		}
		finishAll(all)
	})
}
