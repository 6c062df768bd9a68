package settings_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/records/recordstest"
	"github.com/wlmserver/wlmserver/settings"
)

func TestAppliedListsWhatWasSetInOrder(t *testing.T) {
	r := open(t, &recordstest.Repository{}, nil)
	a := mustPut(t, r, `{
		"transient":{"wlm":{"workload_group":{"node":{"cpu_rejection_threshold":0.7}}},"search.*":null,"node.workload_group.max_count":5},
		"persistent":{"wlm.workload_group.mode":"monitor_only","search.max_buckets":null,"search":{"cancel_after_time_interval":"10s"}}}`)
	wantPairs(t, "applied, persistent", a.Persistent,
		settings.KV{Key: "wlm.workload_group.mode", Value: "monitor_only"},
		settings.KV{Key: "search.cancel_after_time_interval", Value: "10s"})
	wantPairs(t, "applied, transient", a.Transient,
		settings.KV{Key: "wlm.workload_group.node.cpu_rejection_threshold", Value: "0.7"},
		settings.KV{Key: "node.workload_group.max_count", Value: "5"})
}

func TestLayers(t *testing.T) {
	key := settings.DefaultSearchTimeout
	r := open(t, &recordstest.Repository{}, map[string]string{key: "1s"})
	value := func() string { return r.Snapshot().String(key) }
	want := func(text string) {
		t.Helper()
		if got := value(); got != text {
			t.Errorf("in force: %s, want %s", got, text)
		}
	}
	want("1s")
	mustPut(t, r, body("persistent", key, "2s"))
	want("2s")
	mustPut(t, r, body("transient", key, "3s"))
	want("3s")
	mustPut(t, r, body("persistent", key, "4s"))
	want("3s")
	mustPut(t, r, `{"transient":{"search.default_search_timeout":null}}`)
	want("4s")
	mustPut(t, r, `{"persistent":{"search.default_search_timeout":null}}`)
	want("1s")
}

func TestTransientEndsWithTheServer(t *testing.T) {
	repository := &recordstest.Repository{}
	r := open(t, repository, nil)
	mustPut(t, r, `{"persistent":{"search.max_buckets":10},"transient":{"search.max_buckets":20,"node.workload_group.max_count":3}}`)
	s := open(t, repository, nil).Snapshot()
	wantPairs(t, "persistent after a restart", s.Persistent(), settings.KV{Key: "search.max_buckets", Value: "10"})
	wantPairs(t, "transient after a restart", s.Transient())
	if s.Int(settings.MaxGroups) != 100 {
		t.Error("a transient value outlived its server")
	}
}

func TestDefaultsLeaveOutWhatIsSet(t *testing.T) {
	r := open(t, &recordstest.Repository{}, map[string]string{"search.max_buckets": "7", "node.name": "n1", "http.port": "0"})
	mustPut(t, r, `{"persistent":{"search.default_search_timeout":"1s"},"transient":{"node.workload_group.max_count":3}}`)
	defaults := map[string]string{}
	for _, kv := range r.Snapshot().Defaults() {
		defaults[kv.Key] = kv.Value
	}
	for key, want := range map[string]string{
		"search.max_buckets": "7", "node.name": "n1", "http.port": "0", "wlm.workload_group.mode": "enabled", "cluster.name": "wlmserver",
	} {
		if defaults[key] != want {
			t.Errorf("default of %s: %q, want %q", key, defaults[key], want)
		}
	}
	for _, key := range []string{"search.default_search_timeout", "node.workload_group.max_count", "thread_pool.search.size"} {
		if text, ok := defaults[key]; ok {
			t.Errorf("%s = %s is among the defaults", key, text)
		}
	}
}

