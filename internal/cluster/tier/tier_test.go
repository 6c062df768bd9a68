package tier_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/sharedtier"
)

// TestLimitOverNodes: three nodes under constant load never run more than the limit together, leave hardly a permit idle while
// somebody waits, and are served alike.
func TestLimitOverNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, took, rounds = 4, 50 * time.Millisecond, 400
		c := newCluster(t, "a", "b", "c")
		defer c.done()
		for _, way := range [][2]string{{"a", "b"}, {"b", "c"}, {"a", "c"}} {
			delayBoth(c, way[0], way[1], 200*time.Microsecond)
		}
		group := c.create("g", shared(limit, 100))
		served := map[string]int{}
		var all []*search
		for id, n := range c.nodes {
			for range 8 {
				all = append(all, n.start(group))
			}
			served[id] = 0
		}
		idle := 0
		for range rounds {
			time.Sleep(took)
			synctest.Wait()
			for i, s := range all {
				if s.runs.Load() {
					s.stop()
					served[s.node.member.ID]++
					all[i] = s.node.start(group)
				}
			}
			time.Sleep(2 * time.Millisecond) // a release and a grant are under way for 0.4 ms
			synctest.Wait()
			idle += limit - int(c.running.Load())
		}
		if most := c.most.Load(); most != limit {
			t.Errorf("%d searches ran at once under a limit of %d", most, limit)
		}
		if share := float64(idle) / (limit * rounds); share > 0 {
			t.Errorf("permits were idle 2 ms after they had come free, %d times of %d", idle, limit*rounds)
		}
		for id, n := range served {
			if fair := rounds * limit / 3; n < fair*9/10 || n > fair*11/10 {
				t.Errorf("node %s was served %d times, its fair share is %d", id, n, fair)
			}
		}
		stopAll(all)
	})
}

func delayBoth(c *cluster, a, b string, d time.Duration) {
	f := faults(d)
	c.network.Set(a, b, f)
	c.network.Set(b, a, f)
}

// stopAll ends searches, those that have waited too.
func stopAll(all []*search) {
	for _, s := range all {
		s.stop()
	}
	for _, s := range all {
		<-s.end
	}
	synctest.Wait()
}

// TestOwnerPushes: a search that parks on one node while the permit is held on another runs as soon as that one ends, wherever the
// owner is.
func TestOwnerPushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b", "c")
		defer c.done()
		group := c.create("g", shared(1, 10))
		ids := []string{"a", "b", "c"}
		for round := range 1000 {
			first := c.nodes[ids[round%3]].start(group)
			synctest.Wait()
			second := c.nodes[ids[(round/3+1)%3]].start(group)
			synctest.Wait()
			if !first.runs.Load() || !second.parked() {
				t.Fatalf("round %d: the first runs %v, the second waits %v", round, first.runs.Load(), second.parked())
			}
			first.stop()
			synctest.Wait()
			if !second.runs.Load() {
				t.Fatalf("round %d: the second is stranded", round)
			}
			stopAll([]*search{second})
		}
	})
}

// TestNoRing: a node that is in no ring has nobody to ask; what waits there runs once it is.
func TestNoRing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.done()
		queued, off := c.create("queued", shared(1, 10)), c.create("off", shared(1, 0))
		n := c.add("a")
		waits, refused := n.start(queued), n.start(off)
		synctest.Wait()
		if !waits.parked() || !refused.over() || refused.err == nil {
			t.Errorf("waits: %v; refused: %v", waits.parked(), refused.err)
		}
		c.publish()
		synctest.Wait()
		if !waits.runs.Load() {
			t.Error("it does not run when the node is in the ring")
		}
		stopAll([]*search{waits})
	})
}

// TestOldMemberOwnsNothing: a member of a version without the shared tier's queue is never an owner, but its searches count.
func TestOldMemberOwnsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a")
		defer c.done()
		old := c.addAs("b", "3.6.0")
		c.publish()
		synctest.Wait()
		if s := old.tier.Status(); !s.Ready || s.Owners != 1 || s.Sessions != 1 {
			t.Errorf("it has nothing to share out, and a session with the one that has: %+v", s)
		}
		group := c.create("g", shared(1, 10))
		first := old.start(group)
		synctest.Wait()
		second := c.nodes["a"].start(group)
		synctest.Wait()
		if !first.runs.Load() || !second.parked() {
			t.Errorf("its search runs %v, the other one waits %v", first.runs.Load(), second.parked())
		}
		stopAll([]*search{first, second})
		r := ring.New(100, c.members)
		for i := range 200 {
			if m, _ := r.Owner(fmt.Sprint("bucket ", i)); m.ID != "a" {
				t.Fatalf("bucket %d is owned by %s", i, m.ID)
			}
		}
	})
}

