package nodes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/test/server"
)

// found is what a search through the node finds of an index, and how many shards failed.
func (n *node) found(index string) (documents, failed int) {
	n.cluster.Helper()
	var a struct {
		Shards struct{ Failed int } `json:"_shards"`
		Hits   struct{ Total struct{ Value int } }
	}
	r := n.server().Send(n.cluster.Context(), http.MethodPost, "/"+index+"/_search?size=0", `{"track_total_hits":true}`)
	if r.Err != nil || json.Unmarshal(r.Body, &a) != nil {
		n.cluster.Fatalf("a search through %s: %v %s", n.name, r.Err, r.Body)
	}
	if r.Status != http.StatusOK {
		return 0, -1
	}
	return a.Hits.Total.Value, a.Shards.Failed
}

// bulk stores documents in an index that may have to be made.
func (n *node) bulk(index, prefix string, documents int) {
	n.cluster.Helper()
	var body strings.Builder
	for i := range documents {
		fmt.Fprintf(&body, `{"index":{"_id":"%s%d"}}`+"\n"+`{"n":%d}`+"\n", prefix, i, i)
	}
	var a struct{ Errors bool }
	r := n.server().Send(n.cluster.Context(), http.MethodPost, "/"+index+"/_bulk", body.String())
	if r.Err != nil || r.Status != http.StatusOK || json.Unmarshal(r.Body, &a) != nil || a.Errors {
		n.cluster.Fatalf("a bulk request through %s: %v %d %s", n.name, r.Err, r.Status, r.Body)
	}
}

// health is the health of an index as the node sees it.
func (n *node) health(index string) string {
	n.cluster.Helper()
	var h struct {
		Indices map[string]struct{ Status string }
	}
	r := n.server().Send(n.cluster.Context(), http.MethodGet, "/_cluster/health/"+index+"?level=indices", "")
	if r.Err != nil || json.Unmarshal(r.Body, &h) != nil {
		return ""
	}
	return h.Indices[index].Status
}

// TestWhatIsStoredIsFound: what a bulk request has stored through one node, a search through any finds at once; also when a node is lost
// after that.
func TestWhatIsStoredIsFound(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	for i := range share(100) {
		index := fmt.Sprint("auto-", i)
		c.nodes[i%3].bulk(index, "x", 7)
		for _, n := range c.live() {
			if got, failed := n.found(index); got != 7 || failed != 0 {
				t.Errorf("round %d: a search through %s finds %d documents, %d shards failed", i, n.name, got, failed)
			}
		}
	}
	a := c.nodes[0].server().Send(t.Context(), http.MethodPut, "/logs", `{"settings":{"number_of_shards":5,"number_of_replicas":1}}`)
	if a.Err != nil || a.Status != http.StatusOK {
		t.Fatalf("creating an index: %v %s", a.Err, a.Body)
	}
	want := 0
	for _, n := range c.live() {
		n.bulk("logs", n.name, 50)
		want += 50
	}
	for round := range 3 {
		lost := c.nodes[round]
		if round == 2 {
			lost.stop()
		} else {
			lost.kill()
		}
		for _, n := range c.live() {
			if got, failed := n.found("logs"); got != want || failed != 0 {
				t.Errorf("without %s, a search through %s finds %d documents of %d, %d shards failed", lost.name, n.name, got, want, failed)
			}
			n.bulk("logs", fmt.Sprintf("%s-%d-", n.name, round), 50)
			want += 50
			for _, n := range c.live() {
				if got, failed := n.found("logs"); got != want || failed != 0 {
					t.Errorf("without %s, a search through %s finds %d documents of %d, %d shards failed", lost.name, n.name, got, want, failed)
				}
			}
		}
		lost.start()
		c.settled()
		for _, n := range c.live() {
			var said string
			c.eventually(func() bool { said = n.health("logs"); return said == "green" }, func() string { return n.name + " has all copies; it is " + said })
		}
	}
	c.finish()
}

// shardTasks are the tasks of shards that all nodes have, by the node that asks: their parents.
func (n *node) shardTasks() (parents map[string]string) {
	n.cluster.Helper()
	var list struct {
		Nodes map[string]struct {
			Tasks map[string]struct {
				Parent string `json:"parent_task_id"`
			}
		}
	}
	n.get("/_tasks?actions=*phase/query*", &list)
	parents = make(map[string]string)
	for id, of := range list.Nodes {
		for _, task := range of.Tasks {
			parents[id] = task.Parent
		}
	}
	return parents
}

