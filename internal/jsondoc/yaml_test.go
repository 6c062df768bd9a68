package jsondoc_test

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
)

func TestYAML(t *testing.T) {
	const source = `indices[golden], search_type[QUERY_THEN_FETCH], source[{\"query\":{\"sleep\":{\"ms\":6000,\"spin\":false,\"check\":true,\"kb\":0,\"prepare\":false,\"shard\":-1,\"boost\":1.0}}}]`
	long := strings.Repeat("k", 130)
	for _, c := range []struct{ document, want string }{
		{`{}`, "--- {}\n"},
		{`[]`, "--- []\n"},
		{`"a"`, "--- \"a\"\n"},
		{` { "a" : 1 , "b" : [ ] } `, "---\na: 1\nb: []\n"},
		{`{"a":{"b":{"c":null,"d":{}},"e":true},"f":1.0E-6}`, "---\na:\n  b:\n    c: null\n    d: {}\n  e: true\nf: 1.0E-6\n"},
		{`{"l":[1,{"a":2,"b":[3]},[4,[5]],[],{}]}`, "---\nl:\n- 1\n- a: 2\n  b:\n  - 3\n- - 4\n  - - 5\n- []\n- {}\n"},
		{`[{"a":1},[[2]],"x"]`, "---\n- a: 1\n- - - 2\n- \"x\"\n"},
		{`{"true":1,"Yes":2,"":3,"a b":4,"a: b":5,"a #b":6,"-":7,"1":8,"n1:719":9,"\u0001":10}`,
			"---\n\"true\": 1\n\"Yes\": 2\n\"\": 3\na b: 4\n\"a: b\": 5\n\"a #b\": 6\n\"-\": 7\n1: 8\nn1:719: 9\n\"\\x01\": 10\n"},
		{`{"s":"a\nb\t\"c\" \\ \u0000\u0085\u00a0\u2028é😀\ufeff"}`, "---\ns: \"a\\nb\\t\\\"c\\\" \\\\ \\0\\N\\_\\Lé😀\\ufeff\"\n"},
		{`{"|":"a","|":"b"}`, "---\n\"|\": \"a\"\n\"|\": \"b\"\n"},
		{`{"` + long + `":1}`, "---\n? " + long + "\n: 1\n"},
		{`{"` + long + `":{"a":1,"b":2}}`, "---\n? " + long + "\n: a: 1\n  b: 2\n"},
		// broken at a space, which is then escaped, and behind what is escaped
		{`{"error":"Incorrect HTTP method for uri [/_tasks?format=yaml] and method [POST], allowed: [GET]","status":405}`,
			"---\nerror: \"Incorrect HTTP method for uri [/_tasks?format=yaml] and method [POST], allowed:\\\n  \\ [GET]\"\nstatus: 405\n"},
		{`{"a":{"b":{"c":{"d":{"description":"` + source + `"}}}}}`,
			"---\na:\n  b:\n    c:\n      d:\n        description: \"indices[golden], search_type[QUERY_THEN_FETCH], source[{\\\"query\\\"\\\n" +
				"          :{\\\"sleep\\\":{\\\"ms\\\":6000,\\\"spin\\\":false,\\\"check\\\":true,\\\"kb\\\":0,\\\"prepare\\\"\\\n" +
				"          :false,\\\"shard\\\":-1,\\\"boost\\\":1.0}}}]\"\n"},
	} {
		if got := string(jsondoc.YAML([]byte{}, []byte(c.document))); got != c.want {
			t.Errorf("%s is printed\n%s\nwant\n%s", c.document, got, c.want)
		}
	}
}

// TestYAMLOfLongStrings would take for ever if the place in the line were looked for again and again.
func TestYAMLOfLongStrings(t *testing.T) {
	document := `{"a":"` + strings.Repeat(`é\n `, 1<<19) + `"}`
	if out := jsondoc.YAML(nil, []byte(document)); len(out) < len(document) {
		t.Errorf("%d bytes became %d", len(document), len(out))
	}
}

// TestDeepDocuments: what is printed stays in proportion to the document, however deeply that nests.
func TestDeepDocuments(t *testing.T) {
	document := strings.Repeat(`{"a":[`, 450) + strings.Repeat(`{"\u00e9\"":"x: y"},`, 5000) + `1` + strings.Repeat("]}", 450)
	for name, out := range map[string][]byte{
		"pretty": jsondoc.Pretty(nil, []byte(document)),
		"yaml":   jsondoc.YAML(nil, []byte(document)),
	} {
		if len(out) > 30*len(document) {
			t.Errorf("%s: %d bytes became %d", name, len(document), len(out))
		}
	}
	var read any
	if err := yaml.Unmarshal(jsondoc.YAML(nil, []byte(document)), &read); err != nil {
		t.Fatal(err)
	}
	for range 450 {
		read = read.(map[string]any)["a"].([]any)[0]
	}
	if got := read.(map[string]any)["é\""]; got != "x: y" {
		t.Errorf("the deepest reads %v", got)
	}
}
