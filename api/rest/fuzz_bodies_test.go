package rest_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// serverErrors are the errors of 5xx that a request can bring about, each as OpenSearch answers it.
var serverErrors = map[string]string{
	"class_cast_exception":             "a setting whose value is of another type",
	"illegal_state_exception":          "a change of groups while workload management is off, which the body before may have seen to; a source without its type",
	"search_phase_execution_exception": "all shards failed, as the body told them to: it has the status of their failures, and the stub says 500 for those",
	"task_cancelled_exception":         "a search whose time was up before it began",
	"unsupported_operation_exception":  "a table sorted by a column that it does not have",
}

// FuzzBodies sends any body to every route that changes something. None makes the server fail, and one that is refused changes
// nothing.
func FuzzBodies(f *testing.F) {
	for _, body := range []string{
		`{"name":"g","resiliency_mode":"enforced","resource_limits":{"cpu":0.5}}`,
		`{"name":"g","resiliency_mode":"soft","resource_limits":{"memory":0.1},"throttling":{"attribute":"group","node_limit":1},"queue":{"size_per_bucket":5}}`,
		`{"throttling":{"node_limit":2,"shared_limit":null},"queue":null}`, `{"throttling":null,"queue":{"size_per_bucket":1}}`, `{"resource_limits":{"cpu":2}}`,
		`{"settings":{"search.cancel_after_time_interval":"-1"}}`, `{"name":""}`,
		`{"persistent":{"search.cancel_after_time_interval":"10s"},"transient":{"wlm.workload_group.mode":"disabled"}}`,
		`{"transient":{"wlm.workload_group.mode":"enabled","nosuch":1}}`, `{"persistent":{"*":null}}`, `{"persistent":{"wlm.workload_group.mode":{"a":1}}}`,
		`{"persistent":{"search.max_buckets":[1]}}`,
		`{"description":"d","index_pattern":["a*","b"],"principal":{"username":["u"],"role":["r*"]},"workload_group":"GROUP"}`,
		`{"index_pattern":["a"],"workload_group":"nosuch"}`, `{"description":"","index_pattern":[],"workload_group":"GROUP"}`, `{"workload_group":null}`,
		`[]`, `{`, ``, `null`, "\xff", `{"a":1}{"a":2}`, `{"a":1,"a":2}`,
	} {
		f.Add([]byte(body))
	}
	s := newServer(f)
	state := func(t *testing.T) string {
		t.Helper()
		var b strings.Builder
		for _, path := range []string{"/_wlm/workload_group", "/_cluster/settings", rulesPath} {
			w, _ := s.serve(t, http.MethodGet, path, "")
			b.Write(w.Body.Bytes())
		}
		return b.String()
	}
	send := func(t *testing.T, target, body string) *httptest.ResponseRecorder {
		t.Helper()
		before := state(t)
		w, ok := s.serve(t, http.MethodPut, target, body)
		if !ok {
			t.Fatalf("%s cannot be asked", target)
		}
		check(t, w, target)
		if w.Code >= 400 && state(t) != before {
			t.Errorf("%s is refused with %d, and something changed: %s, before %s", target, w.Code, state(t), before)
		}
		if w.Code >= 500 && serverErrors[errorType(w.Body.Bytes())] == "" {
			t.Errorf("%s is answered %d %s", target, w.Code, w.Body)
		}
		return w
	}
	must := func(t *testing.T, target, body string, v any) {
		t.Helper()
		w := send(t, target, body)
		if err := json.Unmarshal(w.Body.Bytes(), v); w.Code != http.StatusOK || err != nil {
			t.Fatalf("%s is answered %d %s", target, w.Code, w.Body)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var settings, group, rule struct {
			Group string `json:"_id"`
			Rule  string `json:"id"`
		}
		must(t, "/_cluster/settings", `{"persistent":{"*":null},"transient":{"*":null,"wlm.workload_group.mode":"enabled"}}`, &settings)
		s.deleteAll(t, rulesPath, "rules", "id")
		s.deleteAll(t, "/_wlm/workload_group", "workload_groups", "name")
		must(t, "/_wlm/workload_group", `{"name":"target","resiliency_mode":"enforced","resource_limits":{"cpu":0.2},`+
			`"throttling":{"attribute":"role","node_limit":2},"queue":{"size_per_bucket":3}}`, &group)
		must(t, rulesPath, `{"description":"target","index_pattern":["logs-*"],"workload_group":"`+group.Group+`"}`, &rule)
		text := strings.ReplaceAll(string(body), "GROUP", group.Group)
		for _, target := range []string{rulesPath, rulesPath + "/" + rule.Rule, "/_wlm/workload_group/target", "/_wlm/workload_group", "/_cluster/settings",
			"/_wlm/workload_group/target"} {
			send(t, target, text)
		}
	})
}

