package load_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/wlmserver/wlmserver/test/server"
)

// TestThreeThousandAtOnce sends far more searches than may run: all are answered, in order, never more at once than the limit, and
// the counters say what the client saw.
func TestThreeThousandAtOnce(t *testing.T) {
	const searches, limit = 3000, 8
	t.Run("a queue for all", func(t *testing.T) {
		p := server.Start(t)
		p.CreateIndex("docs", `"index.stub.query_time":"2ms"`)
		id := p.CreateGroup("g", throttling("group", limit, 5000))
		got := send(p, t.Context(), searches, id, "").tally()
		if got[http.StatusOK] != searches {
			t.Errorf("answers by status: %v", got)
		}
		s := p.Stats(id)
		if s.Queued != s.QueueWaits || s.QueuedCurrent != 0 || s.Throttled != 0 || s.QueueRejections != 0 || s.QueuePeak > s.Queued || s.Queued > searches-limit {
			t.Errorf("statistics %+v", s)
		}
		checkMost(t, p.Stop(), id+":group", limit)
	})
	t.Run("a queue for some", func(t *testing.T) {
		const size = 100
		p := server.Start(t)
		p.CreateIndex("docs", `"index.stub.query_time":"20ms"`)
		id := p.CreateGroup("g", throttling("group", limit, size))
		b := send(p, t.Context(), searches, id, "")
		got := b.tally()
		s := p.Stats(id)
		if got[http.StatusOK]+got[http.StatusTooManyRequests] != searches || got[http.StatusTooManyRequests] == 0 {
			t.Errorf("answers by status: %v", got)
		}
		if s.Throttled != got[http.StatusTooManyRequests] || s.QueueRejections != s.Throttled || s.QueueWaits != s.Queued || s.QueuePeak != size {
			t.Errorf("answers by status: %v, statistics %+v", got, s)
		}
		for _, a := range b.answers {
			if a.Status != http.StatusTooManyRequests {
				continue
			}
			after, err := strconv.Atoi(a.Header.Get("Retry-After"))
			if a.ErrorType() != "rejected_execution_exception" || err != nil || after < 1 {
				t.Fatalf("a refusal: Retry-After %q, %s", a.Header.Get("Retry-After"), a.Body)
			}
		}
		checkMost(t, p.Stop(), id+":group", limit)
	})
}

// TestFloodOfOnePrincipal: who floods the queue fills only their own bucket.
func TestFloodOfOnePrincipal(t *testing.T) {
	const size = 50
	p := server.Start(t, users(t)...)
	p.Headers = []string{"Authorization", basic("ann")}
	p.CreateIndex("docs", `"index.stub.query_time":"30s"`)
	id := p.CreateGroup("g", throttling("username", 1, size))
	flood := send(p, t.Context(), 1000, id, "", "Authorization", basic("ann"))
	p.Await("ann's flood is decided", func() bool { s := p.Stats(id); return s.QueuedCurrent == size && s.Throttled == 1000-1-size })
	next := send(p, t.Context(), 1+size, id, "", "Authorization", basic("bob"))
	p.AwaitQueued(id, 2*size)
	if s := p.Stats(id); s.Throttled != 1000-1-size {
		t.Errorf("bob was refused: %+v", s)
	}
	p.UpdateGroup("g", `{"throttling":{"node_limit":10000}}`) // a raised limit wakes all, at once
	p.AwaitQueued(id, 0)
	p.Must(http.MethodPost, "/_tasks/_cancel?actions=*search*", "", nil)
	ann, bob := flood.tally(), next.tally()
	if ann[http.StatusTooManyRequests] != 1000-1-size || bob[http.StatusTooManyRequests] != 0 {
		t.Errorf("ann's answers %v, bob's %v", ann, bob)
	}
	checkMost(t, p.Stop(), id+":username:bob", 1+size)
}
