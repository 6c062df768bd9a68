package load_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/internal/load"
)

// seen are the requests that a server saw.
type seen struct {
	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
}

func (s *seen) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body) // a part tells that it is not whole
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	s.bodies = append(s.bodies, string(b))
}

// TestWhatIsSent: path, parameters, body and headers of a request, for each group and user.
func TestWhatIsSent(t *testing.T) {
	var s seen
	m := http.NewServeMux()
	m.Handle("POST /under/a/_search", &s)
	m.HandleFunc("GET /under/_wlm/workload_group/{name}", func(w http.ResponseWriter, r *http.Request) {
		if name := r.PathValue("name"); name != "id-b" {
			fmt.Fprintf(w, `{"workload_groups":[{"name":%q,"_id":"id-%s"}]}`, name, name)
			return
		}
		w.WriteHeader(404)
		fmt.Fprint(w, `{"error":{"type":"resource_not_found_exception"},"status":404}`)
	})
	m.HandleFunc("GET /under/_wlm/workload_group", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"workload_groups":[{"name":"a","_id":"id-a"},{"name":"b","_id":"id-b"}]}`)
	})
	inBubble(t, m, func(t bubble) {
		r := t.run(t.Context(), load.Options{URL: address + "/under/", Path: "/a/_search?q=x", Body: `{"a":1}`, Clients: 8, Requests: 8,
			CancelAfterShare: 1, CancelAfter: 70 * time.Millisecond,
			Groups: []load.Weighted{{Name: "a", Weight: 3}, {Name: "id-b", Weight: 1}}, Users: []load.Weighted{{Name: "u:p:q", Weight: 1}, {Name: "v:w", Weight: 1}}})
		if r.Completed != 8 || len(r.Groups) != 2 || r.Groups[1].Name != "b" || r.Groups[1].ID != "id-b" || len(r.Users) != 2 || r.Users[0].Name != "u" {
			t.Errorf("%+v", r)
		}
		if len(r.Fairness) != 3 || r.Fairness[1].Clients != 6 || r.Fairness[2].Clients != 2 {
			t.Errorf("fairness %+v", r.Fairness)
		}
	})
	opaque := map[string]bool{}
	for i, r := range s.requests {
		user, password, _ := r.BasicAuth()
		opaque[r.Header.Get("X-Opaque-Id")] = true
		if r.RequestURI != "/under/a/_search?q=x&cancel_after_time_interval=70ms" || s.bodies[i] != `{"a":1}` || r.Host != "server" ||
			r.Header.Get("Content-Type") != "application/json" || !strings.HasPrefix(r.Header.Get("workloadGroupId"), "id-") ||
			user+password != "up:q" && user+password != "vw" {
			t.Errorf("%s %s, %v", r.Method, r.RequestURI, r.Header)
		}
	}
	if len(s.requests) != 8 || len(opaque) != 8 {
		t.Errorf("%d requests with %d different ids", len(s.requests), len(opaque))
	}
}

func TestDefaultRequest(t *testing.T) {
	var s seen
	h := http.NewServeMux()
	h.Handle("POST /wlmserver-load/_search", &s)
	made, deleted := 0, 0
	h.HandleFunc("HEAD /wlmserver-load", http.NotFound)
	h.HandleFunc("PUT /wlmserver-load", func(http.ResponseWriter, *http.Request) { made++ })
	h.HandleFunc("DELETE /wlmserver-load", func(http.ResponseWriter, *http.Request) { deleted++ })
	inBubble(t, h, func(t bubble) {
		t.run(t.Context(), load.Options{Requests: 1, QueryTime: 1500 * time.Microsecond})
		if made != 1 || deleted != 1 {
			t.Errorf("the index was made %d and deleted %d times", made, deleted)
		}
		t.run(t.Context(), load.Options{Requests: 1, Shared: true})
		if made != 2 || deleted != 1 {
			t.Errorf("of a shared server, the index was made %d and deleted %d times", made, deleted)
		}
	})
	want := []string{`{"size":0,"query":{"match_all":{}},"ext":{"stub":{"query_time":"1500micros"}}}`, `{"size":0,"query":{"match_all":{}}}`}
	if !slices.Equal(s.bodies, want) {
		t.Errorf("%q", s.bodies)
	}
	for _, r := range s.requests {
		if r.Header.Get("workloadGroupId") != "" || r.Header.Get("Authorization") != "" {
			t.Errorf("%v", r.Header)
		}
	}
}

func TestGroupsThatDoNotFit(t *testing.T) {
	h := http.NewServeMux()
	list := func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"workload_groups":[{"name":"a","_id":"id-a"}]}`)
	}
	h.HandleFunc("/_wlm/workload_group", list)
	h.HandleFunc("/_wlm/workload_group/{name}", list)
	s := httptest.NewServer(h)
	defer s.Close()
	for name, groups := range map[string][]load.Weighted{
		"not there":             {{Name: "a", Weight: 1}, {Name: "x", Weight: 1}},
		"twice, by name":        {{Name: "a", Weight: 1}, {Name: "a", Weight: 2}},
		"twice, by name and id": {{Name: "a", Weight: 1}, {Name: "id-a", Weight: 2}},
	} {
		_, err := load.Run(t.Context(), load.Options{URL: s.URL, Groups: groups})
		if flag, ok := errors.AsType[*load.FlagError](err); !ok || flag.Flag != "--group" || flag.Value != groups[1].Name {
			t.Errorf("%s: %v", name, err)
		}
	}
}
