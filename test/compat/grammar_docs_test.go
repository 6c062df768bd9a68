package compat_test

import (
	"slices"
	"strings"
)

// source is a document.
func (g *gen) source() string {
	return g.one(`{"n":5,"t":"five"}`, `{"n":6}`, `{}`, `{"k":"z"}`, `{"n":7,"o":{"p":1}}`, `{"n":"8"}`, `¡{"n":"x"}`, `{"n":null}`, `¡{"n":1.5}`, `{"n":[1,2]}`, `¡{"n":{}}`, `{"t":5}`, `{"t":["a","b"]}`, `¡{"n":true}`)
}

// writes are parameters of a write. It is always seen by the searches that follow.
func (g *gen) writes() []string {
	return append([]string{"refresh=" + g.one("true", "true", "wait_for")}, g.some(0.05, "routing=a", "timeout=1s", "wait_for_active_shards="+g.one("1", "¡0", "¡x"), "¡version="+g.one("1", "2", "x"), "¡version_type="+g.one("internal", "external", "external_gte", "bogus"),
		"¡version="+g.one("1", "2", "7")+"&version_type="+g.one("external", "external_gte"), "¡if_seq_no="+g.one("0", "5", "-1", "x"), "¡if_primary_term="+g.one("1", "9"), "¡if_seq_no="+g.one("0", "1", "2", "5")+"&if_primary_term="+g.one("1", "1", "2"), "op_type="+g.one("create", "index", "¡bogus"),
		"pipeline="+g.one("¡nosuch", "_none"), "¡require_alias="+g.one("true", "false"))...)
}

func (g *gen) bulk() *request {
	var lines []string
	path, nameless := g.one("/books", "/books", ""), ""
	if path == "" { // each action has to name its index
		nameless = odd
	}
	for range 1 + g.IntN(4) {
		id := g.one("1", "2", "9", "new")
		verb := g.one("index", "index", "create", "delete", "update", "¡nosuch")
		meta := g.one(nameless+`{"_id":"`+id+`"}`, `{"_index":"books","_id":"`+id+`"}`, `{"_index":"books","_id":"`+id+`"}`, `{"_index":"made-`+g.one("1", "2")+`","_id":"`+id+`"}`, `¡{"_index":"Books","_id":"1"}`, `{"_index":"books","_id":"`+id+`","routing":"a"}`,
			`¡{"_index":"books","_id":"`+id+`","version":5,"version_type":"external"}`, `¡{"_index":"books","_id":"`+id+`","if_seq_no":0,"if_primary_term":1}`, `{"_index":"books","_id":"`+id+`¡","nosuch":1}`, `{"_index":"books","_id":5}`,
			`¡{"_index":"books","_type":"_doc","_id":"1"}`, `{"_index":"books","_id":"`+id+`¡","require_alias":true}`, `¡{"_index":"","_id":"1"}`, `¡{"_index":"books","_id":""}`)
		lines = append(lines, `{"`+verb+`":`+meta+`}`)
		switch verb {
		case "delete":
		case "update":
			lines = append(lines, g.one(`{"doc":{"n":9}}`, `{"doc":{"n":9},"doc_as_upsert":true}`))
		default:
			lines = append(lines, g.source())
		}
	}
	end := "\n"
	if g.chance(0.05) {
		end = g.one("", "\n\n", "\r\n")
	}
	r := jsonRequest(g.one("POST", "POST", "PUT"), path+"/_bulk", strings.Join(lines, "\n")+end)
	r.set(contentType, g.one("application/x-ndjson", "application/json"))
	r.query = append([]string{"refresh=true"}, g.some(0.03, "timeout=1s", "wait_for_active_shards=1", "routing=a", "¡pipeline=nosuch", "¡require_alias=true", "_source=true", "batch_size=1", "batch_size=0")...)
	return r
}

func (g *gen) doc() *request {
	index := g.one("books", "books", "books", "books", "logs-1", "made-1", "¡nosuch", "¡Books", "¡books,logs-1", "¡book*", "¡_all")
	id := g.one("1", "1", "2", "3", "9", "ä%20b", strings.Repeat("i", 512), odd+strings.Repeat("i", 513), "_id", "a%2Fb", ".", "-1")
	r := g.docOf(index, id)
	r.query = plainRouting(index, r.query)
	return r
}

