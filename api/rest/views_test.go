package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/wlmserver/wlmserver/api/rest"
	"github.com/wlmserver/wlmserver/tasks"
)

// nodesOf are the keys below nodes, as they were printed.
func (r response) nodesOf() string { r.Helper(); return r.keyOrder("nodes") }

// counts are those of who was asked.
func (r response) counts() string {
	r.Helper()
	return fmt.Sprint(r.at("_nodes", "total"), r.at("_nodes", "successful"), r.at("_nodes", "failed"))
}

// TestViewsOfAllNodes: whichever node is asked, each tells its part.
func TestViewsOfAllNodes(t *testing.T) {
	_, nodes := newCluster(t, 3)
	b := nodes[1]
	b.do("PUT", "/idx", `{"settings":{"number_of_shards":1,"number_of_replicas":0}}`).want(200)
	for range 2 {
		b.do("POST", "/idx/_search", `{}`).want(200)
	}
	for _, n := range nodes {
		r := n.do("GET", "/_wlm/stats", "").want(200)
		if got, want := r.keyOrder(), "_nodes cluster_name a-id b-id c-id"; got != want || r.counts() != "3 3 0" {
			t.Errorf("statistics have %s", r.body)
		}
		// As OpenSearch counts: the search, and the query of its shard.
		if got := r.at("b-id", "workload_groups", "DEFAULT_WORKLOAD_GROUP", "total_completions"); got != 4.0 {
			t.Errorf("node b has completed %v tasks", got)
		}
		if got := r.at("a-id", "workload_groups", "DEFAULT_WORKLOAD_GROUP", "total_completions"); got != 0.0 {
			t.Errorf("node a has completed %v tasks", got)
		}
		for _, path := range []string{"/_nodes", "/_nodes/stats"} {
			r := n.do("GET", path, "").want(200)
			if r.nodesOf() != "a-id b-id c-id" || r.counts() != "3 3 0" || r.at("nodes", "b-id", "name") != "beta" || r.at("nodes", "b-id", "transport_address") != b.address {
				t.Errorf("%s: %s", path, r.body)
			}
		}
		if r := n.do("GET", "/_nodes/stats/indices", ""); r.at("nodes", "b-id", "thread_pool") != nil || r.at("nodes", "b-id", "indices") == nil {
			t.Errorf("other metrics than were asked for: %s", r.body)
		}
		if r := n.do("GET", "/_wlm/check", "").want(200); r.keyOrder() != "_nodes cluster_name a-id b-id c-id" || r.at("b-id", "recovered") != 0.0 {
			t.Errorf("check: %s", r.body)
		}
		if r := n.do("GET", "/_cluster/health", "").want(200); r.at("number_of_nodes") != 3.0 || r.at("number_of_data_nodes") != 3.0 || r.at("reasons") != nil {
			t.Errorf("health: %s", r.body)
		}
		for path, want := range map[string]string{
			"/_cat/nodes?h=id,name,cluster_manager,version&full_id":      "a-id alpha * 3.7.0\nb-id beta  - 3.7.0\nc-id gamma - 3.7.0\n",
			"/_cat/nodes?h=n&s=name:desc":                                "gamma\nbeta\nalpha\n",
			"/_cat/thread_pool?h=node_name,completed,size&s=completed,n": "alpha 0 8\ngamma 0 8\nbeta  2 8\n",
			"/_cat/thread_pool/nosuch":                                   "",
			"/_cat/health?ts=false&h=node.total,node.data":               "3 3\n",
			"/_cat/cluster_manager?h=id,node":                            "a-id alpha\n",
			"/_list/wlm_stats?h=NODE_ID,TOTAL_COMPLETIONS":               "a-id                    0\nb-id                    4\nc-id                    0\nNo more pages available -\n",
			"/_list/wlm_stats/b*/stats?h=NODE_ID,QUEUE_PEAK":             "b-id                    0\nNo more pages available -\n",
		} {
			if got := n.do("GET", path, "").want(200).body; got != want {
				t.Errorf("%s: %q, want %q", path, got, want)
			}
		}
	}
}

