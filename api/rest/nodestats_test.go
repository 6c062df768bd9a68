package rest_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestNodeStats(t *testing.T) {
	s := newServer(t)
	s.do("PUT", "/idx", `{"settings":{"number_of_shards":3,"number_of_replicas":0}}`).want(200)
	s.do("PUT", "/idx/_doc/1", `{}`).want(201)
	s.do("POST", "/idx/_search?size=0", `{}`).want(200)
	all := s.do("GET", "/_nodes/stats", "").want(200)
	for _, c := range []struct {
		want any
		path []any
	}{
		{1.0, []any{"_nodes", "total"}},
		{nodeName, []any{"nodes", nodeID, "name"}},
		{s.address, []any{"nodes", nodeID, "ip"}},
		{1.0, []any{"nodes", nodeID, "indices", "docs", "count"}},
		{-1.0, []any{"nodes", nodeID, "process", "cpu", "percent"}},
		{float64(1 << 30), []any{"nodes", nodeID, "jvm", "mem", "heap_max_in_bytes"}},
		{0.0, []any{"nodes", nodeID, "jvm", "gc", "collectors", "young", "collection_count"}}, // benchmarks read both
		{3.0, []any{"nodes", nodeID, "thread_pool", "search", "completed"}},
		{0.0, []any{"nodes", nodeID, "thread_pool", "search", "active"}},
		{1.0, []any{"nodes", nodeID, "http", "current_open"}}, // one client, one request after the other
		{1.0, []any{"nodes", nodeID, "http", "total_opened"}},
		{"monitor_only", []any{"nodes", nodeID, "search_backpressure", "mode"}},
		{0.0, []any{"nodes", nodeID, "task_cancellation", "search_task", "current_count_post_cancel"}},
	} {
		if got := all.at(c.path...); got != c.want {
			t.Errorf("%v is %v, want %v", c.path, got, c.want)
		}
	}
	for _, path := range [][]any{{"gc", "collectors", "old", "collection_time_in_millis"}, {"mem", "pools"}} {
		if all.at(append([]any{"nodes", nodeID, "jvm"}, path...)...) == nil {
			t.Errorf("there is no jvm %v", path)
		}
	}
	if used, _ := all.at("nodes", nodeID, "jvm", "mem", "heap_used_in_bytes").(float64); used <= 0 {
		t.Errorf("the heap is empty: %v", used)
	}

	s.do("PUT", "/_cluster/settings", `{"transient":{"search_backpressure.mode":"disabled"}}`).want(200)
	if got := s.do("GET", "/_nodes/stats/search_backpressure", "").at("nodes", nodeID, "search_backpressure", "mode"); got != "disabled" {
		t.Errorf("mode %v", got)
	}
}

// TestNodeStatsMetrics: an answer has the parts that were asked for, after those that it always has.
func TestNodeStatsMetrics(t *testing.T) {
	s := newServer(t)
	always := len(s.do("GET", "/_nodes/stats/os", "").want(200).at("nodes", nodeID).(map[string]any))
	for path, parts := range map[string]int{
		"/_nodes/stats":                               7,
		"/_nodes/stats/_all":                          7,
		"/_nodes/_local/stats":                        7,
		"/_nodes/data:true/stats/http,os,jvm":         2,
		"/_nodes/stats/thread_pool,task_cancellation": 2,
		"/_nodes/stats/admission_control":             0,
	} {
		if got := len(s.do("GET", path, "").want(200).at("nodes", nodeID).(map[string]any)) - always; got != parts {
			t.Errorf("%s: %d parts, want %d", path, got, parts)
		}
	}
	if got := s.do("GET", "/_nodes/nosuch/stats/http", "").want(200).at("nodes").(map[string]any); len(got) != 0 {
		t.Errorf("%v", got)
	}
	for path, fragment := range map[string]string{
		"/_nodes/stats/nosuch":            "[nosuch]",
		"/_nodes/_local/stats/jvm,nosuch": "[nosuch]",
		"/_nodes/stats/thread_pol":        "did you mean [thread_pool]?",
		"/_nodes/stats/_all,jvm":          "[_all]",
		"/_nodes/stats?timeout=x":         "[timeout]",
		"/_nodes/stats?nosuch=x":          "[nosuch]",
	} {
		r := s.do("GET", path, "").wantError(400, "illegal_argument_exception")
		if reason := r.at("error", "reason").(string); !strings.Contains(reason, fragment) {
			t.Errorf("%s: %s", path, reason)
		}
	}
	human := s.do("GET", "/_nodes/stats/thread_pool,jvm,process?human", "").want(200)
	if got := human.at("nodes", nodeID, "jvm", "mem", "heap_max"); got != "1gb" {
		t.Errorf("%v", got)
	}
	if got := human.at("nodes", nodeID, "thread_pool", "search", "total_wait_time"); got != "0s" {
		t.Errorf("%v", got)
	}
}

// TestNodeStatsCountsConnections: a connection counts from when it is there until it is gone.
func TestNodeStatsCountsConnections(t *testing.T) {
	s := newServer(t)
	open := func() (current, total float64) {
		r := s.do("GET", "/_nodes/stats/http", "").want(200)
		return r.at("nodes", nodeID, "http", "current_open").(float64), r.at("nodes", nodeID, "http", "total_opened").(float64)
	}
	c, _ := s.dial()
	s.eventually("two connections are open", func() bool { now, all := open(); return now == 2 && all == 2 })
	c.Close()
	s.eventually("one is gone", func() bool { now, all := open(); return now == 1 && all == 2 })
}

// TestNodeStatsCountsLateTasks: what runs on ten seconds after it was cancelled is counted.
func TestNodeStatsCountsLateTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(o *options) { o.bubble = true })
		s.do("PUT", "/idx", `{"settings":{"number_of_shards":2,"number_of_replicas":0}}`).want(200)
		search := s.background("POST", "/idx/_search", `{"ext":{"stub":{"query_time":"1m","ignore_cancel":true}}}`)
		synctest.Wait()
		counts := func(which string) [2]any {
			r := s.do("GET", "/_nodes/stats/task_cancellation", "").want(200)
			return [2]any{r.at("nodes", nodeID, "task_cancellation", "search_task", which+"_count_post_cancel"),
				r.at("nodes", nodeID, "task_cancellation", "search_shard_task", which+"_count_post_cancel")}
		}
		late := func() [2]any { return counts("current") }
		s.do("POST", "/_tasks/_cancel?actions=*search", "").want(200)
		time.Sleep(10 * time.Second)
		if got := late(); got != [2]any{0.0, 0.0} {
			t.Errorf("after ten seconds: %v", got)
		}
		time.Sleep(time.Millisecond)
		if got := late(); got != [2]any{1.0, 2.0} {
			t.Errorf("after more: %v", got)
		}
		s.do("PUT", "/_cluster/settings", `{"transient":{"task_cancellation.duration_millis":20000}}`).want(200)
		if got := late(); got != [2]any{0.0, 0.0} {
			t.Errorf("with more patience: %v", got)
		}
		time.Sleep(10 * time.Second)
		s.do("PUT", "/_cluster/settings", `{"transient":{"task_cancellation.enabled":false}}`).want(200)
		if got := late(); got != [2]any{0.0, 0.0} {
			t.Errorf("switched off: %v", got)
		}
		<-search
		s.do("PUT", "/_cluster/settings", `{"transient":{"task_cancellation.enabled":null}}`).want(200)
		if got, all := late(), counts("total"); got != [2]any{0.0, 0.0} || all != [2]any{1.0, 2.0} {
			t.Errorf("once it has ended: %v run, of %v", got, all)
		}
	})
}
