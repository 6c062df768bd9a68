package compat_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// rule draws the requests of one kind: mostly one, for a scroll all of its pages.
type rule struct {
	kind   string
	weight int
	draw   func(*gen) []*request
}

// rules are the grammar.
func rules() []rule {
	return []rule{
		{"root", 2, one((*gen).root)},
		{"settings", 12, one((*gen).settings)},
		{"group", 22, one((*gen).group)},
		{"wlm-stats", 6, one((*gen).wlmStats)},
		{"list-stats", 4, one((*gen).listStats)},
		{"tasks", 8, one((*gen).tasks)},
		{"search", 22, one((*gen).search)},
		{"count", 6, one((*gen).count)},
		{"msearch", 7, one((*gen).msearch)},
		{"scroll", 5, (*gen).scroll},
		{"bulk", 8, one((*gen).bulk)},
		{"doc", 14, one((*gen).doc)},
		{"update", 5, one((*gen).update)},
		{"index", 7, one((*gen).index)},
		{"index-state", 4, one((*gen).indexState)},
		{"index-settings", 6, one((*gen).indexSettings)},
		{"validate", 5, one((*gen).validate)},
		{"health", 5, one((*gen).health)},
		{"nodes", 5, one((*gen).nodes)},
		{"nodes-stats", 4, one((*gen).nodesStats)},
		{"cat", 11, one((*gen).cat)},
	}
}

func one(draw func(*gen) *request) func(*gen) []*request {
	return func(g *gen) []*request { return []*request{draw(g)} }
}

// sequenceLength is how many requests a sequence has, beside those that lay the ground.
const sequenceLength = 30

// sequence draws the requests of one sequence. Every other one is of requests that are known to differ, most of which part the servers.
func sequence(seed, number uint64) []*request {
	if number%2 == 0 {
		return append(ground(), meant(number/2)...)
	}
	g := &gen{Rand: rand.New(rand.NewPCG(seed, number))}
	all := ground()
	total := 0
	for _, r := range rules() {
		total += r.weight
	}
	for drawn := 0; drawn < sequenceLength; {
		at := g.IntN(total)
		for _, rule := range rules() {
			if at -= rule.weight; at >= 0 {
				continue
			}
			drawnNow := rule.draw(g)
			for slices.ContainsFunc(drawnNow, func(r *request) bool { return r.oddities() > 1 }) {
				drawnNow = rule.draw(g)
			}
			for _, r := range drawnNow {
				r.kind = rule.kind
				if r.oddities() == 0 && g.chance(0.65) {
					g.mutate(r)
				}
				r.strip()
				g.decorate(r)
				all = append(all, r)
				drawn++
			}
			break
		}
	}
	return all
}

// odd marks, in the grammar, what makes a request odd: what is refused, names what is missing or is rarely seen. A request has at
// most one oddity, or else is damaged once: which of two mistakes a server tells means nothing.
const odd = "¡"

// oddities counts what makes the request odd.
func (r *request) oddities() int {
	return strings.Count(r.target(), odd) + strings.Count(r.body, odd)
}

// strip takes the marks away.
func (r *request) strip() {
	for _, s := range append([]*string{&r.path, &r.body, &r.learn}, pointers(r.query)...) {
		*s = strings.ReplaceAll(*s, odd, "")
	}
	for i := range r.headers {
		r.headers[i].value = strings.ReplaceAll(r.headers[i].value, odd, "")
	}
}

func pointers(list []string) []*string {
	all := make([]*string, len(list))
	for i := range list {
		all[i] = &list[i]
	}
	return all
}

// ground is what each sequence begins with: two indices, a few documents, two groups.
func ground() []*request {
	g := func(method, path, body string) *request {
		r := jsonRequest(method, path, body)
		r.kind = "ground"
		return r
	}
	node := g("GET", "/_nodes/_local?filter_path=nodes.*.name", "")
	node.learn = "«node»"
	groupA := g("PUT", "/_wlm/workload_group", `{"name":"a","resiliency_mode":"enforced","resource_limits":{"cpu":0.3,"memory":0.3}}`)
	groupA.learn = "«group a»"
	groupB := g("PUT", "/_wlm/workload_group", `{"name":"b","resiliency_mode":"monitor","resource_limits":{"memory":0.2},"settings":{"search.default_search_timeout":"30s"}}`)
	groupB.learn = "«group b»"
	docs := g("POST", "/books/_bulk?refresh=true", `{"index":{"_id":"1"}}
{"n":1,"t":"one","k":"x"}
{"index":{"_id":"2"}}
{"n":2,"t":"two","k":"y"}
{"index":{"_id":"3"}}
{"n":3,"t":"three"}
`)
	docs.set(contentType, "application/x-ndjson")
	return []*request{
		node,
		g("PUT", "/books", `{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":{"n":{"type":"integer"},"t":{"type":"text"},"k":{"type":"keyword"}}}}`),
		g("PUT", "/logs-1", `{"settings":{"number_of_shards":2,"number_of_replicas":1}}`),
		groupA, groupB, docs,
	}
}

