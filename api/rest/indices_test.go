package rest_test

import (
	"strings"
	"testing"
)

// TestIndicesCloseAndOpen: a closed index shows as such, and is searched again once it is open.
func TestIndicesCloseAndOpen(t *testing.T) {
	s := newServer(t)
	s.do("PUT", "/a", `{"settings":{"number_of_replicas":0}}`).want(200)
	if got := s.do("POST", "/a/_close", "").want(200).body; got != `{"acknowledged":true,"shards_acknowledged":true,"indices":{"a":{"closed":true}}}` {
		t.Errorf("closing: %s", got)
	}
	s.do("GET", "/a/_search", "").wantError(400, "index_closed_exception")
	s.do("PUT", "/a/_doc/1", `{}`).wantError(400, "index_closed_exception")
	if got := s.do("GET", "/_cat/indices?h=index,status", "").want(200).body; got != "a close\n" {
		t.Errorf("closed: %q", got)
	}
	if got := s.do("POST", "/a/_open", "").want(200).body; got != `{"acknowledged":true,"shards_acknowledged":true}` {
		t.Errorf("opening: %s", got)
	}
	s.do("GET", "/a/_search", "").want(200)
	s.do("POST", "/nosuch/_close", "").wantError(404, "index_not_found_exception")
	s.do("POST", "/a/_close?timeout=x", "").wantError(400, "illegal_argument_exception")
	s.do("POST", "/a/_close?nosuch=1", "").wantError(400, "illegal_argument_exception")
}

func TestIndexSettings(t *testing.T) {
	s := newServer(t)
	s.do("PUT", "/a", `{"settings":{"number_of_replicas":0}}`).want(200)
	s.do("PUT", "/a/_settings", `{"index":{"number_of_replicas":1,"stub":{"hits":4}}}`).want(200)
	r := s.do("GET", "/a/_settings?flat_settings", "").want(200)
	if r.at("a", "settings", "index.number_of_replicas") != "1" || r.at("a", "settings", "index.stub.hits") != "4" || r.at("a", "settings", "index.version.created") != "137287827" {
		t.Errorf("settings: %s", r.body)
	}
	if got := s.do("GET", "/a/_count", "").at("count"); got != 4.0 {
		t.Errorf("%v documents are found, want 4", got)
	}
	s.do("PUT", "/_settings", `{"index.stub.hits":null}`).want(200)
	if got := s.do("GET", "/_settings", "").want(200); got.at("a", "settings", "index", "stub") != nil {
		t.Errorf("settings: %s", got.body)
	}
	s.do("PUT", "/a/_settings", "").wantError(400, "parse_exception")
	s.do("PUT", "/a/_settings", `{"index.search.throttled":true}`).wantError(400, "settings_exception")
	s.do("PUT", "/nosuch/_settings", `{"x":1}`).wantError(404, "index_not_found_exception")
}

func TestUpdateDocument(t *testing.T) {
	s := newServer(t)
	s.do("POST", "/a/_update/1", `{"doc":{"n":1}}`).wantError(404, "document_missing_exception")
	s.do("POST", "/a/_update/1", `{"doc":{"n":1},"doc_as_upsert":true}`).want(201)
	r := s.do("POST", "/a/_update/1?refresh", `{"doc":{"m":2}}`).want(200)
	if r.at("result") != "updated" || r.at("_version") != 2.0 || r.at("forced_refresh") != true {
		t.Errorf("updated: %s", r.body)
	}
	if r = s.do("POST", "/a/_update/1?refresh", `{"doc":{"m":2}}`).want(200); r.at("result") != "noop" || r.at("forced_refresh") != nil {
		t.Errorf("nothing changed: %s", r.body)
	}
	if got := s.do("GET", "/a/_doc/1", "").body; !strings.Contains(got, `"_source":{"n":1,"m":2}`) {
		t.Errorf("the document is %s", got)
	}
	s.do("POST", "/a/_update/1", `{"script":"x"}`).wantError(400, "illegal_argument_exception")
}

func TestValidateQuery(t *testing.T) {
	s := newServer(t)
	s.do("PUT", "/a", "").want(200)
	for body, want := range map[string]string{
		``:                                 `{"_shards":{"total":1,"successful":1,"failed":0},"valid":true}`,
		`{"query":{"match":{"x":"y"}}}`:    `{"_shards":{"total":1,"successful":1,"failed":0},"valid":true}`,
		`{"query":{"nosuch":{}}}`:          `{"valid":false}`,
		`{"size":1}`:                       `{"valid":false}`,
		`{"query":{"match_all":{}},"x":1}`: `{"valid":false}`,
	} {
		if got := s.do("POST", "/a/_validate/query", body).want(200).body; got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	if r := s.do("GET", "/_validate/query?explain", `{"query":{"nosuch":{}}}`).want(200); r.at("valid") != false || r.at("error") == nil {
		t.Errorf("explained: %s", r.body)
	}
	if r := s.do("GET", "/_validate/query?explain", "").want(200); r.at("explanations", 0, "index") != "a" {
		t.Errorf("explained: %s", r.body)
	}
	s.do("GET", "/nosuch/_validate/query", "").wantError(404, "index_not_found_exception")
	s.do("GET", "/_validate/query?explain=x", "").wantError(400, "illegal_argument_exception")
}

// TestTablesOfTheCluster: who leads it, where its shards are, what it waits for.
func TestTablesOfTheCluster(t *testing.T) {
	s := withIndices(t)
	for path, want := range map[string]string{
		"/_cat/shards/ants?v&h=index,shard,prirep,state,docs,node": "index shard prirep state      docs node\n" +
			"ants  0     p      STARTED       1 golden-1\nants  0     r      UNASSIGNED      \n" +
			"ants  1     p      STARTED       0 golden-1\nants  1     r      UNASSIGNED      \n",
		"/_cat/master?h=node":          "golden-1\n",
		"/_cat/cluster_manager?h=node": "golden-1\n",
		"/_cat/count?h=count":          "1\n",
		"/_cat/count/books?h=count":    "0\n",
		"/_cat/pending_tasks":          "",
		"/_cat/pending_tasks?v":        "insertOrder timeInQueue priority source\n",
		"/_cat/plugins":                "",
	} {
		got := s.do("GET", path, "").want(200).body
		if trimLines(got) != trimLines(want) {
			t.Errorf("%s:\n%q, want\n%q", path, got, want)
		}
	}
	if n := strings.Count(s.do("GET", "/_cat/shards", "").want(200).body, "\n"); n != 16 {
		t.Errorf("%d copies of shards, want 16", n)
	}
	s.do("GET", "/_cat/shards/nosuch", "").wantError(404, "index_not_found_exception")
	s.do("GET", "/_cat/shards?ignore_unavailable=x", "").wantError(400, "illegal_argument_exception")
}

// trimLines takes away what fills the last column.
func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}