func TestDeprecatedKeysStandIn(t *testing.T) {
	const (
		deprecated = "search_backpressure.cancellation_burst"
		shard      = "search_backpressure.search_shard_task.cancellation_burst"
		search     = "search_backpressure.search_task.cancellation_burst"
	)
	r := open(t, &recordstest.Repository{}, nil)
	want := func(shardTask, searchTask float64) {
		t.Helper()
		s := r.Snapshot()
		if s.Float(shard) != shardTask || s.Float(search) != searchTask {
			t.Errorf("bursts %v and %v, want %v and %v", s.Float(shard), s.Float(search), shardTask, searchTask)
		}
	}
	want(10, 5)
	mustPut(t, r, body("transient", deprecated, "20"))
	want(20, 5)
	mustPut(t, r, body("persistent", shard, "30"))
	want(30, 5)
	mustPut(t, r, `{"persistent":{"search_backpressure.search_shard_task.*":null}}`)
	want(20, 5)
	mustPut(t, r, `{"transient":{"*":null}}`)
	want(10, 5)
}

func TestResets(t *testing.T) {
	const set = `{"persistent":{"search.max_buckets":1,"search.default_search_timeout":"1s","wlm.workload_group.duress_streak":4},
		"transient":{"search.max_buckets":2,"search_backpressure.mode":"enforced"}}`
	for _, c := range []struct {
		body                  string
		persistent, transient string // keys left, without the part before the last dot
	}{
		{`{"persistent":{"search.max_buckets":null}}`, "default_search_timeout duress_streak", "max_buckets mode"},
		{`{"persistent":{"search.*":null}}`, "duress_streak", "max_buckets mode"},
		{`{"persistent":{"*":null},"transient":{"*":null}}`, "", ""},
		{`{"transient":{"search*":null}}`, "default_search_timeout max_buckets duress_streak", ""},
		{`{"persistent":{"*.max_buckets":null}}`, "default_search_timeout duress_streak", "max_buckets mode"},
		{`{"persistent":{"w*d*streak":null}}`, "default_search_timeout max_buckets", "max_buckets mode"},
		{`{"persistent":{"nothing.here.*":null}}`, "default_search_timeout max_buckets duress_streak", "max_buckets mode"},
		{`{"persistent":{"search_backpressure.mode":null}}`, "default_search_timeout max_buckets duress_streak", "max_buckets mode"},
		// Resets come first, wherever they stand.
		{`{"persistent":{"search.max_buckets":9,"search.*":null}}`, "max_buckets duress_streak", "max_buckets mode"},
		{`{"persistent":{"search.*":null,"search.max_buckets":9}}`, "max_buckets duress_streak", "max_buckets mode"},
	} {
		t.Run(c.body, func(t *testing.T) {
			r := open(t, &recordstest.Repository{}, nil)
			mustPut(t, r, set)
			mustPut(t, r, c.body)
			s := r.Snapshot()
			if got := lastWords(s.Persistent()); got != c.persistent {
				t.Errorf("persistent: %q, want %q", got, c.persistent)
			}
			if got := lastWords(s.Transient()); got != c.transient {
				t.Errorf("transient: %q, want %q", got, c.transient)
			}
		})
	}
}

func lastWords(all []settings.KV) string {
	var words []string
	for _, kv := range all {
		words = append(words, kv.Key[strings.LastIndexByte(kv.Key, '.')+1:])
	}
	return strings.Join(words, " ")
}