func jsonRequest(method, path, body string) *request {
	path, query, _ := strings.Cut(path, "?")
	r := &request{method: method, path: path, body: body}
	if query != "" {
		r.query = strings.Split(query, "&")
	}
	if body != "" {
		r.set(contentType, "application/json")
	}
	return r
}

// decorate adds what every request may have.
func (g *gen) decorate(r *request) {
	r.query = append(r.query, g.some(0.02, "pretty", "human", "error_trace=true", "format=yaml", "filter_path=**")...)
	if g.chance(0.02) {
		r.set("X-Opaque-Id", "me")
	}
	if g.chance(0.02) {
		r.set("Accept-Encoding", "gzip")
	}
	if r.body != "" && g.chance(0.02) {
		r.chunked = true
	}
	r.old = g.chance(0.005)
}

func (g *gen) root() *request { return jsonRequest(g.one("GET", "GET", "HEAD"), "/", "") }

// knownSettings are keys with values that fit.
var knownSettings = [][]string{
	{"wlm.workload_group.mode", `"enabled"`, `"enabled"`, `"enabled"`, `"monitor_only"`, `"disabled"`},
	{"wlm.workload_group.duress_streak", "3", `"5"`},
	{"wlm.workload_group.enforcement_interval", "1000", "2000"},
	{"wlm.workload_group.node.memory_rejection_threshold", "0.7", `"0.8"`},
	{"wlm.workload_group.node.memory_cancellation_threshold", "0.9", "0.85", "0.5"},
	{"wlm.workload_group.node.cpu_rejection_threshold", "0.6", "0.9", "0.95"},
	{"wlm.workload_group.node.cpu_cancellation_threshold", "0.9", "0.3"},
	{"node.workload_group.max_count", "100", "2", "¡0", `"50"`},
	{"search.cancel_after_time_interval", `"10m"`, `"-1"`},
	{"search.default_search_timeout", `"10m"`, `"-1"`, `"1d"`},
	{"search.default_allow_partial_results", "true", `"false"`},
	{"search.max_open_scroll_context", "500", "400"},
	{"search.max_keep_alive", `"24h"`, `"12h"`},
	{"search.max_buckets", "65535", "10"},
	{"search_backpressure.mode", `"monitor_only"`, `"disabled"`, `"enforced"`},
	{"search_backpressure.cancellation_ratio", "0.1", "1", "¡0"},
	{"search_backpressure.cancellation_rate", "0.003", "1"},
	{"search_backpressure.cancellation_burst", "10", "2.5"},
	{"search_backpressure.node_duress.num_successive_breaches", "3", "1"},
	{"search_backpressure.node_duress.cpu_threshold", "0.9", "1"},
	{"search_backpressure.node_duress.heap_threshold", "0.7", "¡0"},
	{"search_backpressure.search_task.cancellation_ratio", "0.1", "0.2"},
	{"search_backpressure.search_task.elapsed_time_millis_threshold", "45000", "1"},
	{"search_backpressure.search_task.heap_variance", "2", "1.5"},
	{"search_backpressure.search_shard_task.cpu_time_millis_threshold", "15000", "¡0"},
	{"search_backpressure.search_shard_task.total_heap_percent_threshold", "0.05", "1"},
	{"task_resource_tracking.enabled", "true", "false"},
	{"task_cancellation.enabled", "true"},
	{"task_cancellation.duration_millis", "10000", "5000"},
	{"admission_control.transport.mode", `"disabled"`},
	{"admission_control.search.cpu_usage.limit", "95", "100"},
}

