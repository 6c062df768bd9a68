package load_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/test/server"
	"github.com/wlmserver/wlmserver/wlm"
)

// many is the ceiling of a group's waiters; a tenth of it in short runs.
func many() int {
	if testing.Short() {
		return groups.MaxQueued / 10
	}
	return groups.MaxQueued
}

// parked starts a server with one search that runs for long and n that are parked behind it.
func parked(t *testing.T, n int, overrides ...string) (p *server.Process, id string, b *burst) {
	t.Helper()
	p = server.Start(t, overrides...)
	p.CreateIndex("docs", `"index.stub.query_time":"10m"`)
	id = p.CreateGroup("g", throttling("group", 1, 10_000))
	first := send(p, t.Context(), 1, id, "")
	p.Await("the first one runs", func() bool { return len(p.Tasks("indices:data/read/search")) == 1 })
	b = send(p, t.Context(), n, id, "")
	p.AwaitQueued(id, n)
	t.Cleanup(func() { first.wg.Wait() })
	return p, id, b
}

// TestOneCancelEndsTenThousand cancels all parked searches by one call.
func TestOneCancelEndsTenThousand(t *testing.T) {
	n := many()
	p, id, b := parked(t, n)
	p.Must(http.MethodPost, "/_tasks/_cancel?actions=indices:data/read/search", "", nil)
	if got := b.tally(); got[http.StatusInternalServerError] != n {
		t.Errorf("answers by status: %v", got)
	}
	for _, a := range b.answers[:n/10] {
		if a.ErrorType() != "task_cancelled_exception" {
			t.Fatalf("an evicted search was answered %s", a.Body)
		}
	}
	if s := p.Stats(id); s.QueuedCurrent != 0 || s.Queued != n || s.QueueWaits != 0 || s.Throttled != 0 {
		t.Errorf("statistics %+v", s)
	}
}

// TestThrottlingOffStartsTenThousand turns throttling off while very many are parked: all start, those cancelled before fail, and what
// the search pool cannot take fails there.
func TestThrottlingOffStartsTenThousand(t *testing.T) {
	n := many()
	cancelled, workers, queue := n/20, 4, n/10
	p, id, b := parked(t, n-cancelled, fmt.Sprint("thread_pool.search.size=", workers), fmt.Sprint("thread_pool.search.queue_size=", queue))
	victims := send(p, t.Context(), cancelled, id, "", "X-Opaque-Id", "victim")
	p.AwaitQueued(id, n)
	for _, task := range p.Tasks("indices:data/read/search") {
		if task.Headers["X-Opaque-Id"] == "victim" {
			p.Must(http.MethodPost, "/_tasks/"+task.ID+"/_cancel", "", nil)
		}
	}
	if got := victims.tally(); got[http.StatusInternalServerError] != cancelled {
		t.Errorf("the cancelled ones: answers by status: %v", got)
	}
	p.UpdateGroup("g", `{"throttling":null,"queue":null}`)
	p.AwaitQueued(id, 0)
	// The pool works on a few and has more in its queue, the one that ran before among them; the others have failed there.
	refused := n - cancelled + 1 - (workers + queue)
	p.Await("the pool has refused the rest", func() bool { return len(p.Tasks("indices:data/read/search")) == workers+queue })
	s := p.Stats(id)
	if s.Throttled != 0 || s.QueueRejections != 0 || s.QueueWaits != n-cancelled || s.Queued != n {
		t.Errorf("statistics %+v", s)
	}
	metrics := string(p.Send(t.Context(), http.MethodGet, "/metrics", "").Body)
	if want := fmt.Sprintf("\nwlmserver_search_pool_rejected_total %d\n", refused); !strings.Contains(metrics, want) {
		t.Errorf("the metrics do not say%sbut\n%s", want, metrics)
	}
	p.Must(http.MethodPost, "/_tasks/_cancel?actions=indices:data/read/search", "", nil)
	got := b.tally()
	if got[http.StatusTooManyRequests] != refused || got[http.StatusInternalServerError] != n-cancelled-refused {
		t.Errorf("answers by status: %v, want %d refused by the pool", got, refused)
	}
	for _, a := range b.answers {
		if a.Status == http.StatusTooManyRequests && a.ErrorType() != "search_phase_execution_exception" {
			t.Fatalf("a search that the pool refused was answered %s", a.Body)
		}
	}
}

// TestOneEvictionAmongTenThousand measures, where the server decides, how long after its cancel a parked search is evicted.
func TestOneEvictionAmongTenThousand(t *testing.T) {
	const limit = 50 * time.Millisecond
	n := many()
	p, id, b := parked(t, n-2)
	timed := send(p, t.Context(), 1, id, "?cancel_after_time_interval=3s")
	arrived := time.Now()
	victim := send(p, t.Context(), 1, id, "", "X-Opaque-Id", "victim")
	p.AwaitQueued(id, n)
	var cancelledAt time.Time
	for _, task := range p.Tasks("indices:data/read/search") {
		if task.Headers["X-Opaque-Id"] == "victim" {
			var l struct {
				Tasks []server.Task `json:"tasks"`
			}
			p.Must(http.MethodPost, "/_tasks/"+task.ID+"/_cancel?group_by=none", "", &l)
			if len(l.Tasks) != 1 {
				t.Fatalf("cancelled %d tasks", len(l.Tasks))
			}
			cancelledAt = time.UnixMilli(l.Tasks[0].CancelMS)
		}
	}
	if got := victim.tally(); got[http.StatusInternalServerError] != 1 {
		t.Errorf("the cancelled one: %v", got)
	}
	if got := timed.tally(); got[http.StatusInternalServerError] != 1 {
		t.Errorf("the timed one: %v", got)
	}
	p.Must(http.MethodPost, "/_tasks/_cancel?actions=indices:data/read/search", "", nil)
	b.wg.Wait()
	evicted := map[uint64]wlm.Event{}
	parkedAt := map[uint64]wlm.Event{}
	var order []uint64
	for _, e := range p.Stop().Events {
		switch e.Kind {
		case wlm.Parked:
			parkedAt[e.Seq] = e
		case wlm.Evicted:
			evicted[e.Seq] = e
			order = append(order, e.Seq)
		}
	}
	// The two single evictions come first, the victim's and the timed one's in either order.
	for _, seq := range order[:2] {
		e := evicted[seq]
		late := e.At.Sub(parkedAt[seq].At.Add(3 * time.Second))
		what := "its timer"
		if e.At.Sub(cancelledAt).Abs() < late.Abs() {
			late, what = e.At.Sub(cancelledAt), "its cancel"
		}
		// The timer is armed and the cancel's time is cut to the millisecond before the eviction is recorded.
		if late > limit {
			t.Errorf("search %d was evicted %v after %s", seq, late, what)
		}
		t.Logf("search %d was evicted %v after %s", seq, late, what)
	}
	if arrived.After(cancelledAt) {
		t.Error("the clocks do not agree")
	}
}
