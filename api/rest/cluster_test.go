package rest_test

import (
	"strings"
	"testing"
)

func TestHealth(t *testing.T) {
	s := newServer(t)
	s.do("PUT", "/one", `{"settings":{"number_of_shards":3,"number_of_replicas":0}}`).want(200)
	s.do("PUT", "/two", `{"settings":{"number_of_shards":1,"number_of_replicas":1}}`).want(200)
	for _, c := range []struct {
		path   string
		status int
		health string
		active float64
	}{
		{"/_cluster/health", 200, "yellow", 4}, // replicas have no other node to be on
		{"/_cluster/health/one", 200, "green", 3},
		{"/_cluster/health/o*", 200, "green", 3},
		{"/_cluster/health/none*", 200, "green", 0},
		{"/_cluster/health?wait_for_status=yellow", 200, "yellow", 4},
		{"/_cluster/health?wait_for_status=green&timeout=0s", 408, "yellow", 4},
		{"/_cluster/health/nosuch?timeout=20ms", 408, "red", 0},
		{"/_cluster/health?wait_for_nodes=1", 200, "yellow", 4},
		{"/_cluster/health?wait_for_nodes=>=1", 200, "yellow", 4},
		{"/_cluster/health?wait_for_nodes=ge(1)", 200, "yellow", 4},
		{"/_cluster/health?wait_for_nodes=<2", 200, "yellow", 4},
		{"/_cluster/health?wait_for_nodes=gt(1)&timeout=0", 408, "yellow", 4},
		{"/_cluster/health?wait_for_active_shards=4", 200, "yellow", 4},
		{"/_cluster/health?wait_for_active_shards=all&timeout=0", 408, "yellow", 4},
		{"/_cluster/health?level=bogus", 200, "yellow", 4},
	} {
		r := s.do("GET", c.path, "").want(c.status)
		if r.at("status") != c.health || r.at("active_shards") != c.active || r.at("timed_out") != (c.status == 408) {
			t.Errorf("%s: %s", c.path, r.body)
		}
	}
	if got := s.do("GET", "/_cluster/health", "").at("active_shards_percent_as_number"); got != 80.0 {
		t.Errorf("active: %v%%", got)
	}
	r := s.do("GET", "/_cluster/health/two?level=shards", "").want(200)
	if got := r.keyOrder("indices", "two", "shards", "0"); got != "status primary_active active_shards relocating_shards initializing_shards unassigned_shards" {
		t.Errorf("keys of a shard: %s", got)
	}
	if got := s.do("GET", "/_cluster/health?human", ""); got.at("active_shards_percent") != "80.0%" || got.at("task_max_waiting_in_queue") != "0s" {
		t.Error(got.body)
	}
	s.do("GET", "/_cluster/health/_bad", "").wantError(400, "invalid_index_name_exception")

	// It waits for an index that is made meanwhile.
	waiting := s.background("GET", "/_cluster/health/later?timeout=20s", "")
	s.eventually("health waits", func() bool { return s.running("cluster:monitor/health") == 1 })
	s.do("PUT", "/later", `{"settings":{"number_of_replicas":0}}`).want(200)
	if r := (<-waiting).want(200); r.at("status") != "green" {
		t.Error(r.body)
	}
}

