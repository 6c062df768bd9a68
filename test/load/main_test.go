// Package load holds tests that put the real server, as a process of its own, under more than it can run at once.
package load_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/wlmserver/wlmserver/test/server"
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

// checkMost checks that as many searches of a bucket ran at once as its limit allows, and no more. That they ran in order, and what
// else a history must keep to, is checked in every test, see package history.
func checkMost(t *testing.T, r server.Report, bucket string, limit int) {
	t.Helper()
	b := r.Tallies[bucket]
	if b.MostTracked != limit {
		t.Errorf("%d ran at most, the limit is %d", b.MostTracked, limit)
	}
	t.Logf("%+v", b)
}

func throttling(attribute string, node, size int) string {
	return fmt.Sprintf(`"throttling":{"attribute":%q,"node_limit":%d},"queue":{"size_per_bucket":%d}`, attribute, node, size)
}
