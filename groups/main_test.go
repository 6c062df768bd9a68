package groups_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/wlmserver/wlmserver/groups"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a Repository that forgets at the end of the test. It keeps groups in the
// form in which a store would.
type memory struct {
	mu      sync.Mutex
	records map[string]string
	fault   error                           // what every write fails with
	during  func(ctx context.Context) error // called in every write
}

func (m *memory) Groups(context.Context) ([]*groups.Group, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault != nil {
		return nil, m.fault
	}
	var all []*groups.Group
	for _, record := range m.records {
		g, err := groups.Decode([]byte(record))
		if err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, nil
}

func (m *memory) PutGroup(ctx context.Context, g *groups.Group) error {
	return m.write(ctx, func() error {
		record, err := groups.Encode(g)
		if m.records == nil {
			m.records = make(map[string]string)
		}
		m.records[g.ID] = string(record)
		return err
	})
}

func (m *memory) DeleteGroup(ctx context.Context, id string) error {
	return m.write(ctx, func() error {
		delete(m.records, id)
		return nil
	})
}

func (m *memory) write(ctx context.Context, change func() error) error {
	if m.during != nil {
		if err := m.during(ctx); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault != nil {
		return m.fault
	}
	return change()
}

func (m *memory) dump() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Values(m.records))
}

func open(t *testing.T, options ...groups.Option) (*groups.Registry, *memory) {
	t.Helper()
	m := &memory{}
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
