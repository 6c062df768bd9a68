// Package recordstest helps to test what rests on a repository of records.
package recordstest

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/wlmserver/wlmserver/records"
)

// Repository is a [records.Memory] that fails, is slow, or hears of others' changes as a
// test wants it. Its fields are not to be changed while a call is under way.
type Repository struct {
	Fault  error                           // what every call fails with
	During func(ctx context.Context) error // called in every Commit, before it changes anything

	memory records.Memory

	mu     sync.Mutex
	writes int
}

// Of returns a repository that holds these records, by id.
func Of(all map[string]string) *Repository {
	r := &Repository{}
	if len(all) > 0 {
		r.Write(all)
	}
	return r
}

// Load returns the set, or the fault.
func (r *Repository) Load(ctx context.Context) (records.Set, error) {
	if r.Fault != nil {
		return records.Set{}, r.Fault
	}
	return r.memory.Load(ctx)
}

// Commit makes a change, unless something was set to keep it from that.
func (r *Repository) Commit(ctx context.Context, base uint64, change records.Change) (uint64, error) {
	if r.During != nil {
		if err := r.During(ctx); err != nil {
			return 0, err
		}
	}
	if r.Fault != nil {
		return 0, r.Fault
	}
	revision, err := r.memory.Commit(ctx, base, change)
	if err == nil {
		r.mu.Lock()
		r.writes++
		r.mu.Unlock()
	}
	return revision, err
}

// Write stores records as another process would.
func (r *Repository) Write(all map[string]string, remove ...string) {
	change := records.Change{Put: make(map[string][]byte, len(all)), Delete: remove}
	for id, record := range all {
		change.Put[id] = []byte(record)
	}
	for {
		set, _ := r.memory.Load(context.Background()) // cannot fail
		if _, err := r.memory.Commit(context.Background(), set.Revision, change); err == nil {
			return
		}
	}
}

// Stored returns the records by id.
func (r *Repository) Stored() map[string]string {
	set, _ := r.memory.Load(context.Background()) // cannot fail
	all := make(map[string]string, len(set.Records))
	for id, record := range set.Records {
		all[id] = string(record)
	}
	return all
}

// Dump returns the records in order.
func (r *Repository) Dump() []string { return slices.Sorted(maps.Values(r.Stored())) }

// Writes tells how many changes have been committed.
func (r *Repository) Writes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writes
}
