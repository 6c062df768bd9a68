package load_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/test/server"
)

// TestStreamsOfOneConnection parks very many searches on one HTTP/2 connection without TLS: they are searches like any other. Some
// clients leave theirs, one call cancels some, and the others are answered when the server stops.
func TestStreamsOfOneConnection(t *testing.T) {
	const searches, leaving, cancelled = 1000, 100, 100
	p := server.Start(t)
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	p.Client = &http.Client{Transport: &http.Transport{Protocols: protocols}}

	p.CreateIndex("docs", `"index.stub.query_time":"3s"`)
	id := p.CreateGroup("g", throttling("group", 1, 5000))
	first := send(p, t.Context(), 1, id, "")
	p.Await("the first one runs", func() bool { return len(p.Tasks("indices:data/read/search")) == 1 })
	b := send(p, t.Context(), searches, id, "")
	victims := send(p, t.Context(), cancelled, id, "?cancel_after_time_interval=1ms")
	ctx, leave := context.WithCancel(t.Context())
	left := send(p, ctx, leaving, id, "")
	if got := victims.tally(); got[http.StatusInternalServerError] != cancelled {
		t.Errorf("the cancelled ones: %v", got)
	}
	p.AwaitQueued(id, searches+leaving)
	gone := time.Now()
	leave()
	left.wg.Wait()
	p.AwaitQueued(id, searches)
	t.Logf("streams that were left are evicted within %v", time.Since(gone))
	if files := p.OpenFiles(); files > 50 {
		t.Errorf("the server has %d files open: the searches are not on one connection", files)
	}
	p.Terminate()
	if got := b.tally(); got[http.StatusTooManyRequests] != searches {
		t.Errorf("answers by status: %v", got)
	}
	if got := first.tally(); got[http.StatusOK] != 1 {
		t.Errorf("the running one: %v", got)
	}
	p.Wait()
}