// deleteAll deletes what a route lists, each by the field that names it.
func (s *server) deleteAll(t *testing.T, route, list, field string) {
	t.Helper()
	w, _ := s.serve(t, http.MethodGet, route, "")
	var all map[string]json.RawMessage
	var each []map[string]any
	err := json.Unmarshal(w.Body.Bytes(), &all)
	if err == nil {
		err = json.Unmarshal(all[list], &each)
	}
	if err != nil {
		t.Fatalf("%s: %v: %s", route, err, w.Body)
	}
	for _, x := range each {
		name, _ := x[field].(string)
		if w, ok := s.serve(t, http.MethodDelete, route+"/"+url.PathEscape(name), ""); !ok || w.Code != http.StatusOK {
			t.Fatalf("deleting %q: %d %s", name, w.Code, w.Body)
		}
	}
}

func errorType(body []byte) string {
	var e struct {
		Error struct {
			Type string `json:"type"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &e) != nil {
		return ""
	}
	return e.Error.Type
}

// FuzzSearches sends any body to every route that searches. None makes the server fail, and when it is answered no search is left.
func FuzzSearches(f *testing.F) {
	for _, body := range []string{
		``, `{}`, `{"query":{"match_all":{}},"size":3}`, `{"size":-1}`, `{"from":10000,"size":1}`, `{"query":{"nosuch":{}}}`, `{"query":[]}`, `{"sort":["_doc",{"a":"up"}]}`,
		`{"ext":{"stub":{"hits":2147483648,"fail_shards":1}}}`, `{"ext":{"stub":{"nested":"i"}}}`, `{"ext":{"stub":{"nested":"nosuch"}}}`, `{"ext":{"stub":{"fail_shards":9}}}`,
		"{}\n{}\n", "{\"index\":\"i\"}\n{\"ext\":{\"stub\":{\"fail_shards\":9}}}\n{\"index\":\"nosuch\"}\n{}\n", `{"scroll_id":"x"}`, `{"scroll_id":["a","b"]}`, "\xff", `{"a":`,
	} {
		f.Add([]byte(body))
	}
	s := newServer(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, costly := range []string{"time", "cpu", "memory", "jitter", "\\u"} {
			if strings.Contains(string(body), costly) {
				t.Skip("would really take its time, or hide that it does")
			}
		}
		if w, _ := s.serve(t, http.MethodPut, "/i", `{"settings":{"number_of_shards":2,"number_of_replicas":0}}`); w.Code != http.StatusOK && w.Code != http.StatusBadRequest {
			t.Fatalf("making an index: %d %s", w.Code, w.Body)
		}
		for _, target := range []string{"/i/_search", "/i/_count", "/i/_msearch", "/_search/scroll", "/i/_search?scroll=1m"} {
			w, _ := s.serve(t, http.MethodPost, target, string(body))
			check(t, w, target)
			if w.Code >= 500 && serverErrors[errorType(w.Body.Bytes())] == "" {
				t.Errorf("%s is answered %d %s", target, w.Code, w.Body)
			}
		}
		if w, _ := s.serve(t, http.MethodDelete, "/_search/scroll/_all", ""); w.Code != http.StatusOK && w.Code != http.StatusNotFound {
			t.Errorf("freeing all scrolls is answered %d %s", w.Code, w.Body)
		}
		if n := s.tasks.Len(); n != 0 {
			t.Errorf("%d tasks are left behind", n)
		}
		for _, left := range s.admission.CheckQuiet() {
			t.Error(left)
		}
	})
}