// plainRouting leaves routing out of what does not go to an index of one shard: documents lie elsewhere then, and no answer says so.
func plainRouting(index string, query []string) []string {
	return slices.DeleteFunc(query, func(p string) bool { return index != "books" && strings.HasPrefix(p, "routing=") })
}

func (g *gen) docOf(index, id string) *request {
	switch g.IntN(10) {
	case 0:
		r := jsonRequest("POST", "/"+index+"/_doc", g.source())
		r.query = g.writes()
		g.made++
		r.learn = "«doc " + g.one("a", "b", "c", "d") + strings.Repeat("'", g.made) + "»"
		return r
	case 1, 2:
		r := jsonRequest(g.one("PUT", "POST"), "/"+index+"/_doc/"+id, g.source())
		r.query = g.writes()
		return r
	case 3:
		r := jsonRequest(g.one("PUT", "POST"), "/"+index+"/_create/"+id, g.source())
		r.query = g.writes()
		return r
	case 4, 5:
		r := jsonRequest("DELETE", "/"+index+"/_doc/"+id, "")
		r.query = g.writes()
		return r
	default:
		r := jsonRequest(g.one("GET", "GET", "HEAD"), "/"+index+"/_doc/"+id, "")
		r.query = g.some(0.06, "preference=_local", "realtime=true", "realtime=false", "refresh=true", "routing=a", "stored_fields=n", "_source=false", "_source=n", "_source_includes=n", "_source_excludes=t",
			"¡version="+g.one("1", "2", "7", "0", "x"), "version_type=external", "_source=true")
		return r
	}
}

func (g *gen) index() *request {
	name := g.one("/books", "/logs-1", "/made-1", "/made-2", "¡/Upper", "¡/_x", "¡/-x", "¡/a,b", "¡/a*", "¡/..", "¡/a%20b", "/%C3%A4", "/"+strings.Repeat("l", 255), odd+"/"+strings.Repeat("l", 256), "¡/a%23", "/made-3")
	switch g.IntN(6) {
	case 0, 1:
		r := jsonRequest("PUT", name, g.one("", `{}`, `{"settings":{"number_of_shards":2,"number_of_replicas":0}}`, `{"settings":{"index":{"number_of_shards":1}}}`, `{"settings":{"index.number_of_replicas":0}}`,
			`¡{"settings":{"number_of_shards":0}}`, `¡{"settings":{"number_of_shards":"x"}}`, `¡{"settings":{"nosuch":1}}`, `¡{"settings":{"number_of_replicas":-1}}`, `{"mappings":{"properties":{"n":{"type":"integer"}}}}`,
			`¡{"mappings":{"properties":{"n":{"type":"nosuch"}}}}`, `{"mappings":{}}`, `¡{"mappings":{"properties":{"n":{}}}}`, `¡{"nosuch":{}}`, `{"aliases":{}}`, `¡{"settings":[]}`, `¡{"settings":{"number_of_shards":2000}}`,
			`{"settings":{"refresh_interval":"1s"}}`, `¡{"number_of_shards":1}`, `¡{"mappings":{"nosuch":1}}`, `¡{"mappings":[]}`, `¡{"settings":null}`))
		r.query = g.some(0.06, "timeout=5s", "wait_for_active_shards="+g.one("¡0", "1", "all", "¡x"), "cluster_manager_timeout=5s")
		return r
	case 2, 3:
		r := jsonRequest(g.one("GET", "HEAD"), g.indices(), "")
		if r.path == "" {
			r.path = "/books"
		}
		r.query = g.some(0.06, "flat_settings=true", "include_defaults=false", "local=true", "ignore_unavailable=true", "allow_no_indices=false", "expand_wildcards="+g.one("open", "none", "¡bogus"))
		return r
	default:
		r := jsonRequest("DELETE", g.one("/made-1", "/made-2", "¡/nosuch", "/made-*", "¡/nosuch*", "/logs-1", "¡/made-1,nosuch", "¡/Upper"), "")
		r.query = g.some(0.06, "ignore_unavailable=true", "allow_no_indices=false", "timeout=5s", "expand_wildcards=none")
		return r
	}
}

