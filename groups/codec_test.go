package groups_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/records/recordstest"
)

// The stored form is a promise to later versions.
func TestEncode(t *testing.T) {
	g := &groups.Group{
		ID: "ndvMcmZ9Qjm9MrEe1aydrQ", Name: "grün <1>", Mode: groups.Enforced,
		Limits:     groups.ResourceLimits{CPU: new(0.4), Memory: new(0.2), NativeMemory: new(1e-6)},
		Settings:   map[string]string{"search.max_buckets": "9", "override_request_values": "true"},
		Throttling: groups.Throttling{Attribute: groups.ByUsername, NodeLimit: new(0), SharedLimit: new(5)},
		Queue:      groups.Queue{SizePerBucket: new(0)},
		UpdatedAt:  time.UnixMilli(1795983640559).UTC(),
	}
	const want = `{"_id":"ndvMcmZ9Qjm9MrEe1aydrQ","name":"grün \u003c1\u003e","resiliency_mode":"enforced",` +
		`"resource_limits":{"cpu":0.4,"memory":0.2,"native_memory":0.000001},` +
		`"settings":{"override_request_values":"true","search.max_buckets":"9"},` +
		`"throttling":{"attribute":"username","node_limit":0,"shared_limit":5},"queue":{"size_per_bucket":0},"updated_at":1795983640559}`
	checkRoundTrip(t, g, want)

	bare := &groups.Group{ID: "x", Name: "y", Mode: groups.Soft, Limits: groups.ResourceLimits{CPU: new(1.0)}, UpdatedAt: time.UnixMilli(0).UTC()}
	checkRoundTrip(t, bare, `{"_id":"x","name":"y","resiliency_mode":"soft","resource_limits":{"cpu":1},"updated_at":0}`)
}

func checkRoundTrip(t *testing.T, g *groups.Group, want string) {
	t.Helper()
	b, err := groups.Encode(g)
	if err != nil || string(b) != want {
		t.Errorf("Encode = %s, %v; want %s", b, err, want)
	}
	again, err := groups.Decode(b)
	if err != nil || !reflect.DeepEqual(again, g) {
		t.Errorf("Decode = %+v, %v; want %+v", again, err, g)
	}
}

func TestCodecRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawPatch(t, "patch").Apply(&groups.Group{
			ID: "id", Name: rapid.String().Draw(t, "name"), Mode: groups.Soft,
			UpdatedAt: time.UnixMilli(rapid.Int64Range(0, 1<<42).Draw(t, "updated")).UTC(),
		})
		b, err := groups.Encode(g)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := groups.Decode(b); err != nil || !reflect.DeepEqual(again, g) {
			t.Fatalf("%s: %+v, %v; want %+v", b, again, err, g)
		}
	})
}

func TestDecodeRefuses(t *testing.T) {
	for in, says := range map[string]string{
		`{"_id":"x","name":"y"} {}`:            "decoding",
		`{"_id":"x","updated_at":"yesterday"}`: "updated_at",
		`{"_id":"x"`:                           "decoding",
		``:                                     "decoding",
	} {
		if _, err := groups.Decode([]byte(in)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Decode(%s): error %v, want %q", in, err, says)
		}
	}
}

// What a newer version has written into a group outlives changes by this one.
func TestFieldsOfANewerVersion(t *testing.T) {
	const stored = `{"_id":"x","name":"y","priority":{"class":"gold"},"queue":{"order":"fair","size_per_bucket":3},"resiliency_mode":"soft",` +
		`"resource_limits":{"cpu":0.5,"disk":0.25},"throttling":{"attribute":"group","burst":5,"node_limit":2},"updated_at":1}`
	m := recordstest.Of(map[string]string{"x": stored})
	r, err := groups.Open(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ body, old, new string }{
		{`{"throttling":{"node_limit":7}}`, `"node_limit":2`, `"node_limit":7`},
		{`{"queue":null}`, `"queue":{"order":"fair","size_per_bucket":3}`, `"queue":{"order":"fair"}`},
		{`{"throttling":null}`, `"throttling":{"attribute":"group","burst":5,"node_limit":7}`, `"throttling":{"burst":5}`},
		{`{"throttling":{"attribute":"role","shared_limit":1}}`, `"throttling":{"burst":5}`, `"throttling":{"attribute":"role","burst":5,"shared_limit":1}`},
	} {
		before := m.Dump()[0]
		g, err := update(t, r, "y", c.body)
		if err != nil {
			t.Fatalf("%s: %v", c.body, err)
		}
		want := strings.Replace(before, c.old, c.new, 1)
		want = want[:strings.Index(want, `"updated_at":`)] + fmt.Sprintf(`"updated_at":%d}`, g.UpdatedAt.UnixMilli())
		if got := m.Dump()[0]; got != want {
			t.Errorf("%s: stored %s, want %s", c.body, got, want)
		}
	}
}

func TestEncodeRefusesNaN(t *testing.T) {
	zero := 0.0
	_, err := groups.Encode(&groups.Group{Name: "y", Limits: groups.ResourceLimits{CPU: new(zero / zero)}})
	if err == nil || !strings.Contains(err.Error(), "[y]") {
		t.Errorf("error %v", err)
	}
}
