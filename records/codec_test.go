package records_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wlmserver/wlmserver/records"
)

type inner struct {
	X *int           `json:"x,omitempty"`
	M map[string]int `json:"m,omitempty"`
}

type outer struct {
	Name string   `json:"name"`
	In   inner    `json:"in,omitzero"`
	List []string `json:"list,omitempty"`
}

func TestDecodeAndEncode(t *testing.T) {
	set := func(change func(*outer)) func(*outer) { return change }
	for _, c := range []struct {
		stored string
		change func(*outer)
		want   string
	}{
		{`{"name":"a","list":["b"]}`, set(func(o *outer) { o.Name = "c" }), `{"name":"c","list":["b"]}`},
		{`{"name":"a","new":{"y":1.50}}`, set(func(o *outer) { o.Name = "c" }), `{"name":"c","new":{"y":1.50}}`},
		{`{"name":"a","in":{"x":1,"y":2}}`, set(func(o *outer) { o.In.X = new(3) }), `{"in":{"x":3,"y":2},"name":"a"}`},
		{`{"name":"a","in":{"x":1,"y":2}}`, set(func(o *outer) { o.In = inner{} }), `{"in":{"y":2},"name":"a"}`},
		{`{"name":"a","in":{"y":2}}`, set(func(o *outer) { o.In.X = new(3) }), `{"in":{"x":3,"y":2},"name":"a"}`},
		// What this version knows is gone once it is taken away, also from a map whose keys are anybody's.
		{`{"name":"a","in":{"m":{"p":1,"q":2}},"list":["b"],"z":null}`, set(func(o *outer) { delete(o.In.M, "p"); o.List = nil }), `{"in":{"m":{"q":2}},"name":"a","z":null}`},
		{`{"name":"a","big":12345678901234567890123}`, set(func(*outer) {}), `{"big":12345678901234567890123,"name":"a"}`},
		{`{"in":{"x":null}}`, set(func(o *outer) { o.In.X = new(3) }), `{"name":"","in":{"x":3}}`},
	} {
		value, unknown, err := records.Decode[outer]([]byte(c.stored))
		if err != nil {
			t.Fatalf("%s: %v", c.stored, err)
		}
		c.change(&value)
		got, err := records.Encode(value, unknown)
		if err != nil || !same(t, got, c.want) {
			t.Errorf("%s: %s, %v; want %s", c.stored, got, err, c.want)
		}
	}
	for _, bad := range []string{``, `{`, `{"name":1}`, `[]`, `{"name":"a"}{}`, `{"in":[]}`} {
		if _, _, err := records.Decode[outer]([]byte(bad)); err == nil || !strings.Contains(err.Error(), "record") {
			t.Errorf("%s: error %v", bad, err)
		}
	}
	if _, unknown, err := records.Decode[outer]([]byte(`{"name":"a","in":{"x":1}}`)); unknown != nil || err != nil {
		t.Errorf("unknown: %v, %v", unknown, err)
	}
}

// same compares documents whatever the order of members; numbers must be spelt alike.
func same(t *testing.T, got []byte, want string) bool {
	t.Helper()
	return reflect.DeepEqual(parsed(t, string(got)), parsed(t, want))
}

func parsed(t *testing.T, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// Whatever a record holds beside what is known is there again when it is written back unchanged.
func TestNothingIsLost(t *testing.T) {
	document := rapid.Custom(func(t *rapid.T) map[string]any { return drawObject(t, 3) })
	rapid.Check(t, func(t *rapid.T) {
		all := document.Draw(t, "document")
		all["name"] = "n"
		for _, key := range []string{"list", "in"} {
			delete(all, key)
		}
		if rapid.Bool().Draw(t, "with in") {
			in := drawObject(t, 2)
			delete(in, "m")
			in["x"] = 5.0
			all["in"] = in
		}
		record, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		value, unknown, err := records.Decode[outer](record)
		if err != nil {
			t.Fatal(err)
		}
		again, err := records.Encode(value, unknown)
		if err != nil {
			t.Fatal(err)
		}
		var back map[string]any
		if err := json.Unmarshal(again, &back); err != nil || !reflect.DeepEqual(back, all) {
			t.Fatalf("%s became %s: %v", record, again, err)
		}
	})
}

func drawObject(t *rapid.T, depth int) map[string]any {
	all := make(map[string]any)
	for range rapid.IntRange(0, 3).Draw(t, "members") {
		// None of these names is one that the type knows.
		all[rapid.StringMatching(`[a-e][a-e0-9]{2,4}`).Draw(t, "name")] = drawValue(t, depth)
	}
	return all
}

func drawValue(t *rapid.T, depth int) any {
	most := 4
	if depth == 0 {
		most = 2
	}
	switch rapid.IntRange(0, most).Draw(t, "kind") {
	case 0:
		return rapid.Float64Range(-1e6, 1e6).Draw(t, "number")
	case 1:
		return rapid.String().Draw(t, "text")
	case 2:
		return nil
	case 3:
		return []any{drawValue(t, depth-1)}
	default:
		return drawObject(t, depth-1)
	}
}
