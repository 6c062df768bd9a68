package groups

import (
	"context"
	"encoding/base64"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/wlmserver/wlmserver/records"
)

// A Registry is the live set of groups. It is safe for concurrent use, also beside others
// over the same repository.
type Registry struct {
	set      *records.Registry[*Group, *Snapshot]
	maxCount func() int
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

// Open reads the groups from the repository, which holds them as Encode writes them, by
// id. It fails when that fails, or holds something that breaks the rules of this package.
// The first snapshot's revision is 1.
func Open(ctx context.Context, repository records.Repository, options ...Option) (*Registry, error) {
	r := &Registry{maxCount: func() int { return DefaultMaxCount }}
	for _, option := range options {
		option(r)
	}
	var err error
	r.set, err = records.Open(ctx, repository, records.Kind[*Group, *Snapshot]{
		Name:   "the workload groups",
		Encode: Encode,
		Decode: decodeStored,
		Snapshot: func(changes uint64, all map[string]*Group) (*Snapshot, error) {
			return newSnapshot(changes, slices.Collect(maps.Values(all)))
		},
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Snapshot returns the groups as they are now.
func (r *Registry) Snapshot() *Snapshot { return r.set.Snapshot() }

// OnChange has f called after every change from now on. Calls come one at a time and in
// the order of the changes, on the goroutine that makes or takes in the change, after the
// new snapshot is published and before the change is answered. So f holds up changes, but
// no reader; it must not make a change itself.
func (r *Registry) OnChange(f func(old, new *Snapshot)) { r.set.OnChange(f) }

// Reload takes in what others have changed in the repository, and returns when every
// listener knows. On an error the groups stay as they were here.
func (r *Registry) Reload(ctx context.Context) error { return r.set.Reload(ctx) }

// Create adds a group. The error is an *InvalidError, a *TooManyError, the cause of
// ctx's end, or the repository's.
func (r *Registry) Create(ctx context.Context, p Patch) (*Group, error) {
	if err := p.missing(); err != nil {
		return nil, err
	}
	g := p.Apply(&Group{ID: newID()})
	g.Name, _ = p.Name.Value()
	if err := g.Validate(); err != nil {
		return nil, err
	}
	g.UpdatedAt = records.NextUpdate(time.Time{})
	err := r.set.Change(ctx, func(now *Snapshot) (records.Edit[*Group], error) {
		if most := r.maxCount(); now.Len() >= most {
			return records.Edit[*Group]{}, &TooManyError{Max: most}
		}
		if other := now.ByName(g.Name); other != nil {
			return records.Edit[*Group]{}, invalidf("the value [%s] of [name] is taken by the workload group with the id [%s]; choose another, or update that group", g.Name, other.ID)
		}
		if err := checkSum(g.Limits, now.all); err != nil {
			return records.Edit[*Group]{}, err
		}
		return put(g), nil
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
	err := r.set.Change(ctx, func(now *Snapshot) (records.Edit[*Group], error) {
		old := now.ByName(name)
		if old == nil {
			return records.Edit[*Group]{}, &NotFoundError{Name: name}
		}
		g = p.Apply(old)
		if err := g.Validate(); err != nil {
			return records.Edit[*Group]{}, err
		}
		named, _ := p.Limits.Value()
		if err := checkSum(named, now.except(name)); err != nil {
			return records.Edit[*Group]{}, err
		}
		g.UpdatedAt = records.NextUpdate(old.UpdatedAt)
		return put(g), nil
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

func put(g *Group) records.Edit[*Group] {
	return records.Edit[*Group]{Put: map[string]*Group{g.ID: g}}
}

// Delete removes the group of that name. The error is a *NotFoundError, the cause of
// ctx's end, or the repository's.
func (r *Registry) Delete(ctx context.Context, name string) error {
	return r.set.Change(ctx, func(now *Snapshot) (records.Edit[*Group], error) {
		old := now.ByName(name)
		if old == nil {
			return records.Edit[*Group]{}, &NotFoundError{Name: name}
		}
		return records.Edit[*Group]{Delete: []string{old.ID}}, nil
	})
}

// newID returns a random UUID in 22 characters.
func newID() string {
	id := uuid.New()
	return base64.RawURLEncoding.EncodeToString(id[:])
}
