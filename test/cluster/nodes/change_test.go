package nodes_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestChangeActsOnEveryNode: a change of a group that one node has answered acts at once on searches of another, whichever owns the bucket.
func TestChangeActsOnEveryNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	group := c.create("g", shared(1, 0))
	live := c.live()
	release := c.hold(live[0], group, 1)
	for i := range share(1000) {
		put, search := live[i%3].server(), live[(i+1+i/3%2)%3]
		put.UpdateGroup("g", `{"throttling":{"shared_limit":2}}`)
		if a := search.searchSoon(group, time.Millisecond); a.Status != http.StatusOK {
			t.Errorf("round %d: after the limit was raised a search is answered %d: %s", i, a.Status, a.Body)
		}
		put.UpdateGroup("g", `{"throttling":{"shared_limit":1}}`)
		if a := search.searchSoon(group, time.Millisecond); a.Status != http.StatusTooManyRequests {
			t.Errorf("round %d: after the limit was lowered a search is answered %d: %s", i, a.Status, a.Body)
		}
		if t.Failed() {
			break
		}
	}
	release()
	c.still()
	c.finish()
}

// TestP2MonitorOnlyWatchesTheSharedLimit: a group that monitors never refuses, parks or cancels under a shared limit, whichever node a search comes to, and no
// owner remembers a waiter of it: none ever pushes a permit.
func TestP2MonitorOnlyWatchesTheSharedLimit(t *testing.T) {
	t.Parallel()
	for _, how := range []struct{ name, method, path, body string }{
		{"the group", http.MethodPut, "/_wlm/workload_group/g", `{"resiliency_mode":"monitor"}`},
		{"the cluster", http.MethodPut, "/_cluster/settings", `{"transient":{"wlm.workload_group.mode":"monitor_only"}}`},
	} {
		for size, block := range map[string]string{"no queue": shared(1, 0), "full queue": shared(1, 1)} {
			t.Run(how.name+", "+size, func(t *testing.T) {
				t.Parallel()
				c := newCluster(t, 3)
				group := c.create("g", block)
				live := c.live()
				live[1].server().Must(how.method, how.path, how.body, nil)
				var all answers
				var sent sync.WaitGroup
				for i := range 6 {
					n := live[i%3]
					sent.Go(func() { all.take(n, n.searchSoon(group, 300*time.Millisecond)) })
				}
				sent.Wait()
				for i := range 6 { // permits that were given free meanwhile
					n := live[i%3]
					sent.Go(func() { all.take(n, n.searchSoon(group, 10*time.Millisecond)) })
				}
				sent.Wait()
				if all.by[http.StatusOK] != 12 {
					t.Errorf("answers by status: %v; %v", all.by, all.bad)
				}
				would, unused := 0, 0.0
				for _, n := range live {
					s := n.stats(group)
					would += s.WouldThrottle
					unused += n.metric("wlmserver_unused_permits_total")
					if s.Throttled+s.Queued+s.QueueRejections != 0 {
						t.Errorf("node %s: %+v", n.name, s)
					}
				}
				if watches := how.name == "the group"; watches && (would < 5 || would > 11) || !watches && would != 0 {
					t.Errorf("%d would have been throttled", would)
				}
				if unused != 0 {
					t.Errorf("an owner pushed %v permits", unused)
				}
				c.awaitChecked(0, 0)
				c.finish()
			})
		}
	}
}

// TestMixedVersions: while a member behaves as of a version without queues, no group gets one, and the member owns nothing; it is told so.
func TestMixedVersions(t *testing.T) {
	t.Parallel()
	c := prepare(t, keeperOnly())
	c.add("a").start()
	c.add("b").start()
	old := c.add("c", "node.compatibility_version=3.6.0")
	old.start()
	c.settled()
	for _, n := range c.live() {
		a := n.server().Send(t.Context(), http.MethodPut, "/_wlm/workload_group",
			`{"name":"q","resiliency_mode":"enforced","resource_limits":{"cpu":0.01},`+shared(1, 10)+`}`)
		if a.Status != http.StatusBadRequest || !strings.Contains(string(a.Body), "queue") {
			t.Errorf("a queue, by way of node %s, is answered %d: %s", n.name, a.Status, a.Body)
		}
		var h struct {
			Status  string
			Reasons []string
		}
		n.get("/_cluster/health", &h)
		if !slices.ContainsFunc(h.Reasons, func(r string) bool { return strings.Contains(r, "node [c]") }) || h.Status == "red" {
			t.Errorf("the health that node %s tells says nothing of it: %+v", n.name, h)
		}
	}
	// Whatever owns the buckets, the limit holds over all three.
	for i := range share(50) {
		group := c.create(fmt.Sprint("g", i), `"throttling":{"attribute":"group","shared_limit":1}`)
		release := c.hold(old, group, 1)
		for _, n := range c.live() {
			if a := n.searchSoon(group, time.Millisecond); a.Status != http.StatusTooManyRequests {
				t.Errorf("node %s answers %d: %s", n.name, a.Status, a.Body)
			}
		}
		release()
		c.awaitChecked(0, 0)
		c.live()[0].server().Must(http.MethodDelete, fmt.Sprint("/_wlm/workload_group/g", i), "", nil)
	}
	if !strings.Contains(old.server().Log(), "3.6.0") {
		t.Errorf("its log does not say so:\n%s", old.server().Log())
	}
	old.stop()
	c.settled()
	group := c.create("q", shared(1, 10)) // now it may
	old.overrides = nil
	old.start()
	c.settled()
	c.quiet(group, 1)
	c.finish()
}
