package nodes_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/wlm"
)

// TestEvictionWithinFiftyMilliseconds: a search that is parked for a permit that another node has leaves soon after its time is over, its
// client has left, or it is cancelled by way of a third node. It is about times, so it has the machine to itself.
func TestEvictionWithinFiftyMilliseconds(t *testing.T) {
	const soon, interval = 50 * time.Millisecond, 150 * time.Millisecond
	c := newCluster(t, 3)
	group := c.create("g", shared(1, 10))
	owner, others := c.owner(group)
	release := c.hold(owner, group, 1)
	waiter, third := others[0], others[1]
	for name, evict := range map[string]func() (due time.Time){
		"by its interval": func() time.Time {
			a := waiter.searchWith(t.Context(), group, time.Millisecond, "?cancel_after_time_interval="+fmt.Sprint(interval.Milliseconds(), "ms"))
			if a.Status == http.StatusOK || a.Err != nil {
				t.Errorf("answered %d %v", a.Status, a.Err)
			}
			time.Sleep(unwritten)
			parked := last(waiter.journal(t), wlm.Parked)
			return parked.At.Add(interval)
		},
		"by its client's leaving": func() time.Time {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				waiter.search(ctx, group, time.Millisecond)
			}()
			c.awaitChecked(1, 1)
			due := time.Now()
			cancel()
			<-done
			return due
		},
		"by _tasks/_cancel": func() time.Time {
			done := make(chan struct{})
			go func() {
				defer close(done)
				if a := waiter.search(t.Context(), group, time.Millisecond); a.Status == http.StatusOK || a.Err != nil {
					t.Errorf("answered %d %v", a.Status, a.Err)
				}
			}()
			c.awaitChecked(1, 1)
			task := waiter.waitingTask()
			due := time.Now()
			third.server().Must(http.MethodPost, "/_tasks/"+task+"/_cancel", "", nil)
			<-done
			return due
		},
	} {
		var late []time.Duration
		for range share(200) {
			due := evict()
			c.awaitChecked(0, 1)
			time.Sleep(unwritten)
			late = append(late, last(waiter.journal(t), wlm.Evicted).At.Sub(due))
		}
		slices.Sort(late)
		t.Logf("%s: median %v, most %v", name, late[len(late)/2], late[len(late)-1])
		// On a machine that is busy with other things a process may not run for a while.
		if nine := late[len(late)*9/10]; nine > soon {
			t.Errorf("%s: one of ten is evicted later than %v", name, nine)
		}
	}
	release()
	c.quiet(group, 1)
	c.finish()
}

func last(events []wlm.Event, k wlm.EventKind) wlm.Event {
	for _, e := range slices.Backward(events) {
		if e.Kind == k {
			return e
		}
	}
	return wlm.Event{}
}

// waitingTask is the id of the one search that is parked on the node.
func (n *node) waitingTask() string {
	n.cluster.Helper()
	for _, task := range n.server().Tasks("indices:data/read/search") {
		if task.Node == n.id && task.Status.State == "waiting" {
			return task.ID
		}
	}
	n.cluster.Fatalf("no search is parked on node %s", n.name)
	return ""
}

// TestMassCancelWastesOneGrantASlot: when very many parked searches are cancelled at once, and those that run too, the owner grants in vain
// no more often than there are slots.
func TestMassCancelWastesOneGrantASlot(t *testing.T) {
	const slots = 4
	many := share(10_000)
	c := newCluster(t, 3)
	group := c.create("g", shared(slots, 10_000))
	owner, others := c.owner(group)
	release := c.hold(owner, group, slots)
	var all answers
	var sent sync.WaitGroup
	for range many {
		sent.Go(func() {
			all.take(others[0], others[0].search(t.Context(), group, time.Hour), http.StatusInternalServerError)
		})
	}
	c.awaitChecked(many, slots)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		release() // at the same moment
	}()
	c.cancelAll()
	sent.Wait()
	<-ended
	c.still()
	if all.by[http.StatusInternalServerError] != many {
		t.Errorf("answers by status: %v; %v", all.by, all.bad)
	}
	wasted := others[0].metric("wlmserver_unused_permits_total")
	t.Logf("%v grants were wasted", wasted)
	if wasted > slots {
		t.Errorf("%v grants were wasted on %d slots", wasted, slots)
	}
	c.quiet(group, slots)
	c.finish()
}

// TestCancelThatMeetsAGrant: when a parked search is cancelled at the moment in which the permit comes, the next one runs with it.
func TestCancelThatMeetsAGrant(t *testing.T) {
	t.Parallel()
	c := prepare(t, keeperOnly())
	c.sweepless = true
	for _, name := range names[:3] {
		c.add(name).start()
	}
	c.settled()
	group := c.create("g", shared(1, 10))
	live := c.live()
	var met, passed int
	for i := range share(1000) {
		holder, first, second := live[i%3], live[(i+1)%3], live[(i+1+i/3%2)%3]
		var all answers
		var sent, cancelled sync.WaitGroup
		sent.Go(func() { all.take(holder, holder.searchSoon(group, 30*time.Millisecond)) })
		time.Sleep(5 * time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		cancelled.Go(func() {
			if a := first.search(ctx, group, time.Millisecond); a.Err == nil {
				met++
			}
		})
		time.Sleep(5 * time.Millisecond)
		sent.Go(func() { all.take(second, second.searchSoon(group, time.Millisecond)) })
		time.Sleep(20*time.Millisecond + time.Duration(i%40)*100*time.Microsecond) // about when the holder ends
		cancel()
		cancelled.Wait()
		sent.Wait()
		if all.by[http.StatusOK] == 2 {
			passed++
		} else {
			t.Errorf("round %d: %v; %v", i, all.by, all.bad)
		}
	}
	t.Logf("%d of those to be cancelled were answered before, %d rounds", met, passed)
	c.quiet(group, 1)
	got := c.finish()[bucketOf(group)]
	if got.Most != 1 || got.LongestIdle > time.Second { // a permit that is not passed on is idle for ever
		t.Errorf("%+v", got)
	}
}
