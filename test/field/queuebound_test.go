package field_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/test/server"
)

// TestP15NoWayPastTheBound floods the queue from every way into it: searches, counts, items of multi-searches and pages of scrolls,
// of very many principals.
func TestP15NoWayPastTheBound(t *testing.T) {
	const each, size = 200, 50
	principals := 400
	if testing.Short() {
		principals = 40
	}
	p := server.Start(t, "auth.proxy.user_header=x-proxy-user", "auth.proxy.roles_header=x-proxy-roles",
		"auth.proxy.allowed_peers=127.0.0.0/8", "thread_pool.search.queue_size=5000")
	p.Headers = []string{"x-proxy-user", "operator", "x-proxy-roles", "admin"}
	p.CreateIndex("slow", `"index.stub.query_time":"10m"`)
	p.CreateIndex("quick", "")
	id := p.CreateGroup("g", limits("username", 1, -1, size))
	user := func(i int) []string {
		return []string{"x-proxy-user", fmt.Sprint("u", i), "workloadGroupId", id}
	}
	scrolls := make([]string, principals)
	for i := range scrolls {
		a := p.Send(t.Context(), http.MethodPost, "/quick/_search?scroll=10m", `{"size":1}`, user(i)...)
		var s struct {
			ID string `json:"_scroll_id"`
		}
		if err := json.Unmarshal(a.Body, &s); err != nil || s.ID == "" {
			t.Fatalf("opening a scroll: %d %s", a.Status, a.Body)
		}
		scrolls[i] = s.ID
	}

	var wg sync.WaitGroup
	var answered, refused atomic.Int64
	underWay := make(chan struct{}, 14_000) // connections: those that park and some that are refused
	for n := range principals * each {
		i := n % principals
		underWay <- struct{}{}
		wg.Go(func() {
			defer func() { <-underWay }()
			var a server.Answer
			headers := user(i)
			switch n / principals % 4 {
			case 0:
				a = p.Send(t.Context(), http.MethodPost, "/slow/_search", "{}", headers...)
			case 1:
				a = p.Send(t.Context(), http.MethodPost, "/slow/_count", "", headers...)
			case 2:
				a = p.Send(t.Context(), http.MethodPost, "/_msearch", msearch("slow", 1), append(headers, "Content-Type", "application/x-ndjson")...)
			default:
				a = p.Send(t.Context(), http.MethodPost, "/_search/scroll", fmt.Sprintf(`{"scroll":"10m","scroll_id":%q}`, scrolls[i]), headers...)
			}
			answered.Add(1)
			switch {
			case a.Status == http.StatusTooManyRequests:
				refused.Add(1)
			case a.Status == http.StatusOK && n/principals%4 == 2 && !strings.Contains(string(a.Body), "task_cancelled_exception"):
				refused.Add(1) // in the item's place
			}
		})
	}
	// What is not answered is parked, or one of those that run.
	p.Await("the flood is decided", func() bool { return int(answered.Load())+p.Stats(id).QueuedCurrent >= principals*(each-1) })
	s := p.Stats(id)
	if s.QueuedCurrent > groups.MaxQueued || s.QueuePeak > groups.MaxQueued {
		t.Errorf("the group is past its ceiling: %+v", s)
	}
	for len(p.Tasks("*search*")) > 0 {
		cancelAll(p)
	}
	wg.Wait()
	s = p.Stats(id)
	if s.QueuedCurrent != 0 || int64(s.Throttled) != refused.Load() {
		t.Errorf("%d were refused, statistics %+v", refused.Load(), s)
	}
	if a := p.Send(t.Context(), http.MethodGet, "/metrics", "", user(0)...); !strings.Contains(string(a.Body), "wlmserver_buckets 0") {
		t.Errorf("buckets are left:\n%s", a.Body)
	}
	// That no bucket ever held more than its size is checked in every test, see package history. Here: that a bound was reached, that
	// of the buckets or, with more principals than have room in the group, that of the group.
	most := 0
	for _, b := range p.Stop().Tallies {
		most = max(most, b.MostWaiting)
	}
	if principals*size <= groups.MaxQueued && most != size || principals*size > groups.MaxQueued && s.QueuePeak != groups.MaxQueued {
		t.Errorf("at most %d waited in a bucket of size %d, and %d in the group", most, size, s.QueuePeak)
	}
}
