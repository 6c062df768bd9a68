package jsondoc_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
)

// FuzzParse holds the parser against encoding/json: a document is accepted exactly if
// that accepts it, it is UTF-8, names no key twice and keeps the bounds. What is
// accepted reads the same and survives being printed.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"name":"analytics","resource_limits":{"cpu":0.4},"settings":{},"queue":null}`,
		`[1,-0.5e+3,"\ud83d\ude00\ud83d","a\\\"",true,null,[[]]]`,
		`{"a":1,"\u0061":2}`, `{"a":{"a":1}}`, `"é`, `{"x":`, `[1,`, "\xff", `1e5`, `01`, ` {} {}`, "\"\xed\xa0\x80\"",
		`{"0":0,"1":0,"2":0,"3":0,"4":0,"5":0,"6":0,"7":0,"8":0,"9":0,"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"g":0}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		jsondoc.Pretty(nil, b)
		jsondoc.YAML(nil, b)
		jsondoc.ParseFilter("a.*,**.c,-b").Apply(nil, b)
		v, err := jsondoc.Parse(b)
		if err != nil {
			var e *jsondoc.SyntaxError
			if !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(b) || e.Reason == "" || !utf8.ValidString(e.Error()) {
				t.Fatalf("error %#v", err)
			}
			if acceptable(b) {
				t.Fatalf("refused: %v", err)
			}
			return
		}
		if !acceptable(b) {
			t.Fatal("accepted")
		}
		if first, end, err := jsondoc.ParseFirst(b); err != nil || dump(first) != dump(v) || len(bytes.TrimSpace(b[end:])) > 0 {
			t.Fatalf("ParseFirst: %v, %d, %v", first, end, err)
		}
		again, err := jsondoc.Parse(jsondoc.Pretty(nil, b))
		if err != nil || dump(again) != dump(v) {
			t.Fatalf("pretty form: %v, %v", again, err)
		}
		again, err = jsondoc.Parse(appendValue(nil, v))
		if err != nil || dump(again) != dump(v) {
			t.Fatalf("printed form: %v, %v", again, err)
		}
		if all := jsondoc.ParseFilter("**").Apply(nil, b); v.Kind == jsondoc.Object {
			if again, err = jsondoc.Parse(all); err != nil || dump(again) != dump(v) {
				t.Fatalf("filtered form: %v, %v", again, err)
			}
		}
		if v.Kind == jsondoc.String {
			var s string
			if err := json.Unmarshal(b, &s); err != nil || s != v.Text {
				t.Fatalf("string %q, want %q (%v)", v.Text, s, err)
			}
		}
	})
}

// acceptable says what Parse should, by means of encoding/json.
func acceptable(b []byte) bool {
	if !json.Valid(b) || !utf8.Valid(b) {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var keys []map[string]bool // of the open objects; nil for an array
	key := false               // whether the next token may be a key
	values := 0
	for {
		token, err := d.Token()
		if err != nil {
			return values <= jsondoc.MaxValues
		}
		if name, ok := token.(string); ok && key {
			open := keys[len(keys)-1]
			if open[name] {
				return false
			}
			open[name], key = true, false
			continue
		}
		switch token {
		case json.Delim('{'):
			keys = append(keys, map[string]bool{})
			values++
		case json.Delim('['):
			keys = append(keys, nil)
			values++
		case json.Delim('}'), json.Delim(']'):
			keys = keys[:len(keys)-1]
		default:
			values++
		}
		if len(keys) > jsondoc.MaxDepth {
			return false
		}
		key = len(keys) > 0 && keys[len(keys)-1] != nil
	}
}

// appendValue prints a value compactly.
func appendValue(dst []byte, v *jsondoc.Value) []byte {
	switch v.Kind {
	case jsondoc.Object:
		dst = append(dst, '{')
		for i, m := range v.Members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(jsondoc.AppendString(dst, m.Name), ':')
			dst = appendValue(dst, m.Value)
		}
		return append(dst, '}')
	case jsondoc.Array:
		dst = append(dst, '[')
		for i, item := range v.Items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(dst, item)
		}
		return append(dst, ']')
	case jsondoc.String:
		return jsondoc.AppendString(dst, v.Text)
	}
	return append(dst, v.Text...)
}