// TestSearchLongerThanTheLease: its permit stays as long as its node beats; a node that is gone without having left the ring loses its
// permits a lease later.
func TestSearchLongerThanTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b", "c")
		defer c.done()
		group := c.create("g", shared(1, 10))
		owner, other := c.owner(group)
		long := other.start(group)
		synctest.Wait()
		waits := owner.start(group)
		time.Sleep(10 * lease)
		synctest.Wait()
		if !long.runs.Load() || !waits.parked() {
			t.Fatalf("after ten leases the long one runs %v, the other waits %v", long.runs.Load(), waits.parked())
		}
		members := c.members
		c.kill(other.member.ID)
		c.members = members // nobody has noticed yet
		c.running.Add(-1)
		time.Sleep(lease - lease/3 - time.Second) // its last beat was heard at most a third of a lease ago
		synctest.Wait()
		if !waits.parked() {
			t.Error("the permit of a dead holder was granted before its lease was over")
		}
		time.Sleep(lease/3 + 2*time.Second)
		synctest.Wait()
		if !waits.runs.Load() {
			t.Error("the permit of a dead holder is not free a lease and a second after its last beat")
		}
		c.members = slicesWithout(members, other.member)
		c.publish()
		long.stop()
		stopAll([]*search{waits, long})
	})
}

// TestCutOffCoordinator: one that the owner cannot reach uses no grant after its lease, and announces what it holds when the network
// is back. Only what already ran there can run above the limit.
func TestCutOffCoordinator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b", "c")
		defer c.done()
		group := c.create("g", shared(1, 10))
		owner, other := c.owner(group)
		long := other.start(group)
		synctest.Wait()
		there, here := other.start(group), owner.start(group)
		synctest.Wait()
		c.network.Cut(owner.member.ID, other.member.ID)
		time.Sleep(lease + time.Second)
		synctest.Wait()
		if !here.runs.Load() || !there.parked() {
			t.Errorf("a lease after the cut: on the owner's side it runs %v, on the other it waits %v", here.runs.Load(), there.parked())
		}
		c.network.Heal(owner.member.ID, other.member.ID)
		time.Sleep(2 * time.Second)
		here.stop()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !there.parked() {
			t.Error("a permit that is announced after the cut does not count")
		}
		long.stop()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !there.runs.Load() {
			t.Error("it is stranded")
		}
		stopAll([]*search{long, there, here})
	})
}

// TestOwnerWithoutMembership: an owner that cannot be sure of its place in the ring grants nothing, also not to itself, and goes on
// when it is again.
func TestOwnerWithoutMembership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		defer c.done()
		group := c.create("g", shared(1, 10))
		owner, other := c.owner(group)
		owner.live.Store(false)
		all := []*search{owner.start(group), other.start(group)}
		time.Sleep(time.Minute)
		synctest.Wait()
		for i, s := range all {
			if !s.parked() {
				t.Errorf("search %d does not wait", i)
			}
		}
		owner.live.Store(true)
		time.Sleep(time.Second)
		synctest.Wait()
		if n := c.running.Load(); n != 1 {
			t.Errorf("%d run when the membership holds again", n)
		}
		stopAll(all)
	})
}

// TestLostMessages: whichever message is lost, and with it its stream, nothing is stranded and the limit holds.
func TestLostMessages(t *testing.T) {
	kinds := []sharedtier.Kind{
		sharedtier.Acquire, sharedtier.Denied, sharedtier.Granted, sharedtier.Grant, sharedtier.Release, sharedtier.Want, sharedtier.Unused,
	}
	for _, kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, "a", "b")
				defer c.done()
				group := c.create("g", shared(1, 10))
				owner, other := c.owner(group)
				for round := range 20 {
					lost := c.lose(kind, owner.member.ID, other.member.ID, 0)
					all := []*search{other.start(group)}
					synctest.Wait()
					all = append(all, owner.start(group), other.start(group), other.start(group))
					time.Sleep(time.Second) // a session is opened anew within that
					if kind == sharedtier.Unused {
						stopAll(all)
						all = append(all[:0], owner.start(group))
						synctest.Wait()
						late := other.start(group)
						synctest.Wait()
						lost = c.lose(kind, owner.member.ID, other.member.ID, time.Millisecond)
						all[0].stop() // a grant is on its way to the other
						synctest.Wait()
						late.cancel(errUser)
						all = append(all, late, owner.start(group))
						time.Sleep(time.Second)
						all = append(all, other.start(group))
					}
					for len(all) > 0 {
						time.Sleep(2 * time.Second)
						synctest.Wait()
						if n := c.running.Load(); n > 1 {
							t.Fatalf("round %d: %d run under a limit of 1", round, n)
						}
						left := all[:0]
						moved := false
						for _, s := range all {
							if s.runs.Load() {
								s.stop()
								<-s.end
							}
							if s.over() {
								moved = true
								continue
							}
							left = append(left, s)
						}
						if all = left; !moved && len(all) > 0 {
							t.Fatalf("round %d: %d searches are stranded", round, len(all))
						}
					}
					if !lost.Load() && kind != sharedtier.Want {
						t.Errorf("round %d: no %v was lost: the test proves nothing", round, kind)
					}
				}
				if most := c.most.Load(); most > 1 {
					t.Errorf("%d ran at once under a limit of 1", most)
				}
			})
		})
	}
}
