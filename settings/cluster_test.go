package settings_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/records/recordstest"
	"github.com/wlmserver/wlmserver/settings"
)

const (
	rejectCPU = "wlm.workload_group.node.cpu_rejection_threshold"
	cancelCPU = "wlm.workload_group.node.cpu_cancellation_threshold"
)

// join opens the registry of one server of a cluster.
func join(t *testing.T, repository records.Repository, start map[string]string) *settings.Registry {
	t.Helper()
	r, err := settings.Open(t.Context(), repository, start, settings.OfCluster())
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return r
}

func reload(t *testing.T, all ...*settings.Registry) {
	t.Helper()
	for _, r := range all {
		if err := r.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTransientSettingsAreTheClusters(t *testing.T) {
	m := &recordstest.Repository{}
	a, b := join(t, m, nil), join(t, m, nil)
	mustPut(t, a, `{"transient":{"search.max_buckets":5},"persistent":{"search.max_buckets":4}}`)
	reload(t, b)
	for name, r := range map[string]*settings.Registry{"the other": b, "one that starts later": join(t, m, nil)} {
		s := r.Snapshot()
		wantPairs(t, name, s.Transient(), settings.KV{Key: "search.max_buckets", Value: "5"})
		if s.Int("search.max_buckets") != 5 {
			t.Errorf("%s: %d", name, s.Int("search.max_buckets"))
		}
	}
	mustPut(t, b, `{"transient":{"*":null}}`)
	reload(t, a)
	if s := a.Snapshot(); len(s.Transient()) != 0 || s.Int("search.max_buckets") != 4 {
		t.Errorf("after the reset: %v, %d", s.Transient(), s.Int("search.max_buckets"))
	}
}

// Two servers change what must be in order at once. Neither decides on what the other has changed meanwhile.
func TestOrderHoldsOverServers(t *testing.T) {
	m := &recordstest.Repository{}
	a, b := join(t, m, nil), join(t, m, nil)
	mustPut(t, a, body("persistent", cancelCPU, "0.85"))
	if e := refusedLater[*settings.InvalidError](t, b, body("persistent", rejectCPU, "0.88")); !strings.Contains(e.Error(), "0.85") {
		t.Errorf("error %v", e)
	}
	if b.Snapshot().Float(cancelCPU) != 0.85 {
		t.Error("the other's change was not taken in")
	}
}

// refusedLater is refused, for a change that is judged on what others have changed.
func refusedLater[E error](t *testing.T, r *settings.Registry, body string) E {
	t.Helper()
	_, err := put(t, r, body)
	e, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("PUT %s: error %T %v, want %T", body, err, err, e)
	}
	return e
}

func TestFirstStartValueStands(t *testing.T) {
	const key, other = settings.DefaultSearchTimeout, "search.max_buckets"
	m := &recordstest.Repository{}
	a := join(t, m, map[string]string{key: "1s", "node.name": "a", "http.port": "1"})
	b := join(t, m, map[string]string{key: "2s", other: "7", "node.name": "b"})
	c := join(t, m, map[string]string{key: "1s", other: "7"})
	d := join(t, m, nil)
	reload(t, a, b, c)
	for name, r := range map[string]*settings.Registry{"a": a, "b": b, "c": c, "d": d} {
		s := r.Snapshot()
		if s.String(key) != "1s" || s.Int(other) != 7 {
			t.Errorf("%s: %s, %d", name, s.String(key), s.Int(other))
		}
		if len(s.Persistent())+len(s.Transient()) != 0 {
			t.Errorf("%s: start values count as set by a request: %v %v", name, s.Persistent(), s.Transient())
		}
	}
	if a.Snapshot().String("node.name") != "a" || b.Snapshot().String("node.name") != "b" || b.Snapshot().String("http.port") == "1" {
		t.Error("what is a server's own came from another")
	}
	for name, want := range map[string]int{"a": 0, "b": 1, "c": 0, "d": 0} {
		if got := map[string]*settings.Registry{"a": a, "b": b, "c": c, "d": d}[name].Problems(); len(got) != want {
			t.Errorf("%s: problems %v", name, got)
		}
	}
	e, ok := errors.AsType[*settings.StandingError](b.Problems()[0])
	if !ok || e.Key != key || e.Value != "2s" || e.Standing != "1s" {
		t.Fatalf("problem %v", b.Problems()[0])
	}
	for _, part := range []string{key, "[2s]", "[1s]", "_cluster/settings"} {
		if !strings.Contains(e.Error(), part) {
			t.Errorf("%q does not say %q", e, part)
		}
	}
	mustPut(t, b, body("persistent", key, "9s"))
	if s := b.Snapshot(); s.String(key) != "9s" {
		t.Errorf("a request's value does not win: %s", s.String(key))
	}
	if want := []string{":start:search.default_search_timeout", ":start:search.max_buckets", "search.default_search_timeout"}; !slices.Equal(slices.Sorted(maps.Keys(m.Stored())), want) {
		t.Errorf("stored %v", m.Stored())
	}
}

// Start values that do not go with those of the cluster have no effect, none of them.
func TestStartValuesThatDoNotGoTogether(t *testing.T) {
	m := &recordstest.Repository{}
	a := join(t, m, map[string]string{rejectCPU: "0.5", cancelCPU: "0.5"})
	b := join(t, m, map[string]string{rejectCPU: "0.6", cancelCPU: "0.7", "search.max_buckets": "7"})
	if s := b.Snapshot(); s.Float(rejectCPU) != 0.5 || s.Float(cancelCPU) != 0.5 || s.Int("search.max_buckets") != 7 {
		t.Errorf("%v, %v, %d", s.Float(rejectCPU), s.Float(cancelCPU), s.Int("search.max_buckets"))
	}
	m = recordstest.Of(map[string]string{":start:" + cancelCPU: "0.85"})
	c := join(t, m, map[string]string{rejectCPU: "0.9"})
	if s := c.Snapshot(); s.Float(rejectCPU) != 0.8 || s.Float(cancelCPU) != 0.85 || len(c.Problems()) != 1 {
		t.Errorf("%v, %v, %v", s.Float(rejectCPU), s.Float(cancelCPU), c.Problems())
	}
	if len(m.Stored()) != 1 {
		t.Errorf("stored %v", m.Stored())
	}
	if len(a.Problems()) != 0 || len(b.Problems()) != 2 {
		t.Errorf("problems %v and %v", a.Problems(), b.Problems())
	}
}

// What another version has stored and this one cannot use is kept, and told of; what it knows nothing of, too.
func TestRecordsOfOtherVersions(t *testing.T) {
	stored := map[string]string{
		":transient:search.from_the_future": "1", ":transient:search.max_buckets": "many", ":transient:" + settings.WLMMode: "disabled",
		":start:search.also_from_the_future": "1", ":start:" + settings.CancelAfter: "soon", ":start:node.name": "x",
		":scope of the future:search.max_buckets": "3", "search.max_buckets": "4",
	}
	m := recordstest.Of(stored)
	r := join(t, m, map[string]string{"node.name": "n"})
	s := r.Snapshot()
	if s.Int("search.max_buckets") != 4 || s.String(settings.WLMMode) != "disabled" || s.String(settings.CancelAfter) != "-1" || s.String("node.name") != "n" {
		t.Errorf("in force: %d, %s, %s, %s", s.Int("search.max_buckets"), s.String(settings.WLMMode), s.String(settings.CancelAfter), s.String("node.name"))
	}
	var told []string
	for _, p := range r.Problems() {
		e, ok := errors.AsType[*settings.ArchivedError](p)
		if !ok {
			t.Fatalf("problem %v", p)
		}
		told = append(told, e.Scope+" "+e.Key)
		if !strings.Contains(e.Error(), e.Key) || !strings.Contains(e.Error(), e.Value) {
			t.Errorf("%v", e)
		}
	}
	if want := []string{"transient search.from_the_future", "transient search.max_buckets", "start search.also_from_the_future", "start " + settings.CancelAfter}; !slices.Equal(told, want) {
		t.Errorf("problems of %q, want %q", told, want)
	}
	wantPairs(t, "transient", s.Transient(),
		settings.KV{Key: "archived.search.from_the_future", Value: "1"}, settings.KV{Key: "archived.search.max_buckets", Value: "many"},
		settings.KV{Key: settings.WLMMode, Value: "disabled"})

	mustPut(t, r, `{"persistent":{"search.max_buckets":5},"transient":{"wlm.workload_group.mode":"enabled"}}`)
	stored["search.max_buckets"], stored[":transient:"+settings.WLMMode] = "5", "enabled"
	if got := m.Stored(); !maps.Equal(got, stored) {
		t.Errorf("stored %v, want %v", got, stored)
	}
	mustPut(t, r, `{"transient":{"archived.search.from_the_future":null,"search.max_buckets":6}}`)
	delete(stored, ":transient:search.from_the_future")
	stored[":transient:search.max_buckets"] = "6"
	if got := m.Stored(); !maps.Equal(got, stored) || r.Snapshot().Int("search.max_buckets") != 6 {
		t.Errorf("stored %v, want %v", got, stored)
	}
}

// A value that an archived one would put out of effect once both are read is refused, and not taken without effect.
func TestValueBesideAnArchivedOne(t *testing.T) {
	m := recordstest.Of(map[string]string{rejectCPU: "0.85"})
	r := open(t, m, map[string]string{rejectCPU: "0.5", cancelCPU: "0.6"})
	if len(r.Problems()) != 1 {
		t.Fatalf("problems %v", r.Problems())
	}
	if e := refused[*settings.InvalidError](t, r, body("persistent", cancelCPU, "0.7")); !strings.Contains(e.Error(), "0.85") {
		t.Errorf("error %v", e)
	}
	mustPut(t, r, body("persistent", cancelCPU, "0.9"))
	if s := r.Snapshot(); s.Float(rejectCPU) != 0.85 || s.Float(cancelCPU) != 0.9 || len(r.Problems()) != 0 {
		t.Errorf("%v, %v, %v", s.Float(rejectCPU), s.Float(cancelCPU), r.Problems())
	}
}

// A server that starts while the repository takes no change acts by what it holds.
func TestStartWithoutChanges(t *testing.T) {
	m := recordstest.Of(map[string]string{"search.max_buckets": "4"})
	m.During = refuse(&records.UnavailableError{Cause: errors.New("no leader")})
	r := join(t, m, map[string]string{settings.DefaultSearchTimeout: "2s"})
	if s := r.Snapshot(); s.Int("search.max_buckets") != 4 || s.String(settings.DefaultSearchTimeout) != "-1" || len(r.Problems()) != 1 {
		t.Errorf("%d, %s, %v", s.Int("search.max_buckets"), s.String(settings.DefaultSearchTimeout), r.Problems())
	}
	if _, err := put(t, r, `{"transient":{"search.max_buckets":9}}`); !errors.As(err, new(*records.UnavailableError)) {
		t.Errorf("error %v", err)
	}
	m.During = refuse(errors.New("broken"))
	if _, err := settings.Open(t.Context(), m, map[string]string{settings.DefaultSearchTimeout: "2s"}, settings.OfCluster()); err == nil {
		t.Error("a broken repository is passed over")
	}
}

// Servers by themselves that share a repository do not share transient settings, and do not lose them to each other's changes.
func TestTransientBesideOthersChanges(t *testing.T) {
	m := &recordstest.Repository{}
	a, b := open(t, m, nil), open(t, m, nil)
	for i := range 3 {
		mustPut(t, a, fmt.Sprintf(`{"transient":{"search.max_buckets":%d}}`, i+1))
		mustPut(t, b, fmt.Sprintf(`{"persistent":{"search.default_search_timeout":"%ds"}}`, i+1))
		mustPut(t, a, fmt.Sprintf(`{"persistent":{"search.cancel_after_time_interval":"%ds"}}`, i+1))
		if s := a.Snapshot(); s.Int("search.max_buckets") != i+1 || s.String(settings.DefaultSearchTimeout) != fmt.Sprintf("%ds", i+1) {
			t.Errorf("round %d: %d, %s", i, s.Int("search.max_buckets"), s.String(settings.DefaultSearchTimeout))
		}
	}
	reload(t, b)
	if s := b.Snapshot(); len(s.Transient()) != 0 || s.String(settings.CancelAfter) != "3s" {
		t.Errorf("%v, %s", s.Transient(), s.String(settings.CancelAfter))
	}
}
