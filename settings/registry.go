package settings

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Repository keeps the persistent settings.
type Repository interface {
	// Settings reads all of them. The caller may keep and change the map.
	Settings(ctx context.Context) (map[string]string, error)
	// PutSettings replaces all of them. When it returns nil they are durable; when it returns an
	// error nothing has changed. It does not keep the map.
	PutSettings(ctx context.Context, all map[string]string) error
}

// Registry holds the live settings. It is safe for concurrent use.
type Registry struct {
	repository Repository
	snapshot   atomic.Pointer[Snapshot]
	turn       chan struct{} // one slot: held by the change under way, from its check to its last listener

	mu        sync.Mutex
	listeners []func(old, new *Snapshot)
}

// Open reads the persistent settings. start holds the values that the configuration file gives, by key;
// it is not kept.
//
// A start value that is unknown or not allowed is an error: [UnknownError], [InvalidError]. A persisted
// one is not; see [Registry.Problems].
func Open(ctx context.Context, repository Repository, start map[string]string) (*Registry, error) {
	persisted, err := repository.Settings(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the persistent settings: %w", err)
	}
	s, err := opened(newCatalogue(), start, persisted)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	r := &Registry{repository: repository, turn: make(chan struct{}, 1)}
	r.snapshot.Store(s)
	return r, nil
}

// Snapshot is the settings in force now.
func (r *Registry) Snapshot() *Snapshot { return r.snapshot.Load() }

// Problems lists the persisted settings that have no effect, each an [ArchivedError], by key. It is
// empty once they have been reset or set anew.
func (r *Registry) Problems() []error { return r.Snapshot().problems() }

// OnChange adds a listener. Listeners are called one at a time, in the order in which they were added
// and in which changes were committed, with the settings before and after; [Registry.Apply] returns
// after the last of them. A listener must not call Apply.
func (r *Registry) OnChange(listener func(old, new *Snapshot)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listeners = append(r.listeners, listener)
}

// Apply carries out an update as a whole or not at all, and answers what it set. When it returns, the
// change is durable, in force, and known to every listener. An update that leaves all as it was
// succeeds; it writes nothing and calls no listener.
//
// Errors: [NothingError], [UnknownError], [NotDynamicError], [InvalidError], those of the repository,
// and the cause of ctx when that ends before the change begins.
func (r *Registry) Apply(ctx context.Context, u Update) (Applied, error) {
	if u.empty() {
		return Applied{}, &NothingError{}
	}
	if ctx.Err() != nil {
		return Applied{}, context.Cause(ctx)
	}
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return Applied{}, context.Cause(ctx)
	}
	old := r.Snapshot()
	next, applied, err := old.edited(u)
	if err != nil {
		return Applied{}, err
	}
	stored := next.stored()
	persist := !maps.Equal(stored, old.stored())
	if !persist && maps.Equal(next.transient, old.transient) {
		return applied, nil
	}
	if persist {
		if err := r.repository.PutSettings(ctx, stored); err != nil {
			return Applied{}, fmt.Errorf("persisting the settings: %w", err)
		}
	}
	r.snapshot.Store(next)
	for _, listener := range r.registered() {
		listener(old, next)
	}
	return applied, nil
}

func (r *Registry) registered() []func(old, new *Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.listeners)
}
