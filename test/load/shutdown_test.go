package load_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/wlmserver/wlmserver/test/server"
)

// TestStopWithParkedAndRunning stops the server while very many searches are parked: each is answered, the parked ones that they may
// come again, and the running ones may end.
func TestStopWithParkedAndRunning(t *testing.T) {
	const waiting, running = 1000, 8
	p := server.Start(t)
	p.CreateIndex("docs", `"index.stub.query_time":"4s"`) // long enough that all park meanwhile
	id := p.CreateGroup("g", throttling("group", running, 5000))
	b := send(p, t.Context(), waiting+running, id, "")
	p.AwaitQueued(id, waiting)
	p.Terminate()
	got := b.tally()
	if got[http.StatusOK] != running || got[http.StatusTooManyRequests] != waiting {
		t.Errorf("answers by status: %v", got)
	}
	for _, a := range b.answers {
		if after, err := strconv.Atoi(a.Header.Get("Retry-After")); a.Status == http.StatusTooManyRequests && (err != nil || after < 1 || a.ErrorType() == "") {
			t.Fatalf("a parked search was answered with Retry-After %q: %s", a.Header.Get("Retry-After"), a.Body)
		}
	}
	p.Wait()
}
