package wlmtest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/wlmtest"
)

// TestExample shows how a client is tested: a group that runs one search at a time and lets nobody wait refuses the
// second one and says when to come again.
func TestExample(t *testing.T) {
	s := wlmtest.Start(t)
	s.Do("PUT", "/books", `{"settings": {"number_of_shards": 1}}`)
	group := s.CreateGroup(`{"name": "reports", "resiliency_mode": "enforced", "resource_limits": {"cpu": 0.5},
		"throttling": {"attribute": "group", "node_limit": 1}}`)

	search := func(took string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/books/_search",
			strings.NewReader(`{"query": {"match_all": {}}, "ext": {"stub": {"query_time": "`+took+`"}}}`))
		if err != nil {
			t.Error(err)
			return &http.Response{}
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("workloadGroupId", group)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			return &http.Response{}
		}
		resp.Body.Close()
		return resp
	}

	first := make(chan *http.Response, 1)
	go func() { first <- search("1h") }()
	s.Await("/_tasks?detailed&actions=indices:data/read/search", `"state":"running"`)

	second := search("1ms")
	if second.StatusCode != http.StatusTooManyRequests || second.Header.Get("Retry-After") == "" {
		t.Errorf("the second search: %s, Retry-After %q", second.Status, second.Header.Get("Retry-After"))
	}

	s.Do("POST", "/_tasks/_cancel?actions=indices:data/read/search", "")
	if resp := <-first; resp.StatusCode != http.StatusInternalServerError {
		t.Errorf("the first search, cancelled: %s", resp.Status)
	}
}
