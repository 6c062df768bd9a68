package contract

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/rules"
)

// Rules runs the tests of a [rules.Repository].
func Rules(t *testing.T, open func() rules.Repository) {
	t.Helper()
	repository := open()
	read := func(t *testing.T) map[string]string {
		t.Helper()
		all, err := repository.Rules(t.Context())
		if err != nil {
			t.Fatalf("Rules: %v", err)
		}
		return printRules(t, all...)
	}
	put := func(t *testing.T, r *rules.Rule) {
		t.Helper()
		if err := repository.PutRule(t.Context(), r); err != nil {
			t.Fatalf("PutRule: %v", err)
		}
	}
	remove := func(t *testing.T, id string) {
		t.Helper()
		if err := repository.DeleteRule(t.Context(), id); err != nil {
			t.Fatalf("DeleteRule: %v", err)
		}
	}
	// same compares with what is there, now and after a restart.
	same := func(t *testing.T, want ...*rules.Rule) {
		t.Helper()
		for _, when := range []string{"now", "after a restart"} {
			if got, want := read(t), printRules(t, want...); !maps.Equal(got, want) {
				t.Fatalf("rules %s: %v, want %v", when, got, want)
			}
			if when == "now" {
				repository = open()
			}
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
	t.Run("keeps all that a rule has", func(t *testing.T) {
		empty(t)
		put(t, fullRule("a"))
		put(t, bareRule("b"))
		same(t, fullRule("a"), bareRule("b"))
	})
	t.Run("replaces a rule with the same id", func(t *testing.T) {
		empty(t)
		put(t, fullRule("a"))
		put(t, bareRule("a"))
		same(t, bareRule("a"))
		put(t, fullRule("a"))
		same(t, fullRule("a"))
	})
	t.Run("deletes one and leaves the others", func(t *testing.T) {
		empty(t)
		put(t, fullRule("a"))
		put(t, fullRule("b"))
		put(t, fullRule("c"))
		remove(t, "b")
		remove(t, "d") // which is not there
		same(t, fullRule("a"), fullRule("c"))
		put(t, bareRule("b"))
		same(t, fullRule("a"), bareRule("b"), fullRule("c"))
	})
	t.Run("keeps any text and the order of patterns", func(t *testing.T) {
		empty(t)
		r := bareRule("text")
		r.Description = "Zürich \"東京\"\\ \n\t\x01 \u2028 <&> " + strings.Repeat("é", 200)
		r.Indices = []string{"z*", "é", "a", " ", "\"", "*"}
		put(t, r)
		same(t, r)
	})
	t.Run("keeps many", func(t *testing.T) {
		empty(t)
		var all []*rules.Rule
		for i := range 150 {
			r := fullRule(fmt.Sprintf("rule-%d", i*7919%150))
			put(t, r)
			all = append(all, r)
		}
		same(t, all...)
	})
	t.Run("shares nothing with its callers", func(t *testing.T) {
		empty(t)
		given := fullRule("a")
		put(t, given)
		spoilRule(given)
		same(t, fullRule("a"))
		for range 2 {
			all, err := repository.Rules(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			spoilRule(all[0])
		}
		same(t, fullRule("a"))
	})
	t.Run("does nothing for who has gone", func(t *testing.T) {
		empty(t)
		put(t, fullRule("a"))
		ctx, gone := ended(t)
		_, read := repository.Rules(ctx)
		for what, err := range map[string]error{
			"PutRule, there": repository.PutRule(ctx, bareRule("a")), "PutRule, new": repository.PutRule(ctx, bareRule("b")),
			"DeleteRule": repository.DeleteRule(ctx, "a"), "Rules": read,
		} {
			if !errors.Is(err, gone) {
				t.Errorf("%s: error %v, want the cause of the context", what, err)
			}
		}
		same(t, fullRule("a"))
	})
}

// fullRule is a rule that has everything.
func fullRule(id string) *rules.Rule {
	return &rules.Rule{
		ID:          id,
		Description: "description of " + id,
		Indices:     []string{"logs-*", "metrics"},
		Usernames:   []string{"ann", "dev*"},
		Roles:       []string{"analyst"},
		Group:       "group of " + id,
		UpdatedAt:   time.UnixMilli(1_795_000_000_123).UTC(),
	}
}

// bareRule is a rule that has as little as may be.
func bareRule(id string) *rules.Rule {
	return &rules.Rule{ID: id, Description: "d", Indices: []string{"a"}, Group: "g", UpdatedAt: time.UnixMilli(1).UTC()}
}

// spoilRule changes all of a full rule that it can reach.
func spoilRule(r *rules.Rule) {
	r.Indices[0], r.Usernames[0], r.Roles[0] = "spoiled", "spoiled", "spoiled"
	r.ID, r.Description, r.Group = "spoiled", "spoiled", "spoiled"
}

// printRules spells rules out by id.
func printRules(t *testing.T, all ...*rules.Rule) map[string]string {
	t.Helper()
	m := make(map[string]string, len(all))
	for _, r := range all {
		if _, ok := m[r.ID]; ok {
			t.Fatalf("two rules have the id %q", r.ID)
		}
		m[r.ID] = fmt.Sprintf("%q %q %q %q %q %s", r.Description, r.Indices, r.Usernames, r.Roles, r.Group, r.UpdatedAt.Format(time.RFC3339Nano))
	}
	return m
}
