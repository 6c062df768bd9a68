package rest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// BenchmarkRequest is what this package and those below it add to a request, without network and without a search's own
// work: the group without a limit, and one whose limit is never reached.
func BenchmarkRequest(b *testing.B) {
	s := newServer(b, func(o *options) { o.executor = &idle{} })
	id := s.group("g", `,"throttling":{"attribute":"group","node_limit":1000}`)
	for _, c := range []struct{ name, method, path, body, group, accept string }{
		{"root", "GET", "/", "", "", ""},
		{"search", "POST", "/a/_search?request_cache=false&timeout=1s", `{"query":{"match_all":{}}}`, "", ""},
		{"throttled search", "POST", "/a/_search", `{"query":{"match_all":{}}}`, id, ""},
		{"throttled search as gzip", "POST", "/a/_search", `{"query":{"match_all":{}}}`, id, "gzip"},
		{"stats", "GET", "/_wlm/stats", "", "", ""},
		{"stats as gzip", "GET", "/_wlm/stats", "", "", "gzip"},
		{"stats in YAML", "GET", "/_wlm/stats?format=yaml", "", "", ""},
		{"stats filtered", "GET", "/_wlm/stats?filter_path=**.total_completions", "", "", ""},
		{"no handler", "GET", "/a/b/c", "", "", ""},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			h := s.rest.Handler()
			for b.Loop() {
				r := httptest.NewRequestWithContext(b.Context(), c.method, c.path, strings.NewReader(c.body))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Workloadgroupid", c.group)
				if c.accept != "" {
					r.Header.Set("Accept-Encoding", c.accept)
				}
				h.ServeHTTP(discard{}, r)
			}
		})
	}
}

// discard takes an answer that nobody reads.
type discard struct{}

func (discard) Header() http.Header { return http.Header{} }

func (discard) Write(b []byte) (int, error) { return len(b), nil }

func (discard) WriteHeader(int) {}
