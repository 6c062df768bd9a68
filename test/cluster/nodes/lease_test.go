package nodes_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/test/server"
	"github.com/wlmserver/wlmserver/wlm"
)

// TestSearchLongerThanTheLease: its permit stays with it.
func TestSearchLongerThanTheLease(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	group := c.create("g", shared(1, 10))
	owner, others := c.owner(group)
	var all answers
	var sent sync.WaitGroup
	sent.Go(func() { all.take(others[0], others[0].searchSoon(group, 3*lease)) })
	c.awaitChecked(0, 1)
	began := time.Now()
	sent.Go(func() { all.take(owner, owner.searchSoon(group, time.Millisecond)) })
	sent.Go(func() { all.take(others[1], others[1].searchSoon(group, time.Millisecond)) })
	c.awaitChecked(2, 1)
	sent.Wait()
	if waited := time.Since(began); waited < 2*lease || all.by[http.StatusOK] != 3 {
		t.Errorf("after %v the answers are %v; %v", waited, all.by, all.bad)
	}
	c.quiet(group, 1)
	if got := c.finish()[bucketOf(group)]; got.Most != 1 {
		t.Errorf("%+v", got)
	}
}

// TestP14DeadHolder: the permits of a node that was killed are given to others when its lease is over, not before, and within a second.
func TestP14DeadHolder(t *testing.T) {
	for name, victim := range map[string]func(owner *node, others []*node) (holder, waiter *node){
		"that is not the owner": func(_ *node, others []*node) (*node, *node) { return others[0], others[1] },
		"that is the owner":     func(owner *node, others []*node) (*node, *node) { return owner, others[0] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := prepare(t, keeperOnly())
			c.sweepless = true
			for _, name := range names[:3] {
				c.add(name).start()
			}
			c.settled()
			group := c.create("g", shared(2, 100))
			for range *rounds {
				holder, waiter := victim(c.owner(group))
				release := c.hold(holder, group, 2)
				var all answers
				var sent sync.WaitGroup
				for range 4 {
					sent.Go(func() { all.take(waiter, waiter.searchSoon(group, 10*time.Millisecond)) })
				}
				c.awaitChecked(4, 2)
				holder.kill()
				release()
				sent.Wait()
				first := firstAdmitted(t, waiter, holder.killed)
				t.Logf("the first one began %v after the kill", first)
				if first < grace || first > lease+time.Second {
					t.Errorf("the first one began %v after the kill, the lease is %v", first, lease)
				}
				if all.by[http.StatusOK] != 4 {
					t.Errorf("answers by status: %v; %v", all.by, all.bad)
				}
				holder.start()
				c.quiet(group, 2)
			}
			if got := c.finish()[bucketOf(group)]; got.Most != 2 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// firstAdmitted is how long after a moment the node first let a search run.
func firstAdmitted(t *testing.T, n *node, after time.Time) time.Duration {
	t.Helper()
	time.Sleep(unwritten)
	for _, e := range n.journal(t) {
		if e.Kind == wlm.Admitted && e.At.After(after) {
			return e.At.Sub(after)
		}
	}
	t.Fatalf("node %s let no search run", n.name)
	return 0
}

// journal is what has happened on the node in its present process, a moment ago at the latest.
func (n *node) journal(t *testing.T) []wlm.Event {
	t.Helper()
	events, err := server.ReadJournal(n.life.journal)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// TestLateReleaseOfAnOldEpoch: what a node that was not heard of releases when it is heard again frees nothing that others have by now.
func TestLateReleaseOfAnOldEpoch(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	group := c.create("g", shared(2, 100))
	for range *rounds {
		_, others := c.owner(group)
		late, other := others[0], others[1]
		release := c.hold(late, group, 2)
		late.pause()
		time.Sleep(tooLong) // the owner, and a new epoch, have freed its permits
		otherReleases := other.holdBeside(group, 2)
		release() // its clients leave while it is paused: it releases as soon as it runs again
		late.resume()
		c.settled()
		var waiting answers
		var sent sync.WaitGroup
		sent.Go(func() { waiting.take(late, late.searchSoon(group, time.Millisecond)) })
		c.awaitChecked(1, 2) // two run on the other node, and this one waits for them
		otherReleases()
		sent.Wait()
		if waiting.by[http.StatusOK] != 1 {
			t.Errorf("%v", waiting.bad)
		}
		c.quiet(group, 2)
	}
	if got := c.finish()[bucketOf(group)]; got.Most != 2 {
		t.Errorf("%+v", got)
	}
}
