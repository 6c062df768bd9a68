// Package contract says in tests what a repository of groups, of rules and of settings must do. Every
// implementation runs them from a test of its own:
//
//	func TestGroups(t *testing.T) {
//		contract.Groups(t, func() groups.Repository { return reopened(t) })
//	}
//
// The open function gives the repository under test. Its first call gives an empty one; each later
// call gives one over what the calls before have stored, as a restart of the server would. The suites
// use no repository any more once they have opened the next.
package contract

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/settings"
)

// Groups runs the tests of a [groups.Repository].
func Groups(t *testing.T, open func() groups.Repository) {
	t.Helper()
	repository := open()
	read := func(t *testing.T) map[string]string {
		t.Helper()
		all, err := repository.Groups(t.Context())
		if err != nil {
			t.Fatalf("Groups: %v", err)
		}
		return prints(t, all...)
	}
	put := func(t *testing.T, g *groups.Group) {
		t.Helper()
		if err := repository.PutGroup(t.Context(), g); err != nil {
			t.Fatalf("PutGroup: %v", err)
		}
	}
	remove := func(t *testing.T, id string) {
		t.Helper()
		if err := repository.DeleteGroup(t.Context(), id); err != nil {
			t.Fatalf("DeleteGroup: %v", err)
		}
	}
	// same compares with what is there, now and after a restart.
	same := func(t *testing.T, want ...*groups.Group) {
		t.Helper()
		if got, want := read(t), prints(t, want...); !maps.Equal(got, want) {
			t.Fatalf("groups %v, want %v", got, want)
		}
		repository = open()
		if got, want := read(t), prints(t, want...); !maps.Equal(got, want) {
			t.Fatalf("groups after a restart %v, want %v", got, want)
		}
	}
	// empty removes what the test before has left.
	empty := func(t *testing.T) {
		t.Helper()
		for id := range read(t) {
			remove(t, id)
		}
		same(t)
	}

	t.Run("empty at first", func(t *testing.T) { same(t) })
	t.Run("keeps all that a group has", func(t *testing.T) {
		empty(t)
		put(t, full("a"))
		put(t, bare("b"))
		same(t, full("a"), bare("b"))
	})
	t.Run("replaces a group with the same id", func(t *testing.T) {
		empty(t)
		put(t, full("a"))
		put(t, bare("a"))
		same(t, bare("a"))
		put(t, full("a"))
		same(t, full("a"))
	})
	t.Run("deletes one and leaves the others", func(t *testing.T) {
		empty(t)
		put(t, full("a"))
		put(t, full("b"))
		put(t, full("c"))
		remove(t, "b")
		same(t, full("a"), full("c"))
		put(t, bare("b"))
		same(t, full("a"), bare("b"), full("c"))
	})
	t.Run("deletes what is not there", func(t *testing.T) {
		empty(t)
		remove(t, "a")
		put(t, bare("b"))
		remove(t, "a")
		same(t, bare("b"))
	})
	t.Run("keeps any text", func(t *testing.T) {
		empty(t)
		g := bare("text")
		g.Name = "Zürich \"東京\"\\ \n\t\x01 " + strings.Repeat("é", 200)
		g.Settings = map[string]string{"": "", "a=b": "{}", "\u2028": "<&>"}
		put(t, g)
		same(t, g)
	})
	t.Run("keeps many", func(t *testing.T) {
		empty(t)
		var all []*groups.Group
		for i := range 150 {
			g := full(fmt.Sprintf("group-%d", i*7919%150))
			put(t, g)
			all = append(all, g)
		}
		same(t, all...)
	})
	t.Run("shares nothing with its callers", func(t *testing.T) {
		empty(t)
		given := full("a")
		put(t, given)
		spoil(given)
		same(t, full("a"))
		for range 2 {
			all, err := repository.Groups(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			spoil(all[0])
		}
		same(t, full("a"))
	})
	t.Run("does nothing for who has gone", func(t *testing.T) {
		empty(t)
		put(t, full("a"))
		ctx, gone := ended(t)
		if err := repository.PutGroup(ctx, bare("a")); !errors.Is(err, gone) {
			t.Errorf("PutGroup: error %v, want the cause of the context", err)
		}
		if err := repository.PutGroup(ctx, bare("b")); !errors.Is(err, gone) {
			t.Errorf("PutGroup: error %v, want the cause of the context", err)
		}
		if err := repository.DeleteGroup(ctx, "a"); !errors.Is(err, gone) {
			t.Errorf("DeleteGroup: error %v, want the cause of the context", err)
		}
		if _, err := repository.Groups(ctx); !errors.Is(err, gone) {
			t.Errorf("Groups: error %v, want the cause of the context", err)
		}
		same(t, full("a"))
	})
}

// Settings runs the tests of a [settings.Repository].
func Settings(t *testing.T, open func() settings.Repository) {
	t.Helper()
	repository := open()
	put := func(t *testing.T, all map[string]string) {
		t.Helper()
		if err := repository.PutSettings(t.Context(), all); err != nil {
			t.Fatalf("PutSettings: %v", err)
		}
	}
	// same compares with what is there, now and after a restart.
	same := func(t *testing.T, want map[string]string) {
		t.Helper()
		for _, when := range []string{"now", "after a restart"} {
			got, err := repository.Settings(t.Context())
			if err != nil {
				t.Fatalf("Settings: %v", err)
			}
			if !maps.Equal(got, want) {
				t.Fatalf("settings %s: %v, want %v", when, got, want)
			}
			if when == "now" {
				repository = open()
			}
		}
	}
	// empty removes what the test before has left.
	empty := func(t *testing.T) {
		t.Helper()
		put(t, nil)
		same(t, nil)
	}

	t.Run("empty at first", func(t *testing.T) { same(t, nil) })
	t.Run("replaces all at once", func(t *testing.T) {
		empty(t)
		put(t, map[string]string{"a": "1", "b": "2"})
		same(t, map[string]string{"a": "1", "b": "2"})
		put(t, map[string]string{"b": "3", "c": "4"})
		same(t, map[string]string{"b": "3", "c": "4"})
		put(t, map[string]string{})
		same(t, nil)
	})
	t.Run("keeps any text", func(t *testing.T) {
		empty(t)
		all := map[string]string{
			"wlm.workload_group.mode": "enabled", "a.b": "", "quoted": "\"\\\n\x00<&>", "東京": "é", "long": strings.Repeat("x", 100_000),
		}
		put(t, all)
		same(t, all)
	})
	t.Run("shares nothing with its callers", func(t *testing.T) {
		empty(t)
		given := map[string]string{"a": "1"}
		put(t, given)
		given["a"], given["b"] = "2", "3"
		same(t, map[string]string{"a": "1"})
		got, err := repository.Settings(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got["a"], got["b"] = "2", "3" // an empty repository, too, must give a map to write to
		same(t, map[string]string{"a": "1"})
	})
	t.Run("does nothing for who has gone", func(t *testing.T) {
		empty(t)
		put(t, map[string]string{"a": "1"})
		ctx, gone := ended(t)
		if err := repository.PutSettings(ctx, map[string]string{"a": "2"}); !errors.Is(err, gone) {
			t.Errorf("PutSettings: error %v, want the cause of the context", err)
		}
		if _, err := repository.Settings(ctx); !errors.Is(err, gone) {
			t.Errorf("Settings: error %v, want the cause of the context", err)
		}
		same(t, map[string]string{"a": "1"})
	})
}

// full is a group that has everything.
func full(id string) *groups.Group {
	return &groups.Group{
		ID:         id,
		Name:       "name of " + id,
		Mode:       groups.Soft,
		Limits:     groups.ResourceLimits{CPU: new(0.1), Memory: new(0.30000000000000004), NativeMemory: new(1.0)},
		Settings:   map[string]string{"search.default_search_timeout": "30s", "override_request_values": "true"},
		Throttling: groups.Throttling{Attribute: groups.ByUsername, NodeLimit: new(0), SharedLimit: new(2147483647)},
		Queue:      groups.Queue{SizePerBucket: new(10_000)},
		UpdatedAt:  time.UnixMilli(1_795_000_000_123).UTC(),
	}
}

// bare is a group that has as little as may be.
func bare(id string) *groups.Group {
	return &groups.Group{
		ID:        id,
		Name:      "n",
		Mode:      groups.Enforced,
		Limits:    groups.ResourceLimits{Memory: new(0.5)},
		UpdatedAt: time.UnixMilli(1).UTC(),
	}
}

// spoil changes all of a group that it can reach.
func spoil(g *groups.Group) {
	*g.Limits.CPU, *g.Throttling.NodeLimit, *g.Queue.SizePerBucket = 0.9, 99, 99
	clear(g.Settings)
	g.ID, g.Name = "spoiled", "spoiled"
}

// ended is a context that has ended, and why.
func ended(t *testing.T) (context.Context, error) {
	t.Helper()
	gone := errors.New("the client has gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	return ctx, gone
}

// prints spells groups out, pointers followed, by id.
func prints(t *testing.T, all ...*groups.Group) map[string]string {
	t.Helper()
	m := make(map[string]string, len(all))
	for _, g := range all {
		if _, ok := m[g.ID]; ok {
			t.Fatalf("two groups have the id %q", g.ID)
		}
		var settings []string
		for _, key := range slices.Sorted(maps.Keys(g.Settings)) {
			settings = append(settings, fmt.Sprintf("%q=%q", key, g.Settings[key]))
		}
		m[g.ID] = fmt.Sprintf("%q %s cpu %s memory %s native %s %v throttling %q %s %s queue %s updated %s", g.Name, g.Mode,
			optional(g.Limits.CPU), optional(g.Limits.Memory), optional(g.Limits.NativeMemory), settings,
			g.Throttling.Attribute, optional(g.Throttling.NodeLimit), optional(g.Throttling.SharedLimit),
			optional(g.Queue.SizePerBucket), g.UpdatedAt.Format(time.RFC3339Nano))
	}
	return m
}

func optional[T any](v *T) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(*v)
}