func TestNodes(t *testing.T) {
	s := newServer(t)
	const header = "name transport_address host ip version build_type build_hash roles attributes"
	for path, want := range map[string]string{
		"/_nodes":                   header + " settings os process jvm thread_pool transport http",
		"/_nodes/_all":              header + " settings os process jvm thread_pool transport http",
		"/_nodes/" + nodeID:         header + " settings os process jvm thread_pool transport http",
		"/_nodes/http,os":           header + " os http",
		"/_nodes/_local/jvm":        header + " jvm",
		"/_nodes/_local/info/jvm":   header + " jvm",
		"/_nodes/_none":             header,
		"/_nodes/golden-*/plugins":  header,
		"/_nodes/golden-1,jvm/http": header + " http",
	} {
		r := s.do("GET", path, "").want(200)
		if got := r.keyOrder("nodes", nodeID); got != want {
			t.Errorf("%s: keys %s", path, got)
		}
	}
	r := s.do("GET", "/_nodes?human", "").want(200)
	node := r.at("nodes", nodeID)
	for _, x := range []struct {
		want any
		path []any
	}{
		{"127.0.0.1", []any{"ip"}},
		{float64(1 << 30), []any{"jvm", "mem", "heap_max_in_bytes"}},
		{"1gb", []any{"jvm", "mem", "heap_max"}},
		{float64(8), []any{"thread_pool", "search", "size"}},
		{s.address, []any{"http", "publish_address"}},
		{"go", []any{"settings", "http", "type"}},
		{"go", []any{"settings", "http", "type.default"}},
		{nodeName, []any{"settings", "node", "name"}},
	} {
		if got := at(node, x.path...); got != x.want {
			t.Errorf("%v is %v, want %v", x.path, got, x.want)
		}
	}
	if got := s.do("GET", "/_nodes?flat_settings", "").at("nodes", nodeID, "settings", "http.type.default"); got != "go" {
		t.Errorf("flat settings: %v", got)
	}
	for _, path := range []string{"/_nodes/nosuch", "/_nodes/nosuch/http", "/_nodes/data:false"} {
		if got := s.do("GET", path, "").want(200).body; got != `{"_nodes":{"total":0,"successful":0,"failed":0},"cluster_name":"golden","nodes":{}}` {
			t.Errorf("%s: %s", path, got)
		}
	}
}

func TestGroupAnswers(t *testing.T) {
	longName := strings.Repeat("a", 51)
	s := newServer(t)
	r := s.do("PUT", "/_wlm/workload_group", `{"name":"g","resiliency_mode":"ENFORCED","resource_limits":{"native_memory":0.000001,"memory":1e-4,"cpu":"0.25"},
		"settings":{"search.max_buckets":5},"throttling":{"by":"username","node_limit":4,"shared_limit":"9"},"queue":{"size_per_bucket":10}}`).want(200)
	const keys = "_id name resiliency_mode resource_limits settings throttling queue updated_at"
	if got := r.keyOrder(); got != keys {
		t.Errorf("keys: %s", got)
	}
	if got := r.keyOrder("throttling"); got != "attribute node_limit shared_limit" || r.at("throttling", "shared_limit") != float64(9) {
		t.Error(r.body)
	}
	for _, part := range []string{`"resource_limits":{"cpu":0.25,"memory":1.0E-4,"native_memory":1.0E-6}`, `"settings":{"search.max_buckets":"5"}`, `"queue":{"size_per_bucket":10}`} {
		if !strings.Contains(r.body, part) {
			t.Errorf("%s lacks %s", r.body, part)
		}
	}
	if got := s.do("PUT", "/_wlm/workload_group/g", `{"throttling":null,"queue":null,"settings":{}}`).want(200).keyOrder(); got != "_id name resiliency_mode resource_limits settings updated_at" {
		t.Errorf("keys without throttling: %s", got)
	}
	s.do("GET", "/_wlm/workload_group/"+longName, "").wantError(400, "illegal_argument_exception")
	s.do("PUT", "/_wlm/workload_group/"+longName, `{}`).wantError(400, "illegal_argument_exception")
	s.do("DELETE", "/_wlm/workload_group/"+longName, "").wantError(404, "resource_not_found_exception")
	s.do("PUT", "/_wlm/workload_group?timeout=x", `{}`).wantError(400, "illegal_argument_exception")
	if s.tasks.Len() != 0 {
		t.Error("a task is left behind")
	}

	s.do("PUT", "/_cluster/settings", `{"transient":{"wlm.workload_group.mode":"disabled"}}`).want(200)
	for _, x := range []struct{ method, path, body string }{
		{"PUT", "/_wlm/workload_group", `{"name":"h","resiliency_mode":"soft","resource_limits":{"cpu":0.1}}`},
		{"POST", "/_wlm/workload_group/g", `{}`},
		{"DELETE", "/_wlm/workload_group/g", ""},
	} {
		s.do(x.method, x.path, x.body).wantError(500, "illegal_state_exception")
	}
	s.do("GET", "/_wlm/workload_group/g", "").want(200)
}
