package load_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/test/server"
)

// TestCeilingOverManyPrincipals: 300 principals may have 50 waiters each, but the group no more than its ceiling. Then whoever comes is
// refused, and the next place that frees goes to who comes next.
func TestCeilingOverManyPrincipals(t *testing.T) {
	const principals, size = 300, 50
	p := server.Start(t, "auth.proxy.user_header=x-proxy-user", "auth.proxy.roles_header=x-proxy-roles",
		"auth.proxy.allowed_peers=127.0.0.0/8", "thread_pool.search.queue_size=5000")
	p.Headers = []string{"x-proxy-user", "operator", "x-proxy-roles", "admin"}
	p.CreateIndex("docs", `"index.stub.query_time":"10m"`)
	id := p.CreateGroup("g", throttling("username", 1, size))
	user := func(i int) []string { return []string{"x-proxy-user", fmt.Sprint("u", i)} }

	bursts := make([]*burst, principals)
	for i := range bursts {
		bursts[i] = send(p, t.Context(), 1, id, "", user(i)...)
	}
	p.Await("one of each runs", func() bool { return len(p.Tasks("indices:data/read/search")) == principals })
	var waiting []*burst
	for i := range groups.MaxQueued / size { // the ceiling is reached by some of them
		waiting = append(waiting, send(p, t.Context(), size, id, "", user(i)...))
	}
	p.AwaitQueued(id, groups.MaxQueued)

	newcomer := func() server.Answer {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		return p.Send(ctx, http.MethodPost, "/docs/_search", "{}", append(user(principals-1), "workloadGroupId", id)...)
	}
	a := newcomer()
	if a.Status != http.StatusTooManyRequests || a.ErrorType() != "rejected_execution_exception" {
		t.Errorf("waiter %d: %d %s", groups.MaxQueued+1, a.Status, a.Body)
	}
	if s := p.Stats(id); s.QueueRejections != 1 || s.Throttled != 1 || s.QueuePeak != groups.MaxQueued {
		t.Errorf("statistics %+v", s)
	}
	for _, task := range p.Tasks("indices:data/read/search") {
		if task.Status.State == "waiting" {
			p.Must(http.MethodPost, "/_tasks/"+task.ID+"/_cancel", "", nil)
			break
		}
	}
	p.AwaitQueued(id, groups.MaxQueued-1)
	late := send(p, t.Context(), 1, id, "", user(principals-1)...)
	p.AwaitQueued(id, groups.MaxQueued)
	p.Must(http.MethodPost, "/_tasks/_cancel?actions=*search*", "", nil)
	for _, b := range append(append(bursts, waiting...), late) {
		if got := b.tally(); got[http.StatusTooManyRequests] != 0 {
			t.Errorf("a search that had its place was refused: %v", got)
		}
	}
}
