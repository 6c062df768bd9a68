package groups_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/units"
)

func TestUpdateMerges(t *testing.T) {
	const before = `{"name":"g","resiliency_mode":"soft","resource_limits":{"cpu":0.3,"memory":0.2},` +
		`"settings":{"search.default_search_timeout":"5s","search.max_buckets":9},` +
		`"throttling":{"attribute":"username","node_limit":4,"shared_limit":8},"queue":{"size_per_bucket":10}}`
	for _, c := range []struct{ body, mode, limits, settings, throttling, queue string }{
		{body: `{}`},
		{body: `{"name":"other","_id":"x","updated_at":1}`},
		{body: `{"resiliency_mode":null,"resource_limits":null}`},
		{body: `{"resource_limits":{}}`},
		{body: `{"resiliency_mode":"ENFORCED"}`, mode: `"enforced"`},
		{body: `{"resource_limits":{"cpu":0.4}}`, limits: `{"cpu":0.4,"memory":0.2}`},
		{body: `{"resource_limits":{"native_memory":"0.4"}}`, limits: `{"cpu":0.3,"memory":0.2,"native_memory":0.4}`},

		{body: `{"settings":null}`, settings: `null`},
		{body: `{"settings":{}}`, settings: `null`},
		{body: `{"settings":[]}`},
		{body: `{"settings":{"search.max_buckets":10}}`, settings: `{"search.default_search_timeout":"5s","search.max_buckets":"10"}`},
		{body: `{"settings":{"search.max_buckets":null}}`, settings: `{"search.default_search_timeout":"5s"}`},
		{body: `{"settings":{"search":{"max_buckets":null,"default_search_timeout":null}}}`, settings: `null`},
		{body: `{"settings":{"search.batched_reduce_size":null}}`},
		{body: `{"settings":{"override_request_values":true}}`,
			settings: `{"override_request_values":"true","search.default_search_timeout":"5s","search.max_buckets":"9"}`},

		{body: `{"throttling":{"node_limit":5}}`, throttling: `{"attribute":"username","node_limit":5,"shared_limit":8}`},
		{body: `{"throttling":{"node_limit":null}}`, throttling: `{"attribute":"username","shared_limit":8}`},
		{body: `{"throttling":{"by":"role"}}`, throttling: `{"attribute":"role","node_limit":4,"shared_limit":8}`},
		{body: `{"throttling":{"node_limit":0}}`, throttling: `{"attribute":"username","node_limit":0,"shared_limit":8}`},
		{body: `{"throttling":null,"queue":null}`, throttling: `null`, queue: `null`},
		{body: `{"throttling":{},"queue":{}}`, throttling: `null`, queue: `null`},
		{body: `{"throttling":null,"queue":{"size_per_bucket":0}}`, throttling: `null`, queue: `{"size_per_bucket":0}`},
		{body: `{"throttling":{"attribute":null,"node_limit":null,"shared_limit":null},"queue":{"size_per_bucket":null}}`, throttling: `null`, queue: `null`},
		{body: `{"queue":{"size_per_bucket":20}}`, queue: `{"size_per_bucket":20}`},
		{body: `{"queue":null}`, queue: `null`},
	} {
		r, _ := open(t)
		old := mustCreate(t, r, before)
		oldText := show(t, old)
		g, err := update(t, r, "g", c.body)
		if err != nil {
			t.Errorf("%s: %v", c.body, err)
			continue
		}
		want := map[string]json.RawMessage{}
		if err := json.Unmarshal([]byte(oldText), &want); err != nil {
			t.Fatal(err)
		}
		for key, part := range map[string]string{
			"resiliency_mode": c.mode, "resource_limits": c.limits, "settings": c.settings, "throttling": c.throttling, "queue": c.queue,
		} {
			switch part {
			case "": // stays
			case "null":
				delete(want, key)
			default:
				want[key] = json.RawMessage(part)
			}
		}
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if got := show(t, g); got != normal(t, string(text)) {
			t.Errorf("%s:\n got %s\nwant %s", c.body, got, text)
		}
		if g.ID != old.ID || g.Name != "g" || !g.UpdatedAt.After(old.UpdatedAt) {
			t.Errorf("%s: id %s, name %s, updated %v; before %s, %v", c.body, g.ID, g.Name, g.UpdatedAt, old.ID, old.UpdatedAt)
		}
		if show(t, old) != oldText {
			t.Errorf("%s: changed the published group", c.body)
		}
	}
}

