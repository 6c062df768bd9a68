package compat_test

import "strings"

// meant are requests that are answered differently on purpose, and that the rest of the grammar seldom draws: those of a sequence,
// which take turns.
func meant(number uint64) []*request {
	of := func(kind, method, path, body string, headers ...header) []*request {
		r := jsonRequest(method, path, body)
		r.kind = kind
		if kind == "group" {
			r.learn = "«group d»"
		}
		for _, h := range headers {
			r.set(h.name, h.value)
		}
		return []*request{r}
	}
	all := [][]*request{
		of("group", "PUT", "/_wlm/workload_group", `{"name":"d","resiliency_mode":"soft","resource_limits":{"cpu":0.01}} {}`),
		of("group", "PUT", "/_wlm/workload_group", `{"name":"d","resiliency_mode":"soft","resource_limits":{"cpu":0.01},"settings":{"search.default_search_timeout":null}}`),
		of("group", "PUT", "/_wlm/workload_group", `{"name":"d","resiliency_mode":"soft","resource_limits":{"cpu":0.01},"nosuch":[]}`),
		of("group", "PUT", "/_wlm/workload_group", `{"name":"d","resource_limits":{"cpu":0.01}}`),
		of("search", "POST", "/books/_search", `{"size":1}`, header{"Content-Encoding", "gzip"}),
		of("search", "POST", "/books/_search", "\ufeff{}"),
		of("search", "POST", "/books/_search", `{"size":99999999999}`),
		of("search", "POST", "/books/_search", `{"nosuch":1,`),
		of("search", "POST", "/books/_search", `{"track_total_hits":-5}`),
		of("search", "POST", "/books/_search", `{"search_after":[1],"sort":["n"]}`),
		of("search", "POST", "/books/_search", `{"aggs":{"a":{"max":{"field":"n"}}}}`),
		of("search", "POST", "/books/_search", `{"aggs":{"a":{"nosuch":{}}}}`),
		of("search", "POST", "/books/_search", `{"ext":{"nosuch":{}}}`),
		of("search", "POST", "/books/_search", `{"query":{"term":{"k":"x"}}}`),
		of("search", "POST", "/books/_search", `{"query":{"nested":{"path":"x","query":{"match_all":{}}}}}`),
		of("search", "POST", "/_all/_search?batched_reduce_size=2", `{"size":1}`),
		of("search", "POST", "/logs-1/_search?routing=a", `{"size":1}`),
		of("search", "GET", "/b*,-books/_search?allow_no_indices=false", ""),
		of("search", "POST", "/_search?size=10001", `{"sort":[{"nosuch":"asc"}]}`),
		of("search", "POST", "/books/_search?from=-1", `{"aggs":{"a":{}}}`),
		of("index-settings", "GET", "/books/_settings?include_defaults", ""),
		of("tasks", "GET", "/_tasks/_search", ""),
		of("index", "PUT", "/made-4?nosuch=1", `{"settings":[]}`),
		of("validate", "POST", "/books/_validate/query", "{}x"),
		of("cat", "GET", "/_cat/indices?v=x&format=json", ""),
		of("bulk", "POST", "/books/_bulk?refresh=true", "{\"index\":{\"_id\":\"1\"},\"x\":[]}\n{}\n"),
		of("msearch", "POST", "/books/_msearch", "{\"index\":[[]]}\n{}\n"),
		of("msearch", "POST", "/books/_msearch", "{}\n{\"index\":\"books\"}\n{\"query\":{}}\n{}\n"),
		of("msearch", "POST", "/books/_msearch", "{\"request_cache\":null}\n{}\n"),
		of("search", "GET", "/books/_search?scroll=0", ""),
		of("search", "GET", "/books/_search?allow_partial_search_results=", ""),
		of("index", "GET", "/books?ignore_throttled=true", ""),
		of("search", "GET", "/%3Cbooks%3E/_search", ""),
		of("cat", "GET", "/_cat/health//", ""),
		of("search", "GET", "/books/%zz/_search", ""),
		of("search", "GET", "/books/_search", "", header{"Accept", "application/yaml, application/json"}),
		of("search", "GET", "/books/_search", "", header{"Accept-Encoding", "*"}),
		of("search", "HEAD", "/_nodes/_local", "", header{"Accept-Encoding", "gzip"}),
		of("search", "POST", "/books/_search", `{"size":1}`, header{contentType, "application/cbor"}),
		of("count", "POST", "/books/_count", `{"query":{"match_all":{}}} x`),
		of("msearch", "POST", "/books/_msearch", "5\n{}\n"),
		of("msearch", "POST", "/books/_msearch", "\"\\u12\"\n{}\n"),
		of("search", "POST", "/books/_search", `{"size":1}`, header{"Content-Encoding", "br"}),
		of("list-stats", "GET", "/_list/wlm_stats?format=yaml&next_token=bogus", ""),
		of("index-settings", "GET", "/books/_settings/index.number_of_*", ""),
		of("index-settings", "PUT", "/books/_settings", `{"refresh_interval":"bogus"}`),
		of("doc", "PUT", "/books/_doc/1?refresh=true", `{"n":1}{}`),
		of("bulk", "POST", "/books/_bulk", "{\"create\":{\"_id\":\"8\"},\"create\":{\"_id\":\"8\"}}\n{}\n"),
		of("search", "POST", "/books/_search", `{"query":{"match":{"t":{"nosuch":1}}}}`),
		of("index-settings", "GET", "/books/_settings?human=false", ""),
		of("health", "GET", "/_cluster/health?level=awareness_attributes", ""),
		of("settings", "GET", "/_cluster/settings?flat_settings=bogus", ""),
		of("bulk", "POST", "/books/_bulk", "{}\n", header{contentType, "application/yaml"}),
		of("validate", "GET", "/books/_validate/query?q=(", ""),
		of("search", "POST", "/books/_search", `{"query":/**/{"match_all":{}}}`),
		of("search", "POST", "/nosuch/_search", `{"_source":{"nosuch":[]}}`),
		of("tasks", "DELETE", "/_tasks/nosuch:1", ""),
		of("tasks", "POST", "/_tasks/«node»:-1/_cancel", ""),
		of("root", "OPTIONS", "/", ""),
		of("root", "GET", "/", "", header{"X-Large", strings.Repeat("h", 20000)}, header{"X-Opaque-Id", "me"}),
		of("list-stats", "GET", "/_list/wlm_stats?help", ""),
		of("list-stats", "GET", "/_list", ""),
		of("nodes", "GET", "/_nodes/_local?filter_path=nodes.*.attributes", ""),
		of("nodes-stats", "GET", "/_nodes/stats?level=indices&filter_path=_nodes", ""),
		of("nodes-stats", "GET", "/_nodes/_local/stats/thread_pool", ""),
		of("cat", "GET", "/_cat", ""),
		of("cat", "GET", "/_cat/nodes", ""),
		of("cat", "GET", "/_cat/nodes?help", ""),
		of("cat", "GET", "/_cat/indices?h=*", ""),
		of("cat", "GET", "/_cat/indices/books?help", ""),
		of("cat", "GET", "/_cat/thread_pool", ""),
		of("cat", "GET", "/_cat/indices?bytes=x", ""),
		of("cat", "GET", "/_cat/indices?format=yaml&filter_path=nosuch", ""),
		of("cat", "GET", "/_cat/indices?format=json&filter_path=nosuch", ""),
		of("doc", "PUT", "/books/_doc/a%20b?refresh=true", `{"n":1}`),
		of("doc", "PUT", "/books/_doc/1?refresh=true&pipeline=x", `{"n":1}`),
		of("doc", "PUT", "/books/_doc/1?refresh=true&wait_for_active_shards=2&timeout=1ms", `{"n":1}`),
		of("doc", "GET", "/books/_doc/1?_source=n", ""),
		of("index", "PUT", "/made-4", `{"settings":{"nosuch":1}}`),
	}
	doc := func(method, path, body string) *request { return of("doc", method, path, body)[0] }
	open := jsonRequest("POST", "/books/_search?scroll=1m&rest_total_hits_as_int=true", `{"size":1}`)
	open.kind, open.learn = "scroll", "«scroll known»"
	wide := open.clone()
	wide.path = "/_all/_search"
	all = append(all,
		[]*request{doc("PUT", "/books/_doc/7?refresh=true", `{}`), doc("DELETE", "/books/_doc/7?refresh=true", ""), doc("PUT", "/books/_doc/7?refresh=true", `{}`)},
		[]*request{doc("PUT", "/made-9/_doc/1?refresh=true", `{"n":1}`), of("index", "GET", "/made-9", "")[0]},
		[]*request{doc("PUT", "/made-9/_doc/1?refresh=true", `{"n":1}`), doc("PUT", "/made-9/_doc/2?refresh=true", `{"n":"x"}`)},
		[]*request{doc("PUT", "/books/_doc/7?refresh=true&routing=a", `{}`), doc("GET", "/books/_doc/7?routing=a", "")},
		[]*request{doc("PUT", "/made-9/_doc/1?refresh=true", `{"n":[1,"x"]}`)},
		[]*request{of("index-state", "POST", "/logs-1/_close", "")[0], of("scroll", "GET", "/logs-1/_search?scroll=25h", "")[0]},
		[]*request{open, of("scroll", "GET", "/_search/scroll/«scroll known»", "")[0], of("scroll", "GET", "/_search/scroll/«scroll known»", "")[0]},
		[]*request{open, of("scroll", "POST", "/_search/scroll", `{"scroll":"1m","scroll_id":"«scroll known»"} x`)[0]},
		[]*request{wide, of("scroll", "POST", "/_search/scroll", `{"scroll_id":"«scroll known»"}`)[0], of("scroll", "POST", "/_search/scroll", `{"scroll":"1m","scroll_id":"«scroll known»"}`)[0]},
	)
	return all[number%uint64(len(all))]
}
