package groups_test

import (
	"errors"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/jsondoc"
)

// FuzzParsePatch throws any body at a group that has every part. Whatever it says is
// either refused with a typed error and changes nothing, or leaves a group that keeps
// all rules and can be stored.
func FuzzParsePatch(f *testing.F) {
	for _, seed := range []string{
		base + `}`, `{}`, `null`, `[]`, `{"name":"x1",`, base + `} trailing`,
		`{"resiliency_mode":"ENFORCED","resource_limits":{"cpu":"0.25","memory":1e-1}}`,
		`{"settings":{"search":{"max_buckets":null},"override_request_values":true}}`, `{"settings":[]}`, `{"settings":"x"}`,
		`{"throttling":{"by":"role","node_limit":"7","shared_limit":null}}`, `{"throttling":null,"queue":null}`,
		`{"throttling":{"attribute":"group","node_limit":0}}`, `{"queue":{"size_per_bucket":10000}}`, `{"queue":{"timeout":"5s"}}`,
		`{"_id":"a","updated_at":5,"name":"é","nosuch":null}`, `{"resource_limits":{"cpu":NaN}}`,
	} {
		f.Add([]byte(seed))
	}
	const full = `{"name":"full","resiliency_mode":"soft","resource_limits":{"cpu":0.5,"memory":0.5,"native_memory":0.5},` +
		`"settings":{"search.max_buckets":9,"search.default_search_timeout":"5s"},` +
		`"throttling":{"attribute":"username","node_limit":4,"shared_limit":8},"queue":{"size_per_bucket":10}}`
	f.Fuzz(func(t *testing.T, body []byte) {
		r, m := open(t)
		mustCreate(t, r, full)
		for what, change := range map[string]func(groups.Patch) (*groups.Group, error){
			"create": func(p groups.Patch) (*groups.Group, error) { return r.Create(t.Context(), p) },
			"update": func(p groups.Patch) (*groups.Group, error) { return r.Update(t.Context(), "full", p) },
		} {
			before, stored := r.Snapshot(), m.Dump()
			p, err := groups.ParsePatch(body)
			var g *groups.Group
			if err == nil {
				g, err = change(p)
			}
			if err != nil {
				var invalid *groups.InvalidError
				var syntax *jsondoc.SyntaxError
				if !errors.As(err, &invalid) && !errors.As(err, &syntax) || !utf8.ValidString(err.Error()) {
					t.Fatalf("%s: error %#v", what, err)
				}
				if r.Snapshot() != before || !slices.Equal(m.Dump(), stored) {
					t.Fatalf("%s: refused, yet something changed", what)
				}
				continue
			}
			if err := g.Validate(); err != nil {
				t.Fatalf("%s: made a group that breaks a rule: %v", what, err)
			}
			if _, err := groups.Open(t.Context(), m); err != nil {
				t.Fatalf("%s: made a group that cannot be read back: %v", what, err)
			}
		}
	})
}