func TestUnknownKeys(t *testing.T) {
	r := open(t, &recordstest.Repository{}, nil)
	for _, c := range []struct{ body, scope, key, nearest string }{
		{`{"persistent":{"no.such.setting":1}}`, "persistent", "no.such.setting", ""},
		{`{"persistent":{"no.such.setting":null}}`, "persistent", "no.such.setting", ""},
		{`{"transient":{"search.cancel_after_time_intervall":"1s"}}`, "transient", "search.cancel_after_time_intervall", "search.cancel_after_time_interval"},
		{`{"transient":{"cancel_after_time_interval":"1s"}}`, "transient", "cancel_after_time_interval", "search.cancel_after_time_interval"},
		{`{"persistent":{"wlm.workloadgroup.mode":"enabled"}}`, "persistent", "wlm.workloadgroup.mode", "wlm.workload_group.mode"},
		{`{"persistent":{"wlm.query_group.mode":"enabled"}}`, "persistent", "wlm.query_group.mode", "wlm.workload_group.mode"},
		{`{"persistent":{"WLM.workload_group.mode":"enabled"}}`, "persistent", "WLM.workload_group.mode", "wlm.workload_group.mode"},
		{`{"persistent":{"search.*":"1s"}}`, "persistent", "search.*", ""},
		{`{"persistent":{"":"1s"}}`, "persistent", "", ""},
		// The first one that is wrong is named, and none of the good ones is applied.
		{`{"persistent":{"search.max_buckets":5,"a.b":1},"transient":{"c.d":1}}`, "persistent", "a.b", ""},
	} {
		e := refused[*settings.UnknownError](t, r, c.body)
		if e.Scope != c.scope || e.Key != c.key || e.Nearest != c.nearest {
			t.Errorf("%s: %+v", c.body, e)
		}
		if !strings.Contains(e.Error(), c.scope+" setting ["+c.key+"], not recognized") || !strings.Contains(e.Error(), c.nearest) {
			t.Errorf("%s: message %q", c.body, e)
		}
	}
}

func TestStaticKeys(t *testing.T) {
	r := open(t, &recordstest.Repository{}, nil)
	for _, s := range settings.Catalogue() {
		if s.Dynamic {
			continue
		}
		for _, body := range []string{body("persistent", s.Key, "1"), `{"transient":{"` + s.Key + `":null}}`} {
			if e := refused[*settings.NotDynamicError](t, r, body); e.Key != s.Key || !strings.Contains(e.Error(), "not dynamically updateable") {
				t.Errorf("%s: %v", body, e)
			}
		}
	}
}

func TestSameKeyTwice(t *testing.T) {
	r := open(t, &recordstest.Repository{}, nil)
	for _, body := range []string{
		`{"persistent":{"search":{"max_buckets":1},"search.max_buckets":2}}`,
		`{"persistent":{"search":{"max_buckets":null},"search.max_buckets":2}}`,
		`{"transient":{"search.max_buckets":2,"search":{"max_buckets":2}}}`,
	} {
		if e := refused[*settings.InvalidError](t, r, body); e.Key != "search.max_buckets" || e.Type != "settings_exception" {
			t.Errorf("%s: %+v", body, e)
		}
	}
}

func TestDependencies(t *testing.T) {
	const (
		reject = "wlm.workload_group.node.cpu_rejection_threshold"
		cancel = "wlm.workload_group.node.cpu_cancellation_threshold"
	)
	r := open(t, &recordstest.Repository{}, nil)
	named := func(body, key, value, other string) {
		t.Helper()
		e := refused[*settings.InvalidError](t, r, body)
		if e.Key != key || e.Value != value || e.Type != "illegal_argument_exception" || !strings.Contains(e.Reason, other) {
			t.Errorf("%s: %v", body, e)
		}
	}
	named(body("persistent", cancel, "0.1"), cancel, "0.1", reject)
	named(body("transient", cancel, "0.1"), cancel, "0.1", reject)

	// Both may change in one request, in any order and over both scopes.
	mustPut(t, r, `{"persistent":{"`+cancel+`":0.2,"`+reject+`":0.1}}`)
	named(body("persistent", reject, "0.3"), reject, "0.3", cancel)
	named(body("transient", reject, "0.3"), reject, "0.3", cancel)
	named(`{"persistent":{"`+reject+`":null}}`, reject, "0.8", cancel)
	mustPut(t, r, body("persistent", reject, "0.2")) // equal is allowed
	mustPut(t, r, `{"persistent":{"*":null}}`)

	// One is under the other only as long as a transient value stands in between: a restart, or a
	// reset of the transient settings, would lead into a state that is not allowed.
	mustPut(t, r, body("transient", reject, "0.1"))
	named(body("persistent", cancel, "0.5"), cancel, "0.5", "transient")
	mustPut(t, r, body("transient", cancel, "0.5"))
	named(`{"transient":{"`+reject+`":null}}`, reject, "0.8", cancel)
	mustPut(t, r, `{"transient":{"*":null}}`)

	// The pairs of cpu and memory know nothing of each other.
	mustPut(t, r, `{"persistent":{"wlm.workload_group.node.memory_rejection_threshold":0.1,"wlm.workload_group.node.memory_cancellation_threshold":0.1}}`)
}

