package rest_test

import (
	"strings"
	"testing"
)

// TestAgreement holds what a real OpenSearch answers to requests that are odd in one way.
func TestAgreement(t *testing.T) {
	s := newServer(t)
	s.do("PUT", "/books", `{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":{"n":{"type":"integer"}}}}`).want(200)
	s.do("PUT", "/books/_doc/1", `{"n":1}`).want(201)
	const (
		illegal    = "illegal_argument_exception"
		validation = "action_request_validation_exception"
		notFound   = "index_not_found_exception"
		exists     = "resource_already_exists_exception"
		conflict   = "version_conflict_engine_exception"
		misread    = "x_content_parse_exception"
	)
	for _, c := range []struct {
		request string // method, path and body, with spaces between them
		status  int
		typ     string // of the error
		cause   string // what its cause is; "" for none
	}{
		{"GET /_tasks?x=%zz", 400, "bad_parameter_exception", illegal},
		{"GET /?=", 200, "", ""},
		{"GET /_tasks?=x", 400, illegal, ""},
		{"GET /books?pretty=maybe&error_trace", 400, illegal, ""},

		{"GET /_cluster/settings?timeout=1s", 400, illegal, ""},
		{"GET /books?timeout=1s", 400, illegal, ""},
		{"GET /_cluster/health?wait_for_active_shards=x", 400, illegal, "number_format_exception"},
		{"GET /_cluster/health?wait_for_events=bogus", 400, illegal, ""},
		{"GET /_cluster/health?wait_for_events=LANGUID", 200, "", ""},
		{"GET /_cluster/health?expand_wildcards=bogus", 400, illegal, ""},
		{"GET /_cluster/health/books?level=awareness_attributes", 400, validation, ""},

		{"GET /_cat/indices?s=nosuch", 500, "unsupported_operation_exception", ""},
		{"GET /_cat/indices?s=nosuch&nosuch", 400, illegal, ""},
		{"GET /_cat/indices?s=nosuch&help", 200, "", ""},

		{"POST /_tasks/x:1/_cancel?nodes=_all", 400, validation, ""},

		{"GET /books/_search?df=t", 400, illegal, ""},
		{"GET /books/_search?df=t&q=1", 200, "", ""},
		{"GET /books/_count?lenient=true", 400, illegal, ""},
		{"POST /books/_search?q=1 {}", 200, "", ""},
		{"POST /books/_count?q=1 {}", 400, illegal, ""},
		{"POST /books/_search?source=%7B%7D {}", 400, illegal, ""},
		{"GET /books/_search?search_pipeline=nosuch", 400, illegal, ""},
		{"GET /books/_search?search_pipeline=_none", 200, "", ""},
		{`POST /books/_count {"query":{}}`, 400, "parsing_exception", illegal},
		{`POST /books/_count {"query"}`, 400, "parsing_exception", "json_parse_exception"},

		{"GET /Books/_search", 404, notFound, ""},
		{"GET /-books/_search", 404, notFound, ""},
		{"GET /Books", 404, notFound, ""},
		{"DELETE /Books", 404, notFound, ""},
		{"GET /_books/_search", 400, "invalid_index_name_exception", ""},
		{"GET /book*/_doc/1", 404, notFound, ""},
		{"DELETE /books,books/_doc/1", 404, notFound, ""},
		{"GET /books/_doc/" + strings.Repeat("i", 513), 404, "", ""},
		{"GET /books/_doc/1?realtime=maybe", 400, illegal, ""},
		{"HEAD /books/_doc/1?refresh=1", 400, "", ""},
		{"GET /_all/_doc/1", 404, notFound, ""},
		{`PUT /books/_doc/2 {"a":{"":1}}`, 400, "mapper_parsing_exception", illegal},
		{"DELETE /books/_doc/" + strings.Repeat("i", 513), 404, "", ""},
		{`PUT /books/_doc/2 {"n":1,"n":1}`, 400, "mapper_parsing_exception", "json_parse_exception"},
		{`PUT /books/_doc/2 {"n":`, 400, "mapper_parsing_exception", "unexpected_end_of_input_exception"},
		{`PUT /books/_doc/2 {"n":true}`, 400, "mapper_parsing_exception", "input_coercion_exception"},
		{`PUT /books/_doc/2 {"n":"x"}`, 400, "mapper_parsing_exception", "number_format_exception"},
		{`PUT /books/_doc/2 [1]`, 400, "mapper_parsing_exception", "not_x_content_exception"},

		{`PUT /new {"settings"`, 400, "parse_exception", "unexpected_end_of_input_exception"},
		{`PUT /new {"settings":[]}`, 400, "parse_exception", ""},
		{`PUT /new {"mappings":{"properties":{"n":{"type":"nosuch"}}}}`, 400, "mapper_parsing_exception", "mapper_parsing_exception"},

		{"DELETE /_search/scroll/bogus", 400, illegal, ""},
		{"DELETE /_search/scroll", 400, validation, ""},
		{"DELETE /_search/scroll/_all {}", 400, validation, ""},
		{"POST /_search/scroll 1", 400, illegal, ""},
		{`POST /books/_search?scroll=1m {"track_total_hits":"1"}`, 400, validation, ""},
		{"GET /_cluster/health?wait_for_nodes=x", 400, "number_format_exception", ""},
		{"POST /_msearch {\"query\":{}}\n", 400, illegal, ""},
		{"DELETE /_search/scroll?nosuch", 400, illegal, ""},
		{"GET /_search/scroll", 400, validation, ""},
		{"GET /_search/scroll?scroll_id=", 400, illegal, "e_o_f_exception"},
		{"GET /_search/scroll?scroll_id=a,b", 400, illegal, ""},
		{"GET /_search/scroll/a,b", 400, illegal, ""},
		{`POST /_search/scroll {"scroll_id":""}`, 400, illegal, "e_o_f_exception"},
		{`POST /_search/scroll {"scroll_id":["x"]}`, 400, illegal, ""},
		{"POST /_search/scroll {,}", 400, illegal, "json_parse_exception"},

		{"GET /_cat/health?v=x", 400, illegal, ""},
		{"GET /_list/wlm_stats?order", 400, "parse_exception", illegal},
		{"GET /_cat/health?v=x&help", 200, "", ""},
		{`POST /books/_search {"size":1.5}`, 200, "", ""},
		{`POST /books/_search {"track_scores":"-1"}`, 400, illegal, ""},
		{"GET /books/_search?explain=-1", 400, illegal, ""},
		{"GET /books/_search?expand_wildcards=", 200, "", ""},
		{`POST /books/_search {"query":{"exists":{"field":["n"]}}}`, 400, "parsing_exception", ""},
		{"POST /_msearch {}\n", 400, validation, ""},
		{`PUT /new {"mappings":{"properties":{"n":{}}}}`, 400, "mapper_parsing_exception", "mapper_parsing_exception"},
		{`POST /books/_search {"track_total_hits":"x"}`, 400, "number_format_exception", ""},
		{`POST /books/_search {"sort":[{"n":"up"}]}`, 400, "x_content_parse_exception", illegal},
		{`PUT /Upper {"nosuch":{}}`, 400, "parse_exception", ""},
		{`PUT /new {"settings":null}`, 400, "parse_exception", ""},
		{`PUT /new {"mappings":{"nosuch":1}}`, 400, "mapper_parsing_exception", "mapper_parsing_exception"},
		{"GET /_cat/indices?health=bogus", 400, illegal, ""},
		{"GET /_cat/indices?health=bogus&help", 200, "", ""},
		{"GET /_cat/indices?expand_wildcards=bogus", 400, illegal, ""},
		{"GET /_cat/health?master_timeout=1s", 400, illegal, ""},
		{"GET /books/_search?preference=_bogus", 400, illegal, ""},
		{"GET /books/_search?preference=_shards:0|_local", 200, "", ""},
		{"GET /books/_search?preference=_shards:0|_bogus", 400, illegal, ""},
		{"GET /books/_search?preference=_shards:x", 400, "number_format_exception", ""},
		{"GET /nosuch*/_search?preference=_bogus", 200, "", ""},
		{"GET /nosuch/_search?preference=_bogus", 404, notFound, ""},
		{"GET /books/_doc/1?preference=_bogus", 400, illegal, ""},
		{"GET /books/_validate/query?preference=x", 400, illegal, ""},
		{"GET /books/_validate/query?routing=x", 400, illegal, ""},
		{"GET /books/_validate/query?df=n", 400, illegal, ""},
		{"GET /books/_validate/query?q=*&df=n", 200, "", ""},
		{`POST /books/_validate/query?q=* {"query":{"match_all":{}}}`, 400, illegal, ""},

		{"GET /books/_search?ccs_minimize_roundtrips=null", 400, illegal, ""},
		{"GET /books/_search?request_cache=x", 400, illegal, ""},
		{"GET /books/_search?typed_keys=x", 200, "", ""},
		{"GET /books/_count?ignore_throttled=x", 400, illegal, illegal},
		{"GET /books/_count?q=1&lenient=x", 400, illegal, ""},
		{"GET /books/_search?rest_total_hits_as_int=%20&version=%20&ignore_unavailable=%20&request_cache=%20", 200, "", ""},
		{"GET /books/_search?allow_partial_search_results=%20", 400, illegal, ""},
		{"POST /_msearch?ccs_minimize_roundtrips=x {}\n{}\n", 400, illegal, ""},
		{"GET /_cat/indices?include_unloaded_segments=x", 400, illegal, ""},
		{"GET /books/_search?ignore_throttled=x", 400, illegal, illegal},
		{`POST /_msearch {"request_cache":"x"}` + "\n{}\n", 400, illegal, illegal},
		{`POST /_msearch {"ignore_unavailable":[true]}` + "\n{}\n", 400, illegal, illegal},
		{`POST /_msearch {"ccs_minimize_roundtrips":""}` + "\n{}\n", 400, illegal, ""},
		{`POST /_msearch {"allow_no_indices":"","request_cache":"true"}` + "\n{}\n", 200, "", ""},

		{"GET /_nodes/s%74ats", 200, "", ""},
		{"GET /_nodes/usage,x", 200, "", ""},
		{"GET /_nosuch*/_search", 400, "invalid_index_name_exception", ""},
		{"GET /_nosuch*", 400, "invalid_index_name_exception", ""},
		{"GET /books,_all/_search", 400, "invalid_index_name_exception", ""},
		{"DELETE /_al*", 400, "invalid_index_name_exception", ""},
		{"GET /_nosuch*/_validate/query", 200, "", ""},
		{"GET /b*,-nosuch/_search", 404, notFound, ""},
		{"GET /b*,-nosuch/_search?ignore_unavailable=true", 200, "", ""},
		{"GET /b*,-nosuch*/_search", 200, "", ""},
		{"GET /b*,-books/_search", 200, "", ""},
		{"GET /books/_validate/query?source=%7B%7D", 200, "", ""},
		{"GET /books/_validate/query?q=n:1&source=%7B%7D", 400, illegal, ""},
		{`POST /books/_search {"sort":[1.5]}`, 400, illegal, ""},
		{`POST /books/_search {"sort":[[]]}`, 400, illegal, ""},
		{`POST /books/_search {"sort":1.5}`, 200, "", ""},

		{"PUT /books/_create/9?op_type=index {}", 400, illegal, ""},
		{"PUT /books/_create/9?op_type= {}", 400, illegal, ""},
		{"PUT /books/_create/9?op_type=index&version=x {", 400, illegal, ""},
		{"PUT /books/_create/" + strings.Repeat("i", 513) + "?op_type=index {}", 400, illegal, ""},
		{"PUT /books/_create/1?op_type=CREATE {}", 409, conflict, ""},
		{"PUT /books/_doc/1?op_type=Create {}", 409, conflict, ""},
		{"PUT /books/_doc/9?op_type= {}", 400, illegal, ""},
		{"POST /books/_doc?op_type= {}", 400, illegal, ""},

		{`PUT /books/_settings {"number_of_replicas":[]}`, 400, illegal, "number_format_exception"},
		{`PUT /books/_settings {"number_of_replicas":["1"]}`, 400, illegal, "number_format_exception"},
		{`PUT /made {"settings":{"number_of_shards":[1,2]}}`, 400, illegal, "number_format_exception"},
		{`PUT /books/_settings {"x":[[]]}`, 400, "settings_exception", illegal},
		{`PUT /made {"settings":{"x":[null]}}`, 400, "settings_exception", illegal},

		{`POST /nosuch/_count {"query":{"match":{}}}`, 400, "parsing_exception", ""},
		{`POST /nosuch/_count {"query":{"term":{}}}`, 400, "parsing_exception", illegal},
		{`POST /nosuch/_search {"query":{"bool":{"must":{"term":{}}}}}`, 400, misread, illegal},
		{`POST /nosuch/_count {"query":{"bool":{"must":{"term":{}}}}}`, 400, "parsing_exception", misread},
		{`POST /nosuch/_search {"query":{"bool":{"must":5}}}`, 400, misread, ""},
		{`POST /nosuch/_search {"query":{"bool":{"nosuch":[]}}}`, 400, misread, ""},
		{`POST /books/_search {"query":{"bool":{"must_not":[],"minimum_should_match":1,"adjust_pure_negative":true,"boost":1,"_name":"x"}}}`, 200, "", ""},
		{`POST /nosuch/_search {"query":{"bool":{"must":[{"match_al":{}}]}}}`, 400, misread, "parsing_exception"},
		{`POST /nosuch/_search {"query":{"query_string":{}}}`, 400, "parsing_exception", ""},
		{`POST /books/_search {"query":{"range":{}}}`, 400, illegal, ""},
		{`POST /books/_search {"query":{"exists":{"field":"n","nosuch":1}}}`, 400, "parsing_exception", ""},
		{`POST /books/_search {"query":{"exists":{"field":"n","_name":[]}}}`, 400, "parsing_exception", ""},
		{`POST /books/_search {"query":{"exists":{"field":"n","boost":2,"_name":"x"}}}`, 200, "", ""},
		{"GET /books/_search?track_total_hits=x", 400, illegal, "number_format_exception"},
		{"GET /books/_count?terminate_after=x", 400, illegal, "number_format_exception"},
		{`POST /books/_search {"query":{"terms":{"n":1}}}`, 400, "parsing_exception", ""},
		{`POST /books/_search {"query":{"exists":{}}}`, 400, "parsing_exception", ""},
		{`POST /books/_search {"query":{"range":{"n":{"nosuch":1}}}}`, 400, "parsing_exception", ""},

		{"GET /nosuch?expand_wildcards=none", 200, "", ""},
		{"GET /nosuch/_search?expand_wildcards=none", 200, "", ""},
		{"GET /_nosuch/_count?expand_wildcards=hidden", 400, "invalid_index_name_exception", ""},
		{"GET /_nosuch?expand_wildcards=hidden", 200, "", ""},
		{"GET /nosuch?expand_wildcards=", 200, "", ""},
		{"DELETE /book*?expand_wildcards=", 200, "", ""},
		{"HEAD /books", 200, "", ""},
		{"GET /books?expand_wildcards=%20", 400, illegal, ""},
		{"DELETE /nosuch?expand_wildcards=none", 200, "", ""},
		{"GET /nosuch?expand_wildcards=none&allow_no_indices=false", 404, notFound, ""},
		{"GET /nosuch,books?expand_wildcards=none", 404, notFound, ""},
		{"GET /b*,books?expand_wildcards=none", 404, notFound, ""},
		{"GET /b*,books?expand_wildcards=none&ignore_unavailable=true", 200, "", ""},
		{"GET /nosuch?expand_wildcards=closed", 404, notFound, ""},
		{"GET /nosuch*/_validate/query", 404, notFound, ""},
		{"PUT /nosuch*/_settings {\"number_of_replicas\":0}", 404, notFound, ""},
		{"GET /_cluster/health/nosuch?timeout=0&expand_wildcards=none", 408, "", ""},
		{"GET /_cat/shards?expand_wildcards=open", 400, illegal, ""},

		{"GET /books/_search?track_total_hits", 400, illegal, "number_format_exception"},
		{"GET /books/_search?size=", 400, illegal, "number_format_exception"},
		{"GET /_tasks?group_by=", 400, illegal, ""},
		{"GET /_cat/indices?health=", 400, illegal, ""},
		{"GET /books?include_defaults=1", 400, illegal, ""},
		{"HEAD /books?include_defaults=1", 400, "", ""},
		{"GET /books/_settings?local=1", 400, illegal, ""},
		{"GET /books/_stats?forbid_closed_indices=1", 400, illegal, ""},
		{"GET /_nodes/stats/http%20", 200, "", ""},
		{"GET /_stats/docs%20", 200, "", ""},

		{"POST /_tasks/x:-1/_cancel?detailed", 400, illegal, ""},
		{"GET /_tasks/x:-1?nosuch", 400, illegal, ""},
		{"GET /_cluster/health/books?level=awareness_attributes&wait_for_no_initializing_shards=x", 400, illegal, ""},
		{`PUT /books {"mappings":{"properties":{"n":{"type":"nosuch"}}}}`, 400, exists, ""},
		{`PUT /Upper {"mappings":{"nosuch":1}}`, 400, "invalid_index_name_exception", ""},
		{`PUT /books {"nosuch":{}}`, 400, "parse_exception", ""},
		{`PUT /books {"settings":{"number_of_shards":0}}`, 400, illegal, ""},
		{"POST /_msearch {\"nosuch\":{}}\n\n", 400, illegal, ""},
		{"PUT /_wlm/workload_group/a {\"resource_limits\":\xc3{}}", 400, "json_parse_exception", "stream_read_exception"},
		{`PUT /_wlm/workload_group/a {"resource_limits":{x}}`, 400, illegal, ""},

		{"PUT /new []", 400, "not_x_content_exception", ""},
		{"PUT /new?wait_for_active_shards=x", 400, illegal, "number_format_exception"},
		{`POST /books/_update/1 {"doc":null}`, 400, misread, ""},
		{`POST /books/_update/1 {"doc":{},"doc_as_upsert":"maybe"}`, 400, misread, illegal},
		{`POST /books/_update/1 {"doc":{},"detect_noop":1}`, 400, misread, ""},
		{`POST /books/_update/1 {"nosuch":1}`, 400, misread, ""},
		{`POST /books/_update/1 [1]`, 400, misread, ""},
		{`POST /books/_update/1?lang=x {"doc":{}}`, 400, illegal, ""},
		{`POST /books/_update/1?version=1 {"doc":{}}`, 400, validation, ""},
		{`POST /books/_update/1?if_seq_no=7&if_primary_term=1 {"doc":{}}`, 409, conflict, ""},
		{`POST /books/_update/1 {"doc":{},"if_seq_no":7,"if_primary_term":1}`, 409, conflict, ""},
		{`PUT /books/_doc/1?if_seq_no=x {}`, 400, illegal, "number_format_exception"},
		{`PUT /books/_doc/1?if_seq_no=7&if_primary_term=1 {}`, 409, conflict, ""},
		{`PUT /books/_doc/1?require_alias=true {}`, 404, notFound, ""},
		{`PUT /books/_doc/1?pipeline=x {}`, 400, illegal, ""},
		{`PUT /books/_doc/1?wait_for_active_shards=x {}`, 400, illegal, "number_format_exception"},
		{"DELETE /books/_doc/1?op_type=index", 400, illegal, ""},
		{"DELETE /books/_doc/1?if_seq_no=7&if_primary_term=1", 409, conflict, ""},
		{"GET /books/_doc/1?version=7", 409, conflict, ""},
		{"GET /books/_doc/1?version=0", 400, validation, ""},
		{"GET /books/_doc/1?version_type=", 400, illegal, ""},
		{"POST /books/_bulk?version=1 {\"index\":{}}\n{}\n", 400, illegal, ""},

		{"PUT /books/_settings []", 400, validation, ""},
		{`PUT /books/_settings {"index.creation_date":1}`, 400, illegal, ""},
		{`PUT /books/_settings {"index.uuid":1}`, 400, "settings_exception", ""},
		{`PUT /books/_settings {"number_of_replicas":"x"}`, 400, illegal, "number_format_exception"},
		{`PUT /books/_settings {"number_of_replicas":-1}`, 400, illegal, ""},
		{`PUT /books/_settings?preserve_existing=x {"number_of_replicas":0}`, 400, illegal, ""},
		{`PUT /new {"settings":{"number_of_shards":"x"}}`, 400, illegal, "number_format_exception"},
		{"GET /books/_search?allow_no_indices=x", 400, illegal, illegal},
		{"GET /books?ignore_unavailable=x", 400, illegal, illegal},
		{`POST /books/_search {"size":99999999999}`, 400, illegal, ""},
		{"GET /books/_settings?timeout=1s", 400, illegal, ""},
		{"GET /books/_doc/1?realtime=%20", 200, "", ""},
		{"GET /_list/wlm_stats?sort", 400, "parse_exception", illegal},
		{"GET /_nosuch/_validate/query", 200, "", ""},
		{`POST /books/_search {"track_total_hits":1.5}`, 200, "", ""},
		{"GET /books?master_timeout=-5s", 400, illegal, ""},
		{"GET /books/_settings?master_timeout=-5s", 400, illegal, ""},
		{"DELETE /elsewhere/_doc/1?version=3&version_type=external", 404, "", ""},
		{"DELETE /elsewhere", 200, "", ""},
		{"GET /_cat/health?local=true", 400, illegal, ""},
		{"GET /_cat/tasks?local=true", 400, illegal, ""},
		{"GET /_cat/count?master_timeout=1s", 400, illegal, ""},
		{"GET /_cat/count?source=%7B%7D&source_content_type=application/json", 200, "", ""},
		{"GET /_cat/count?source=%7B%7D", 500, "illegal_state_exception", ""},
		{"GET /_cat/count?q=n:1&df=n", 200, "", ""},
		{"GET /_cat/count?df=n", 400, illegal, ""},
		{`GET /_cat/count/nosuch {"query":{"nosuch":{}}}`, 400, "parsing_exception", "named_object_not_found_exception"},
		{`GET /_cat/count {"size":1}`, 400, "parsing_exception", ""},
		{`GET /_cat/count?help {"size":1}`, 200, "", ""},
		{"GET /_nodes/_local/stats%20", 200, "", ""},
		{"POST /books/_validate/query {}", 400, validation, ""},
		{`GET /nosuch/_validate/query {"query":[]}`, 200, "", ""},
	} {
		parts := append(strings.SplitN(c.request, " ", 3), "")
		r := s.do(parts[0], parts[1], parts[2])
		typ, cause := "", ""
		if c.typ != "" && strings.HasPrefix(r.body, `{"error":{`) {
			e := r.at("error").(map[string]any)
			typ, _ = e["type"].(string)
			below, _ := e["caused_by"].(map[string]any)
			cause, _ = below["type"].(string)
		}
		if r.status != c.status || typ != c.typ || cause != c.cause {
			t.Errorf("%s: %d %s caused by %q, want %d %s caused by %q: %s", c.request, r.status, typ, cause, c.status, c.typ, c.cause, r.body)
		}
	}

	for path, kind := range map[string]string{
		"/nosuch/_search": "index_or_alias", "/nosuch/_doc/1": "index_expression", "/nosuch/_search?expand_wildcards=closed": "index_or_alias",
		"/nosuch,books/_search?expand_wildcards=none": "index_expression",
	} {
		if got := s.do("GET", path, "").at("error", "resource.type"); got != kind {
			t.Errorf("%s: a resource of type %v, want %s", path, got, kind)
		}
	}
	if got := s.do("GET", "/books?format=yaml&x=%", ""); got.header.Get("Content-Type") != "application/json; charset=UTF-8" {
		t.Errorf("parameters that cannot be read: %s", got.body)
	}
	s.do("GET", "/", "", "Content-Type", "").wantError(400, "content_type_header_exception")
	if got := s.do("GET", "/?nosuch", ""); got.status != 400 || strings.Contains(got.body, "\n") {
		t.Errorf("an error of /: %s", got.body)
	}
	if got := s.do("GET", "/books?error_trace=x&pretty", ""); strings.Contains(got.body, "\n") {
		t.Errorf("a trace that cannot be read: %s", got.body)
	}
	for _, path := range []string{"/?human=1&pretty", "/_cat/indices?format=yaml&human=1&pretty"} {
		if got := s.do("GET", path, ""); got.status != 400 || strings.Contains(got.body, "\n") {
			t.Errorf("%s: what it asks to be written for people cannot be read: %s", path, got.body)
		}
	}
	if got := s.do("GET", "/books?pretty=maybe&format=yaml", ""); got.header.Get("Content-Type") != "application/json; charset=UTF-8" {
		t.Errorf("a form that cannot be read: %s", got.body)
	}
	if got := s.raw("GET /books/%5fdoc/\xc3\xa4 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); !strings.Contains(got, "400 Bad Request") || !strings.Contains(got, "no handler found") {
		t.Errorf("an escape beside bytes that should have been escaped: %s", got)
	}
	if got := s.raw("GET /books/_doc/\xc3\xa4 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); !strings.Contains(got, `"_id":"ä"`) {
		t.Errorf("bytes that should have been escaped: %s", got)
	}
	if got := s.do("POST", "/", ""); got.status != 405 || strings.Contains(got.body, "\n") {
		t.Errorf("a wrong method of /: %s", got.body)
	}
	if got := s.do("GET", "/_cat/indices?h=", ""); strings.TrimSpace(got.body) != "" {
		t.Errorf("a table without columns: %s", got.body)
	}
	s.do("GET", "/", "", "Content-Type", "garbage").wantError(400, "content_type_header_exception")
	if got := s.do("POST", "/_bulk", `{"index":{"_index":"books","_type":"_doc"}}`+"\n{}\n").status; got != 400 {
		t.Errorf("_type in a bulk request: status %d", got)
	}
	s.do("PUT", "/logs", `{"settings":{"number_of_shards":2,"number_of_replicas":2}}`).want(200)
	for path, want := range map[string]float64{"/_cluster/health": 42.857142857142854, "/_cluster/health/books": 100, "/_cluster/health/logs": 42.857142857142854,
		"/_cluster/health/nosuch?timeout=0": 100} {
		if got := s.do("GET", path, "").at("active_shards_percent_as_number"); got != want {
			t.Errorf("%s: %v %% of the shards are active, want %v", path, got, want)
		}
	}
	for _, path := range []string{"/_wlm/stats/%20DEFAULT_WORKLOAD_GROUP", "/_wlm/stats/DEFAULT_WORKLOAD_GROUP%00"} {
		if got := s.do("GET", path, "").want(200).at("_nodes", "successful"); got != 1.0 {
			t.Errorf("%s: %v nodes know the group with space around it, want 1", path, got)
		}
	}
	if got := s.do("GET", "/_list/wlm_stats/stats/DEFAULT_WORKLOAD_GROUP%20", "").want(200).body; !strings.Contains(got, "DEFAULT_WORKLOAD_GROUP") {
		t.Errorf("a table of a group with space behind it: %s", got)
	}
	for _, item := range []string{`{"index":{"_index":"books","_id":""}}`, `{"index":{"_index":"","_id":"1"}}`} {
		r := s.do("POST", "/books/_bulk", item+"\n{}\n").want(200)
		if got := r.at("items", 0, "index", "status"); got != 400.0 || r.at("items", 0, "index", "_id") == nil {
			t.Errorf("%s: %s", item, r.body)
		}
	}
	r := s.do("POST", "/_msearch?ignore_unavailable=true", `{"index":"nosuch"}`+"\n{}\n"+`{"index":"nosuch","ignore_unavailable":false}`+"\n{}\n").want(200)
	if r.at("responses", 0, "status") != 200.0 || r.at("responses", 1, "status") != 404.0 {
		t.Errorf("an index that is missing in a multi-search that does not mind: %s", r.body)
	}
	id := s.do("GET", "/books/_search?scroll=1m", "").want(200).at("_scroll_id").(string)
	for _, c := range []struct {
		query string
		named bool
	}{{"?scroll=1m", true}, {"", false}} {
		if _, ok := s.do("GET", "/_search/scroll/"+id+c.query, "").want(200).json()["_scroll_id"]; ok != c.named {
			t.Errorf("a page of a scroll, %q: it tells the id: %v", c.query, ok)
		}
	}
	s.do("GET", "/_search/scroll/"+id+"?scroll=1m", "").wantError(404, "search_phase_execution_exception")
}

