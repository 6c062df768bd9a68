package wlmtest_test

import (
	"io"
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

// TestExampleFault shows how it is tested that a client tries again: the first two searches are refused and the third is answered.
func TestExampleFault(t *testing.T) {
	s := wlmtest.Start(t)
	s.Do("PUT", "/books", "")
	s.Fault(wlmtest.Fault{Method: "POST", Path: "/*/_search", Times: 2, Status: http.StatusTooManyRequests, Headers: map[string]string{"Retry-After": "0"}})

	client := func() (status, attempts int) { // the client under test
		for attempts < 5 {
			attempts++
			if status, _ = s.Do("POST", "/books/_search", `{"size": 3}`); status != http.StatusTooManyRequests {
				break
			}
		}
		return status, attempts
	}
	if status, attempts := client(); status != http.StatusOK || attempts != 3 {
		t.Errorf("the client ended with %d after %d attempts", status, attempts)
	}
	for i, r := range s.Requests("/books/_search") {
		if refused := r.Status == http.StatusTooManyRequests; refused != (i < 2) || r.Body != `{"size": 3}` {
			t.Errorf("attempt %d was answered %d: %s", i, r.Status, r.Body)
		}
	}
}

// TestExampleDamage shows that a client that lost an answer must not take it that nothing was done.
func TestExampleDamage(t *testing.T) {
	s := wlmtest.Start(t)
	s.Fault(wlmtest.Fault{Method: "PUT", Path: "/books/_doc/1", Times: 1, Damage: wlmtest.HalfAnswer})

	r, err := http.NewRequestWithContext(t.Context(), "PUT", s.URL+"/books/_doc/1", strings.NewReader(`{"title": "Emma"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the answer is whole")
	}
	if status, body := s.Do("GET", "/books/_doc/1", ""); status != http.StatusOK {
		t.Errorf("it was not stored: %d %s", status, body)
	}
}

// TestExampleReset shows tests that share a server, each of which finds it as new.
func TestExampleReset(t *testing.T) {
	s := wlmtest.Start(t)
	for range 3 {
		s.CreateGroup(`{"name": "reports", "resiliency_mode": "soft", "resource_limits": {"cpu": 1}}`) // would be refused if there were one
		s.Do("PUT", "/books/_doc/1", `{"title": "Emma"}`)
		s.Reset()
		if status, _ := s.Do("HEAD", "/books", ""); status != http.StatusNotFound {
			t.Error("an index is left")
		}
	}
}
