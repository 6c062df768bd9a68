package rest_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestMaintenance: what clients do around an index is done as soon as it is asked for.
func TestMaintenance(t *testing.T) {
	s := newServer(t)
	s.do("PUT", "/a", `{"settings":{"number_of_shards":2,"number_of_replicas":1}}`).want(200)
	s.do("PUT", "/b", `{"settings":{"number_of_shards":1,"number_of_replicas":0}}`).want(200)
	for _, c := range []struct {
		method, path      string
		total, successful float64
	}{
		{"POST", "/_refresh", 5, 3},
		{"GET", "/_all/_refresh", 5, 3},
		{"POST", "/a/_refresh", 4, 2},
		{"POST", "/b,nosuch/_refresh?ignore_unavailable", 1, 1},
		{"POST", "/nosuch*/_refresh", 0, 0},
		{"POST", "/_refresh?expand_wildcards=none", 0, 0},
		{"POST", "/_flush?force=true&wait_if_ongoing=true", 5, 3},
		{"GET", "/a,b/_flush", 5, 3},
		{"POST", "/_forcemerge?max_num_segments=1", 3, 3},
		{"POST", "/a/_forcemerge?only_expunge_deletes=true&flush=false", 2, 2},
	} {
		r := s.do(c.method, c.path, "").want(200)
		if got, want := fmt.Sprint(r.at("_shards")), fmt.Sprint(map[string]any{"total": c.total, "successful": c.successful, "failed": 0.0}); got != want {
			t.Errorf("%s %s: %s, want %s", c.method, c.path, got, want)
		}
	}
	for _, path := range []string{"/nosuch/_refresh", "/nosuch/_flush", "/nosuch/_forcemerge", "/a/_refresh?nosuch=1", "/nosuch*/_refresh?allow_no_indices=false"} {
		if r := s.do("POST", path, ""); r.status != 404 && r.status != 400 {
			t.Errorf("%s: %d", path, r.status)
		}
	}
	for _, path := range []string{"/_refresh?ignore_unavailable=x", "/_flush?force=x", "/_forcemerge?max_num_segments=x", "/_refresh?expand_wildcards=x",
		"/_forcemerge?wait_for_completion=false"} { // that would have to answer with a task
		s.do("POST", path, "").wantError(400, "illegal_argument_exception")
	}
	s.do("GET", "/_forcemerge", "").want(405)
}

// TestWhatNamesMayComeTo: reading and deleting an index follow the parameters that other requests follow too.
func TestWhatNamesMayComeTo(t *testing.T) {
	s := newServer(t)
	s.do("PUT", "/a", "").want(200)
	s.do("GET", "/nosuch", "").want(404)
	s.do("GET", "/nosuch?ignore_unavailable=true", "").want(200)
	s.do("DELETE", "/nosuch", "").want(404)
	s.do("DELETE", "/nosuch?ignore_unavailable=true", "").want(200)
	s.do("DELETE", "/nosuch*?allow_no_indices=false", "").want(404)
	s.do("DELETE", "/*?expand_wildcards=none", "").want(200)
	s.do("HEAD", "/a", "").want(200)
	s.do("DELETE", "/a,nosuch?ignore_unavailable=true", "").want(200)
	s.do("HEAD", "/a", "").want(404)
	s.do("DELETE", "/a?ignore_unavailable=x", "").wantError(400, "illegal_argument_exception")
}

func TestIndexStats(t *testing.T) {
	s := newServer(t)
	if _, told := s.do("GET", "/_stats", "").want(200).at("_all", "total").(map[string]any)["docs"]; told {
		t.Error("there are documents in no index")
	}
	s.do("PUT", "/a", `{"settings":{"number_of_shards":2}}`).want(200)
	s.do("PUT", "/b", `{"settings":{"number_of_shards":1}}`).want(200)
	for _, id := range []string{"/a/_doc/1", "/a/_doc/2", "/a/_doc/3", "/b/_doc/1"} {
		s.do("PUT", id, `{}`).want(201)
	}
	for _, c := range []struct {
		path string
		at   []any
		want any
	}{
		{"/_stats", []any{"_all", "primaries", "docs", "count"}, 4.0},
		{"/_stats", []any{"_all", "total", "merges", "current"}, 0.0},
		{"/_stats", []any{"indices", "b", "total", "docs", "count"}, 1.0},
		{"/a/_stats", []any{"_all", "total", "docs", "count"}, 3.0},
		{"/a/_stats/_all?level=cluster", []any{"_all", "total", "flush", "total"}, 0.0},
		{"/a/_stats?level=cluster", []any{"indices"}, nil},
		{"/a/_stats/docs,store", []any{"_all", "total", "refresh"}, nil},
		{"/a/_stats/search", []any{"_all", "total", "docs"}, nil}, // nothing to tell
		{"/_stats?level=shards", []any{"indices", "b", "shards", "0", 0, "docs", "count"}, 1.0},
		{"/_stats?level=shards", []any{"indices", "a", "shards", "1", 0, "routing", "primary"}, true},
		{"/a/_stats", []any{"_shards", "total"}, 4.0},
	} {
		if got := s.do("GET", c.path, "").want(200).at(c.at...); got != c.want {
			t.Errorf("%s: %v is %v, want %v", c.path, c.at, got, c.want)
		}
	}
	if size, _ := s.do("GET", "/_stats/store", "").want(200).at("_all", "total", "store", "size_in_bytes").(float64); size <= 0 {
		t.Errorf("four documents take %v bytes", size)
	}
	s.do("GET", "/nosuch/_stats", "").wantError(404, "index_not_found_exception")
	for path, fragment := range map[string]string{
		"/_stats/doc":           "did you mean [docs]?",
		"/_stats/_all,docs":     "[_all]",
		"/_stats?level=nosuch":  "[level]",
		"/_stats?nosuch=1":      "[nosuch]",
		"/a/_stats/docs,nosuch": "[nosuch]",
	} {
		if reason := s.do("GET", path, "").wantError(400, "illegal_argument_exception").at("error", "reason").(string); !strings.Contains(reason, fragment) {
			t.Errorf("%s: %s", path, reason)
		}
	}
}
