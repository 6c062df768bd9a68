package records

import (
	"bytes"
	"context"
	"maps"
	"sync"
)

// Memory is a [Repository] that forgets at the end of the process. The zero value is
// empty and ready for use. It must not be copied.
type Memory struct {
	mu  sync.Mutex
	set Set
}

// Load returns the set.
func (m *Memory) Load(ctx context.Context) (Set, error) {
	if ctx.Err() != nil {
		return Set{}, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.set, nil
}

// Commit makes a change. It fails as a [Repository] does, but is never unavailable.
func (m *Memory) Commit(ctx context.Context, base uint64, change Change) (uint64, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.set.Revision != base {
		return 0, &StaleError{Base: base}
	}
	m.set = m.set.After(change, base+1)
	return m.set.Revision, nil
}

// After returns the set that a change leads to. It keeps nothing of the change.
func (s Set) After(change Change, revision uint64) Set {
	all := make(map[string][]byte, len(s.Records)+len(change.Put))
	maps.Copy(all, s.Records)
	for _, id := range change.Delete {
		delete(all, id)
	}
	for id, record := range change.Put {
		all[id] = bytes.Clone(record)
	}
	return Set{Revision: revision, Records: all}
}
