package tier_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/cluster/tier/tiertest"
)

// TestGrantAfterTheLease: an owner that learns of the ring just when a coordinator's lease ends grants too late. The permit is not used,
// nor is it lost.
func TestGrantAfterTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		defer c.done()
		group := c.create("g", shared(1, 10))
		owner, other := c.owner(group)
		delayBoth(c, "a", "b", 10*time.Millisecond)
		r := c.ring()
		other.tier.SetRing(r)
		waits := other.start(group)
		time.Sleep(time.Second)
		c.network.Set(other.member.ID, owner.member.ID, tiertest.Faults{Hold: true}) // until the owner has announced to itself
		time.Sleep(lease - time.Second + 5*time.Millisecond)                         // the session is 15 ms younger, and so is looked at 15 ms from now
		owner.tier.SetRing(r)
		synctest.Wait()
		c.network.Set(other.member.ID, owner.member.ID, faults(10*time.Millisecond))
		time.Sleep(12 * time.Millisecond)
		synctest.Wait()
		if !waits.parked() || len(owner.tier.Permits()) != 1 {
			t.Errorf("it waits %v, granted are %v: the test proves nothing", waits.parked(), owner.tier.Permits())
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !waits.runs.Load() {
			t.Error("it is stranded")
			waits.cancel(errUser)
		}
		stopAll([]*search{waits})
	})
}

// TestMembershipEndsUnderAGrant: an owner that grants to itself uses the permit only if its membership still holds then, since it may have
// stood still in between.
func TestMembershipEndsUnderAGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		defer c.done()
		group := c.create("g", shared(1, 10))
		owner, _ := c.owner(group)
		time.Sleep(time.Second + time.Millisecond) // past what the owner looks at by the clock
		synctest.Wait()
		owner.lapses.Store(true)
		waits := owner.start(group)
		synctest.Wait()
		if owner.live.Load() || !waits.parked() {
			t.Errorf("the membership has ended: %v; the search waits: %v", !owner.live.Load(), waits.parked())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if !waits.parked() {
			t.Error("it runs without a membership")
		}
		owner.live.Store(true)
		time.Sleep(time.Second)
		synctest.Wait()
		if !waits.runs.Load() {
			t.Error("it is stranded")
			waits.cancel(errUser)
		}
		stopAll([]*search{waits})
	})
}

// TestOwnerMissesAnEpoch: an owner that does not learn of a ring keeps what a coordinator holds that has gone on to it, however long that
// takes, and does not gather the sessions that are opened to it in vain.
func TestOwnerMissesAnEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		defer c.done()
		group := c.create("g", shared(1, 10))
		owner, other := c.owner(group)
		long := other.start(group)
		synctest.Wait()
		waits := owner.start(group)
		r := c.ring()
		other.tier.SetRing(r)
		time.Sleep(20 * lease)
		synctest.Wait()
		if n := c.running.Load(); n != 1 || !waits.parked() {
			t.Errorf("%d run under a limit of 1", n)
		}
		if n := c.network.Streams(); n > 3 { // one that was ended is served for at most a lease
			t.Errorf("%d streams are served", n)
		}
		owner.tier.SetRing(r)
		time.Sleep(2 * time.Second)
		long.stop()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !waits.runs.Load() {
			t.Error("it is stranded")
			waits.cancel(errUser)
		}
		stopAll([]*search{long, waits})
	})
}

// TestRingOfAnEarlierTime: etcd's data were replaced by earlier ones, and with them the ring. It is the ring all the same, and what was
// granted in an epoch of the same number is told from what is granted now.
func TestRingOfAnEarlierTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		defer c.done()
		group := c.create("g", shared(2, 10))
		owner, other := c.owner(group)
		all := []*search{other.start(group)}
		synctest.Wait()
		earlier := c.epoch
		c.publish()
		synctest.Wait()
		joined := c.add("c")
		for _, n := range c.nodes {
			n.tier.SetRing(ring.New(earlier, c.members))
		}
		time.Sleep(3 * lease) // until then, who had not heard of it stood for a ring that is to come
		all = append(all, owner.start(group), joined.start(group))
		synctest.Wait()
		if n := c.running.Load(); n != 2 {
			t.Errorf("%d run under a limit of 2", n)
		}
		all[0].stop()
		time.Sleep(time.Second)
		synctest.Wait()
		for i, s := range all[1:] {
			if !s.runs.Load() {
				t.Errorf("search %d is stranded", i)
				s.cancel(errUser)
			}
		}
		stopAll(all)
	})
}

// TestTryOfAnOwnerWithoutMembership: a search that may not wait is told that nobody can say, and one of a group that only watches is not
// counted as one that the limit would have held up.
func TestTryOfAnOwnerWithoutMembership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		defer c.done()
		off, watched := c.create("off", shared(1, 0)), c.create("watched", shared(1, 10))
		p, err := groups.ParsePatch([]byte(`{"resiliency_mode":"monitor"}`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.registry.Update(t.Context(), "watched", p); err != nil {
			t.Fatal(err)
		}
		owner, other := c.owner(off)
		watching, _ := c.owner(watched)
		owner.live.Store(false)
		watching.live.Store(false)
		refused, runs := other.start(off), watching.start(watched)
		time.Sleep(time.Second)
		synctest.Wait()
		if !refused.over() || refused.err == nil || !strings.Contains(refused.err.Error(), "the shared limit is unavailable") {
			t.Errorf("refused with %v", refused.err)
		}
		if !runs.runs.Load() {
			t.Error("what only watches holds a search up")
		}
		for _, g := range watching.Counters() {
			if g.WouldThrottle != 0 {
				t.Errorf("group %s: %d would have been throttled", g.Group, g.WouldThrottle)
			}
		}
		stopAll([]*search{refused, runs})
	})
}
