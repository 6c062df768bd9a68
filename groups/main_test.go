package groups_test

import (
	"encoding/json"
	"testing"

	"go.uber.org/goleak"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/records/recordstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, options ...groups.Option) (*groups.Registry, *recordstest.Repository) {
	t.Helper()
	m := &recordstest.Repository{}
	r, err := groups.Open(t.Context(), m, options...)
	if err != nil {
		t.Fatal(err)
	}
	return r, m
}

// create reads a body and creates the group that it describes.
func create(t *testing.T, r *groups.Registry, body string) (*groups.Group, error) {
	t.Helper()
	p, err := groups.ParsePatch([]byte(body))
	if err != nil {
		return nil, err
	}
	return r.Create(t.Context(), p)
}

func mustCreate(t *testing.T, r *groups.Registry, body string) *groups.Group {
	t.Helper()
	g, err := create(t, r, body)
	if err != nil {
		t.Fatalf("create %s: %v", body, err)
	}
	return g
}

// update reads a body and changes the group of that name by it.
func update(t *testing.T, r *groups.Registry, name, body string) (*groups.Group, error) {
	t.Helper()
	p, err := groups.ParsePatch([]byte(body))
	if err != nil {
		return nil, err
	}
	return r.Update(t.Context(), name, p)
}

// show prints what can be changed of a group.
func show(t *testing.T, g *groups.Group) string {
	t.Helper()
	record, err := groups.Encode(g)
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(record, &members); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"_id", "name", "updated_at"} {
		delete(members, key)
	}
	b, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// normal prints JSON as show does.
func normal(t *testing.T, s string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
