package compat_test

// update changes a part of a document.
func (g *gen) update() *request {
	index := g.one("books", "books", "books", "logs-1", "made-1", "¡nosuch", "¡book*", "¡Books")
	id := g.one("1", "1", "2", "3", "9", "ä%20b", "8")
	r := jsonRequest("POST", "/"+index+"/_update/"+id, g.one(`{"doc":{"n":9}}`, `{"doc":{"n":9}}`, `{"doc":{"n":1}}`, `{"doc":{"o":{"p":2}}}`, `{"doc":{"n":9},"doc_as_upsert":true}`,
		`{"doc":{"n":9},"upsert":{"n":4,"t":"four"}}`, `{"doc":{},"doc_as_upsert":true}`, `{"doc":{}}`, `{"doc":{"n":9},"detect_noop":false}`, `{"doc":{"n":9},"detect_noop":true}`, `{"doc":{"n":null}}`,
		`¡{"upsert":{"n":1}}`, `¡{}`, `¡{"doc":[]}`, `¡{"doc":1}`, `¡{"doc":null}`, `¡{"nosuch":1}`, `¡{"doc":{"n":"x"}}`, `¡{"doc":{"n":9},"nosuch":1}`, `¡{"doc":{"n":9},"doc_as_upsert":"maybe"}`,
		`{"doc":{"n":9},"doc_as_upsert":false}`, `¡{"doc":{"n":9},"upsert":[]}`))
	r.query = plainRouting(index, append([]string{"refresh=" + g.one("true", "true", "wait_for")}, g.some(0.05, "timeout=1s", "wait_for_active_shards="+g.one("1", "¡0", "¡x"), "retry_on_conflict="+g.one("2", "0", "¡x"),
		"routing=a", "¡lang=painless", "¡if_seq_no="+g.one("0", "7", "-1", "x"), "¡if_seq_no="+g.one("0", "1", "7")+"&if_primary_term="+g.one("1", "2"), "¡version=1", "¡require_alias=true", "_source=false")...))
	return r
}

// indexState closes indices and opens them.
func (g *gen) indexState() *request {
	r := jsonRequest("POST", g.one("/books", "/logs-1", "/logs-1", "/logs-1", "/made-1", "/l*", "/_all", "/books,logs-1", "¡/nosuch", "¡/nosuch*", "¡/books,nosuch", "¡/Upper", "¡/_x")+g.one("/_close", "/_open"), "")
	r.query = append(g.expansion(), g.some(0.06, "timeout=5s", "wait_for_active_shards="+g.one("1", "0", "¡x"), "cluster_manager_timeout=5s")...)
	return r
}

// expansion are parameters that say what names of indices may come to.
func (g *gen) expansion() []string {
	return g.some(0.06, "ignore_unavailable="+g.one("true", "false"), "allow_no_indices="+g.one("true", "false"), "expand_wildcards="+g.one("open", "all", "none", "closed", "hidden", "¡bogus", "open,closed"))
}

func (g *gen) indexSettings() *request {
	indices := g.one("/books", "/books", "/logs-1", "", "/_all", "/b*", "/books,logs-1", "/made-1", "¡/nosuch", "¡/nosuch*", "¡/Books", "¡/books,nosuch")
	if g.chance(0.4) {
		r := jsonRequest("GET", indices+"/_settings", "")
		r.query = append(g.expansion(), g.some(0.08, "flat_settings=true", "local=true", "include_defaults=false", "cluster_manager_timeout=5s")...)
		return r
	}
	r := jsonRequest("PUT", indices+"/_settings", g.one(`{"index":{"number_of_replicas":0}}`, `{"number_of_replicas":1}`, `{"settings":{"number_of_replicas":0}}`, `{"index.number_of_replicas":null}`, `{"refresh_interval":"1s"}`,
		`{"index":{"refresh_interval":null}}`, `{"index.refresh_interval":"-1"}`, `{"index.number_of_replicas":"2"}`, `{"index.max_result_window":20000}`, `{"settings":{"index":{"number_of_replicas":1}}}`,
		`¡{"number_of_shards":2}`, `¡{"index.uuid":"x"}`, `¡{}`, `¡{"number_of_replicas":"x"}`, `¡{"number_of_replicas":-1}`, `¡{"nosuch":1}`, `¡{"index.nosuch":{"a":1}}`, `¡{"settings":{}}`, `¡{"index.provided_name":"x"}`,
		`¡{"index.creation_date":1}`, `¡{"refresh_interval":"bogus"}`))
	r.query = append(g.expansion(), g.some(0.06, "flat_settings=true", "timeout=5s", "cluster_manager_timeout=5s", "preserve_existing="+g.one("true", "false"))...)
	return r
}

// validate asks whether a query could be searched with.
func (g *gen) validate() *request {
	r := jsonRequest(g.one("GET", "POST"), g.indices()+"/_validate/query", g.one(`{"query":`+g.query()+`}`, `{"query":`+g.query()+`}`, `{"query":`+g.query()+`}`, `{}`, `¡{"size":1}`, `¡{"query":{"match_all":{}},"size":1}`,
		`¡{"nosuch":1}`, `¡{"query":[]}`))
	if g.chance(0.2) {
		r = jsonRequest("GET", r.path, "")
	}
	r.query = append(g.expansion(), g.some(0.08, "explain="+g.one("true", "false"), "rewrite=true", "all_shards=true")...)
	if r.body == "" {
		r.query = append(r.query, g.some(0.3, "q="+g.one("*:*", "t:one", "¡("))...)
	}
	return r
}
