package settings_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/records/recordstest"
	"github.com/wlmserver/wlmserver/settings"
)

// Whatever the body is: no panic; what is refused changes nothing; what is applied can be read back,
// by a restart too.
func FuzzParseUpdate(f *testing.F) {
	for _, body := range []string{
		`{"persistent":{"search.cancel_after_time_interval":"10s"}}`,
		`{"transient":{"search":{"cancel_after_time_interval":"9s"}}}`,
		`{"persistent":{"wlm.workload_group.mode":"enabled"},"transient":{"wlm.workload_group.node.cpu_rejection_threshold":0.7}}`,
		`{"persistent":{"search.cancel_after_time_interval":null},"transient":{"search.*":null,"wlm.*":null}}`,
		`{"persistent":{"wlm.workload_group.mode":{"a":1}}}`,
		`{"persistent":{"search_backpressure.cancellation_rate":-1}}`,
		`{"persistent":{"search_backpressure.cancellation_rate":1e-400}}`,
		`{"persistent":{"node.name":"x","archived.x":null}}`,
		`{"persistent":5}`, `{"persistent":{},"other":{}}`, `[1]`, `{`, ``,
		`{"persistent":{"wlm.workload_group.node":{"cpu_cancellation_threshold":0.1,"cpu_rejection_threshold":0.1}}}`,
		`{"persistent":{"*":null},"transient":{"*":null}}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		repository := recordstest.Of(map[string]string{"search.max_buckets": "5", "gone": "1"})
		r := open(t, repository, nil)
		before, stored := r.Snapshot(), repository.Stored()
		u, err := settings.ParseUpdate(body)
		if err != nil {
			if len(u.Persistent)+len(u.Transient) != 0 {
				t.Fatalf("%q is refused and gives %+v", body, u)
			}
			return
		}
		applied, err := r.Apply(t.Context(), u)
		if err != nil {
			if r.Snapshot() != before || !maps.Equal(repository.Stored(), stored) {
				t.Fatalf("%q is refused (%v) and changed the settings", body, err)
			}
			return
		}
		after := r.Snapshot()
		for _, kv := range applied.Transient {
			if after.String(kv.Key) != kv.Value {
				t.Fatalf("%q: %s reads %q", body, kv.Key, after.String(kv.Key))
			}
		}
		for _, p := range r.Problems() {
			if !strings.Contains(p.Error(), "[gone]") {
				t.Fatalf("%q: %v", body, p)
			}
		}
		again := open(t, repository, nil).Snapshot()
		for _, kv := range applied.Persistent {
			if again.String(kv.Key) != kv.Value {
				t.Fatalf("%q: %s reads %q after a restart", body, kv.Key, again.String(kv.Key))
			}
		}
		wantPairs(t, "persistent after a restart", again.Persistent(), after.Persistent()...)
	})
}