// Rules that bind several fields hold for the outcome of the merge.
func TestUpdateRefusesTheOutcome(t *testing.T) {
	const before = `{"name":"g","resiliency_mode":"soft","resource_limits":{"cpu":0.3},` +
		`"throttling":{"attribute":"username","node_limit":4},"queue":{"size_per_bucket":10}}`
	for body, says := range map[string]string{
		`{"throttling":null}`: "must clear [queue] in the same request",
		`{"throttling":{}}`:   "must clear [queue] in the same request",
		`{"throttling":{"attribute":null,"node_limit":null}}`: "must clear [queue] in the same request",
		`{"throttling":{"node_limit":null}}`:                  "Effective throttle ceiling is 0",
		`{"throttling":{"node_limit":0}}`:                     "Effective throttle ceiling is 0",
		`{"throttling":{"attribute":null}}`:                   "[throttling.attribute] is required",
		`{"throttling":null,"queue":{"size_per_bucket":1}}`:   "must clear [queue] in the same request",
	} {
		r, m := open(t)
		mustCreate(t, r, before)
		snapshot, stored := r.Snapshot(), m.Dump()
		if _, err := update(t, r, "g", body); !isInvalid(err, says) {
			t.Errorf("%s: error %v, want an *InvalidError that says %q", body, err, says)
		}
		if r.Snapshot() != snapshot || !slices.Equal(m.Dump(), stored) {
			t.Errorf("%s: refused, yet something changed", body)
		}
	}
}

func TestSearchDefaults(t *testing.T) {
	g := &groups.Group{Settings: map[string]string{
		"search.default_search_timeout":         "5s",
		"search.cancel_after_time_interval":     "-1",
		"search.max_concurrent_shard_requests":  "7",
		"override_request_values":               "true",
		"search.batched_reduce_size":            "2",
		"a key that a literal group may invent": "x",
	}}
	if d, ok := g.SearchTimeout(); d != 5*time.Second || !ok {
		t.Errorf("SearchTimeout = %v, %v", d, ok)
	}
	if d, ok := g.CancelAfter(); d != units.None || !ok {
		t.Errorf("CancelAfter = %v, %v", d, ok)
	}
	if n, ok := g.MaxConcurrentShardRequests(); n != 7 || !ok {
		t.Errorf("MaxConcurrentShardRequests = %v, %v", n, ok)
	}
	if !g.OverrideRequestValues() {
		t.Error("OverrideRequestValues = false")
	}
	none := &groups.Group{}
	if d, ok := none.SearchTimeout(); d != 0 || ok {
		t.Errorf("SearchTimeout of none = %v, %v", d, ok)
	}
	if d, ok := none.CancelAfter(); d != 0 || ok {
		t.Errorf("CancelAfter of none = %v, %v", d, ok)
	}
	if n, ok := none.MaxConcurrentShardRequests(); n != 0 || ok {
		t.Errorf("MaxConcurrentShardRequests of none = %v, %v", n, ok)
	}
	if none.OverrideRequestValues() {
		t.Error("OverrideRequestValues of none = true")
	}
}

func TestTiers(t *testing.T) {
	for _, c := range []struct {
		limit *int
		n     int
		on    bool
	}{{nil, 0, false}, {new(0), 0, false}, {new(1), 1, true}, {new(7), 7, true}} {
		if n, on := (groups.Throttling{NodeLimit: c.limit}).NodeTier(); n != c.n || on != c.on {
			t.Errorf("NodeTier = %d, %v; want %d, %v", n, on, c.n, c.on)
		}
		if n, on := (groups.Throttling{SharedLimit: c.limit}).SharedTier(); n != c.n || on != c.on {
			t.Errorf("SharedTier = %d, %v; want %d, %v", n, on, c.n, c.on)
		}
	}
}

// The algebra of changes, over any group and any change: a change made twice is the
// change made once; what it does not name stays; what it names is so afterwards; and a
// body says the same as the change that it was read from.
func TestPatchAlgebra(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawPatch(t, "base").Apply(&groups.Group{ID: "id", Name: "name", Mode: groups.Soft})
		before := clone(g)
		p := drawPatch(t, "patch")
		merged := p.Apply(g)

		if !equal(g, before) {
			t.Fatalf("Apply changed its argument to %+v", g)
		}
		if again := p.Apply(merged); !equal(again, merged) {
			t.Fatalf("twice %+v, once %+v", again, merged)
		}
		if same := (groups.Patch{}).Apply(g); !equal(same, g) {
			t.Fatalf("the empty change made %+v", same)
		}
		if merged.ID != g.ID || merged.Name != g.Name || merged.UpdatedAt != g.UpdatedAt {
			t.Fatalf("identity changed: %+v", merged)
		}
		checkMode(t, p, g, merged)
		checkLimits(t, p, g, merged)
		checkSettings(t, p, g, merged)
		checkThrottling(t, p, g, merged)
		checkQueue(t, p, g, merged)

		body := render(p)
		read, err := groups.ParsePatch([]byte(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if got := read.Apply(g); !equal(got, merged) {
			t.Fatalf("%s made %+v, want %+v", body, got, merged)
		}
	})
}