// TestStatsOfGroupsOverNodes: rows and pages go over all nodes, and a group that nobody knows is a failure of each.
func TestStatsOfGroupsOverNodes(t *testing.T) {
	cl, nodes := newCluster(t, 1)
	id := nodes[0].group("g", `,"throttling":{"attribute":"group","node_limit":1}`)
	n := &node{id: "b-id", cl: cl} // reads the group when it starts
	n.server = newServer(t, func(o *options) { o.id, o.name, o.cluster, o.groups = n.id, "beta", n, cl.groups })
	cl.mu.Lock()
	cl.nodes[n.id] = n
	cl.members = append(cl.members, rest.Member{ID: n.id, Name: "beta"})
	cl.mu.Unlock()
	a := nodes[0]
	if r := a.do("GET", "/_wlm/stats/"+id, "").want(200); r.counts() != "2 2 0" || r.keyOrder("b-id", "workload_groups") != id || r.keyOrder("a-id", "workload_groups") != id {
		t.Errorf("one group: %s", r.body)
	}
	if r := a.do("GET", "/_wlm/beta/stats/"+id, "").want(200); r.keyOrder() != "_nodes cluster_name b-id" {
		t.Errorf("one group of one node: %s", r.body)
	}
	r := a.do("GET", "/_wlm/stats/nosuch", "").want(200)
	if r.counts() != "2 0 2" || r.keyOrder() != "_nodes cluster_name" {
		t.Errorf("no group: %s", r.body)
	}
	for i, node := range []string{"a-id", "b-id"} {
		f := at(r.json(), "_nodes", "failures", i)
		if at(f, "type") != "failed_node_exception" || at(f, "node_id") != node || at(f, "caused_by", "type") != "resource_not_found_exception" ||
			!strings.Contains(at(f, "caused_by", "reason").(string), "nosuch") {
			t.Errorf("failure %v", f)
		}
	}
	var want []string
	for _, group := range slices.Sorted(slices.Values([]string{"DEFAULT_WORKLOAD_GROUP", id})) {
		want = append(want, "a-id "+group, "b-id "+group)
	}
	const path = "/_list/wlm_stats?size=3&format=json&sort=workload_group&h=NODE_ID,WORKLOAD_GROUP_ID"
	first := a.do("GET", path, "").want(200)
	rows := first.at("wlm_stats").([]any)
	last := a.do("GET", path+"&next_token="+url.QueryEscape(first.at("next_token").(string)), "").want(200)
	var more []any // with a row that says that there are no more
	must(t, json.Unmarshal([]byte(last.body), &more))
	var got []string
	for _, row := range append(rows, more[:len(more)-1]...) {
		got = append(got, fmt.Sprint(at(row, "NODE_ID"), " ", at(row, "WORKLOAD_GROUP_ID")))
	}
	if !slices.Equal(got, want) || len(rows) != 3 {
		t.Errorf("pages of %v, the first with %d; want %v", got, len(rows), want)
	}
}

// TestNodeExpressions: what names nodes names the same ones everywhere.
func TestNodeExpressions(t *testing.T) {
	cl, nodes := newCluster(t, 3)
	cl.members[0].Roles = []string{"ingest"} // gamma, as the others see it
	cl.members[0].Attributes = map[string]string{"rack": "r1"}
	members, b := cl.members, nodes[1]
	for expressions, want := range map[string]string{
		"":                            "a-id b-id c-id",
		"_all":                        "a-id b-id c-id",
		"*":                           "a-id b-id c-id",
		"_local":                      "b-id",
		"_cluster_manager":            "a-id",
		"_master":                     "a-id",
		"c-id":                        "c-id",
		"alpha,gamma":                 "a-id c-id",
		"gamma,alpha":                 "a-id c-id",
		"alpha,a-id":                  "a-id",
		"*m*a":                        "c-id",
		nodes[2].address:              "c-id",
		"127.0.0.*":                   "a-id b-id c-id",
		"127.0.0.1":                   "a-id b-id c-id",
		"data:true":                   "a-id b-id",
		"ingest:true":                 "b-id c-id", // b knows of itself that it is one
		"ra*:r*":                      "c-id",
		"rack:r2":                     "",
		"coordinating_only:true":      "",
		"rack:r1":                     "c-id",
		"_all,data:false":             "c-id",
		"master:true":                 "a-id b-id",
		"data:true,alpha":             "a-id b-id",
		"_all,data:false,_local":      "b-id c-id",
		"nosuch":                      "",
		"nosuch,alpha":                "a-id",
		"data:false":                  "",
		"alpha,cluster_manager:false": "",
	} {
		path := "/_nodes/" + expressions + "/http"
		if expressions == "" {
			path = "/_nodes/http"
		}
		r := b.do("GET", path, "").want(200)
		if got := r.nodesOf(); got != want {
			t.Errorf("%s names [%s], want [%s]", expressions, got, want)
		}
		if n := float64(len(strings.Fields(want))); r.at("_nodes", "total") != n || r.at("_nodes", "successful") != n {
			t.Errorf("%s: counts %s", expressions, r.counts())
		}
	}
	cl.mu.Lock()
	cl.members = append(cl.members, cl.members...)
	cl.mu.Unlock()
	if r := b.do("GET", "/_nodes/http", ""); r.nodesOf() != "a-id b-id c-id" || r.counts() != "3 3 0" {
		t.Errorf("nodes that are members twice: %s", r.body)
	}
	cl.mu.Lock()
	cl.members = nil
	cl.mu.Unlock()
	if r := b.do("GET", "/_nodes/http", ""); r.nodesOf() != "b-id" {
		t.Errorf("a node that is no member does not know itself: %s", r.body)
	}
	cl.mu.Lock()
	cl.members = members
	cl.mu.Unlock()
	before := nodes[0].times() + nodes[2].times()
	b.do("GET", "/_nodes/_local", "").want(200)
	b.do("GET", "/_wlm/nosuch/stats", "").want(200)
	b.do("GET", "/_cat/nodes?help", "").want(200)
	if n := nodes[0].times() + nodes[2].times() - before; n != 0 {
		t.Errorf("nodes that were not named were asked %d times", n)
	}
}

