package compat_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestSequences: the same seed draws the same requests, another one others, and no mark of the grammar is left.
func TestSequences(t *testing.T) {
	text := func(seed, number uint64) string {
		var b strings.Builder
		for _, r := range sequence(seed, number) {
			b.WriteString(r.String() + "\n")
		}
		return b.String()
	}
	first := text(1, 1)
	if first != text(1, 1) || first == text(2, 1) || first == text(1, 2) {
		t.Error("the seed and the number do not decide what is drawn")
	}
	kinds := map[string]bool{}
	for number := range uint64(50) {
		for _, r := range sequence(1, number) {
			kinds[r.kind] = true
			if strings.Contains(r.String(), odd) {
				t.Errorf("a mark is left in %s", r)
			}
		}
	}
	for _, rule := range rules() {
		if !kinds[rule.kind] {
			t.Errorf("no request of the kind %s in 50 sequences", rule.kind)
		}
	}
}

// TestComparing: what counts is found, and what cannot be the same is not.
func TestComparing(t *testing.T) {
	for _, c := range []struct {
		here, there string
		want        string // the differences
	}{
		{`{"a":1}`, `{"a":1}`, ""},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, ""},
		{`{"a":1}`, `{"a":2}`, `.a: "1" here, "2" there`},
		{`{"a":1}`, `{"a":"1"}`, `.a: number here, string there`},
		{`{"a":1}`, `{}`, `.a: something here, nothing there`},
		{`{"a":[1]}`, `{"a":[1,2]}`, `.a: 1 items here, 2 items there`},
		{`{"error":{"type":"x","reason":"ours"}}`, `{"error":{"type":"x","reason":"theirs"}}`, ""},
		{`{"error":{"type":"x"}}`, `{"error":{"type":"y"}}`, `.error.type: "x" here, "y" there`},
		{`{"took":1}`, `{"took":20}`, ""},
		{`{"_shards":{"total":1}}`, `{"_shards":{"total":2}}`, `._shards.total: "1" here, "2" there`},
		{`{"_id":"ours"}`, `{"_id":"theirs"}`, ""},
		{`{"id":"«node»:12"}`, `{"id":"«node»:7"}`, ""},
		{`{"a":1,"a":1}`, `{"a":1}`, `.a: something here, nothing there`},
		{`{"_id":"madeUpByThisServer-1"}`, `{"_id":"madeUpByOpenSearch_1"}`, ""},
		{`{"_id":"madeUpByThisServer-1"}`, `{"_id":"1"}`, `._id: "madeUpByThisServer-1" here, "1" there`},
		{`{"workload_groups":{"wasNotShownByThisServer":{"a":1}}}`, `{"workload_groups":{"DEFAULT_WORKLOAD_GROUP":{"a":1}}}`,
			`.workload_groups.DEFAULT_WORKLOAD_GROUP: nothing here, something there; .workload_groups.wasNotShownByThisServer: something here, nothing there`},
		{`{"workload_groups":{"notShownByThisServer12":{"a":1}}}`, `{"workload_groups":{"notShownByOpenSearch12":{"a":1}}}`, ""},
		{`[]`, `[{"insertOrder":"1","timeInQueue":"1ms","priority":"URGENT","source":"x"}]`, ""},
	} {
		json := func(body string) answer {
			return answer{status: 200, header: http.Header{contentType: {"application/json"}}, body: body}
		}
		var got []string
		for _, d := range compare(&request{method: "GET"}, json(c.here), json(c.there), ids{"«x»": "ours"}, ids{"«x»": "theirs"}) {
			got = append(got, d.String())
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s and %s: %q, want %q", c.here, c.there, got, c.want)
		}
	}
}

