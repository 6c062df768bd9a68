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