func (g *gen) health() *request {
	r := jsonRequest("GET", "/_cluster/health"+g.one("", "", "/books", "/logs-1", "/books,logs-1", "/b*", "/_all"), "")
	r.query = append([]string{"timeout=50ms"}, g.some(0.15, "level="+g.one("cluster", "indices", "shards", "¡bogus", "awareness_attributes"), "wait_for_status="+g.one("red", "yellow", "green", "¡bogus", "GREEN"),
		"wait_for_nodes="+g.one("1", ">0", "ge(1)", "2", "<=1", "¡x"), "wait_for_active_shards="+g.one("1", "¡0", "all", "¡x"), "wait_for_no_relocating_shards=true", "wait_for_no_initializing_shards="+g.one("true", "¡x"),
		"wait_for_events="+g.one("urgent", "languid", "¡bogus"), "local=true", "expand_wildcards="+g.one("open", "¡bogus"))...)
	return r
}

func (g *gen) nodes() *request {
	node, metric := g.one("_local", "«node»", "¡_all", "¡nosuch", "_master", "_cluster_manager", "*", "¡_local,nosuch", "data:true"), g.one("os", "http", "settings", "thread_pool", "jvm", "process", "¡nosuch", "http,os", "¡_all", "transport")
	r := jsonRequest("GET", "/_nodes"+g.one("", "/"+node, "/"+metric, "/"+node+"/"+metric, "/"+node+"/info/"+metric), "")
	r.query = append([]string{"filter_path=" + g.one("_nodes,cluster_name", "nodes.*.name,nodes.*.roles", "_nodes", "nodes.*.http.max_content_length_in_bytes", "**.name")}, g.some(0.05, "flat_settings=true", "timeout=5s")...)
	return r
}

func (g *gen) nodesStats() *request {
	node, metric := g.one("_local", "«node»", "¡nosuch", "¡_all"), g.one("search_backpressure", "thread_pool", "os", "jvm", "http", "process", "¡nosuch", "¡_all", "indices", "search_backpressure,os", "breaker", "fs", "search_pipeline")
	r := jsonRequest("GET", "/_nodes"+g.one("/stats", "/stats/"+metric, "/"+node+"/stats", "/"+node+"/stats/"+metric), "")
	r.query = append([]string{"filter_path=" + g.one("_nodes,cluster_name", "nodes.*.name,nodes.*.roles,nodes.*.ip", "nodes.*.search_backpressure", "nodes.*.thread_pool.search", "_nodes")}, g.some(0.05, "timeout=5s", "level=indices", "types=x")...)
	return r
}

func (g *gen) cat() *request {
	table := g.one("", "/health", "/health", "/indices", "/indices", "/indices/books", "¡/indices/nosuch", "/tasks", "/nodes", "/thread_pool", "/thread_pool/search", "¡/thread_pool/nosuch", "/thread_pool/s*",
		"/shards", "/shards", "/shards/books", "/shards/l*", "¡/shards/nosuch", "/count", "/count/books", "¡/count/nosuch", "/cluster_manager", "/master", "/pending_tasks")
	r := jsonRequest("GET", "/_cat"+table, "")
	columns := map[string]string{"": "", "/health": "cluster,status", "/tasks": "action,type", "/nodes": "name,node.role", "/thread_pool": "name,type,active", "/cluster_manager": "node", "/master": "node", "/pending_tasks": "priority,source"}[table]
	if strings.HasPrefix(table, "/indices") {
		columns = "index,health,pri,rep,docs.count"
	}
	if strings.HasPrefix(table, "/shards") {
		columns = "index,shard,prirep,state,docs"
	}
	if strings.HasPrefix(table, "/count") {
		columns = "count"
	}
	if strings.HasPrefix(table, "/thread_pool") {
		columns = "name,type,active,queue"
	}
	r.query = g.some(0.2, "v", "h="+columns, "s="+g.one("index", "name", "¡nosuch", "index:desc", "¡h:bogus"), "format="+g.one("json", "yaml", "text", "¡bogus"), "help")
	r.query = append(r.query, g.some(0.04, "bytes="+g.one("b", "kb", "¡x"), "time="+g.one("ms", "s", "¡x"), "ts=false", "pri=true", "local=true", "detailed=true", "full_id=true", "h=*", "expand_wildcards=all", "health=green", "¡health=bogus",
		"include_unloaded_segments=true", "actions=*lists*", "nodes=_local", "size=b", "cluster_manager_timeout=5s", "v=false")...)
	if strings.HasPrefix(table, "/thread_pool") && g.chance(0.7) { // nearly all pools of the other side are not here
		r.path = "/_cat/thread_pool/search"
	}
	return r
}
