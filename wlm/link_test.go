package wlm_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/wlmserver/wlmserver/internal/sharedtier"
	"github.com/wlmserver/wlmserver/wlm"
)

// TestOwnerFarAway drives searches over an owner whose messages take their time: never more shared permits are out than the limit
// allows, and once the messages have arrived nobody waits beside a free slot.
func TestOwnerFarAway(t *testing.T) {
	const rounds, steps, limit = 60, 400, 2
	s := seed(t)
	for round := range rounds {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(s, uint64(round)))
			link := &slowLink{
				up: map[wlm.BucketKey][]sharedtier.Message{}, down: map[wlm.BucketKey][]sharedtier.Message{},
				owners: map[wlm.BucketKey]*sharedtier.Owner{}, limit: limit,
			}
			h := newHarness(t, wlm.WithLink(func(a *wlm.Admission) wlm.Link { link.a = a; return link }))
			node := r.IntN(3)
			id := h.create("g", limits("username", node, limit, []int{0, 2, 6}[r.IntN(3)]))
			var all []*search
			for range steps {
				switch n := r.IntN(10); {
				case n < 3:
					all = append(all, h.start(wlm.Request{Group: id, Principal: wlm.Principal{User: fmt.Sprint("u", r.IntN(2))}}))
				case n < 8:
					link.move(r)
				case n < 9 && len(all) > 0:
					if i := r.IntN(len(all)); all[i].running() {
						all[i].finish()
						all = append(all[:i], all[i+1:]...)
					}
				case len(all) > 0:
					all[r.IntN(len(all))].cancel(errUser)
				}
				if r.IntN(80) == 0 {
					h.update("g", fmt.Sprintf(`{"throttling":{"node_limit":%d,"shared_limit":%d}}`, 1+r.IntN(2), []int{0, limit}[r.IntN(2)]))
				}
				synctest.Wait()
				byUser := map[string]int{}
				for _, x := range all {
					if x.running() && x.tracked() {
						byUser[x.ticket.Bucket().Value]++
					}
				}
				for u, n := range byUser {
					if n > limit+2 { // the node tier adds at most 2
						t.Fatalf("%d searches of %s run under limits of 2 and %d", n, u, limit)
					}
				}
			}
			h.update("g", fmt.Sprintf(`{"throttling":{"node_limit":1,"shared_limit":%d}}`, limit))
			for {
				for link.move(r) {
					synctest.Wait()
				}
				before := len(all)
				var rest []*search
				for _, x := range all {
					switch {
					case x.running():
						x.finish()
					case x.parked():
						rest = append(rest, x)
					}
				}
				synctest.Wait()
				if all = rest; len(all) == 0 && !link.move(r) {
					break
				}
				if len(all) == before {
					t.Fatalf("%d searches are stranded", before)
				}
			}
			synctest.Wait()
			h.done()
		})
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
}
