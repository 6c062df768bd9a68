package rest_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/test/openapi"
)

// serve answers a request without a network; false for one that net/http would not have let through.
func (s *server) serve(t *testing.T, method, target, body string) (*httptest.ResponseRecorder, bool) {
	t.Helper()
	if _, err := url.ParseRequestURI(target); err != nil || !strings.HasPrefix(target, "/") || strings.ContainsAny(target, " \r\n\t") {
		return nil, false
	}
	r, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	if err != nil {
		return nil, false
	}
	r.RequestURI = target
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.rest.Handler().ServeHTTP(w, r)
	if s.watch != nil {
		described, err := contract()
		must(t, err)
		if err := described.Check(openapi.Exchange{Method: method, URL: r.URL, Status: w.Code, Header: w.Header(), Body: w.Body.Bytes()}); err != nil {
			t.Error(err)
		}
	}
	return w, true
}

// check fails on an answer that no request should get.
func check(t *testing.T, w *httptest.ResponseRecorder, target string) {
	t.Helper()
	if strings.Contains(w.Body.String(), `"type":"exception"`) {
		t.Errorf("%q: %d %s", target, w.Code, w.Body)
	}
	if !json.Valid(w.Body.Bytes()) {
		t.Errorf("%q: not JSON: %s", target, w.Body)
	}
	if w.Code >= 400 && w.Code != http.StatusNotFound && w.Code != http.StatusRequestTimeout && !strings.Contains(w.Body.String(), `"error"`) {
		t.Errorf("%q: an error of another shape: %d %s", target, w.Code, w.Body)
	}
}

func FuzzQuery(f *testing.F) {
	for _, q := range []string{"", "a=b", "pretty=maybe", "timeout=1s&detailed", "levle=x;y", "%zz", "a=%", "group_by=none&human", "=&=", "nodes=[a&actions=*,-*", "timeout=-1",
		"parent_task_id=a:1", "\xff=\xfe", "source=%7B%7D&source_content_type=application/json", "scroll=1m&scroll_id=a,b", "cancel_after_time_interval=0", "index=,,"} {
		f.Add(q)
	}
	s := newServer(f)
	f.Fuzz(func(t *testing.T, query string) {
		// Waits are cut short, so that none takes the fuzzer's time: the last value counts.
		for _, path := range []string{"/_tasks", "/_cluster/settings", "/_nodes/x", "/_wlm/stats", "/_search", "/_count", "/_search/scroll", "/_wlm/workload_group", "/_cluster/health"} {
			target := path + "?" + query
			if path == "/_cluster/health" || strings.Contains(query, "wait") {
				target += "&timeout=0s"
			}
			if w, ok := s.serve(t, "GET", target, ""); ok {
				check(t, w, target)
			}
		}
		if n := s.tasks.Len(); n != 0 {
			t.Errorf("%d tasks are left behind", n)
		}
	})
}

func FuzzPath(f *testing.F) {
	for _, p := range []string{"", "_tasks", "_tasks/a:1", "a/_search", "_wlm/stats/x", "_wlm/a%2Fb/stats", `_wlm/%2F"/stats`, "a//b", "%00", "_nodes/[/http", "_search/scroll/x", "_wlm/workload_group/%C3%BC/", "a/_doc/%2f"} {
		f.Add(p)
	}
	s := newServer(f)
	f.Fuzz(func(t *testing.T, path string) {
		for _, method := range []string{"GET", "DELETE", "OPTIONS"} {
			if w, ok := s.serve(t, method, "/"+path, ""); ok && method != "OPTIONS" && !strings.HasPrefix(path, "metrics") {
				check(t, w, path)
			}
		}
	})
}

func FuzzMultiSearchBody(f *testing.F) {
	for _, b := range []string{"{}\n{}\n", "\n{}\n{}\n", `{"index":["a",{}]}` + "\n{}\n", "{}\n\n", "[]\n{}\n", "{}\n{}", "\n\n\n", `{"search_type":null}` + "\n{\"size\":1}\n", "{\"a\":\xff}\n{}\n"} {
		f.Add(b)
	}
	s := newServer(f)
	f.Fuzz(func(t *testing.T, body string) {
		w, _ := s.serve(t, "POST", "/_msearch", body)
		check(t, w, body)
	})
}