func checkMode(t *rapid.T, p groups.Patch, g, merged *groups.Group) {
	want := g.Mode
	if mode, ok := p.Mode.Value(); ok {
		want = mode
	}
	if merged.Mode != want {
		t.Fatalf("mode %s, want %s", merged.Mode, want)
	}
}

func checkLimits(t *rapid.T, p groups.Patch, g, merged *groups.Group) {
	over, _ := p.Limits.Value()
	for i, got := range shares(merged.Limits) {
		want := shares(over)[i]
		if want == nil {
			want = shares(g.Limits)[i]
		}
		if !equalPointers(got, want) {
			t.Fatalf("limits %v over %v made %v", over, g.Limits, merged.Limits)
		}
	}
}

func checkSettings(t *rapid.T, p groups.Patch, g, merged *groups.Group) {
	over, given := p.Settings.Value()
	want := map[string]string{}
	if cleared := p.Settings.Null() || given && len(over) == 0; !cleared {
		maps.Copy(want, g.Settings)
	}
	for key, field := range over {
		delete(want, key)
		if value, ok := field.Value(); ok {
			want[key] = value
		}
	}
	if !maps.Equal(merged.Settings, want) {
		t.Fatalf("settings %v, want %v", merged.Settings, want)
	}
}

func checkThrottling(t *rapid.T, p groups.Patch, g, merged *groups.Group) {
	got, base := merged.Throttling, g.Throttling
	over, given := p.Throttling.Value()
	if p.Throttling.Null() || given && over == (groups.ThrottlingPatch{}) {
		base = groups.Throttling{}
	}
	if attribute, ok := over.Attribute.Value(); ok || over.Attribute.Null() {
		base.Attribute = attribute
	}
	if got.Attribute != base.Attribute ||
		!equalPointers(got.NodeLimit, over1(base.NodeLimit, over.NodeLimit)) ||
		!equalPointers(got.SharedLimit, over1(base.SharedLimit, over.SharedLimit)) {
		t.Fatalf("throttling %+v over %+v made %+v", over, g.Throttling, got)
	}
}

func checkQueue(t *rapid.T, p groups.Patch, g, merged *groups.Group) {
	base := g.Queue.SizePerBucket
	over, _ := p.Queue.Value()
	if !p.Queue.Absent() && over == (groups.QueuePatch{}) {
		base = nil
	}
	if got := merged.Queue.SizePerBucket; !equalPointers(got, over1(base, over.SizePerBucket)) {
		t.Fatalf("queue %+v over %+v made %+v", over, g.Queue, merged.Queue)
	}
}

// over1 is what a field of a block becomes.
func over1(base *int, over groups.Field[int]) *int {
	if n, ok := over.Value(); ok {
		return &n
	}
	if over.Null() {
		return nil
	}
	return base
}

func shares(l groups.ResourceLimits) [3]*float64 {
	return [3]*float64{l.CPU, l.Memory, l.NativeMemory}
}

func equalPointers[T comparable](a, b *T) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// equal compares what can be changed of two groups, and id and name.
func equal(a, b *groups.Group) bool {
	for i, share := range shares(a.Limits) {
		if !equalPointers(share, shares(b.Limits)[i]) {
			return false
		}
	}
	return a.ID == b.ID && a.Name == b.Name && a.Mode == b.Mode && maps.Equal(a.Settings, b.Settings) &&
		a.Throttling.Attribute == b.Throttling.Attribute &&
		equalPointers(a.Throttling.NodeLimit, b.Throttling.NodeLimit) &&
		equalPointers(a.Throttling.SharedLimit, b.Throttling.SharedLimit) &&
		equalPointers(a.Queue.SizePerBucket, b.Queue.SizePerBucket)
}

// clone copies a group with all that it points to.
func clone(g *groups.Group) *groups.Group {
	c := *g
	for _, share := range []**float64{&c.Limits.CPU, &c.Limits.Memory, &c.Limits.NativeMemory} {
		if *share != nil {
			*share = new(**share)
		}
	}
	for _, n := range []**int{&c.Throttling.NodeLimit, &c.Throttling.SharedLimit, &c.Queue.SizePerBucket} {
		if *n != nil {
			*n = new(**n)
		}
	}
	c.Settings = maps.Clone(g.Settings)
	return &c
}

