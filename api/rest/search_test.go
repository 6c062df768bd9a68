package rest_test

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/internal/units"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
)

// What the executor gets is the request as it came, and what the service needs of it.
func TestWhatASearchAsksFor(t *testing.T) {
	for _, c := range []struct {
		name         string
		method, path string
		body         string
		headers      []string
		want         search.Request // Header and Principal are not compared
	}{
		{
			"everything", "POST", "/a,b*/_search?timeout=1s&cancel_after_time_interval=3s&size=1&size=2", `{"size":3}`,
			[]string{"WORKLOADGROUPID", "some-id", "X-Opaque-Id", "mine"},
			search.Request{Method: "POST", Path: "/a,b*/_search", Body: []byte(`{"size":3}`), Indices: []string{"a", "b*"},
				Query:   map[string][]string{"timeout": {"1s"}, "cancel_after_time_interval": {"3s"}, "size": {"2"}},
				GroupID: "some-id", OpaqueID: "mine", CancelAfter: new(3 * time.Second)},
		},
		{
			"nothing", "GET", "/_search", "", nil,
			search.Request{Method: "GET", Path: "/_search"},
		},
		{
			"no limit", "GET", "/_search/?cancel_after_time_interval=-1", "", nil,
			search.Request{Method: "GET", Path: "/_search/", Query: map[string][]string{"cancel_after_time_interval": {"-1"}}, CancelAfter: new(units.None)},
		},
		{
			"index in the query", "GET", "/_search?index=a,b", "", nil,
			search.Request{Method: "GET", Path: "/_search", Query: map[string][]string{"index": {"a,b"}}, Indices: []string{"a", "b"}},
		},
		{
			"an escaped index", "GET", "/a%2Cb/_count", "", nil,
			search.Request{Kind: search.Count, Method: "GET", Path: "/a,b/_count", Indices: []string{"a", "b"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := &gate{}
			s := newServer(t, func(o *options) { o.executor = g })
			s.do(c.method, c.path, c.body, c.headers...).want(200)
			got := *g.seen()[0]
			if len(c.headers) > 0 && got.Header.Get(c.headers[0]) != c.headers[1] {
				t.Errorf("headers: %v", got.Header)
			}
			if got.Follower == nil {
				t.Error("nobody will cancel the search when its client goes")
			}
			got.Header, got.Follower = nil, nil
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestSearchParametersOfOurOwn(t *testing.T) {
	s := newServer(t)
	for _, path := range []string{"/_search?cancel_after_time_interval=abc", "/_search?scroll=x", "/_count?timeout=1s", "/_count?scroll=1m", "/_search?nosuch"} {
		s.do("POST", path, `{}`).wantError(400, "illegal_argument_exception")
	}
	if s.tasks.Len() != 0 {
		t.Error("a refused request has left a task")
	}
}

// An executor's answer goes out as it is; one in a media type of its own is not laid out.
func TestAnswersOfAnExecutor(t *testing.T) {
	g := &gate{answer: &search.Response{Status: 203, Header: http.Header{"X-Other": {"1"}}, Body: []byte(`{"a":1}`)}}
	s := newServer(t, func(o *options) { o.executor = g })
	r := s.do("GET", "/_search?pretty", "").want(203)
	if r.body != "{\n  \"a\" : 1\n}\n" || r.header.Get("X-Other") != "1" {
		t.Errorf("%q %v", r.body, r.header)
	}
	g.answer = &search.Response{Status: 502, Header: http.Header{"Content-Type": {"text/html"}}, Body: []byte(`<p>`)}
	if r := s.do("GET", "/_search?pretty", "").want(502); r.body != "<p>" || r.header.Get("Content-Type") != "text/html" {
		t.Errorf("%q %v", r.body, r.header)
	}
}

func TestThrottled(t *testing.T) {
	hold := make(chan struct{})
	s := newServer(t, func(o *options) { o.executor = &gate{open: hold} })
	id := s.group("reports", `,"throttling":{"attribute":"group","node_limit":1}`)
	first := s.background("POST", "/_search", `{}`, "workloadGroupId", id)
	s.eventually("it runs", func() bool { return s.admission.Totals().Tracked == 1 })
	r := s.do("POST", "/_search", `{}`, "workloadGroupId", id).wantError(429, "rejected_execution_exception")
	for _, part := range []string{"[reports]", "limit of 1", "throttling.node_limit"} {
		if !strings.Contains(r.body, part) {
			t.Errorf("the reason lacks %q: %s", part, r.body)
		}
	}
	if r.header.Get("Retry-After") != "1" {
		t.Errorf("headers: %v", r.header)
	}
	items := s.do("POST", "/_msearch", "{}\n{}\n", "workloadGroupId", id).want(200)
	if items.at("responses", 0, "status") != float64(429) || items.at("responses", 0, "error", "type") != "rejected_execution_exception" {
		t.Error(items.body)
	}
	stats := s.do("GET", "/_wlm/stats/"+id, "").at(nodeID, "workload_groups", id).(map[string]any)
	if stats["total_throttled"] != float64(2) || stats["total_queue_rejections"] != float64(0) {
		t.Errorf("%v", stats)
	}
	if s.do("GET", "/_wlm/stats/"+id, "").keyOrder(nodeID, "workload_groups", id) != "total_completions total_rejections total_cancellations "+
		"total_throttled total_would_throttle total_queued total_queue_rejections queued_current queue_peak queue_wait_count "+
		"total_queue_wait_millis max_queue_wait_millis cpu memory" {
		t.Error("the keys of statistics have another order")
	}
	close(hold)
	(<-first).want(200)
}

// What a stopping server refuses or ends is answered 429, so that clients come again.
func TestStopping(t *testing.T) {
	s := newServer(t, func(o *options) { o.executor = &gate{open: make(chan struct{})} })
	id := s.group("g", `,"throttling":{"attribute":"group","node_limit":1},"queue":{"size_per_bucket":5}`)
	running := s.background("POST", "/_search", `{}`, "workloadGroupId", id)
	s.eventually("one runs", func() bool { return s.admission.Totals().Tracked == 1 })
	parked := s.background("POST", "/_search", `{}`, "workloadGroupId", id)
	s.eventually("one waits", func() bool { return s.admission.Totals().Waiters == 1 })
	s.admission.Stop()
	for _, x := range s.tasks.List(tasks.Filter{Cancellable: true}) {
		if x.Status() != nil {
			x.Cancel(tasks.ShutdownCause())
		}
	}
	for name, r := range map[string]response{"parked": <-parked, "running": <-running, "new": s.do("POST", "/_search", `{}`, "workloadGroupId", id)} {
		t.Run(name, func(t *testing.T) {
			r.wantError(429, "rejected_execution_exception")
			if r.header.Get("Retry-After") == "" {
				t.Errorf("no Retry-After: %v", r.header)
			}
		})
	}
}

func TestMultiSearch(t *testing.T) {
	g := &gate{}
	s := newServer(t, func(o *options) { o.executor = g })
	body := `{"index":"a"}
{"size":1}
{"index":["b","c,d"],"search_type":"query_then_fetch","cancel_after_time_interval":"2s","ignore_unavailable":true,"routing":null}
{"size":2}

{"size":3}
`
	r := s.do("POST", "/z/_msearch?max_concurrent_searches=1&typed_keys&cancel_after_time_interval=5s", body, "workloadGroupId", "x", "Content-Type", "application/x-ndjson").want(200)
	if got := r.keyOrder(); got != "took responses" {
		t.Errorf("keys: %s", got)
	}
	if got := r.at("responses").([]any); len(got) != 3 || r.keyOrder("responses") != "took status" {
		t.Errorf("responses: %s", r.body)
	}
	want := []search.Request{
		{Path: "/a/_search", Indices: []string{"a"}, Query: map[string][]string{"typed_keys": {""}}, Body: []byte(`{"size":1}`), CancelAfter: new(5 * time.Second)},
		{Path: "/b,c,d/_search", Indices: []string{"b", "c", "d"}, Body: []byte(`{"size":2}`), CancelAfter: new(2 * time.Second),
			Query: map[string][]string{"typed_keys": {""}, "search_type": {"query_then_fetch"}, "ignore_unavailable": {"true"}}},
		{Path: "/z/_search", Indices: []string{"z"}, Query: map[string][]string{"typed_keys": {""}}, Body: []byte(`{"size":3}`), CancelAfter: new(5 * time.Second)},
	}
	for i, got := range g.seen() {
		x := *got
		x.Header = nil
		want[i].Method, want[i].GroupID = "POST", "x"
		if !reflect.DeepEqual(x, want[i]) {
			t.Errorf("item %d\ngot  %+v\nwant %+v", i, x, want[i])
		}
	}
}

func TestMultiSearchOfEmptyAnswers(t *testing.T) {
	s := newServer(t, func(o *options) { o.executor = &gate{answer: &search.Response{Status: 200, Body: []byte(`{}`)}} })
	if r := s.do("POST", "/_msearch", "{}\n{}\n{}\n{}\n").want(200); !strings.HasSuffix(r.body, `"responses":[{"status":200},{"status":200}]}`) {
		t.Error(r.body)
	}
}

func TestMultiSearchRefusals(t *testing.T) {
	s := newServer(t)
	for _, c := range []struct{ name, body, typ, reason string }{
		{"no newline", "{}\n{}", "illegal_argument_exception", "newline"},
		{"no search", "{}\n{}\n{}\n", "action_request_validation_exception", "line 3"},
		{"unknown key", `{"indexx":"a"}` + "\n{}\n", "illegal_argument_exception", "[indexx]"},
		{"key of a wrong kind", `{"index":{}}` + "\n{}\n", "illegal_argument_exception", "[index]"},
		{"item of a wrong kind", `{"index":[{}]}` + "\n{}\n", "illegal_argument_exception", "[index]"},
		{"bad time", `{"cancel_after_time_interval":"x"}` + "\n{}\n", "illegal_argument_exception", "cancel_after_time_interval"},
		{"header that is a list", "[]\n{}\n", "parsing_exception", ""},
		{"broken header", "{\n{}\n", "unexpected_end_of_input_exception", ""},
		{"empty search", "{}\n\n", "parsing_exception", ""},
		{"nothing but empty lines", "\n\n", "action_request_validation_exception", ""},
		{"very many searches", strings.Repeat("{}\n{}\n", 10_001), "illegal_argument_exception", "at most [10000] searches, not [10001]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.TB = t
			r := s.do("POST", "/_msearch", c.body).wantError(400, c.typ)
			if !strings.Contains(r.body, c.reason) {
				t.Errorf("the reason lacks %q: %s", c.reason, r.body)
			}
		})
	}
	s.TB = t
	s.do("POST", "/_msearch", "\n{}\n{}\n").want(200) // one empty line before the first header is passed over
}

func TestScroll(t *testing.T) {
	s := newServer(t)
	s.do("PUT", "/idx", `{}`).want(200)
	for _, id := range []string{"1", "2", "3", "4"} {
		s.do("PUT", "/idx/_doc/"+id, `{}`).want(201)
	}
	first := s.do("POST", "/idx/_search?scroll=1m&size=1", `{}`).want(200)
	id := first.at("_scroll_id").(string)
	if !strings.HasPrefix(first.body, `{"_scroll_id":`) {
		t.Error(first.body)
	}
	for _, page := range []struct{ method, path, body string }{
		{"POST", "/_search/scroll", `{"scroll":"1m","scroll_id":"` + id + `"}`},
		{"GET", "/_search/scroll?scroll=1m&scroll_id=" + id, ""},
		{"POST", "/_search/scroll/" + id + "?scroll=1m", ""},
	} {
		r := s.do(page.method, page.path, page.body).want(200)
		if len(r.at("hits", "hits").([]any)) != 1 || r.at("_scroll_id") != id {
			t.Errorf("%s %s: %s", page.method, page.path, r.body)
		}
	}
	for _, c := range []struct{ body, typ string }{
		{`{"scroll":"1m"}`, "action_request_validation_exception"},
		{`{"scroll_id":[]}`, "illegal_argument_exception"},
		{`{"scroll_id":"` + id + `","x":1}`, "illegal_argument_exception"},
		{`{"scroll_id":5}`, "illegal_argument_exception"},
		{`{"scroll_id":[5]}`, "illegal_argument_exception"},
		{`{"scroll_id":"` + id + `","scroll":"x"}`, "illegal_argument_exception"},
		{`{"scroll_id":"garbage","scroll":"1m"}`, "illegal_argument_exception"},
		{`[]`, "illegal_argument_exception"},
	} {
		s.do("POST", "/_search/scroll", c.body).wantError(400, c.typ)
	}
	s.do("DELETE", "/_search/scroll", "").wantError(400, "action_request_validation_exception")
	if got := s.do("DELETE", "/_search/scroll", `{"scroll_id":["`+id+`"]}`).want(200).body; got != `{"succeeded":true,"num_freed":1}` {
		t.Error(got)
	}
	if got := s.do("DELETE", "/_search/scroll/"+id, "").want(404).body; got != `{"succeeded":true,"num_freed":0}` {
		t.Error(got)
	}
	s.do("POST", "/_search/scroll", `{"scroll":"1m","scroll_id":"`+id+`"}`).wantError(404, "search_phase_execution_exception")
	s.do("POST", "/idx/_search?scroll=1m&size=1", `{}`).want(200)
	s.do("DELETE", "/_search/scroll/_all", "").want(200)
	if _, ok := s.do("POST", "/nosuch*/_search?scroll=1m", "").want(200).json()["_scroll_id"]; ok {
		t.Error("a scroll over no shards has an id")
	}
	s.do("DELETE", "/_search/scroll/_all", "").want(404)
}

func TestDocuments(t *testing.T) {
	s := newServer(t)
	made := s.do("POST", "/idx/_doc?refresh=wait_for", `{"a":1}`).want(201)
	id := made.at("_id").(string)
	if made.at("forced_refresh") != nil || made.header.Get("Location") != "/idx/_doc/"+id {
		t.Error(made.body, made.header)
	}
	if got := s.do("GET", "/idx/_doc/"+id, "").want(200).at("_source", "a"); got != float64(1) {
		t.Error(got)
	}
	s.do("HEAD", "/idx/_doc/"+id, "").want(200)
	s.do("HEAD", "/idx/_doc/nosuch", "").want(404)
	s.do("PUT", "/idx/_doc/"+id+"?op_type=create", `{}`).wantError(409, "version_conflict_engine_exception")
	s.do("PUT", "/idx/_create/"+id, `{}`).wantError(409, "version_conflict_engine_exception")
	s.do("PUT", "/idx/_doc/"+id+"?op_type=x", `{}`).wantError(400, "illegal_argument_exception")
	s.do("PUT", "/idx/_doc/"+id+"?refresh=x", `{}`).wantError(400, "illegal_argument_exception")
	s.do("PUT", "/idx/_doc/"+id+"?timeout=x", `{}`).wantError(400, "illegal_argument_exception")
	s.do("PUT", "/idx/_doc/"+id, ``).wantError(400, "parse_exception")
	s.do("PUT", "/idx/_doc/"+id, `not json`).wantError(400, "mapper_parsing_exception")
	if got := s.do("DELETE", "/idx/_doc/"+id+"?refresh", "").want(200); got.at("result") != "deleted" || got.at("forced_refresh") != true {
		t.Error(got.body)
	}
	if got := s.do("DELETE", "/idx/_doc/"+id, "").want(404); got.at("result") != "not_found" {
		t.Error(got.body)
	}
	s.do("GET", "/nosuch/_doc/1", "").wantError(404, "index_not_found_exception")

	bulk := "{\"index\":{\"_id\":\"1\"}}\n{}\n{\"delete\":{\"_id\":\"9\"}}\n{\"create\":{\"_id\":\"1\"}}\n{}\n{\"create\":{}}\n[]\n"
	r := s.do("POST", "/idx/_bulk?refresh", bulk, "Content-Type", "application/x-ndjson").want(200)
	if got := r.keyOrder(); got != "took errors items" || r.at("errors") != true {
		t.Error(r.body)
	}
	for i, want := range []struct {
		action string
		status float64
		keys   string
	}{
		{"index", 201, "_index _id _version result forced_refresh _shards _seq_no _primary_term status"},
		{"delete", 404, "_index _id _version result forced_refresh _shards _seq_no _primary_term status"},
		{"create", 409, "_index _id status error"},
		{"create", 400, "_index _id status error"},
	} {
		item := r.at("items", i, want.action)
		if at(item, "status") != want.status {
			t.Errorf("item %d: %v", i, item)
		}
		if i == 0 && r.keyOrder("items", want.action) != want.keys {
			t.Errorf("item %d has the keys %s", i, r.keyOrder("items", want.action))
		}
	}
	if id, there := r.at("items", 3, "create").(map[string]any)["_id"]; !there || id != nil {
		t.Errorf("an item without an id: %v", r.at("items", 3))
	}
	s.do("POST", "/_bulk", "{\"index\":{}}\n{}\n").wantError(400, "action_request_validation_exception")

	s.do("DELETE", "/idx", "").want(200)
	s.do("GET", "/idx", "").wantError(404, "index_not_found_exception")
	s.do("PUT", "/idx", `[]`).wantError(400, "not_x_content_exception")
	s.do("PUT", "/idx?timeout=x", `{}`).wantError(400, "illegal_argument_exception")
	s.do("PUT", "/idx", `{"settings":{"number_of_shards":3,"stub":{"query_time":"5ms"}}}`).want(200)
	if got := s.do("GET", "/idx?flat_settings", "").at("idx", "settings", "index.stub.query_time"); got != "5ms" {
		t.Error(got)
	}
	if got := s.do("GET", "/idx", "").at("idx", "settings", "index", "stub", "query_time"); got != "5ms" {
		t.Error(got)
	}
}