// badValues fit hardly any setting.
var badValues = []string{"null", `¡"bogus"`, `""`, "-1", "-5", "1.5", `¡"1.5s"`, `"5"`, `"5s"`, "true", "[]", `["a"]`, "{}", "99999999999", `"ENABLED"`, `" 5s"`, "1e2", `"NaN"`}

func (g *gen) settings() *request {
	if g.chance(0.25) {
		r := jsonRequest("GET", "/_cluster/settings", "")
		r.query = g.some(0.3, "flat_settings=true", "local=true", "flat_settings", "timeout=1s")
		return r
	}
	scope := func() string {
		var members []string
		for range 1 + g.IntN(2) {
			s := knownSettings[g.IntN(len(knownSettings))]
			key, value := s[0], s[1+g.IntN(len(s)-1)]
			switch g.IntN(8) {
			case 0, 1:
				value = odd + badValues[g.IntN(len(badValues))]
			case 2:
				value = "null"
			case 3:
				key, value = odd+g.one("wlm.*", "*", "search_backpressure.*", "¡nosuch.*", "¡nosuch", "search.*", "cluster.name", "node.name", "http.port", "wlm.workload_group", "", "."),
					g.one("null", "null", "1", `"a"`)
			}
			members = append(members, quote(key)+"¡:"+value)
		}
		if g.chance(0.15) { // the same, nested
			if before, after, ok := strings.Cut(members[0], "."); ok {
				members[0] = before + `":{"` + after + "}"
			}
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	body := g.one(`{"persistent":`+scope()+`}`, `{"transient":`+scope()+`}`, `{"persistent":`+scope()+`,"transient":`+scope()+`}`, `{"persistent":`+scope()+`}`)
	r := jsonRequest("PUT", "/_cluster/settings", body)
	r.query = g.some(0.2, "flat_settings=true", "timeout=10s", "cluster_manager_timeout=10s")
	return r
}

func (g *gen) group() *request {
	const all = "/_wlm/workload_group"
	name := g.one("a", "a", "b", "c", "d", strings.Repeat("n", 50), odd+strings.Repeat("n", 51), "ä b", "¡nosuch")
	escaped := strings.NewReplacer(" ", "%20", "ä", "%C3%A4").Replace(name)
	timeouts := g.some(0.1, "timeout=10s", "cluster_manager_timeout=5s")
	switch g.IntN(10) {
	case 0:
		r := jsonRequest("GET", all, "")
		r.query = timeouts
		return r
	case 1, 2:
		return jsonRequest("GET", all+"/"+escaped, "")
	case 3:
		r := jsonRequest("DELETE", all+"/"+escaped, "")
		r.query = timeouts
		return r
	case 4, 5, 6:
		r := jsonRequest(g.one("PUT", "POST"), all+"/"+escaped, "{"+strings.Join(g.groupParts(), ",")+"}")
		r.query = timeouts
		return r
	default:
		parts := append([]string{`"name":` + quote(name)}, g.groupParts()...)
		g.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		r := jsonRequest(g.one("PUT", "POST"), all, "{"+strings.Join(parts, ",")+"}")
		r.query = timeouts
		r.learn = "«group " + name + "»"
		return r
	}
}

// groupParts are the members of a group but its name. Most are all of those that a group must have.
func (g *gen) groupParts() []string {
	var parts []string
	if g.chance(0.9) {
		parts = append(parts, `"resiliency_mode":`+g.one(`"enforced"`, `"soft"`, `"monitor"`, `"soft"`, `"SOFT"`, `¡"bogus"`, `""`))
	}
	if g.chance(0.9) {
		limit := func() string {
			return g.one("0.1", "0.2", "0.25", "0.1", "0.2", "0.3", "0.5", "1", "1.0", "¡0", "¡-0.1", "¡1.1", `"0.1"`, `¡"x"`, "0.123456789", "1e-1", "null")
		}
		parts = append(parts, `"resource_limits":`+g.one(`{"cpu":`+limit()+`}`, `{"memory":`+limit()+`}`, `{"cpu":`+limit()+`,"memory":`+limit()+`}`, `{"cpu":`+limit()+`}`,
			`{"memory":`+limit()+`}`, `{}`, `{"native_memory":`+limit()+`}`, `¡{"disk":0.1}`, `¡{"CPU":0.1}`))
	}
	if g.chance(0.3) {
		parts = append(parts, `"settings":`+g.one(`{}`, `null`, `{"search.default_search_timeout":"30s"}`, `{"search.default_search_timeout":"-1"}`,
			`{"search.max_concurrent_shard_requests":"3","override_request_values":"true"}`, `{"search.cancel_after_time_interval":"1m","search.batched_reduce_size":5}`,
			`{"search.max_buckets":100}`, `{"search.default_search_timeout":null}`, `{"override_request_values":false}`, `¡{"nosuch":"1"}`,
			`¡{"search.default_search_timeout":"bogus"}`, `¡{"search.max_concurrent_shard_requests":0}`, `¡{"search.batched_reduce_size":1}`, `¡{"override_request_values":"maybe"}`))
	}
	if g.chance(0.12) {
		parts = append(parts, g.one(`"_id":"x"`, `"updated_at":5`, `¡"nosuch":1`, `¡"nosuch":{}`, `¡"nosuch":{"a":1}`, `¡"nosuch":[]`, `¡"nosuch":null`, `"name":"z"`, `¡"settings":[]`))
	}
	return parts
}

func (g *gen) wlmStats() *request {
	node := g.one("_local", "¡_all", "«node»", "¡nosuch", "*")
	group := g.one("«group a»", "DEFAULT_WORKLOAD_GROUP", "¡_all", "¡nosuch", "«group a»,DEFAULT_WORKLOAD_GROUP", "«group b»")
	r := jsonRequest("GET", g.one("/_wlm/stats", "/_wlm/stats", "/_wlm/stats/"+group, "/_wlm/"+node+"/stats", "/_wlm/"+node+"/stats/"+group), "")
	r.query = g.some(0.05, "timeout=5s", "breach=true", "breach", "boolean=true")
	return r
}

func (g *gen) listStats() *request {
	node, group := g.one("_local", "«node»", "¡nosuch"), g.one("«group a»", "DEFAULT_WORKLOAD_GROUP", "¡nosuch")
	r := jsonRequest("GET", g.one("/_list/wlm_stats", "/_list/wlm_stats", "/_list/wlm_stats", "/_list/wlm_stats/"+node+"/stats", "/_list/wlm_stats/stats/"+group,
		"/_list/wlm_stats/"+node+"/stats/"+group), "")
	r.query = g.some(0.15, "v", "size="+g.one("50", "100", "¡0", "¡101", "¡x"), "sort="+g.one("node_id", "workload_group", "¡bogus"), "order="+g.one("asc", "desc", "¡bogus"),
		"format="+g.one("json", "yaml"), "h="+g.one("NODE_ID", "WORKLOAD_GROUP_ID,CPU_USAGE", "¡nosuch"), "¡next_token=bogus", "help")
	return r
}

func (g *gen) tasks() *request {
	choice := []string{"nodes=" + g.one("_local", "«node»", "¡nosuch", "¡_all"), "actions=" + g.one("*", "*lists*", "¡nosuch", "cluster:*", "*search*"),
		"group_by=" + g.one("nodes", "parents", "none", "¡bogus"), "detailed=" + g.one("true", "false", "¡maybe"), "parent_task_id=" + g.one("«node»:1", "¡nosuch:1", "¡x", "¡1:x", "-1", "")}
	id := g.one("«node»:99999999", "¡nosuch:1", "¡nosuch", "¡«node»:x", "¡:", "¡«node»:-1", "¡1:2:3", "«node»:0")
	switch g.IntN(6) {
	case 0:
		return jsonRequest("GET", "/_tasks/"+id, "")
	case 1:
		r := jsonRequest("POST", "/_tasks/"+id+"/_cancel", "")
		r.query = g.some(0.15, choice...)
		return r
	case 2:
		r := jsonRequest("POST", "/_tasks/_cancel", "")
		r.query = g.some(0.3, choice...)
		return r
	default:
		r := jsonRequest("GET", "/_tasks", "")
		r.query = g.some(0.3, choice...)
		return r
	}
}

// indices is the beginning of a path that names indices.
func (g *gen) indices() string {
	return g.one("/books", "/books", "/books", "/books", "/books", "/logs-1", "/books,logs-1", "/logs-*", "/_all", "/*", "¡/nosuch", "¡/books,nosuch", "¡/nosuch*", "/b*,-books", "¡/-books",
		"/books,", "¡/,", "¡/Books", "/%3Clogs-1%3E", "/books,books", "¡/_nosuch", "")
}

func (g *gen) which() []string {
	return g.some(0.05, "ignore_unavailable="+g.one("true", "false"), "allow_no_indices="+g.one("true", "false"), "expand_wildcards="+g.one("open", "all", "none", "closed", "hidden", "¡bogus", "open,closed"),
		"routing="+g.one("a", "a,b"), "preference="+g.one("_local", "_only_local", "abc", "¡_bogus", "_shards:0", "¡_prefer_nodes:x"))
}

// query is a query of a search, most of them one that matches all.
func (g *gen) query() string {
	if g.chance(0.6) {
		return `{"match_all":{}}`
	}
	return g.one(`{"match":{"t":"one"}}`, `{"match":{"t":{"query":"one two","operator":"and"}}}`, `{"term":{"k":"x"}}`, `{"term":{"k":{"value":"x"}}}`, `{"terms":{"k":["x","y"]}}`,
		`{"range":{"n":{"gte":1,"lt":3}}}`, `{"bool":{"must":[{"match_all":{}}],"filter":{"term":{"k":"x"}}}}`, `{"bool":{"should":[],"minimum_should_match":1}}`, `{"exists":{"field":"n"}}`,
		`{"ids":{"values":["1","2"]}}`, `{"prefix":{"k":"x"}}`, `{"wildcard":{"k":{"value":"x*"}}}`, `{"query_string":{"query":"t:one"}}`, `{"simple_query_string":{"query":"one"}}`,
		`{"match_none":{}}`, `{"constant_score":{"filter":{"match_all":{}}}}`, `{"match_phrase":{"t":"one two"}}`, `{"multi_match":{"query":"one","fields":["t"]}}`, `{"regexp":{"k":"x.*"}}`,
		`{"fuzzy":{"k":"x"}}`, `{"match_all":{"boost":2}}`, `¡{"nosuch":{}}`, `¡{}`, `¡{"match_all":{},"match_none":{}}`, `¡{"bool":{"nosuch":[]}}`, `¡{"match_all":[]}`, `¡{"term":{}}`, `¡{"match_al":{}}`,
		`¡{"match_all":{"nosuch":1}}`, `¡{"range":{"n":{"gte":1,"nosuch":3}}}`, `¡{"terms":{"k":"x"}}`, `{"dis_max":{"queries":[{"match_all":{}}]}}`, `{"function_score":{"query":{"match_all":{}}}}`,
		`{"boosting":{"positive":{"match_all":{}},"negative":{"match_none":{}},"negative_boost":0.5}}`, `¡{"nested":{"path":"x","query":{"match_all":{}}}}`, `¡{"match":{"t":null}}`, `¡{"exists":{}}`)
}

func (g *gen) searchBody() string {
	parts := []string{`"query":` + g.query()}
	if g.chance(0.1) {
		parts = nil
	}
	if g.chance(0.6) {
		n := 1 + g.IntN(2)
		for range n {
			parts = append(parts, g.one(`"size":2`, `"size":0`, `¡"size":10001`, `¡"size":-1`, `"size":"5"`, `¡"size":1.5`, `"from":1`, `¡"from":-1`, `¡"from":9999,"size":10`, `"timeout":"10s"`, `¡"timeout":"bogus"`, `¡"timeout":10`,
				`"track_total_hits":true`, `"track_total_hits":false`, `"track_total_hits":2`, `¡"track_total_hits":"x"`, `¡"track_total_hits":-5`, `"_source":false`, `"_source":["n"]`, `"_source":"n*"`, `"_source":{"includes":["n"]}`,
				`"_source":{"includes":["n"],"excludes":["t"]}`, `¡"_source":{"nosuch":[]}`, `"sort":["_doc"]`, `"sort":[{"n":"asc"}]`, `"sort":"n"`, `"sort":["_score"]`, `"sort":[{"n":{"order":"desc"}}]`, `¡"sort":[{"n":{"order":"bogus"}}]`,
				`"terminate_after":1`, `¡"terminate_after":-1`, `"min_score":0.5`, `"version":true`, `"seq_no_primary_term":true`, `"explain":true`, `"stored_fields":["_none_"]`, `"stored_fields":["n"]`, `"docvalue_fields":["n"]`, `"fields":["n"]`,
				`"aggs":{"a":{"terms":{"field":"k"}}}`, `"aggs":{"a":{"max":{"field":"n"}}}`, `"aggregations":{}`, `¡"aggs":{"a":{}}`, `¡"aggs":{"a":{"nosuch":{}}}`, `"highlight":{"fields":{"t":{}}}`, `"post_filter":{"match_all":{}}`, `"profile":false`,
				`"profile":true`, `¡"search_after":[1]`, `¡"collapse":{"field":"k"}`, `¡"rescore":{"window_size":5,"query":{"rescore_query":{"match_all":{}}}}`, `¡"suggest":{"text":"a"}`, `¡"script_fields":{}`, `¡"indices_boost":[{"books":2}]`,
				`"stats":["a"]`, `"ext":{}`, `¡"slice":{"id":0,"max":2}`, `¡"pit":{"id":"x"}`, `"track_scores":true`, `¡"nosuch":1`, `¡"nosuch":{}`, `¡"nosuch":[]`, `¡"sizee":1`, `"include_named_queries_score":true`, `¡"derived":{}`, `¡"search_pipeline":"x"`))
		}
	}
	return "{" + strings.Join(distinct(parts), ",") + "}"
}

// distinct leaves out members that have the name of an earlier one.
func distinct(parts []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(parts, func(part string) bool {
		t := must(parse("{" + strings.ReplaceAll(part, odd, "") + "}"))
		twice := slices.ContainsFunc(t.members, func(m member) bool { return seen[m.name] })
		for _, m := range t.members {
			seen[m.name] = true
		}
		return twice
	})
}

func (g *gen) searchParams() []string {
	return append(g.which(), g.some(0.03, "size="+g.one("¡0", "1", "-1", "¡x", "¡10001"), "from="+g.one("¡0", "1", "-1"), "timeout="+g.one("10s", "-1"), "q="+g.one("*:*", "t:one", "*", "¡(", "n:1"), "q=*:*&"+g.one("df=t", "analyzer="+g.one("standard", "¡nosuch"), "analyze_wildcard=true", "default_operator="+g.one("and", "OR", "¡bogus"), "lenient=true"), "allow_partial_search_results="+g.one("true", "false", "¡x"), "batched_reduce_size="+g.one("2", "1", "512"),
		"cancel_after_time_interval="+g.one("10s", "-1", "¡bogus"), "ccs_minimize_roundtrips=true", "docvalue_fields=n", "explain=true", "max_concurrent_shard_requests="+g.one("1", "5", "¡0"), "phase_took="+g.one("true", "false"),
		"pre_filter_shard_size="+g.one("1", "¡0"), "request_cache="+g.one("true", "false"), "rest_total_hits_as_int="+g.one("true", "false"), "¡search_pipeline=nosuch", "search_type="+g.one("query_then_fetch", "dfs_query_then_fetch", "¡bogus"),
		"seq_no_primary_term=true", "sort="+g.one("_doc", "n", "n:desc", "_score"), "_source="+g.one("true", "false", "n"), "_source_includes=n", "_source_excludes=t", "stored_fields=n",
		"terminate_after="+g.one("1", "¡0"), "track_scores=true", "track_total_hits="+g.one("true", "false", "1", "¡x"), "typed_keys=true", "version=true", "ignore_throttled=true", "¡scroll=bogus", "index=books")...)
}

func (g *gen) search() *request {
	r := jsonRequest(g.one("GET", "POST", "POST"), g.indices()+"/_search", g.searchBody())
	if g.chance(0.2) {
		r = jsonRequest("GET", r.path, "")
	}
	r.query = g.searchParams()
	if g.chance(0.3) {
		r.set("workloadGroupId", g.one("«group a»", "«group b»", "¡nosuch", "«group a»"))
	}
	return r
}

func (g *gen) count() *request {
	body := `{"query":` + g.query() + `}`
	if g.chance(0.2) {
		body = g.one(odd+g.searchBody(), `{}`, `¡{"query":{}}`, `¡{"min_score":1}`, `¡{"size":0}`)
	}
	r := jsonRequest(g.one("GET", "POST"), g.indices()+"/_count", body)
	if g.chance(0.2) {
		r = jsonRequest("GET", r.path, "")
	}
	r.query = append(g.which(), g.some(0.05, "¡q="+g.one("*:*", "t:one"), "min_score="+g.one("0.5", "¡x"), "terminate_after="+g.one("1", "¡x"), "¡q=*:*&df=t", "¡lenient=true")...)
	return r
}

func (g *gen) msearch() *request {
	var lines []string
	for range 1 + g.IntN(3) {
		lines = append(lines, g.one(`{}`, `{"index":"books"}`, `{"index":["books","logs-1"]}`, `¡{"index":"nosuch"}`, `{"index":"books","preference":"_local"}`, `{"index":"books","search_type":"query_then_fetch"}`, ``,
			`¡{"index":"nosuch","ignore_unavailable":true}`, `{"index":"books","routing":"a"}`, `¡{"nosuch":1}`, `¡{"index":5}`, `{"index":"books","allow_partial_search_results":true}`, `¡{"index":"books","search_type":"bogus"}`,
			`¡{"indices":"books"}`, `¡{"expand_wildcards":"bogus"}`, `¡{"request_cache":true}`, `{"cancel_after_time_interval":"10s"}`), g.searchBody())
	}
	r := jsonRequest(g.one("GET", "POST"), g.one("", "", "/books", "¡/nosuch", "/_all")+"/_msearch", strings.Join(lines, "\n")+"\n")
	r.set(contentType, g.one("application/x-ndjson", "application/json"))
	r.query = g.some(0.05, "max_concurrent_searches="+g.one("1", "¡0", "¡x"), "typed_keys=true", "rest_total_hits_as_int=true", "search_type=query_then_fetch", "max_concurrent_shard_requests=2",
		"pre_filter_shard_size=5", "ccs_minimize_roundtrips=true", "cancel_after_time_interval=5s", "¡phase_took=true", "¡search_pipeline=x", "allow_no_indices=false")
	if g.chance(0.2) {
		r.set("workloadGroupId", g.one("«group a»", "¡nosuch"))
	}
	return r
}

// scroll is a scroll from its opening to its end.
func (g *gen) scroll() []*request {
	g.scrolls++
	id := fmt.Sprintf("«scroll %d»", g.scrolls)
	open := jsonRequest(g.one("GET", "POST"), g.one("/books", "/books", "/_all", "¡/nosuch", "/logs-1")+"/_search", g.one(`{"size":1}`, `{"size":2,"query":{"match_all":{}}}`, `¡{"size":0}`, `¡{"size":1,"from":1}`, `{"size":1,"track_total_hits":false}`))
	open.query = append([]string{"scroll=" + g.one("1m", "10s", "1h", "¡25h", "¡0", "-1", "1m")}, g.some(0.05, "rest_total_hits_as_int=true", "request_cache=true", "size=1")...)
	open.learn = id
	all := []*request{open}
	page := func() *request {
		return []*request{
			jsonRequest("POST", "/_search/scroll", `{"scroll_id":"`+id+`","scroll":"1m"}`),
			jsonRequest("GET", "/_search/scroll", `{"scroll":"30s","scroll_id":"`+id+`"}`),
			jsonRequest("GET", "/_search/scroll?scroll=1m&scroll_id="+id, ""),
			jsonRequest("GET", "/_search/scroll/"+id, ""),
			jsonRequest("POST", "/_search/scroll", `{"scroll_id":"`+g.one("¡bogus", "", "«scroll 99»", "DXF1ZXJ5QW5kRmV0Y2gBAAAA")+`"}`),
			jsonRequest("POST", "/_search/scroll", g.one(`{}`, `¡{"scroll":"1m"}`, `{"scroll_id":["`+id+`"]}`, `¡{"scroll_id":5}`, `{"scroll_id":"`+id+`¡","nosuch":1}`, `{"scroll_id":"`+id+`¡","scroll":"bogus"}`)),
		}[min(g.IntN(8), 5)]
	}
	for range g.IntN(4) {
		all = append(all, page())
	}
	if g.chance(0.7) {
		all = append(all, []*request{
			jsonRequest("DELETE", "/_search/scroll", `{"scroll_id":"`+id+`"}`),
			jsonRequest("DELETE", "/_search/scroll/"+id, ""),
			jsonRequest("DELETE", "/_search/scroll", `{"scroll_id":["`+id+`"]}`),
			jsonRequest("DELETE", "/_search/scroll/_all", ""),
			jsonRequest("DELETE", "/_search/scroll", g.one(`{}`, `¡{"scroll_id":"bogus"}`, `¡{"scroll_id":[]}`, `¡{"nosuch":1}`, `¡{"scroll_id":5}`)),
			jsonRequest("DELETE", "/_search/scroll", ""),
		}[g.IntN(6)])
	}
	return all
}
