package rules_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/records/recordstest"
	"github.com/wlmserver/wlmserver/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// twoGroups are the groups that rules may name: A and B.
func twoGroups() *groups.Snapshot {
	return groups.NewSnapshot(1, &groups.Group{ID: "A", Name: "a"}, &groups.Group{ID: "B", Name: "b"})
}

func open(t *testing.T, options ...rules.Option) (*rules.Registry, *recordstest.Repository) {
	t.Helper()
	m := &recordstest.Repository{}
	r, err := rules.Open(t.Context(), m, twoGroups, options...)
	if err != nil {
		t.Fatal(err)
	}
	return r, m
}

// create reads a body and creates the rule that it describes.
func create(t *testing.T, r *rules.Registry, body string) (*rules.Rule, error) {
	t.Helper()
	p, err := rules.ParsePatch([]byte(body))
	if err != nil {
		return nil, err
	}
	return r.Create(t.Context(), p)
}

func mustCreate(t *testing.T, r *rules.Registry, body string) *rules.Rule {
	t.Helper()
	rule, err := create(t, r, body)
	if err != nil {
		t.Fatalf("create %s: %v", body, err)
	}
	return rule
}

func update(t *testing.T, r *rules.Registry, id, body string) (*rules.Rule, error) {
	t.Helper()
	p, err := rules.ParsePatch([]byte(body))
	if err != nil {
		return nil, err
	}
	return r.Update(t.Context(), id, p)
}

// text is how a rule is stored.
func text(t *testing.T, r *rules.Rule) string {
	t.Helper()
	b, err := rules.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
