// Package load holds tests that put the real server, as a process of its own, under more than it can run at once.
package load_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/wlmserver/wlmserver/test/server"
	"github.com/wlmserver/wlmserver/wlm"
)

func TestMain(m *testing.M) { server.Main(m) }

// burst is many searches under way at once.
type burst struct {
	answers []server.Answer
	wg      sync.WaitGroup
}

// send sends n searches of a group at once. path begins behind the index, for example "?timeout=1s".
func send(p *server.Process, ctx context.Context, n int, group, path string, headers ...string) *burst {
	b := &burst{answers: make([]server.Answer, n)}
	headers = append([]string{"workloadGroupId", group}, headers...)
	for i := range b.answers {
		b.wg.Go(func() { b.answers[i] = p.Send(ctx, http.MethodPost, "/docs/_search"+path, "{}", headers...) })
	}
	return b
}

// tally waits for all answers and counts them by status; an unanswered one counts as 0.
func (b *burst) tally() map[int]int {
	b.wg.Wait()
	t := map[int]int{}
	for _, a := range b.answers {
		t[a.Status]++
	}
	return t
}

// checkOrder checks a bucket's history: searches were admitted in the order in which they parked, and never more than limit ran.
func checkOrder(t *testing.T, events []wlm.Event, bucket string, limit int) {
	t.Helper()
	var last uint64
	running, most, admitted := 0, 0, 0
	for _, e := range events {
		if e.Bucket != bucket {
			continue
		}
		switch e.Kind {
		case wlm.Admitted:
			admitted++
			running++
			most = max(most, running)
			if e.Seq != 0 {
				if e.Seq <= last {
					t.Errorf("search %d was admitted after search %d", e.Seq, last)
				}
				last = e.Seq
			}
		case wlm.Closed:
			running--
		}
	}
	if most != limit {
		t.Errorf("%d ran at most, the limit is %d", most, limit)
	}
	t.Logf("%d admitted, %d at most at once", admitted, most)
}

func throttling(attribute string, node, size int) string {
	return fmt.Sprintf(`"throttling":{"attribute":%q,"node_limit":%d},"queue":{"size_per_bucket":%d}`, attribute, node, size)
}
