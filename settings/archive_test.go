package settings_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/records/recordstest"
	"github.com/wlmserver/wlmserver/settings"
)

func TestPersistedValuesThatCannotBeUsed(t *testing.T) {
	const (
		reject = "wlm.workload_group.node.cpu_rejection_threshold"
		cancel = "wlm.workload_group.node.cpu_cancellation_threshold"
	)
	for name, c := range map[string]struct {
		stored, start map[string]string
		archived      []string
		reason        string
		key, inForce  string // what acts in the place of one of them
	}{
		"unknown key": {
			map[string]string{"search.from_the_future": "1"}, nil,
			[]string{"search.from_the_future"}, "not recognized", settings.MaxGroups, "100",
		},
		"out of bounds": {
			map[string]string{cancel: "0.98", settings.MaxGroups: "7"}, nil,
			[]string{cancel}, "at most 0.95", cancel, "0.9",
		},
		"other type": {
			map[string]string{settings.CancelAfter: "soon"}, map[string]string{settings.CancelAfter: "5s"},
			[]string{settings.CancelAfter}, "unit", settings.CancelAfter, "5s",
		},
		"no longer dynamic": {
			map[string]string{"node.name": "x"}, map[string]string{"node.name": "n1"},
			[]string{"node.name"}, "not dynamically", "node.name", "n1",
		},
		"both sides of a dependency": {
			map[string]string{reject: "0.9", cancel: "0.5"}, nil,
			[]string{cancel, reject}, "threshold", reject, "0.8",
		},
		"one side, against a start value": {
			map[string]string{reject: "0.8"}, map[string]string{reject: "0.1", cancel: "0.2"},
			[]string{reject}, cancel, reject, "0.1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			repository := recordstest.Of(c.stored)
			r := open(t, repository, c.start)
			if got := r.Snapshot().String(c.key); got != c.inForce {
				t.Errorf("%s acts as %s, want %s", c.key, got, c.inForce)
			}
			problems := r.Problems()
			if len(problems) != len(c.archived) {
				t.Fatalf("problems: %v", problems)
			}
			printed := map[string]string{}
			for _, kv := range r.Snapshot().Persistent() {
				printed[kv.Key] = kv.Value
			}
			for i, key := range c.archived {
				e, ok := errors.AsType[*settings.ArchivedError](problems[i])
				if !ok || e.Key != key || e.Value != c.stored[key] || !strings.Contains(e.Error(), c.reason) {
					t.Errorf("problem %d: %v", i, problems[i])
				}
				if printed["archived."+key] != c.stored[key] {
					t.Errorf("printed: %v", printed)
				}
				if _, ok := printed[key]; ok {
					t.Errorf("%s is printed as if it acted", key)
				}
			}

			// A change of another setting goes in and keeps them.
			mustPut(t, r, `{"persistent":{"search.max_buckets":9}}`)
			for key, text := range c.stored {
				if repository.Stored()[key] != text {
					t.Errorf("%s is stored as %q, want %q", key, repository.Stored()[key], text)
				}
			}

			// So the start after that is the same.
			if again := open(t, repository, c.start); len(again.Problems()) != len(problems) {
				t.Errorf("problems at the next start: %v", again.Problems())
			}
		})
	}
}

func TestResetOfArchived(t *testing.T) {
	stored := map[string]string{"search.from_the_future": "1", settings.WLMMode: "sometimes", "search.max_buckets": "5"}
	for _, c := range []struct {
		body string
		left []string
	}{
		{`{"persistent":{"archived.search.from_the_future":null}}`, []string{settings.WLMMode}},
		{`{"persistent":{"archived.wlm.workload_group.mode":null}}`, []string{"search.from_the_future"}},
		{`{"persistent":{"wlm.workload_group.mode":null}}`, []string{"search.from_the_future"}},
		{`{"persistent":{"wlm.workload_group.mode":"disabled"}}`, []string{"search.from_the_future"}},
		{`{"persistent":{"archived.*":null}}`, nil},
		{`{"persistent":{"*":null}}`, nil},
		{`{"persistent":{"search.*":null}}`, []string{"search.from_the_future", settings.WLMMode}},
		{`{"transient":{"*":null,"archived.search.from_the_future":null}}`, []string{"search.from_the_future", settings.WLMMode}},
	} {
		t.Run(c.body, func(t *testing.T) {
			repository := recordstest.Of(stored)
			r := open(t, repository, nil)
			mustPut(t, r, c.body)
			check := func(when string, r *settings.Registry) {
				t.Helper()
				var left []string
				for _, p := range r.Problems() {
					if e, ok := errors.AsType[*settings.ArchivedError](p); ok {
						left = append(left, e.Key)
					}
				}
				if strings.Join(left, " ") != strings.Join(c.left, " ") {
					t.Errorf("archived %s: %v, want %v", when, left, c.left)
				}
			}
			check("now", r)
			check("after a restart", open(t, repository, nil))
		})
	}
	r := open(t, recordstest.Of(stored), nil)
	for _, body := range []string{
		`{"persistent":{"search.from_the_future":null}}`,
		`{"persistent":{"archived.search.from_the_future":"2"}}`,
	} {
		if e := refused[*settings.UnknownError](t, r, body); !strings.Contains(e.Key, "search.from_the_future") {
			t.Errorf("%s: %v", body, e)
		}
	}
}

// What an older version has archived is in force again where it is known.
func TestArchivedValueComesBack(t *testing.T) {
	repository := recordstest.Of(map[string]string{"wlm.workload_group.node.cpu_rejection_threshold": "0.85"})
	lower := map[string]string{
		"wlm.workload_group.node.cpu_rejection_threshold":    "0.5",
		"wlm.workload_group.node.cpu_cancellation_threshold": "0.6",
	}
	r := open(t, repository, lower)
	if got := r.Snapshot().Float("wlm.workload_group.node.cpu_rejection_threshold"); got != 0.5 || len(r.Problems()) != 1 {
		t.Fatalf("threshold %v, problems %v", got, r.Problems())
	}
	mustPut(t, r, `{"persistent":{"search.max_buckets":9}}`)
	r = open(t, repository, nil)
	if got := r.Snapshot().Float("wlm.workload_group.node.cpu_rejection_threshold"); got != 0.85 || len(r.Problems()) != 0 {
		t.Errorf("threshold %v, problems %v", got, r.Problems())
	}
}
