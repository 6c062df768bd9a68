package jsondoc_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
)

func TestParse(t *testing.T) {
	const document = ` {"b": [1, -0.5e+3, "x"],
		"a": {"\u00fc": null, "": true}, "é": false}  `
	v, err := jsondoc.Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := dump(v), `{"b":[1 -0.5e+3 "x"] "a":{"ü":null "":true} "é":false}`; got != want {
		t.Errorf("parsed %s, want %s", got, want)
	}
	for _, c := range []struct {
		v    *jsondoc.Value
		text string
	}{
		{v, "{"},
		{v.Member("b"), "["},
		{v.Member("b").Items[1], "-0.5e+3"},
		{v.Member("a").Member("ü"), "null"},
		{v.Member("é"), "false"},
	} {
		if !strings.HasPrefix(document[c.v.Offset:], c.text) {
			t.Errorf("offset %d points at %q, want %q", c.v.Offset, document[c.v.Offset:], c.text)
		}
	}
	if m := v.Members[1]; !strings.HasPrefix(document[m.Offset:], `"a"`) {
		t.Errorf("offset %d of the key points at %q", m.Offset, document[m.Offset:])
	}
	if v.Member("c") != nil || v.Member("b").Member("x") != nil || v.Member("c").Member("d") != nil {
		t.Error("Member found what is not there")
	}
}

