package groups

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// A Repository keeps groups durably. It must not change what it is given, nor later
// what it has returned. The registry calls one method at a time.
type Repository interface {
	// Groups returns all groups, in any order.
	Groups(ctx context.Context) ([]*Group, error)

	// PutGroup stores a group, in place of one with the same id if there is one. When
	// it returns nil the group outlives a crash; else nothing has changed.
	PutGroup(ctx context.Context, g *Group) error

	// DeleteGroup removes the group with the id, as durably.
	DeleteGroup(ctx context.Context, id string) error
}

// A Registry is the live set of groups. It is safe for concurrent use.
type Registry struct {
	repository Repository
	maxCount   func() int

	// turn holds a token while no change is under way. It is a channel and not a mutex
	// since a change writes to the repository: who waits behind it can give up.
	turn     chan struct{}
	snapshot atomic.Pointer[Snapshot] // stored by who has the turn

	mu        sync.Mutex
	listeners []func(old, new *Snapshot)
}

// An Option adjusts a Registry.
type Option func(*Registry)

// DefaultMaxCount is how many groups there may be when nothing else is said.
const DefaultMaxCount = 100

// WithMaxCount says how many groups there may be. The function is called at each
// creation; it must not call the registry.
func WithMaxCount(most func() int) Option {
	return func(r *Registry) { r.maxCount = most }
}

// Open reads the groups from the repository. It fails when that fails, or holds
// something that breaks the rules of this package. The first snapshot's revision is 1.
func Open(ctx context.Context, repository Repository, options ...Option) (*Registry, error) {
	r := &Registry{
		repository: repository,
		maxCount:   func() int { return DefaultMaxCount },
		turn:       make(chan struct{}, 1),
	}
	for _, option := range options {
		option(r)
	}
	stored, err := repository.Groups(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the workload groups: %w", err)
	}
	for _, g := range stored {
		if err := checkStored(g); err != nil {
			return nil, fmt.Errorf("the stored workload group [%s] with the id [%s] cannot be used: %w", g.Name, g.ID, err)
		}
	}
	snapshot, err := newSnapshot(1, stored)
	if err != nil {
		return nil, fmt.Errorf("the stored workload groups cannot be used: %w", err)
	}
	r.snapshot.Store(snapshot)
	r.turn <- struct{}{}
	return r, nil
}

func checkStored(g *Group) error {
	if g.ID == "" || g.ID == DefaultID || strings.Contains(g.ID, ":") {
		return errors.New("its id is empty, reserved or has a colon")
	}
	return g.Validate()
}

// Snapshot returns the groups as they are now.
func (r *Registry) Snapshot() *Snapshot { return r.snapshot.Load() }

// OnChange has f called after every change from now on. Calls come one at a time and
// in the order of the changes, on the goroutine that makes the change, after the new
// snapshot is published and before the change is answered. So f holds up changes, but
// no reader; it must not make a change itself.
func (r *Registry) OnChange(f func(old, new *Snapshot)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listeners = append(r.listeners, f)
}

// Create adds a group. The error is an *InvalidError, a *TooManyError, the cause of
// ctx's end, or the repository's.
func (r *Registry) Create(ctx context.Context, p Patch) (*Group, error) {
	if err := p.missing(); err != nil {
		return nil, err
	}
	g := p.Apply(&Group{})
	g.Name, _ = p.Name.Value()
	if err := g.Validate(); err != nil {
		return nil, err
	}
	err := r.change(ctx, func(now *Snapshot) ([]*Group, error) {
		if most := r.maxCount(); now.Len() >= most {
			return nil, &TooManyError{Max: most}
		}
		if other := now.ByName(g.Name); other != nil {
			return nil, invalidf("the value [%s] of [name] is taken by the workload group with the id [%s]; choose another, or update that group", g.Name, other.ID)
		}
		if err := checkSum(g.Limits, now.all); err != nil {
			return nil, err
		}
		g.ID = newID()
		g.UpdatedAt = nextUpdate(time.Time{})
		if err := r.repository.PutGroup(ctx, g); err != nil {
			return nil, fmt.Errorf("storing the new workload group [%s]: %w", g.Name, err)
		}
		return append(now.All(), g), nil
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Update changes the group of that name. The error is an *InvalidError, a
// *NotFoundError, the cause of ctx's end, or the repository's.
func (r *Registry) Update(ctx context.Context, name string, p Patch) (*Group, error) {
	if err := ValidateName(name); err != nil {
		return nil, err
	}
	var g *Group
	err := r.change(ctx, func(now *Snapshot) ([]*Group, error) {
		old := now.ByName(name)
		if old == nil {
			return nil, &NotFoundError{Name: name}
		}
		g = p.Apply(old)
		if err := g.Validate(); err != nil {
			return nil, err
		}
		others := now.except(name)
		named, _ := p.Limits.Value()
		if err := checkSum(named, others); err != nil {
			return nil, err
		}
		g.UpdatedAt = nextUpdate(old.UpdatedAt)
		if err := r.repository.PutGroup(ctx, g); err != nil {
			return nil, fmt.Errorf("storing the workload group [%s]: %w", name, err)
		}
		return append(others, g), nil
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Delete removes the group of that name. The error is a *NotFoundError, the cause of
// ctx's end, or the repository's.
func (r *Registry) Delete(ctx context.Context, name string) error {
	return r.change(ctx, func(now *Snapshot) ([]*Group, error) {
		old := now.ByName(name)
		if old == nil {
			return nil, &NotFoundError{Name: name}
		}
		if err := r.repository.DeleteGroup(ctx, old.ID); err != nil {
			return nil, fmt.Errorf("deleting the workload group [%s]: %w", name, err)
		}
		return now.except(name), nil
	})
}

// change makes one change at a time. Commit decides it on the groups as they are now,
// stores it and returns the groups as they are to be.
func (r *Registry) change(ctx context.Context, commit func(now *Snapshot) ([]*Group, error)) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case <-r.turn:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { r.turn <- struct{}{} }()

	now := r.snapshot.Load()
	all, err := commit(now)
	if err != nil {
		return err
	}
	next := NewSnapshot(now.revision+1, all...)
	r.snapshot.Store(next)
	for _, f := range r.heard() {
		f(now, next)
	}
	return nil
}

// heard returns who is to be told of a change.
func (r *Registry) heard() []func(old, new *Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clip(r.listeners)
}

// newID returns a random UUID in 22 characters.
func newID() string {
	id := uuid.New()
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// nextUpdate returns the time of a change, in whole milliseconds and after last even
// when the clock stands still or goes back.
func nextUpdate(last time.Time) time.Time {
	now := time.UnixMilli(time.Now().UnixMilli()).UTC()
	if !now.After(last) {
		return last.Add(time.Millisecond)
	}
	return now
}
