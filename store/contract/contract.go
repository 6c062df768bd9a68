// Package contract says in tests what a repository of records must do, and what must hold of registries
// that share one. Every implementation runs them from a test of its own:
//
//	func TestRepository(t *testing.T) {
//		contract.Repository(t, func() records.Repository { return reopened(t) })
//	}
package contract

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/records"
)

// Repository runs the tests of a [records.Repository].
//
// The open function gives the repository under test. Its first call gives an empty one; each later
// call gives one over what the calls before have stored, as a restart of the server would. The suite
// uses no repository any more once it has opened the next.
func Repository(t *testing.T, open func() records.Repository) {
	t.Helper()
	repository := open()
	load := func(t *testing.T) records.Set {
		t.Helper()
		set, err := repository.Load(t.Context())
		if err != nil {
			t.Fatalf("Load: %v", err)
		}
		return set
	}
	commit := func(t *testing.T, change records.Change) uint64 {
		t.Helper()
		base := load(t).Revision
		revision, err := repository.Commit(t.Context(), base, change)
		if err != nil {
			t.Fatalf("Commit: %v", err)
		}
		if revision <= base {
			t.Fatalf("revision %d follows %d", revision, base)
		}
		return revision
	}
	// same compares with what is there, now and after a restart.
	same := func(t *testing.T, want map[string]string) {
		t.Helper()
		before := load(t)
		for _, when := range []string{"now", "after a restart"} {
			set := load(t)
			if got := texts(set.Records); !maps.Equal(got, want) {
				t.Fatalf("records %s: %q, want %q", when, got, want)
			}
			if set.Revision != before.Revision {
				t.Fatalf("revision %s: %d, it was %d", when, set.Revision, before.Revision)
			}
			if when == "now" {
				repository = open()
			}
		}
	}
	// empty removes what the test before has left.
	empty := func(t *testing.T) {
		t.Helper()
		if all := load(t).Records; len(all) > 0 {
			change := records.Change{}
			for id := range all {
				change.Delete = append(change.Delete, id)
			}
			commit(t, change)
		}
		same(t, nil)
	}

	t.Run("empty at first", func(t *testing.T) { same(t, nil) })
	t.Run("puts, replaces and deletes", func(t *testing.T) {
		empty(t)
		first := commit(t, put("a", "1", "b", "2"))
		same(t, map[string]string{"a": "1", "b": "2"})
		second := commit(t, put("b", "3"))
		if second <= first || load(t).Revision != second {
			t.Errorf("revisions %d, %d, %d", first, second, load(t).Revision)
		}
		same(t, map[string]string{"a": "1", "b": "3"})
		commit(t, records.Change{Put: map[string][]byte{"c": []byte("4")}, Delete: []string{"a", "not there"}})
		same(t, map[string]string{"b": "3", "c": "4"})
		commit(t, records.Change{Delete: []string{"not there"}})
		same(t, map[string]string{"b": "3", "c": "4"})
	})
	t.Run("keeps any text", func(t *testing.T) {
		empty(t)
		all := map[string]string{
			"a.b": "", "quoted": "\"\\\n\x00<&>", "東京": "é", ":scope:key": "v", "with/slash": "/", "bytes": "\xff\xfe", "long": strings.Repeat("x", 100_000),
		}
		change := records.Change{Put: make(map[string][]byte)}
		for id, text := range all {
			change.Put[id] = []byte(text)
		}
		commit(t, change)
		same(t, all)
	})
	t.Run("keeps many", func(t *testing.T) {
		empty(t)
		all := make(map[string]string)
		for i := range 150 {
			id := fmt.Sprintf("record-%d", i*7919%150)
			all[id] = fmt.Sprintf(`{"of":%d}`, i)
			commit(t, put(id, all[id]))
		}
		same(t, all)
	})
	t.Run("refuses what was decided on an older set", func(t *testing.T) {
		empty(t)
		base := load(t).Revision
		commit(t, put("a", "1"))
		now := load(t)
		for _, old := range []uint64{base, now.Revision + 1} {
			_, err := repository.Commit(t.Context(), old, records.Change{Put: map[string][]byte{"b": []byte("2")}, Delete: []string{"a"}})
			if stale, ok := errors.AsType[*records.StaleError](err); !ok || stale.Base != old {
				t.Errorf("on revision %d of %d: error %v", old, now.Revision, err)
			}
		}
		same(t, map[string]string{"a": "1"})
		commit(t, put("b", "2"))
		same(t, map[string]string{"a": "1", "b": "2"})
	})
	t.Run("shares nothing that it is given", func(t *testing.T) {
		empty(t)
		given := put("a", "1")
		commit(t, given)
		given.Put["a"][0] = 'x'
		given.Put["b"] = []byte("2")
		same(t, map[string]string{"a": "1"})
	})
	t.Run("does nothing for who has gone", func(t *testing.T) {
		empty(t)
		commit(t, put("a", "1"))
		base := load(t).Revision
		gone := errors.New("the client has gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		_, errLoad := repository.Load(ctx)
		_, errCommit := repository.Commit(ctx, base, put("a", "2"))
		for what, err := range map[string]error{"Load": errLoad, "Commit": errCommit} {
			if !errors.Is(err, gone) {
				t.Errorf("%s: error %v, want the cause of the context", what, err)
			}
		}
		same(t, map[string]string{"a": "1"})
	})
}

// put is a change of ids and texts, in turn.
func put(pairs ...string) records.Change {
	change := records.Change{Put: make(map[string][]byte)}
	for i := 0; i < len(pairs); i += 2 {
		change.Put[pairs[i]] = []byte(pairs[i+1])
	}
	return change
}

func texts(all map[string][]byte) map[string]string {
	m := make(map[string]string, len(all))
	for id, record := range all {
		m[id] = string(record)
	}
	return m
}
