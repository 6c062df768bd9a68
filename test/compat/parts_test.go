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