// TestNodesThatDoNotAnswer: who cannot be reached, or is late, is counted with the reason; the others are there all the same.
func TestNodesThatDoNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := newCluster(t, 3, func(o *options) { o.bubble = true })
		a, b, c := nodes[0], nodes[1], nodes[2]
		b.reached(cut)
		c.reached(lags(time.Hour))
		for path, wait := range map[string]time.Duration{
			"/_nodes":                  30 * time.Second,
			"/_nodes?timeout=2s":       2 * time.Second,
			"/_nodes/stats?timeout=3s": 3 * time.Second,
			"/_wlm/stats":              30 * time.Second,
			"/_wlm/check":              30 * time.Second,
		} {
			begun := time.Now()
			r := a.do("GET", path, "").want(200)
			if took := time.Since(begun); took != wait {
				t.Errorf("%s took %v, want %v", path, took, wait)
			}
			if r.counts() != "3 1 2" {
				t.Errorf("%s: counts %s", path, r.counts())
			}
			for i, want := range []struct{ node, why, word string }{
				{"b-id", "transport_exception", "refused"}, {"c-id", "receive_timeout_transport_exception", "[" + strings.TrimSuffix(wait.String(), "0s")},
			} {
				f := at(r.json(), "_nodes", "failures", i)
				reason, _ := at(f, "caused_by", "reason").(string)
				if at(f, "type") != "failed_node_exception" || at(f, "node_id") != want.node || at(f, "caused_by", "type") != want.why || !strings.Contains(reason, want.word) {
					t.Errorf("%s: failure %v", path, f)
				}
			}
		}
		for path, want := range map[string]string{
			"/_cat/nodes?timeout=1s&h=name,heap.percent,ip,node.role,cluster_manager": "", // compared below
			"/_cat/thread_pool?timeout=1s&h=node_name":                                "alpha\n",
			"/_cat/tasks?timeout=1s&h=node&actions=nosuch":                            "",
			"/_list/wlm_stats?timeout=1s&h=NODE_ID":                                   "a-id\nNo more pages available\n",
		} {
			begun := time.Now()
			r := a.do("GET", path, "").want(200)
			if took := time.Since(begun); took != time.Second {
				t.Errorf("%s took %v", path, took)
			}
			if want != "" && r.body != want {
				t.Errorf("%s: %q, want %q", path, r.body, want)
			}
		}
		rows := strings.Split(a.do("GET", "/_cat/nodes?timeout=1s&h=name,cluster_manager,node.role,heap.current", "").want(200).body, "\n")
		if len(rows) != 4 || strings.Join(strings.Fields(rows[1]), " ") != "beta - dm" || len(strings.Fields(rows[0])) != 4 {
			t.Errorf("rows of silent nodes: %q", rows)
		}
		for _, path := range []string{"/_tasks?timeout=1s", "/_tasks?timeout=1s&group_by=parents"} {
			r := a.do("GET", path, "").want(200)
			if r.at("node_failures", 0, "node_id") != "b-id" || r.at("node_failures", 1, "caused_by", "type") != "receive_timeout_transport_exception" {
				t.Errorf("%s: %s", path, r.body)
			}
		}
		if r := a.do("POST", "/_tasks/_cancel?nodes=beta", "").want(200); r.at("node_failures", 0, "caused_by", "type") != "transport_exception" || r.nodesOf() != "" {
			t.Errorf("cancel: %s", r.body)
		}
		a.do("GET", "/_tasks/b-id:1", "").wantError(503, "transport_exception")
		begun := time.Now()
		a.do("GET", "/_tasks/c-id:1?timeout=7s", "").wantError(504, "timeout_exception")
		if took := time.Since(begun); took != 7*time.Second {
			t.Errorf("a late node was waited for %v", took)
		}
		b.reached(lags(time.Second))
		c.reached(lags(2 * time.Second))
		begun = time.Now()
		if r := a.do("GET", "/_nodes", "").want(200); r.counts() != "3 3 0" || time.Since(begun) != 2*time.Second {
			t.Errorf("nodes are not asked at once: %s after %v", r.counts(), time.Since(begun))
		}
	})
}

