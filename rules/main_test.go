package rules_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a Repository that forgets at the end of the test. It keeps rules in the form
// in which a store would.
type memory struct {
	mu      sync.Mutex
	records map[string]string
	fault   error                           // what every call fails with
	during  func(ctx context.Context) error // called in every write
}

func (m *memory) Rules(context.Context) ([]*rules.Rule, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault != nil {
		return nil, m.fault
	}
	var all []*rules.Rule
	for _, record := range m.records {
		r, err := rules.Decode([]byte(record))
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

func (m *memory) PutRule(ctx context.Context, r *rules.Rule) error {
	return m.write(ctx, func() error {
		record, err := rules.Encode(r)
		if m.records == nil {
			m.records = make(map[string]string)
		}
		m.records[r.ID] = string(record)
		return err
	})
}

func (m *memory) DeleteRule(ctx context.Context, id string) error {
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

// twoGroups are the groups that rules may name: A and B.
func twoGroups() *groups.Snapshot {
	return groups.NewSnapshot(1, &groups.Group{ID: "A", Name: "a"}, &groups.Group{ID: "B", Name: "b"})
}

func open(t *testing.T, options ...rules.Option) (*rules.Registry, *memory) {
	t.Helper()
	m := &memory{}
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
