package wlm_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/wlm"
)

// TestWaitsKnowNothingOfTheSweep: the backstop finds nothing, so every search waits to the nanosecond as long with it as without.
func TestWaitsKnowNothingOfTheSweep(t *testing.T) {
	s := seed(t)
	with, without := waits(t, true, s), waits(t, false, s)
	if !slices.Equal(with, without) {
		t.Errorf("waits with the sweep are\n%v, and without\n%v", with, without)
	}
	if slices.Max(with) < 2*time.Second {
		t.Errorf("nobody has waited for longer than %v: the sweep was not there", slices.Max(with))
	}
}

// waits has searches come and go at random moments for longer than several sweeps, and gives how long each has waited until it was
// admitted, or cancelled, which one in four is.
func waits(t *testing.T, swept bool, seed uint64) []time.Duration {
	t.Helper()
	const searches, limit = 2_000, 4
	all := make([]time.Duration, searches)
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		if swept {
			go h.Sweep(t.Context())
		}
		r := wlm.Request{Group: h.create("g", limits("group", limit, -1, searches))}
		random := rand.New(rand.NewPCG(seed, 0))
		span := func(most time.Duration) time.Duration { return time.Duration(random.Int64N(int64(most))) }
		for i := range all {
			time.Sleep(span(5 * time.Millisecond))
			work, patience := span(40*time.Millisecond), time.Hour
			if random.IntN(4) == 0 {
				patience = span(3 * time.Second)
			}
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				came := time.Now()
				ticket, err := h.Enter(ctx, r)
				if err != nil {
					t.Error(err)
					return
				}
				permit, err := ticket.Wait(ctx)
				if all[i] = time.Since(came); err == nil {
					time.Sleep(work)
					permit.Close()
				}
			}()
		}
		time.Sleep(time.Minute)
		if n := h.Totals().Recovered; n != 0 {
			t.Errorf("the sweep recovered %d searches", n)
		}
		h.done()
	})
	return all
}
