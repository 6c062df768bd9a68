package load_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/wlmserver/wlmserver/test/server"
)

// TestChangesWithParkedAndArriving makes every kind of change while searches are parked and others arrive: every search is answered
// once, and none is left behind.
func TestChangesWithParkedAndArriving(t *testing.T) {
	const already, arriving = 200, 200
	settings := func(body string) func(p *server.Process) {
		return func(p *server.Process) { p.Must(http.MethodPut, "/_cluster/settings", body, nil) }
	}
	update := func(bodies ...string) func(p *server.Process) {
		return func(p *server.Process) {
			for _, b := range bodies {
				p.UpdateGroup("g", b)
			}
		}
	}
	for _, c := range []struct {
		name   string
		change func(p *server.Process)
	}{
		{"raise", update(`{"throttling":{"node_limit":50}}`)},
		{"lower", update(`{"throttling":{"node_limit":1}}`)},
		{"off", update(`{"throttling":null,"queue":null}`)},
		{"off and on", update(`{"throttling":null,"queue":null}`, "{"+throttling("group", 3, 5000)+"}")},
		{"attribute", update(`{"throttling":{"attribute":"username"}}`)},
		{"tier added", update(`{"throttling":{"shared_limit":4}}`)},
		{"tier moved", update(`{"throttling":{"node_limit":null,"shared_limit":4}}`)},
		{"tier added and removed", update(`{"throttling":{"shared_limit":4}}`, `{"throttling":{"shared_limit":null}}`)},
		{"monitor", update(`{"resiliency_mode":"monitor"}`)},
		{"monitor and back", update(`{"resiliency_mode":"monitor"}`, `{"resiliency_mode":"enforced"}`)},
		{"monitor_only", settings(`{"transient":{"wlm.workload_group.mode":"monitor_only"}}`)},
		{"disabled and enabled", func(p *server.Process) {
			settings(`{"transient":{"wlm.workload_group.mode":"disabled"}}`)(p)
			settings(`{"transient":{"wlm.workload_group.mode":"enabled"}}`)(p)
		}},
		{"delete and recreate", func(p *server.Process) {
			p.Must(http.MethodDelete, "/_wlm/workload_group/g", "", nil)
			p.CreateGroup("g", throttling("group", 2, 5000))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := server.Start(t)
			p.CreateIndex("docs", `"index.stub.query_time":"1ms"`)
			p.CreateIndex("slow", `"index.stub.query_time":"10m"`)
			id := p.CreateGroup("g", throttling("group", 2, 5000))
			var holders sync.WaitGroup
			for range 2 {
				holders.Go(func() {
					p.Send(t.Context(), http.MethodPost, "/slow/_search", "{}", "workloadGroupId", id, "X-Opaque-Id", "holder")
				})
			}
			p.Await("the limit is reached", func() bool { return len(p.Tasks("indices:data/read/search")) == 2 })
			before := send(p, t.Context(), already, id, "")
			p.AwaitQueued(id, already)
			during := send(p, t.Context(), arriving, id, "")
			c.change(p)
			// Whatever the change did, the end of what holds the permits lets the rest run.
			for _, task := range p.Tasks("indices:data/read/search") {
				if task.Headers["X-Opaque-Id"] == "holder" {
					p.Must(http.MethodPost, "/_tasks/"+task.ID+"/_cancel", "", nil)
				}
			}
			p.Await("all are answered", func() bool { return len(p.Tasks("indices:data/read/search")) == 0 })
			holders.Wait()
			b, d := before.tally(), during.tally()
			if b[http.StatusOK] != already || d[http.StatusOK] != arriving {
				t.Errorf("answers by status: parked %v, arriving %v", b, d)
			}
		})
	}
}
