package settings_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/wlmserver/wlmserver/records/recordstest"
	"github.com/wlmserver/wlmserver/settings"
)

// model is the settings as simple as they can be told: two maps, a copy of both before each update,
// and every rule written out for the few keys that the test uses.
type model struct {
	persistent, transient map[string]string
}

const (
	modelReject = "wlm.workload_group.node.cpu_rejection_threshold"
	modelCancel = "wlm.workload_group.node.cpu_cancellation_threshold"
	modelOld    = "search_backpressure.cancellation_ratio"
	modelNew    = "search_backpressure.search_shard_task.cancellation_ratio"
)

// modelTexts gives each key of the model its default, texts that it takes and texts that it refuses.
func modelTexts() map[string]struct {
	def       string
	good, bad []string
} {
	return map[string]struct {
		def       string
		good, bad []string
	}{
		modelReject:           {"0.8", words("0 0.1 0.5 0.8 0.9"), words("0.91 NaN")},
		modelCancel:           {"0.9", words("0 0.1 0.5 0.8 0.9 0.95"), words("0.96 x")},
		modelOld:              {"0.1", words("0.2 0.3 1"), words("0 1.1")},
		modelNew:              {"0.1", words("0.4 0.5"), words("0 2")},
		settings.WLMMode:      {"enabled", words("enabled disabled monitor_only"), words("ENABLED")},
		"search.max_buckets":  {"65535", words("0 1 2"), words("-1 many")},
		settings.CancelAfter:  {"-1", words("-1 0 5s"), words("5 -5s")},
		"node.name":           {"", nil, words("a b")},
		"search.no_such_key":  {"", nil, words("1")},
		"archived.search.old": {"", nil, words("1")},
	}
}

// apply changes the model, or tells that the update must be refused.
func (m *model) apply(u settings.Update) bool {
	next := model{maps.Clone(m.persistent), maps.Clone(m.transient)}
	if !editModel(next.persistent, u.Persistent) || !editModel(next.transient, u.Transient) {
		return false
	}
	for _, transient := range []map[string]string{next.transient, nil} {
		with := model{next.persistent, transient}
		reject, _ := strconv.ParseFloat(with.inForce(modelReject), 64)
		cancel, _ := strconv.ParseFloat(with.inForce(modelCancel), 64)
		if reject > cancel {
			return false
		}
	}
	*m = next
	return true
}

func editModel(layer map[string]string, entries []settings.Entry) bool {
	texts := modelTexts()
	for i, e := range entries {
		if slices.ContainsFunc(entries[:i], func(o settings.Entry) bool { return o.Key == e.Key }) {
			return false
		}
		if e.Value != nil {
			if !slices.Contains(texts[e.Key].good, *e.Value) {
				return false
			}
			continue
		}
		known := texts[e.Key].good != nil || e.Key == "archived.search.old"
		for key := range layer {
			if ok, _ := path.Match(e.Key, key); ok {
				delete(layer, key)
				known = true
			}
		}
		if !known && e.Key != "*" && e.Key != "search*" && e.Key != "wlm.*.mode" {
			return false
		}
	}
	for _, e := range entries {
		if e.Value != nil {
			layer[e.Key] = *e.Value
		}
	}
	return true
}

func (m model) inForce(key string) string {
	for _, key := range []string{key, map[string]string{modelNew: modelOld}[key]} {
		for _, layer := range []map[string]string{m.transient, m.persistent} {
			if text, ok := layer[key]; ok {
				return text
			}
		}
	}
	return modelTexts()[key].def
}

func modelPairs(layer map[string]string) []settings.KV {
	var all []settings.KV
	for _, key := range slices.Sorted(maps.Keys(layer)) {
		all = append(all, settings.KV{Key: key, Value: layer[key]})
	}
	return all
}

func drawEntries(t *rapid.T, scope string) []settings.Entry {
	texts := modelTexts()
	keys := slices.Sorted(maps.Keys(texts))
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) settings.Entry {
		key := rapid.SampledFrom(keys).Draw(t, "key")
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0, 1:
			return settings.Entry{Key: key}
		case 2:
			return settings.Entry{Key: rapid.SampledFrom([]string{"*", "search*", "wlm.*.mode"}).Draw(t, "pattern")}
		case 3:
			text := rapid.SampledFrom(texts[key].bad).Draw(t, "text")
			return settings.Entry{Key: key, Value: &text}
		default:
			text := rapid.SampledFrom(append(texts[key].good, texts[key].bad...)).Draw(t, "text")
			if len(texts[key].good) > 0 {
				text = rapid.SampledFrom(texts[key].good).Draw(t, "text")
			}
			return settings.Entry{Key: key, Value: &text}
		}
	}), 0, 3).Draw(t, scope)
}

func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		repository := &recordstest.Repository{}
		var r *settings.Registry
		restart := func() {
			var err error
			if r, err = settings.Open(t.Context(), repository, nil); err != nil {
				t.Fatal(err)
			}
			if p := r.Problems(); len(p) != 0 {
				t.Fatalf("a restart archives what was accepted: %v", p)
			}
		}
		restart()
		m := &model{map[string]string{}, map[string]string{}}
		check := func(s *settings.Snapshot) error {
			if got, want := s.Persistent(), modelPairs(m.persistent); !slices.Equal(got, want) {
				return fmt.Errorf("persistent %v, want %v", got, want)
			}
			if got, want := s.Transient(), modelPairs(m.transient); !slices.Equal(got, want) {
				return fmt.Errorf("transient %v, want %v", got, want)
			}
			for key, texts := range modelTexts() {
				if texts.good != nil && s.String(key) != m.inForce(key) {
					return fmt.Errorf("%s acts as %s, want %s", key, s.String(key), m.inForce(key))
				}
			}
			return nil
		}
		t.Repeat(map[string]func(*rapid.T){
			"apply": func(t *rapid.T) {
				u := settings.Update{Persistent: drawEntries(t, "persistent"), Transient: drawEntries(t, "transient")}
				if len(u.Persistent)+len(u.Transient) == 0 {
					t.Skip("nothing to apply")
				}
				_, err := r.Apply(t.Context(), u)
				if allowed := m.apply(u); allowed != (err == nil) {
					t.Fatalf("allowed: %v, answer: %v", allowed, err)
				}
			},
			"restart": func(*rapid.T) {
				restart()
				m.transient = map[string]string{}
			},
			"": func(t *rapid.T) {
				if err := check(r.Snapshot()); err != nil {
					t.Fatal(err)
				}
				if !maps.Equal(repository.Stored(), m.persistent) {
					t.Fatalf("stored %v, want %v", repository.Stored(), m.persistent)
				}
			},
		})
	})
}