// TestOrderOfTables: the order of rows counts where something was asked to be sorted, and where servers promise one.
func TestOrderOfTables(t *testing.T) {
	for path, same := range map[string]bool{"/_cat/indices": true, "/_cat/indices/a,b?v": true, "/_cat/indices?s=index": false, "/_cat/nodes": false} {
		for kind, bodies := range map[string][2]string{
			"application/json": {`[{"index":"a","pri":"1"},{"index":"b","pri":"2"}]`, `[{"index":"b","pri":"2"},{"index":"a","pri":"1"}]`},
			"text/plain":       {"green a 1\nyellow b 2\n", "yellow b 2\ngreen a 1\n"},
		} {
			answers := func(body string) answer {
				return answer{status: 200, header: http.Header{contentType: {kind}}, body: body}
			}
			if got := compare(jsonRequest("GET", path, ""), answers(bodies[0]), answers(bodies[1]), ids{}, ids{}); (len(got) == 0) != same {
				t.Errorf("%s in %s: %v", path, kind, got)
			}
		}
	}
}

// TestRowsOfTheClusterManager: what it has yet to do is there by chance.
func TestRowsOfTheClusterManager(t *testing.T) {
	if got := compareTexts("", "1940 13ms URGENT update-settings [[books/x]]\n", false); len(got) > 0 {
		t.Error(got)
	}
}

// TestParting: only a request that may have changed something on one side, and not the same on the other, parts the two servers.
func TestParting(t *testing.T) {
	for _, c := range []struct {
		kind, request string
		here, there   int
		difference    string // where it is
		unlisted      bool
		want          bool
	}{
		{"search", "POST /books/_search", 200, 400, "status", true, false},
		{"msearch", "POST /_msearch", 400, 200, "status", false, false},
		{"count", "POST /books/_count?q=x", 200, 400, "status", true, false},
		{"validate", "POST /books/_validate/query", 200, 400, "status", false, false},
		{"tasks", "POST /_tasks/x:-1/_cancel", 400, 200, "status", false, false},
		{"scroll", "POST /books/_search?scroll=0", 200, 400, "status", false, false},
		{"scroll", "POST /_search/scroll", 200, 404, "status", false, true},
		{"scroll", "DELETE /_search/scroll/_all", 404, 200, "status", false, false},
		{"scroll", "DELETE /_search/scroll/_all", 400, 200, "status", false, true},
		{"search", "GET /books/_search", 200, 400, "status", true, false},
		{"search", "PUT /books/_search", 200, 400, "status", false, true},
		{"group", "PUT /_wlm/workload_group", 400, 500, "status", true, false},
		{"group", "PUT /_wlm/workload_group", 200, 400, "status", false, true},
		{"group", "PUT /_wlm/workload_group", 400, 0, "status", false, true},
		{"group", "PUT /_wlm/workload_group", 200, 200, ".settings", false, false},
		{"group", "PUT /_wlm/workload_group", 200, 200, ".settings", true, true},
		{"doc", "PUT /books/_doc/1", 200, 200, "._version", false, true},
		{"doc", "PUT /books/_doc/1", 201, 201, "Location", false, false},
		{"doc", "PUT /books/_doc/1", 200, 200, "", false, false},
		{"doc", "POST /made-1/_doc", 406, 400, "status", false, true},
		{"update", "POST /made-1/_update/1", 404, 400, "status", false, true},
		{"update", "POST /made-1/_update/1", 200, 200, ".get", false, false},
		{"doc", "GET /books/_doc/1", 200, 200, "._version", false, false},
	} {
		method, target, _ := strings.Cut(c.request, " ")
		r := jsonRequest(method, target, "")
		r.kind = c.kind
		var all, unlisted []difference
		if c.difference != "" {
			all = []difference{{where: c.difference}}
		}
		if c.unlisted {
			unlisted = all
		}
		if got := r.parts(answer{status: c.here}, answer{status: c.there}, all, unlisted); got != c.want {
			t.Errorf("%s, %d here, %d there: %v", c.request, c.here, c.there, got)
		}
	}
}