// TestAClientThatLeavesEndsTheWorkOfAllNodes: shards on other nodes work for the search of one, and stop soon after its client has gone.
func TestAClientThatLeavesEndsTheWorkOfAllNodes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	a := c.nodes[0].server().Send(t.Context(), http.MethodPut, "/slow", `{"settings":{"number_of_shards":3,"number_of_replicas":0,"index.stub.query_cpu":"1h"}}`)
	if a.Err != nil || a.Status != http.StatusOK {
		t.Fatalf("creating an index: %v %s", a.Err, a.Body)
	}
	for range share(20) {
		for i, n := range c.nodes[:3] {
			other := c.nodes[(i+1)%3]
			ctx, leave := context.WithCancel(t.Context())
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				n.server().Send(ctx, http.MethodPost, "/slow/_search", "{}")
			}()
			c.eventually(func() bool { return len(other.shardTasks()) == 3 }, func() string { return "every node works for the search" })
			for on, parent := range other.shardTasks() {
				if !strings.HasPrefix(parent, n.id+":") {
					t.Errorf("a shard on %s works for %q, want a task of %s", on, parent, n.id)
				}
			}
			burnt := map[*node]time.Duration{}
			for _, x := range c.nodes[:3] {
				burnt[x] = x.server().CPU()
			}
			left := time.Now()
			leave()
			<-gone
			c.eventually(func() bool { return len(other.shardTasks()) == 0 }, func() string { return "nobody works for the search any more" })
			if took := time.Since(left); took > time.Second {
				t.Errorf("the work ended %v after its client had gone", took)
			}
			for x, before := range burnt {
				// What asking for the tasks costs is in it, and each reading may be a tick off.
				if more := x.server().CPU() - before; x != n && more > 50*time.Millisecond+2*server.CPUTick {
					t.Errorf("%v of processor time were burnt on another node after the client had gone", more)
				}
			}
		}
	}
	c.finish()
}

// TestDocumentsOutliveARollingRestart: all nodes are restarted, one after another, while documents are stored through those that run. What
// was acknowledged is there in the end.
func TestDocumentsOutliveARollingRestart(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	a := c.nodes[0].server().Send(t.Context(), http.MethodPut, "/logs", `{"settings":{"number_of_shards":4,"number_of_replicas":1}}`)
	if a.Err != nil || a.Status != http.StatusOK {
		t.Fatalf("creating an index: %v %s", a.Err, a.Body)
	}
	ctx, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	stored := make([]map[string]bool, 3)
	odd := make([]map[int]int, 3) // other answers
	for w, n := range c.nodes[:3] {
		stored[w], odd[w] = make(map[string]bool), make(map[int]int)
		writing.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				time.Sleep(time.Millisecond)
				if _, up := n.state(); !up {
					continue
				}
				id := fmt.Sprintf("%d-%d", w, i)
				r := n.server().Send(t.Context(), http.MethodPut, "/logs/_doc/"+id, "{}")
				switch {
				case r.Err != nil: // the node was stopped
				case r.Status == http.StatusCreated || r.Status == http.StatusOK: // OK: the next primary had it already
					stored[w][id] = true
				default:
					odd[w][r.Status]++
				}
			}
		})
	}
	for range share(20) {
		for _, n := range c.nodes[:3] {
			n.stop()
			n.start()
			c.settled()
			var said string
			c.eventually(func() bool { said = n.health("logs"); return said == "green" }, func() string { return n.name + " has all copies; it is " + said })
		}
	}
	stop()
	writing.Wait()
	all := 0
	for w := range stored {
		all += len(stored[w])
		for id := range stored[w] {
			r := c.nodes[(w+1)%3].server().Send(t.Context(), http.MethodGet, "/logs/_doc/"+id, "")
			if r.Err != nil || r.Status != http.StatusOK {
				t.Fatalf("%s was stored, and is not there: %v %s", id, r.Err, r.Body)
			}
		}
		delete(odd[w], http.StatusTooManyRequests) // of a node that stops
		if len(odd[w]) > 0 {
			t.Errorf("documents were answered with %v", odd[w])
		}
	}
	if all < 300 {
		t.Errorf("only %d documents were stored", all)
	}
	t.Logf("%d documents were stored", all)
	c.finish()
}