// dump prints a value for comparison.
func dump(v *jsondoc.Value) string {
	var parts []string
	switch v.Kind {
	case jsondoc.Object:
		for _, m := range v.Members {
			parts = append(parts, strconv.Quote(m.Name)+":"+dump(m.Value))
		}
		return "{" + strings.Join(parts, " ") + "}"
	case jsondoc.Array:
		for _, item := range v.Items {
			parts = append(parts, dump(item))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case jsondoc.String:
		return strconv.Quote(v.Text)
	}
	return v.Text
}

func TestParseStrings(t *testing.T) {
	for in, want := range map[string]string{
		`"\"\\\/\b\f\n\r\t"`:       "\"\\/\b\f\n\r\t",
		`"\u0041\u00e9\u20AC"`:     "Aé€",
		`"\ud83d\ude00"`:           "😀",
		`"a\ud83dz"`:               "a\uFFFDz",
		`"\ud83d\u0041"`:           "\uFFFDA",
		`"\ud83d\ud83d\ude00"`:     "\uFFFD😀",
		`"\ude00"`:                 "\uFFFD",
		`"plain € text"`:           "plain € text",
		"\"\u2028\x7f\"":           "\u2028\x7f",
		`"before\tbetween\tafter"`: "before\tbetween\tafter",
	} {
		v, err := jsondoc.Parse([]byte(in))
		if err != nil || v.Kind != jsondoc.String || v.Text != want {
			t.Errorf("Parse(%s) = %+v, %v; want %q", in, v, err, want)
		}
	}
}

func TestSyntaxErrors(t *testing.T) {
	for _, c := range []struct {
		in     string
		offset int
		end    bool
		reason string
	}{
		// Where the input stops decides between OpenSearch's two exception types.
		{``, 0, true, "value"},
		{`  `, 2, true, "value"},
		{`{"name":"x1",`, 13, false, "key"},
		{`{"name":"x1","resiliency_mode":"soft"`, 37, true, "comma or }"},
		{`{"query":`, 9, true, "value"},
		{`{"query":{"match_all":{}}`, 25, true, "comma or }"},
		{`{`, 1, true, "key"},
		{`{"a`, 3, true, "quote"},
		{`{"a"`, 4, true, "colon"},
		{`[`, 1, true, "value"},
		{`[1`, 2, true, "comma or ]"},
		{`[1,`, 3, false, "value"},
		{`"a\`, 3, true, "escape"},
		{`"\u12`, 5, true, "hexadecimal"},
		{`-`, 1, true, "digit"},
		{`1.`, 2, true, "digit"},
		{`1e`, 2, true, "digit"},
		{`1e+`, 3, true, "digit"},
		{`tru`, 0, false, "true, false and null"},

		{`{"a":1} trailing`, 8, false, "bytes follow"},
		{`{"a":1}{"b":2}`, 7, false, "bytes follow"},
		{`01`, 1, false, "bytes follow"},
		{`{a:1}`, 1, false, "double quotes"},
		{`{"a":1,}`, 7, false, "double quotes"},
		{`{"a" 1}`, 5, false, "colon"},
		{`{"a":1 "b":2}`, 7, false, "comma"},
		{`[1,]`, 3, false, "cannot begin"},
		{`[1 2]`, 3, false, "comma"},
		{`NaN`, 0, false, "cannot begin"},
		{`nul1`, 0, false, "true, false and null"},
		{`+1`, 0, false, "cannot begin"},
		{`.5`, 0, false, "cannot begin"},
		{`-x`, 1, false, "digit"},
		{`1.x`, 2, false, "digit"},
		{"\"a\nb\"", 2, false, "control character"},
		{`"\x"`, 2, false, "escape"},
		{`"\u12g4"`, 5, false, "hexadecimal"},
		{"\"\xff\"", 1, false, "UTF-8"},
		{"\"\xed\xa0\x80\"", 1, false, "UTF-8"}, // a surrogate in UTF-8
		{"\"\xc0\xaf\"", 1, false, "UTF-8"},     // an overlong form
		{"\xef\xbb\xbf{}", 0, false, "cannot begin"},
		{`/* no */ 1`, 0, false, "cannot begin"},
	} {
		_, err := jsondoc.Parse([]byte(c.in))
		var e *jsondoc.SyntaxError
		if !errors.As(err, &e) {
			t.Errorf("Parse(%q): error %v, want a *SyntaxError", c.in, err)
			continue
		}
		if e.Offset != c.offset || e.UnexpectedEnd != c.end || !strings.Contains(e.Reason, c.reason) || e.DuplicateKey != "" {
			t.Errorf("Parse(%q): %+v; want offset %d, end %v, %q", c.in, *e, c.offset, c.end, c.reason)
		}
	}
}

func TestDuplicateKey(t *testing.T) {
	_, err := jsondoc.Parse([]byte(`{"x":{"cpu":1,"y":{},"c\u0070u":2}}`))
	var e *jsondoc.SyntaxError
	if !errors.As(err, &e) {
		t.Fatalf("error %v", err)
	}
	if e.DuplicateKey != "cpu" || e.Offset != 21 || !slices.Equal(e.Path, []string{"x"}) {
		t.Errorf("%+v, want the second cpu at 21 in x", *e)
	}
	if want := "malformed JSON in [x]: duplicate key [cpu]"; !strings.HasPrefix(e.Error(), want) {
		t.Errorf("message %q, want %q", e.Error(), want)
	}
	if _, err := jsondoc.Parse([]byte(`[{"a":1},{"a":{"a":1}}]`)); err != nil {
		t.Errorf("the same key in different objects: %v", err)
	}
}

func TestDuplicateKeyInLargeObject(t *testing.T) {
	for _, members := range []int{15, 16, 17, 1000} {
		for _, twice := range []int{0, members / 2, members - 1} {
			var b strings.Builder
			b.WriteByte('{')
			for i := range members {
				fmt.Fprintf(&b, `"k%d":%d,`, i, i)
			}
			unique := b.String() + `"last":0}`
			if _, err := jsondoc.Parse([]byte(unique)); err != nil {
				t.Errorf("%d members: %v", members, err)
			}
			double := b.String() + fmt.Sprintf(`"k%d":0}`, twice)
			var e *jsondoc.SyntaxError
			if _, err := jsondoc.Parse([]byte(double)); !errors.As(err, &e) || e.DuplicateKey != fmt.Sprintf("k%d", twice) {
				t.Errorf("%d members, k%d twice: %v", members, twice, err)
			}
		}
	}
}

func TestPath(t *testing.T) {
	for in, want := range map[string][]string{
		`{"a":{"b":[{"c":NaN}]}}`: {"a", "b", "c"},
		`{"a":{"b":1},"c":x}`:     {"c"},
		`{"a":{"b":1},x}`:         nil,
		`{"a":1`:                  nil,
	} {
		_, err := jsondoc.Parse([]byte(in))
		var e *jsondoc.SyntaxError
		if !errors.As(err, &e) || !slices.Equal(e.Path, want) {
			t.Errorf("Parse(%s): %+v, want path %v", in, e, want)
		}
	}
}

func TestParseFirst(t *testing.T) {
	in := []byte(" {\"a\":1}\n{\"b\":")
	v, end, err := jsondoc.ParseFirst(in)
	if err != nil || end != 8 || v.Member("a").Text != "1" {
		t.Errorf("got %+v, %d, %v; want the first object, ending at 8", v, end, err)
	}
	_, _, err = jsondoc.ParseFirst(in[end:])
	var e *jsondoc.SyntaxError
	if !errors.As(err, &e) || !e.UnexpectedEnd {
		t.Errorf("error %v, want an unexpected end", err)
	}
}

func TestBounds(t *testing.T) {
	deep := func(n int) []byte {
		return []byte(strings.Repeat("[", n) + strings.Repeat("]", n))
	}
	if _, err := jsondoc.Parse(deep(jsondoc.MaxDepth)); err != nil {
		t.Errorf("the deepest document: %v", err)
	}
	var e *jsondoc.SyntaxError
	if _, err := jsondoc.Parse(deep(jsondoc.MaxDepth + 1)); !errors.As(err, &e) || e.Offset != jsondoc.MaxDepth {
		t.Errorf("one level deeper: %v", err)
	}
	if _, err := jsondoc.Parse([]byte("[" + strings.Repeat("[],", jsondoc.MaxDepth) + "1]")); err != nil {
		t.Errorf("depth must fall again: %v", err)
	}
	many := func(n int) []byte { // the array is a value, too
		return []byte("[" + strings.Repeat("1,", n-2) + "1]")
	}
	if _, err := jsondoc.Parse(many(jsondoc.MaxValues)); err != nil {
		t.Errorf("the most values: %v", err)
	}
	if _, err := jsondoc.Parse(many(jsondoc.MaxValues + 1)); err == nil {
		t.Error("one value more was accepted")
	}
}

// An object of a hundred thousand keys takes some 50 ms; were finding duplicates
// quadratic it would take half a minute. The bound is wide enough for a busy machine.
func TestLargeObjectIsLinear(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"first":0`)
	for i := range 100_000 {
		fmt.Fprintf(&b, `,"key%d":0`, i)
	}
	b.WriteByte('}')
	start := time.Now()
	if _, err := jsondoc.Parse([]byte(b.String())); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestPosition(t *testing.T) {
	b := []byte("ab\ncd\r\nef\rgh")
	for offset, want := range map[int][2]int{
		0: {1, 1}, 2: {1, 3}, 3: {2, 1}, 5: {2, 3}, 6: {2, 4}, 7: {3, 1}, 10: {4, 1}, 12: {4, 3}, -1: {1, 1}, 99: {4, 3},
	} {
		if line, column := jsondoc.Position(b, offset); line != want[0] || column != want[1] {
			t.Errorf("Position(%d) = %d, %d; want %v", offset, line, column, want)
		}
	}
	// As a real OpenSearch answered: line 1, col 81.
	body := `{"name":"t1","resiliency_mode":"soft","resource_limits":{"cpu":0.01},"settings":"x"}`
	v, err := jsondoc.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if line, column := jsondoc.Position([]byte(body), v.Member("settings").Offset); line != 1 || column != 81 {
		t.Errorf("Position = %d, %d; want 1, 81", line, column)
	}
}

func TestKindString(t *testing.T) {
	v, err := jsondoc.Parse([]byte(`[{},[],"",0,true,null]`))
	if err != nil {
		t.Fatal(err)
	}
	var kinds, scalars []string
	for _, item := range v.Items {
		kinds = append(kinds, item.Kind.String())
		if item.Scalar() {
			scalars = append(scalars, item.Kind.String())
		}
	}
	if got := strings.Join(kinds, " "); got != "object array string number boolean null" {
		t.Errorf("kinds %q", got)
	}
	if got := strings.Join(scalars, " "); got != "string number boolean" {
		t.Errorf("scalars %q", got)
	}
	if got := jsondoc.Kind(0).String(); got != "nothing" {
		t.Errorf("the zero kind is %q", got)
	}
}