func TestStartValues(t *testing.T) {
	const (
		reject = "wlm.workload_group.node.cpu_rejection_threshold"
		cancel = "wlm.workload_group.node.cpu_cancellation_threshold"
	)
	for _, c := range []struct {
		start   map[string]string
		unknown bool
		names   string
	}{
		{map[string]string{"wlm.workload_group.modes": "enabled"}, true, "wlm.workload_group.mode]"},
		{map[string]string{settings.WLMMode: "on"}, false, settings.WLMMode},
		{map[string]string{"http.port": "70000"}, false, "http.port"},
		{map[string]string{cancel: "0.5"}, false, reject},
	} {
		_, err := settings.Open(t.Context(), &recordstest.Repository{}, c.start)
		_, unknown := errors.AsType[*settings.UnknownError](err)
		_, invalid := errors.AsType[*settings.InvalidError](err)
		if unknown != c.unknown || invalid == c.unknown {
			t.Errorf("%v: error %T", c.start, err)
		}
		if err == nil || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%v: %v does not name %s", c.start, err, c.names)
		}
	}
	open(t, &recordstest.Repository{}, map[string]string{cancel: "0.5", reject: "0.5"})
}

func TestNothingChangedWritesNothing(t *testing.T) {
	repository := &recordstest.Repository{}
	r := open(t, repository, nil)
	calls := 0
	r.OnChange(func(_, _ *settings.Snapshot) { calls++ })
	for _, c := range []struct {
		body          string
		writes, calls int // so far
	}{
		{`{"persistent":{"search.max_buckets":1}}`, 1, 1},
		{`{"persistent":{"search.max_buckets":"1"}}`, 1, 1},
		{`{"persistent":{"search.default_search_timeout":null,"wlm.*":null}}`, 1, 1},
		{`{"transient":{"search.max_buckets":1}}`, 1, 2},
		{`{"transient":{"search.max_buckets":1}}`, 1, 2},
		{`{"persistent":{"*":null},"transient":{"*":null}}`, 2, 3},
	} {
		mustPut(t, r, c.body)
		if repository.Writes() != c.writes || calls != c.calls {
			t.Errorf("after %s: %d writes and %d calls, want %d and %d", c.body, repository.Writes(), calls, c.writes, c.calls)
		}
	}
}

func TestEmptyUpdate(t *testing.T) {
	r := open(t, &recordstest.Repository{}, nil)
	_, err := r.Apply(t.Context(), settings.Update{})
	if _, ok := errors.AsType[*settings.NothingError](err); !ok {
		t.Errorf("error %v", err)
	}
}

func TestRepositoryFails(t *testing.T) {
	broken := errors.New("disk full")
	repository := &recordstest.Repository{}
	r := open(t, repository, nil)
	r.OnChange(func(_, _ *settings.Snapshot) { t.Error("a listener heard of a change that was not kept") })
	before := r.Snapshot()
	repository.Fault = broken
	if _, err := put(t, r, `{"persistent":{"search.max_buckets":1},"transient":{"search.max_buckets":2}}`); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if r.Snapshot() != before {
		t.Error("what could not be kept is in force")
	}
	if _, err := settings.Open(t.Context(), repository, nil); !errors.Is(err, broken) {
		t.Errorf("Open: error %v", err)
	}
}

func TestEndedContext(t *testing.T) {
	r := open(t, &recordstest.Repository{}, nil)
	gone := errors.New("client gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	text := "1"
	_, err := r.Apply(ctx, settings.Update{Transient: []settings.Entry{{Key: "search.max_buckets", Value: &text}}})
	if !errors.Is(err, gone) || len(r.Snapshot().Transient()) != 0 {
		t.Errorf("error %v, transient %v", err, r.Snapshot().Transient())
	}
}
