package nodes_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestSharedLimitUnderConstantLoad: three nodes never run more than the limit together, leave hardly a permit unused while somebody waits,
// and are served alike.
//
// A permit changes hands by two messages between processes, as a request and its answer do. On a machine that is busy with other things
// both wait for processors. So where one request takes longer than it should, permits may be idle for as long as three take; and of three
// measurements one has to be good.
func TestSharedLimitUnderConstantLoad(t *testing.T) {
	const limit, times, took, most = 4, 3, 50 * time.Millisecond, 0.02
	c := newCluster(t, 3)
	var buckets []string
	var bounds []float64
	for i := range times {
		group := c.create(fmt.Sprint("g", i), shared(limit, 100))
		buckets = append(buckets, bucketOf(group))
		l := c.load(c.live(), 6, group, took)
		request := c.requestTakes(time.Duration(share(20)) * time.Second)
		l.end()
		bounds = append(bounds, max(most, 3*request.Seconds()/took.Seconds()))
		c.awaitChecked(0, 0)
	}
	found := c.finish()
	good, served, all := false, make(map[string]int), 0
	for i, b := range buckets {
		got := found[b]
		t.Logf("%+v, at most %.3f may be idle", got, bounds[i])
		good = good || got.Idle < bounds[i]
		if got.Most != limit {
			t.Errorf("%d ran at once under a limit of %d", got.Most, limit)
		}
		for node, n := range got.Admitted {
			served[node] += n
			all += n
		}
	}
	for node, n := range served {
		if fair := float64(all) / 3; float64(n) < 0.9*fair || float64(n) > 1.1*fair {
			t.Errorf("node %s was served %d times of %d", node, n, all)
		}
	}
	if !good {
		t.Error("more permits were idle each time")
	}
}

// requestTakes sends small requests to the nodes for so long, many a second, and gives the mean time that one takes.
func (c *cluster) requestTakes(d time.Duration) time.Duration {
	c.Helper()
	var sum time.Duration
	live, n := c.live(), 0
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		began := time.Now()
		live[n%len(live)].get("/", nil)
		sum += time.Since(began)
		n++
	}
	return sum / time.Duration(n)
}

// TestParkedOnOneHeldOnAnother: a search that parks on one node while the only permit is held on another runs when that one ends. Nothing
// but the owner's push can help it: there is no sweep, and no other search.
func TestParkedOnOneHeldOnAnother(t *testing.T) {
	t.Parallel()
	c := prepare(t, keeperOnly())
	c.sweepless = true
	for _, name := range names[:3] {
		c.add(name).start()
	}
	c.settled()
	group := c.create("g", shared(1, 10))
	live := c.live()
	var all answers
	n := share(1000)
	for i := range n {
		holder, waiter := live[i%3], live[(i+1+i/3%2)%3]
		var both sync.WaitGroup
		both.Go(func() { all.take(holder, holder.searchSoon(group, 20*time.Millisecond)) })
		time.Sleep(5 * time.Millisecond) // the holder comes first, mostly; if not, they change their parts
		both.Go(func() { all.take(waiter, waiter.searchSoon(group, time.Millisecond)) })
		both.Wait()
	}
	c.quiet(group, 1)
	got := c.finish()[bucketOf(group)]
	if len(all.bad) > 0 || all.by[http.StatusOK] != 2*n {
		t.Errorf("answers by status: %v; %v", all.by, all.bad)
	}
	if got.Most != 1 || got.Handovers < n*9/10 {
		t.Errorf("in %d rounds: %+v", n, got)
	}
}

// TestThreeThousandFromThreeNodes: each of very many searches that come at once is run or refused, and the counters of the nodes say what
// the clients saw.
func TestThreeThousandFromThreeNodes(t *testing.T) {
	const limit, size, each = 8, 100, 1000
	c := newCluster(t, 3)
	group := c.create("g", shared(limit, size))
	live := c.live()
	var all answers
	var sent sync.WaitGroup
	for i := range each * len(live) {
		n := live[i%len(live)]
		sent.Go(func() { all.take(n, n.searchSoon(group, 5*time.Millisecond), http.StatusTooManyRequests) })
	}
	sent.Wait()
	if len(all.bad) > 0 || all.by[http.StatusOK]+all.by[http.StatusTooManyRequests] != each*len(live) || all.by[http.StatusTooManyRequests] == 0 {
		t.Errorf("answers by status: %v; %v", all.by, all.bad)
	}
	throttled, waits := 0, 0
	for _, n := range live {
		s := n.stats(group)
		throttled += s.Throttled
		waits += s.QueueWaits
		if s.QueueRejections != s.Throttled || s.QueueWaits != s.Queued || s.QueuedCurrent != 0 || s.QueuePeak > size {
			t.Errorf("node %s: %+v", n.name, s)
		}
	}
	if throttled != all.by[http.StatusTooManyRequests] || waits > all.by[http.StatusOK] {
		t.Errorf("answers by status: %v; the nodes count %d refused, %d that waited", all.by, throttled, waits)
	}
	t.Logf("answers by status: %v, %d waited", all.by, waits)
	for _, from := range live {
		seen := from.queueFields("/_wlm/stats/"+group, group)
		for _, n := range live {
			own := n.queueFields("/_wlm/_local/stats/"+group, group)[n.id]
			if len(own) != 7 || !maps.Equal(own, seen[n.id]) {
				t.Errorf("node %s says of itself %v, and node %s of it %v", n.name, own, from.name, seen[n.id])
			}
		}
	}
	c.quiet(group, limit)
	if got := c.finish()[bucketOf(group)]; got.Most != limit {
		t.Errorf("%+v", got)
	}
}

// queueFields are the numbers about a group's queue that this node gives of each node.
func (n *node) queueFields(path, group string) map[string]map[string]float64 {
	n.cluster.Helper()
	var all map[string]json.RawMessage
	n.get(path, &all)
	out := make(map[string]map[string]float64)
	for id, text := range all {
		var one struct {
			Groups map[string]map[string]json.RawMessage `json:"workload_groups"`
		}
		if json.Unmarshal(text, &one) != nil || one.Groups == nil {
			continue // _nodes, cluster_name
		}
		out[id] = make(map[string]float64)
		for name, value := range one.Groups[group] {
			var v float64
			if strings.Contains(name, "queue") && json.Unmarshal(value, &v) == nil {
				out[id][name] = v
			}
		}
	}
	return out
}
