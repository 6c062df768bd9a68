package jsondoc_test

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
)

func TestFilter(t *testing.T) {
	const doc = `{"a":{"b":1,"c":{"b":2,"d":[]}},"l":[{"b":3,"x":4},5,{"x":6},[{"b":7}]],"p.q":{"r":"s, } \" {"},"e":{},"b":8}`
	for _, c := range []struct{ filter, want string }{
		{"", doc},
		{",", doc},
		{"-", doc},
		{"nothing.there", `{}`},
		{"b", `{"b":8}`},
		{"a.b", `{"a":{"b":1}}`},
		{"b,a.c.b", `{"a":{"c":{"b":2}},"b":8}`},
		{" b , , e", `{"e":{},"b":8}`},
		{"a.c", `{"a":{"c":{"b":2,"d":[]}}}`},
		{"*.b", `{"a":{"b":1},"l":[{"b":3},[{"b":7}]]}`},
		{"**.b", `{"a":{"b":1,"c":{"b":2}},"l":[{"b":3},[{"b":7}]]}`},
		{"**", doc},
		{"a.**.b", `{"a":{"c":{"b":2}}}`},
		{"**.**.b", `{"a":{"c":{"b":2}}}`},
		{"l.x", `{"l":[{"x":4},{"x":6}]}`},
		{"l", `{"l":[{"b":3,"x":4},5,{"x":6},[{"b":7}]]}`},
		{`p\.q.r`, `{"p.q":{"r":"s, } \" {"}}`},
		{"p*.*r*", `{"p.q":{"r":"s, } \" {"}}`},
		{"*p*q*", `{"p.q":{"r":"s, } \" {"}}`},
		{"b.x", `{}`},
		{"-a,-l,-p*", `{"e":{},"b":8}`},
		{"-a.c,-l.b,-l.x,-e", `{"a":{"b":1},"l":[5],"p.q":{"r":"s, } \" {"},"b":8}`},
		{"-**.b,-l,-p*", `{"b":8}`}, // a path leads into d, and d is empty
		{"-e.x,a.b", `{"a":{"b":1}}`},
		{"a,-a.c", `{"a":{"b":1}}`},
		{"-*", `{}`},
	} {
		if got := string(jsondoc.ParseFilter(c.filter).Apply([]byte{}, []byte(doc))); got != c.want {
			t.Errorf("%q leaves %s, want %s", c.filter, got, c.want)
		}
	}
	for _, c := range []struct{ doc, filter, want string }{
		{`[{"a":1,"b":2},{"a":3}]`, "b", `[{"b":2}]`},
		{`[1,2]`, "b", `[]`},
		{`{"\u0061\nb":1,"é":2}`, "a\nb,é", `{"\u0061\nb":1,"é":2}`},
		{" { \"a\" : [ 1 , { } ] , \"b\" : 1.0E-6 }\n", "b", `{"b":1.0E-6}`},
		{`"text"`, "b", `"text"`},
	} {
		if got := string(jsondoc.ParseFilter(c.filter).Apply(nil, []byte(c.doc))); got != c.want {
			t.Errorf("%q leaves %s of %s, want %s", c.filter, got, c.doc, c.want)
		}
	}
}

// TestFilterOfManyWildcards would not end if a path could be followed in more ways than it has names.
func TestFilterOfManyWildcards(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 300) + "1" + strings.Repeat("}", 300)
	got := jsondoc.ParseFilter(strings.Repeat("**.", 200)+"b").Apply(nil, []byte(deep))
	if string(got) != "{}" {
		t.Errorf("left %s", got)
	}
}

// TestFilterModel holds the filter against a slow one that asks of every leaf whether a pattern fits a beginning of its
// path.
func TestFilterModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := map[string]any{}
		for range rapid.IntRange(0, 5).Draw(t, "members") {
			doc[drawName(t)] = drawValue(t, 4)
		}
		b, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		items := rapid.SliceOfN(rapid.StringMatching(`-?(\*\*|[ab*]{1,2})(\.(\*\*|[ab*]{1,2})){0,3}`), 0, 4).Draw(t, "filter")
		var keep, drop []modelPath
		for _, item := range items {
			if rest, ok := strings.CutPrefix(item, "-"); ok {
				drop = append(drop, pattern(rest))
			} else {
				keep = append(keep, pattern(item))
			}
		}
		var want any = doc
		if len(keep) > 0 {
			want, _ = filtered(want, "", keep, true)
		}
		if want == nil {
			want = map[string]any{}
		}
		if len(drop) > 0 {
			want, _ = filtered(want, "", drop, false)
		}
		if want == nil {
			want = map[string]any{}
		}
		out := jsondoc.ParseFilter(strings.Join(items, ",")).Apply(nil, b)
		var got any
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		w, _ := json.Marshal(want)
		var plain any
		_ = json.Unmarshal(w, &plain)
		if !reflect.DeepEqual(got, plain) {
			t.Fatalf("%v leaves %s of %s, want %s", items, out, b, w)
		}
	})
}

func drawName(t *rapid.T) string { return rapid.StringMatching(`[ab]{1,2}`).Draw(t, "name") }

func drawValue(t *rapid.T, depth int) any {
	kind := rapid.IntRange(0, 4).Draw(t, "kind")
	n := rapid.IntRange(0, 3).Draw(t, "n")
	switch {
	case kind > 2 || depth == 0:
		return n
	case kind == 2:
		list := []any{}
		for range n {
			list = append(list, drawValue(t, depth-1))
		}
		return list
	default:
		m := map[string]any{}
		for range n {
			m[drawName(t)] = drawValue(t, depth-1)
		}
		return m
	}
}

// modelPath is a path as expressions over names with a slash behind each: what it names, and what it leads into.
type modelPath struct{ names, into *regexp.Regexp }

func pattern(path string) modelPath {
	all := ""
	var beginnings []string
	for name := range strings.SplitSeq(path, ".") {
		beginnings = append(beginnings, all)
		if name == "**" {
			all += "([^/]+/)+"
		} else {
			all += strings.ReplaceAll(regexp.QuoteMeta(name), `\*`, "[^/]*") + "/"
		}
	}
	return modelPath{
		names: regexp.MustCompile("^" + all + "$"),
		into:  regexp.MustCompile("^(" + strings.Join(beginnings, "|") + ")$"),
	}
}

// filtered is what is left of a value at a place that no path names but some lead into; false for nothing.
func filtered(v any, at string, paths []modelPath, keep bool) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		left := map[string]any{}
		for name, x := range v {
			at := at + name + "/"
			named := slices.ContainsFunc(paths, func(p modelPath) bool { return p.names.MatchString(at) })
			if named || !slices.ContainsFunc(paths, func(p modelPath) bool { return p.into.MatchString(at) }) {
				if named == keep {
					left[name] = x
				}
			} else if y, ok := filtered(x, at, paths, keep); ok {
				left[name] = y
			}
		}
		return left, len(left) > 0
	case []any:
		var left []any
		for _, x := range v {
			if y, ok := filtered(x, at, paths, keep); ok {
				left = append(left, y)
			}
		}
		return left, len(left) > 0
	}
	return v, !keep
}
