package jsondoc_test

import (
	"encoding/json"
	"testing"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
)

func TestPretty(t *testing.T) {
	const compact = `{"persistent":{},"a":[],"b":[ ],"groups":[{"_id":"x\"]{,:","cpu":1.0E-6},1,[null,true]],"c":{"d":"e"}}`
	const want = `{
  "persistent" : { },
  "a" : [ ],
  "b" : [ ],
  "groups" : [
    {
      "_id" : "x\"]{,:",
      "cpu" : 1.0E-6
    },
    1,
    [
      null,
      true
    ]
  ],
  "c" : {
    "d" : "e"
  }
}
`
	if got := string(jsondoc.Pretty(nil, []byte(compact))); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := string(jsondoc.Pretty(nil, []byte(want))); got != want {
		t.Errorf("pretty is not stable: %s", got)
	}
	if got := string(jsondoc.Pretty([]byte("head "), []byte("{}"))); got != "head { }\n" {
		t.Errorf("appended %q", got)
	}
}

func TestPrettySurvivesAnything(t *testing.T) {
	for _, in := range []string{"", "]", "}}}", `"`, `"\`, "[", "[ ", ",:", "{]", "\xff"} {
		if got := jsondoc.Pretty(nil, []byte(in)); len(got) == 0 || got[len(got)-1] != '\n' {
			t.Errorf("Pretty(%q) = %q", in, got)
		}
	}
}

func TestAppendString(t *testing.T) {
	for s, want := range map[string]string{
		"":                `""`,
		"plain":           `"plain"`,
		"<b>&'/":          `"<b>&'/"`,
		"a\"b\\c":         `"a\"b\\c"`,
		"\b\f\n\r\t":      `"\b\f\n\r\t"`,
		"\x00\x1f\x7f":    `"\u0000\u001F` + "\x7f\"",
		"grün € 😀 \u2028": "\"grün € 😀 \u2028\"",
		"a\xffb\xc3":      "\"a\uFFFDb\uFFFD\"",
	} {
		got := string(jsondoc.AppendString(nil, s))
		if got != want {
			t.Errorf("AppendString(%q) = %s, want %s", s, got, want)
		}
		if !json.Valid([]byte(got)) {
			t.Errorf("AppendString(%q) = %s is not JSON", s, got)
		}
	}
	if got := string(jsondoc.AppendString([]byte("x="), "y")); got != `x="y"` {
		t.Errorf("appended %s", got)
	}
}
