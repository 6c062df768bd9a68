package wlm_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/wlmserver/wlmserver/wlm"
)

// TestEveryArrivalHasOneExit takes every way out, by chance, and compares each counter with what the searches were told (I1).
func TestEveryArrivalHasOneExit(t *testing.T) {
	const rounds, steps = 20, 300
	s := seed(t)
	for round := range rounds {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(s, uint64(round)))
			h := newHarness(t)
			id := h.create("g", limits("username", r.IntN(2), 1+r.IntN(2), []int{0, 1, 4}[r.IntN(3)]))
			var arrived []*search
			var admitted, refused, cancelled, tries uint64
			running := map[*search]bool{}
			for range steps {
				req := wlm.Request{Group: id, Principal: wlm.Principal{User: fmt.Sprint("u", r.IntN(2))}}
				switch n := r.IntN(20); {
				case n < 10:
					arrived = append(arrived, h.start(req))
				case n < 11: // one that is over before it comes
					ctx, cancel := context.WithCancelCause(t.Context())
					cancel(errUser)
					arrived = append(arrived, h.startUnder(ctx, req))
				case n < 12:
					ticket, err := h.TryEnter(t.Context(), req)
					var permit *wlm.Permit
					if err == nil {
						permit, err = ticket.Wait(t.Context())
					}
					switch {
					case err == nil:
						tries++
						permit.Close()
					case !errors.Is(err, wlm.ErrNoPermit):
						t.Errorf("a try ended with %v", err)
					}
				case n < 16:
					for x := range running {
						x.finish()
						delete(running, x)
						break
					}
				case n < 18 && len(arrived) > 0:
					arrived[r.IntN(len(arrived))].cancel(errUser)
				case n < 19:
					h.update("g", "{"+limits("username", r.IntN(3), 1, []int{0, 1, 4}[r.IntN(3)])+"}")
				}
				synctest.Wait()
				for _, x := range arrived {
					if x.running() {
						running[x] = true
					}
				}
			}
			if r.IntN(2) == 0 {
				h.Stop() // refuses who is parked, and then this one
				arrived = append(arrived, h.start(wlm.Request{Group: id, Principal: wlm.Principal{User: "u0"}}))
				synctest.Wait()
			}
			left := append([]*search(nil), arrived...)
			for i, x := range left {
				if !x.running() && !x.parked() {
					left[i] = nil
				}
			}
			finishAll(left)
			for _, x := range arrived {
				var re *wlm.RejectedError
				switch err := x.failure(); {
				case err == nil:
					admitted++
				case errors.As(err, &re):
					refused++
				default:
					cancelled++
				}
			}
			c := h.counters(id)
			if c.Admitted != admitted+tries || c.Refused != refused || c.Cancelled != cancelled || c.Throttled != refused {
				t.Errorf("%d were admitted (and %d tries), %d refused, %d cancelled; counters %+v", admitted, tries, refused, cancelled, c)
			}
			h.done()
		})
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
}
