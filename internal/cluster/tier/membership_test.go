package tier_test

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestCoordinatorWithoutMembership: a node that may be a member no longer begins nothing under a shared limit, although the owner hears it
// and grants: in the ring that the others will have its searches do not count. When it is a member still, it goes on.
func TestCoordinatorWithoutMembership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		defer c.done()
		group := c.create("g", shared(1, 10))
		owner, other := c.owner(group)
		first := owner.start(group)
		synctest.Wait()
		waits := other.start(group)
		synctest.Wait()
		other.live.Store(false)
		first.stop()
		time.Sleep(2 * lease)
		synctest.Wait()
		if !waits.parked() {
			t.Error("it runs")
		}
		if n := c.network.Streams(); n > 2 {
			t.Errorf("%d streams are open", n)
		}
		other.live.Store(true)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !waits.runs.Load() {
			t.Error("it is stranded")
			waits.cancel(errUser)
		}
		stopAll([]*search{first, waits})
	})
}

// TestHolderWithoutMembership: what already runs on such a node keeps its permit for as long as the ring has the node.
func TestHolderWithoutMembership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		defer c.done()
		group := c.create("g", shared(2, 10))
		owner, other := c.owner(group)
		long, first := other.start(group), owner.start(group)
		synctest.Wait()
		waits := other.start(group)
		synctest.Wait()
		next := owner.start(group)
		synctest.Wait()
		other.live.Store(false)
		first.stop()
		time.Sleep(5 * lease)
		synctest.Wait()
		if n := c.running.Load(); n > 2 || !long.runs.Load() || !waits.parked() {
			t.Errorf("%d run; the holder's search runs: %v; its waiter waits: %v", n, long.runs.Load(), waits.parked())
		}
		other.live.Store(true)
		time.Sleep(2 * time.Second)
		long.stop()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !waits.runs.Load() || !next.runs.Load() {
			t.Error("one is stranded")
		}
		stopAll([]*search{long, waits, next})
	})
}