// TestWhatNodesAnswer: numbers arrive as they were sent, what an older node does not know is 0, and what it answers instead of its part is its
// failure.
func TestWhatNodesAnswer(t *testing.T) {
	_, nodes := newCluster(t, 2)
	a, b := nodes[0], nodes[1]
	as := func(status int, body string) {
		b.answers(func(rest.LocalAnswer) rest.LocalAnswer { return rest.LocalAnswer{Status: status, Body: []byte(body)} })
	}
	as(200, `{"workload_groups":{"z":{"total_completions":9223372036854775807,"total_throttled":7,"total_queued":9007199254740993,"cpu":{"current_usage":1.0E-6,"cancellations":2,"rejections":0},`+
		`"memory":{"current_usage":0.30000000000000004,"cancellations":0,"rejections":0}},"y":{}}}`)
	const want = `"b-id":{"workload_groups":{"y":{"total_completions":0,"total_rejections":0,"total_cancellations":0,"total_throttled":0,"total_would_throttle":0,` +
		`"total_queued":0,"total_queue_rejections":0,"queued_current":0,"queue_peak":0,"queue_wait_count":0,"total_queue_wait_millis":0,"max_queue_wait_millis":0,` +
		`"cpu":{"current_usage":0.0,"cancellations":0,"rejections":0},"memory":{"current_usage":0.0,"cancellations":0,"rejections":0}},` +
		`"z":{"total_completions":9223372036854775807,"total_rejections":0,"total_cancellations":0,"total_throttled":7,"total_would_throttle":0,` +
		`"total_queued":9007199254740993,"total_queue_rejections":0,"queued_current":0,"queue_peak":0,"queue_wait_count":0,"total_queue_wait_millis":0,"max_queue_wait_millis":0,` +
		`"cpu":{"current_usage":1.0E-6,"cancellations":2,"rejections":0},"memory":{"current_usage":0.30000000000000004,"cancellations":0,"rejections":0}}}}`
	if got := a.do("GET", "/_wlm/stats", "").want(200).body; !strings.Contains(got, want) {
		t.Errorf("statistics of another node:\n%s\nwant\n%s", got, want)
	}
	const header = "NODE_ID,WORKLOAD_GROUP_ID,TOTAL_COMPLETIONS,CPU_USAGE,TOTAL_QUEUED,QUEUE_PEAK"
	if got := a.do("GET", "/_list/wlm_stats/b-id/stats?h="+header, "").want(200).body; !strings.Contains(got, "b-id                    z 9223372036854775807 1.0E-6 9007199254740993 0") {
		t.Errorf("rows of another node: %q", got)
	}

	// Whatever numbers a node tells are told on as they are.
	b.answers(func(l rest.LocalAnswer) rest.LocalAnswer {
		l.Body = bytes.Replace(l.Body, []byte(`"count":0`), []byte(`"count":9007199254740993`), 1)
		return l
	})
	if got := a.do("GET", "/_nodes/stats/indices", "").want(200).body; !strings.Contains(got, `"count":9007199254740993`) {
		t.Errorf("a number has changed: %s", got)
	}

	as(500, `{"error":{"root_cause":[],"type":"illegal_state_exception","reason":"so it is","caused_by":{"type":"deeper","reason":null}},"status":500}`)
	if r := a.do("GET", "/_nodes", "").want(200); r.counts() != "2 1 1" || r.at("_nodes", "failures", 0, "caused_by", "reason") != "so it is" ||
		r.at("_nodes", "failures", 0, "caused_by", "caused_by", "type") != "deeper" {
		t.Errorf("a node that has failed: %s", r.body)
	}
	for body, typ := range map[string]string{`{"error":"no handler"}`: "exception", `{}`: "exception", "": "exception"} {
		as(400, body)
		if r := a.do("GET", "/_nodes/stats", "").want(200); r.at("_nodes", "failures", 0, "caused_by", "type") != typ {
			t.Errorf("%s: %s", body, r.body)
		}
	}
	for _, body := range []string{"", "{", "[]"} { // no part of anything
		as(200, body)
		for _, path := range []string{"/_wlm/stats", "/_wlm/check", "/_nodes", "/_nodes/stats"} {
			if r := a.do("GET", path, "").want(200); r.counts() != "2 1 1" || r.at("_nodes", "failures", 0, "caused_by", "type") != "transport_exception" {
				t.Errorf("%s of %q: %s", path, body, r.body)
			}
		}
	}

	as(200, `{"found":{"buckets":1,"waiting":0,"running":1,"evicted":{},"recovered":0},"disagreements":["a permit has no task"]}`)
	r := a.do("GET", "/_wlm/check", "").wantError(500, "illegal_state_exception")
	if reason := r.at("error", "reason").(string); !strings.Contains(reason, "node [beta]: a permit has no task") {
		t.Errorf("reason %q", reason)
	}
}