// TestClosedIndices holds what patterns and names of closed indices come to.
func TestClosedIndices(t *testing.T) {
	s := newServer(t)
	s.do("PUT", "/books", "").want(200)
	s.do("PUT", "/shut", "").want(200)
	s.do("POST", "/shut/_close", "").want(200)
	const closed, illegal = "index_closed_exception", "illegal_argument_exception"
	for path, typ := range map[string]string{
		"/shut/_search": closed, "/s*/_search": "", "/s*/_search?expand_wildcards=all": closed, "/shut/_search?expand_wildcards=closed": illegal,
		"/s*/_search?expand_wildcards=all&ignore_unavailable=true": "", "/shut/_stats": closed, "/shut/_stats?forbid_closed_indices=false": "",
		"/shut/_refresh": closed, "/_refresh": "", "/_cat/shards/shut": closed, "/_cat/count/shut": closed, "/shut/_settings": "",
	} {
		if r := s.do("GET", path, ""); typ != "" {
			r.wantError(400, typ)
		} else {
			r.want(200)
		}
	}
	for path, found := range map[string]bool{
		"/s*": false, "/s*?expand_wildcards=closed": true, "/*?expand_wildcards=all": true, "/_settings": false, "/_cat/indices": true, "/_cat/shards": true,
		"/_cat/shards/s*": false, "/_cat/indices?expand_wildcards=open": false, "/_cluster/health?level=indices": true, "/_cluster/health?level=indices&expand_wildcards=open": false,
		"/_stats": false,
	} {
		if got := s.do("GET", path, "").want(200).body; strings.Contains(got, "shut") != found {
			t.Errorf("%s: a closed index is found: %v, want %v: %s", path, !found, found, got)
		}
	}
	if r := s.do("GET", "/shut/_validate/query", "").want(200); r.at("valid") != false || r.at("_shards", "total") != 0.0 || r.at("explanations", 0, "error") == nil {
		t.Errorf("a query of a closed index: %s", r.body)
	}
	for path, want := range map[string]string{"/_cat/indices/shut?h=docs.count,docs.deleted,store.size": "", "/_cat/shards?h=index,docs": "shut   \n"} {
		if got := strings.TrimSpace(s.do("GET", path, "").body); got != want && !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if got := s.do("GET", "/_cat/health?h=pri", "").body; got != "2\n" {
		t.Errorf("the shards of closed indices count, too: %s", got)
	}
	if r := s.do("POST", "/nosuch*/_close", "").want(200); r.at("shards_acknowledged") != false {
		t.Errorf("closing nothing: %s", r.body)
	}
	if r := s.do("POST", "/shut,books/_close", "").want(200); r.at("indices", "shut") != nil || r.at("indices", "books") == nil {
		t.Errorf("closing what is closed: %s", r.body)
	}
	s.do("POST", "/*/_open", "").want(200)
	s.do("GET", "/shut/_search", "").want(200)
	s.do("POST", "/*/_close", "").want(200)
	if r := s.do("DELETE", "/*", "").want(200); s.do("GET", "/_cat/indices?expand_wildcards=all", "").body != "" {
		t.Errorf("deleting all, closed ones too: %s", r.body)
	}
}

// TestValidateQueryCountsShards: one of each index, or all.
func TestValidateQueryCountsShards(t *testing.T) {
	s := newServer(t)
	s.do("PUT", "/a", `{"settings":{"number_of_shards":2}}`).want(200)
	s.do("PUT", "/b", "").want(200)
	for query, want := range map[string][2]int{"": {2, 0}, "?explain": {2, 2}, "?rewrite": {2, 2}, "?all_shards": {3, 3}} {
		r := s.do("GET", "/_validate/query"+query, "").want(200)
		explanations, _ := r.json()["explanations"].([]any)
		if got := [2]int{int(r.at("_shards", "total").(float64)), len(explanations)}; got != want {
			t.Errorf("%s: %d shards and %d explanations, want %v: %s", query, got[0], got[1], want, r.body)
		}
	}
}

// TestSettingsForPeople: moments and versions in words.
func TestSettingsForPeople(t *testing.T) {
	s := newServer(t)
	s.do("PUT", "/a", "").want(200)
	for _, path := range []string{"/a", "/a/_settings"} {
		r := s.do("GET", path+"?human", "").want(200)
		if r.at("a", "settings", "index", "creation_date_string") == nil || r.at("a", "settings", "index", "version", "created_string") == nil {
			t.Errorf("%s: %s", path, r.body)
		}
	}
}

// TestSettingsThatAreSetStay: preserve_existing adds, and changes nothing.
func TestSettingsThatAreSetStay(t *testing.T) {
	s := newServer(t)
	s.do("PUT", "/a", `{"settings":{"number_of_replicas":0,"x":"1"}}`).want(200)
	s.do("PUT", "/a/_settings?preserve_existing=true", `{"number_of_replicas":1,"x":"2","y":"2"}`).want(200)
	r := s.do("GET", "/a/_settings?flat_settings", "").want(200)
	for key, want := range map[string]string{"index.number_of_replicas": "0", "index.x": "1", "index.y": "2"} {
		if got := r.at("a", "settings", key); got != want {
			t.Errorf("%s is %v, want %s", key, got, want)
		}
	}
}

// TestUpdateThatAlwaysCounts: without detect_noop, an update that changes nothing is one all the same.
func TestUpdateThatAlwaysCounts(t *testing.T) {
	s := newServer(t)
	s.do("PUT", "/a/_doc/1", `{"n":1}`).want(201)
	for body, want := range map[string]string{`{"doc":{"n":1}}`: "noop", `{"doc":{"n":1},"detect_noop":false}`: "updated"} {
		if got := s.do("POST", "/a/_update/1", body).want(200).at("result"); got != want {
			t.Errorf("%s: %v, want %s", body, got, want)
		}
	}
}

// TestLocation: where a new document is, as OpenSearch writes it, but for a space.
func TestLocation(t *testing.T) {
	s := newServer(t)
	const id, want = "%21%24%26%2a%2b%2c-.%2f%3a%3d%3f%40_%7c~%20%C3%A4", "/b%2Bc/_doc/%21%24%26*%2B%2C-.%2F%3A%3D%3F%40_%7C%7E%20%C3%A4"
	r := s.do("PUT", "/b+c/_doc/"+id, "{}").want(201)
	if got := r.header.Get("Location"); got != want {
		t.Errorf("Location %s, want %s", got, want)
	}
	s.do("GET", r.header.Get("Location"), "").want(200)
}

// TestShardsThatAreAsked: a preference names shards, of each index.
func TestShardsThatAreAsked(t *testing.T) {
	s := newServer(t)
	s.do("PUT", "/one", `{"settings":{"number_of_shards":1}}`).want(200)
	s.do("PUT", "/two", `{"settings":{"number_of_shards":2}}`).want(200)
	for query, want := range map[string]float64{"": 3, "?preference=_shards:0": 2, "?preference=_shards:1|_local": 1, "?preference=_shards:0,1": 3, "?preference=_shards:7": 0} {
		for _, path := range []string{"/_search", "/_count"} {
			if got := s.do("GET", path+query, "").want(200).at("_shards", "total"); got != want {
				t.Errorf("%s%s asks %v shards, want %v", path, query, got, want)
			}
		}
	}
	body := `{"preference":"_shards:1"}` + "\n{}\n"
	if got := s.do("POST", "/_msearch", body).want(200).at("responses", 0, "_shards", "total"); got != 1.0 {
		t.Errorf("an item of a multi-search asks %v shards, want 1", got)
	}
}

// TestListsInSettings: a setting of an index may be a list, and is shown as one.
func TestListsInSettings(t *testing.T) {
	s := newServer(t)
	s.do("PUT", "/books", `{"settings":{"x":{"y":["a",1,true],"z":[]},"w":"b"}}`).want(200)
	s.do("PUT", "/books/_settings", `{"v":["c"],"w":null}`).want(200)
	const want = `{"books":{"settings":{"index":{"v":["c"],"x":{"y":["a","1","true"]}}}}}`
	if got := s.do("GET", "/books/_settings?filter_path=**.index.v,**.index.w,**.index.x.y", "").want(200).body; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, ok := s.do("GET", "/books/_settings", "").want(200).at("books", "settings", "index", "x", "z").([]any); !ok || len(got) != 0 {
		t.Errorf("an empty list is %v", got)
	}
	if got := s.do("GET", "/books?flat_settings", "").want(200).at("books", "settings", "index.x.y", 1); got != "1" {
		t.Errorf("a flat list: %v", got)
	}
}

// TestPhaseOfAWindowTooLarge: that too many hits are wanted is found in the first phase.
func TestPhaseOfAWindowTooLarge(t *testing.T) {
	s := newServer(t)
	s.do("PUT", "/one", `{"settings":{"number_of_shards":1}}`).want(200)
	s.do("PUT", "/two", `{"settings":{"number_of_shards":2}}`).want(200)
	for path, want := range map[string]string{"/two/_search?": "query", "/two/_search?search_type=dfs_query_then_fetch&": "dfs_pre_query", "/one/_search?search_type=dfs_query_then_fetch&": "query"} {
		if got := s.do("GET", path+"size=10001", "").want(400).at("error", "phase"); got != want {
			t.Errorf("%s: phase %v, want %s", path, got, want)
		}
	}
}