func drawField[T any](value *rapid.Generator[T]) *rapid.Generator[groups.Field[T]] {
	return rapid.Custom(func(t *rapid.T) groups.Field[T] {
		switch rapid.IntRange(0, 3).Draw(t, "state") {
		case 0:
			return groups.Field[T]{}
		case 1:
			return groups.Null[T]()
		}
		return groups.Value(value.Draw(t, "value"))
	})
}

// drawPatch draws a change whose every field is right by itself.
func drawPatch(t *rapid.T, label string) groups.Patch {
	share := rapid.Ptr(rapid.Float64Range(1e-9, 1), true)
	limit := drawField(rapid.IntRange(0, 1<<31-1))
	settings := rapid.MapOf(
		rapid.SampledFrom([]string{"search.max_buckets", "search.batched_reduce_size", "search.max_concurrent_shard_requests"}),
		drawField(rapid.Map(rapid.IntRange(2, 1<<31-1), func(n int) string { return fmt.Sprint(n) })),
	)
	return rapid.Custom(func(t *rapid.T) groups.Patch {
		return groups.Patch{
			Mode: drawField(rapid.SampledFrom([]groups.Mode{groups.Enforced, groups.Soft, groups.Monitor})).Draw(t, "mode"),
			Limits: drawField(rapid.Custom(func(t *rapid.T) groups.ResourceLimits {
				return groups.ResourceLimits{CPU: share.Draw(t, "cpu"), Memory: share.Draw(t, "memory"), NativeMemory: share.Draw(t, "native")}
			})).Draw(t, "limits"),
			Settings: drawField(rapid.Custom(func(t *rapid.T) map[string]groups.Field[string] {
				all := settings.Draw(t, "all")
				// A body cannot name a key and say nothing of it.
				maps.DeleteFunc(all, func(_ string, f groups.Field[string]) bool { return f.Absent() })
				return all
			})).Draw(t, "settings"),
			Throttling: drawField(rapid.Custom(func(t *rapid.T) groups.ThrottlingPatch {
				return groups.ThrottlingPatch{
					Attribute:   drawField(rapid.SampledFrom([]groups.Attribute{groups.ByGroup, groups.ByUsername, groups.ByRole})).Draw(t, "attribute"),
					NodeLimit:   limit.Draw(t, "node"),
					SharedLimit: limit.Draw(t, "shared"),
				}
			})).Draw(t, "throttling"),
			Queue: drawField(rapid.Custom(func(t *rapid.T) groups.QueuePatch {
				return groups.QueuePatch{SizePerBucket: drawField(rapid.IntRange(0, groups.MaxQueued)).Draw(t, "size")}
			})).Draw(t, "queue"),
		}
	}).Draw(t, label)
}

// render writes the body that a change could have been read from.
func render(p groups.Patch) string {
	body := map[string]any{}
	put(body, "resiliency_mode", p.Mode, func(m groups.Mode) any { return m })
	put(body, "resource_limits", p.Limits, func(l groups.ResourceLimits) any {
		limits := map[string]any{}
		for i, key := range []string{"cpu", "memory", "native_memory"} {
			if share := shares(l)[i]; share != nil {
				limits[key] = *share
			}
		}
		return limits
	})
	put(body, "settings", p.Settings, func(s map[string]groups.Field[string]) any {
		settings := map[string]any{}
		for key, field := range s {
			put(settings, key, field, func(v string) any { return v })
		}
		return settings
	})
	number := func(n int) any { return n }
	put(body, "throttling", p.Throttling, func(p groups.ThrottlingPatch) any {
		throttling := map[string]any{}
		put(throttling, "attribute", p.Attribute, func(a groups.Attribute) any { return a })
		put(throttling, "node_limit", p.NodeLimit, number)
		put(throttling, "shared_limit", p.SharedLimit, number)
		return throttling
	})
	put(body, "queue", p.Queue, func(p groups.QueuePatch) any {
		queue := map[string]any{}
		put(queue, "size_per_bucket", p.SizePerBucket, number)
		return queue
	})
	b, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func put[T any](object map[string]any, key string, f groups.Field[T], render func(T) any) {
	if v, ok := f.Value(); ok {
		object[key] = render(v)
	} else if f.Null() {
		object[key] = nil
	}
}