// TestFormsOfViews: an answer of all nodes is laid out as any other.
func TestFormsOfViews(t *testing.T) {
	_, nodes := newCluster(t, 2)
	a := nodes[0]
	for path, want := range map[string]string{
		"/_nodes?filter_path=nodes.*.name":                 `{"nodes":{"a-id":{"name":"alpha"},"b-id":{"name":"beta"}}}`,
		"/_nodes?filter_path=nodes.*.name&pretty":          "{\n  \"nodes\" : {\n    \"a-id\" : {\n      \"name\" : \"alpha\"\n    },\n    \"b-id\" : {\n      \"name\" : \"beta\"\n    }\n  }\n}\n",
		"/_wlm/stats?format=yaml&filter_path=_nodes.total": "---\n_nodes:\n  total: 2\n",
		"/_cat/nodes?format=json&h=n":                      `[{"n":"alpha"},{"n":"beta"}]`,
	} {
		if got := a.do("GET", path, "").want(200).body; got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if r := a.do("GET", "/_nodes/stats/jvm?human", ""); r.at("nodes", "b-id", "jvm", "uptime") == nil {
		t.Errorf("not for people: %s", r.body)
	}
	for _, unit := range []string{"", "&bytes=b"} { // as they are printed for a node alone
		rows := strings.Split(a.do("GET", "/_cat/nodes?h=heap.max"+unit, "").want(200).body, "\n")
		if rows[0] != rows[1] {
			t.Errorf("sizes: %q", rows)
		}
	}
}

// TestServeLocal: only what a node says for itself can be asked of it, and what is wrong with the request is the answer.
func TestServeLocal(t *testing.T) {
	s := newServer(t, withUsers)
	for _, c := range []struct {
		method, path, query string
		status              int
	}{
		{"GET", "/_nodes", "", 200},
		{"GET", "/_nodes", "timeout=x", 400},
		{"GET", "/_nodes", "nosuch=1", 400},
		{"GET", "/_nodes", "pretty=x", 400},
		{"GET", "/_nodes", "%zz", 400},
		{"GET", "/%zz", "", 400},
		{"GET", "/_wlm/a%2Fb/stats", "", 200},
		{"GET", "/", "", 400},
		{"GET", "/nosuch", "", 400},
		{"DELETE", "/_nodes", "", 400},
		{"POST", "/_search", "", 400},
		{"PUT", "/_cluster/settings", "", 400},
	} {
		a, err := s.rest.ServeLocal(t.Context(), rest.LocalRequest{Method: c.method, Path: c.path, RawQuery: c.query})
		if err != nil || a.Status != c.status || len(a.Body) == 0 {
			t.Errorf("%s %s?%s: %d %s, %v", c.method, c.path, c.query, a.Status, a.Body, err)
		}
	}
	for _, parent := range []string{"garbage", "b-id:1"} { // is shown, if it can be
		r := rest.LocalRequest{Method: "GET", Path: "/_tasks", Header: http.Header{"X-Wlmserver-Parent-Task": {parent}}}
		a, err := s.rest.ServeLocal(t.Context(), r)
		if err != nil || a.Status != 200 || bytes.Contains(a.Body, []byte(`"parent_task_id":"`+parent+`"`)) != (parent == "b-id:1") {
			t.Errorf("for %s: %d %s, %v", parent, a.Status, a.Body, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(tasks.DisconnectCause())
	if a, err := s.rest.ServeLocal(ctx, rest.LocalRequest{Method: "GET", Path: "/_nodes"}); err != nil || a.Status == 0 {
		t.Errorf("for nobody: %d %s, %v", a.Status, a.Body, err)
	}
}

// TestServeLocalPanics: a mistake of the program is an answer, too, and in the log.
func TestServeLocalPanics(t *testing.T) {
	log := new(lockedBuffer)
	s := rest.New(rest.Config{Log: zerolog.New(log), Tasks: tasks.NewManager("n")}) // without statistics to tell
	defer s.Close()
	a, err := s.ServeLocal(t.Context(), rest.LocalRequest{Method: "GET", Path: "/_wlm/stats"})
	if err != nil || a.Status != 500 || !bytes.Contains(a.Body, []byte(`"type":"exception"`)) || !strings.Contains(log.String(), "panicked") {
		t.Errorf("%d %s, %v; log %s", a.Status, a.Body, err, log)
	}
}

func TestHealthOfACluster(t *testing.T) {
	cl, nodes := newCluster(t, 2)
	a := nodes[0]
	good := rest.ClusterHealth{Metadata: true, Member: true, SharedTier: true}
	for name, c := range map[string]struct {
		change  func(*rest.ClusterHealth)
		status  string
		manager bool
		reasons []string
	}{
		"good":            {func(*rest.ClusterHealth) {}, "green", true, nil},
		"without etcd":    {func(h *rest.ClusterHealth) { h.Metadata = false }, "yellow", false, []string{"etcd"}},
		"a node is gone":  {func(h *rest.ClusterHealth) { h.Missing = []string{"gamma"} }, "yellow", true, []string{"node [gamma]"}},
		"an owner silent": {func(h *rest.ClusterHealth) { h.SharedTier = false }, "yellow", true, []string{"shared limits"}},
		"an old member":   {func(h *rest.ClusterHealth) { h.Reasons = []string{"node [beta] is of version 3.6.0"} }, "yellow", true, []string{"3.6.0"}},
		"cut off":         {func(h *rest.ClusterHealth) { h.Member, h.Metadata = false, false }, "red", false, []string{"not a member", "etcd"}},
	} {
		h := good
		c.change(&h)
		cl.is(h)
		r := a.do("GET", "/_cluster/health", "").want(200)
		reasons, _ := r.at("reasons").([]any)
		if r.at("status") != c.status || r.at("discovered_cluster_manager") != c.manager || r.at("discovered_master") != c.manager || len(reasons) != len(c.reasons) {
			t.Errorf("%s: %s", name, r.body)
			continue
		}
		for i, word := range c.reasons {
			if !strings.Contains(reasons[i].(string), word) {
				t.Errorf("%s: %v says nothing of %s", name, reasons[i], word)
			}
		}
		if got := a.do("GET", "/_cat/health?h=status", "").want(200).body; got != c.status+"\n" {
			t.Errorf("%s: the table says %q", name, got)
		}
	}

	cl.is(rest.ClusterHealth{Member: true, SharedTier: true})
	a.do("GET", "/_cluster/health?wait_for_status=green&timeout=10ms", "").want(408)
	better := a.background("GET", "/_cluster/health?wait_for_status=green&wait_for_nodes=>=2", "")
	a.eventually("the wait has begun", func() bool { return a.running("cluster:monitor/health") == 1 })
	cl.is(good)
	(<-better).want(200)
	a.do("PUT", "/idx", `{"settings":{"number_of_replicas":1}}`).want(200)
	cl.is(rest.ClusterHealth{})
	if got := a.do("GET", "/_cluster/health", "").want(200).at("status"); got != "red" {
		t.Errorf("with replicas that have no place a node that is cut off is %v", got)
	}
}
