package records

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Kind says how records become values of type T, and those a snapshot of type S.
type Kind[T, S any] struct {
	// Name is what messages call the set: "the workload groups".
	Name string

	// Encode gives a value's record.
	Encode func(value T) ([]byte, error)

	// Decode reads a record, and refuses one that is not to be used.
	Decode func(id string, record []byte) (T, error)

	// Snapshot makes what readers see. The map is not to be changed. Changes counts the
	// snapshots of this registry, from 1.
	Snapshot func(changes uint64, all map[string]T) (S, error)
}

// An Edit is a change in values.
type Edit[T any] struct {
	Put    map[string]T
	Delete []string
}

// A Registry is the live view of a set. It is safe for concurrent use.
type Registry[T, S any] struct {
	repository Repository
	kind       Kind[T, S]

	// turn holds a token while no change is under way. It is a channel and not a mutex
	// since a change writes to the repository: who waits behind it can give up.
	turn  chan struct{}
	state atomic.Pointer[state[T, S]] // stored by who has the turn

	mu        sync.Mutex
	listeners []func(old, new S)
}

// state is a set as it was read. It never changes.
type state[T, S any] struct {
	set      Set
	values   map[string]T
	changes  uint64
	snapshot S
}

// Open reads the set. It fails when the repository does, or holds what cannot be used.
func Open[T, S any](ctx context.Context, repository Repository, kind Kind[T, S]) (*Registry[T, S], error) {
	r := &Registry[T, S]{repository: repository, kind: kind, turn: make(chan struct{}, 1)}
	set, err := r.load(ctx)
	if err != nil {
		return nil, err
	}
	first, err := r.read(set, &state[T, S]{})
	if err != nil {
		return nil, err
	}
	r.state.Store(first)
	r.turn <- struct{}{}
	return r, nil
}

// Snapshot returns the set as it is now.
func (r *Registry[T, S]) Snapshot() S { return r.state.Load().snapshot }

// OnChange has f called after every change from now on. Calls come one at a time and in
// the order of the changes, on the goroutine that makes or takes in the change, after the
// new snapshot is published and before the change is answered. So f holds up changes, but
// no reader; it must not make a change itself.
func (r *Registry[T, S]) OnChange(f func(old, new S)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listeners = append(r.listeners, f)
}

// Change makes one change at a time. Decide looks at the set as it is now; it is called
// again when somebody else has changed the set meanwhile. An empty edit changes nothing,
// and succeeds. The error is decide's, the repository's, or the cause of ctx's end.
func (r *Registry[T, S]) Change(ctx context.Context, decide func(now S) (Edit[T], error)) error {
	if err := r.take(ctx); err != nil {
		return err
	}
	defer r.release()
	for {
		now := r.state.Load()
		edit, err := decide(now.snapshot)
		if err != nil || len(edit.Put)+len(edit.Delete) == 0 {
			return err
		}
		next, change, err := r.edited(now, edit)
		if err != nil {
			return err
		}
		revision, err := r.repository.Commit(ctx, now.set.Revision, change)
		if _, stale := errors.AsType[*StaleError](err); stale {
			if err := r.reload(ctx); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("storing %s: %w", r.kind.Name, err)
		}
		next.set.Revision = revision
		r.publish(now, next)
		return nil
	}
}

// Reload takes in what others have changed in the repository, and returns when every
// listener knows. On an error the set stays as it was here.
func (r *Registry[T, S]) Reload(ctx context.Context) error {
	if err := r.take(ctx); err != nil {
		return err
	}
	defer r.release()
	return r.reload(ctx)
}

func (r *Registry[T, S]) take(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case <-r.turn:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *Registry[T, S]) release() { r.turn <- struct{}{} }

// reload is Reload by who has the turn.
func (r *Registry[T, S]) reload(ctx context.Context) error {
	set, err := r.load(ctx)
	if err != nil {
		return err
	}
	now := r.state.Load()
	if set.Revision == now.set.Revision {
		return nil
	}
	next, err := r.read(set, now)
	if err != nil {
		return err
	}
	r.publish(now, next)
	return nil
}

func (r *Registry[T, S]) load(ctx context.Context) (Set, error) {
	set, err := r.repository.Load(ctx)
	if err != nil {
		return Set{}, fmt.Errorf("reading %s: %w", r.kind.Name, err)
	}
	return set, nil
}

// read makes the state of a set. Values of records that are as they were stay the same.
func (r *Registry[T, S]) read(set Set, last *state[T, S]) (*state[T, S], error) {
	values := make(map[string]T, len(set.Records))
	for id, record := range set.Records {
		if old, ok := last.set.Records[id]; ok && bytes.Equal(old, record) {
			values[id] = last.values[id]
			continue
		}
		value, err := r.kind.Decode(id, record)
		if err != nil {
			return nil, fmt.Errorf("%s that are stored cannot be used: %w", r.kind.Name, err)
		}
		values[id] = value
	}
	return r.after(set, values, last)
}

// edited makes the state that an edit leads to, and the change that does so.
func (r *Registry[T, S]) edited(now *state[T, S], edit Edit[T]) (*state[T, S], Change, error) {
	change := Change{Put: make(map[string][]byte, len(edit.Put)), Delete: edit.Delete}
	values := maps.Clone(now.values)
	for _, id := range edit.Delete {
		delete(values, id)
	}
	for id, value := range edit.Put {
		record, err := r.kind.Encode(value)
		if err != nil {
			return nil, Change{}, err
		}
		change.Put[id], values[id] = record, value
	}
	next, err := r.after(now.set.After(change, 0), values, now)
	return next, change, err
}

// after makes the state that follows the last one.
func (r *Registry[T, S]) after(set Set, values map[string]T, last *state[T, S]) (*state[T, S], error) {
	changes := last.changes + 1
	snapshot, err := r.kind.Snapshot(changes, values)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be used: %w", r.kind.Name, err)
	}
	return &state[T, S]{set: set, values: values, changes: changes, snapshot: snapshot}, nil
}

// publish has readers see the next state, and tells the listeners.
func (r *Registry[T, S]) publish(now, next *state[T, S]) {
	r.state.Store(next)
	for _, f := range r.heard() {
		f(now.snapshot, next.snapshot)
	}
}

// heard returns who is to be told of a change.
func (r *Registry[T, S]) heard() []func(old, new S) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clip(r.listeners)
}

// NextUpdate returns the time of a change, in whole milliseconds and after last even when
// the clock stands still or goes back.
func NextUpdate(last time.Time) time.Time {
	now := time.UnixMilli(time.Now().UnixMilli()).UTC()
	if !now.After(last) {
		return last.Add(time.Millisecond)
	}
	return now
}
