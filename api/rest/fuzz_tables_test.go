package rest_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzTables: whatever is asked of a table, there is an answer: lines, or JSON.
func FuzzTables(f *testing.F) {
	for _, q := range []string{"", "v", "help", "v&h=n*,id,?,[", "s=name:desc,id:asc", "s=:desc", "h=,,&v", "time=ms&bytes=kb", "bytes=\xff", "time=1", "format=json&h=*&pretty", "format=yaml&nosuch",
		"format=json&filter_path=**.NODE_ID", "size=1&next_token=x", "size=1&sort=workload_group&order=desc", "ts=false", "health=green", "detailed&actions=*"} {
		f.Add(q)
	}
	s := newServer(f)
	s.do("PUT", "/idx", "").want(200)
	s.group("a", "")
	f.Fuzz(func(t *testing.T, query string) {
		for _, path := range []string{"/_cat/nodes", "/_cat/health", "/_cat/indices", "/_cat/tasks", "/_cat/thread_pool", "/_list/wlm_stats", "/_nodes/stats"} {
			target := path + "?" + query
			w, ok := s.serve(t, "GET", target, "")
			if !ok {
				continue
			}
			body := w.Body.String()
			switch media, _, _ := strings.Cut(w.Header().Get("Content-Type"), ";"); media {
			case "application/yaml":
				if !strings.HasPrefix(body, "---") {
					t.Errorf("%q: %d %q", target, w.Code, body)
				}
				continue
			case "text/plain":
				if w.Code != 200 || body != "" && !strings.HasSuffix(body, "\n") {
					t.Errorf("%q: %d %q", target, w.Code, body)
				}
				continue
			}
			if !json.Valid(w.Body.Bytes()) || strings.Contains(body, `"type":"exception"`) || (w.Code >= 400) != strings.Contains(body, `"error"`) {
				t.Errorf("%q: %d %s", target, w.Code, body)
			}
		}
	})
}
