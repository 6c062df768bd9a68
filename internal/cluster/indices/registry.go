package indices

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wlmserver/wlmserver/records"
)

// A Snapshot is the set of indices at one moment. It never changes, and so is safe for concurrent use. The zero Snapshot
// is empty.
type Snapshot struct {
	all    []*Index // by name
	byName map[string]*Index
}

// ByName returns the index of that name, or nil.
func (s *Snapshot) ByName(name string) *Index { return s.byName[name] }

// All returns the indices in the order of their names. The slice is the caller's.
func (s *Snapshot) All() []*Index { return slices.Clone(s.all) }

// ExistsError says that there is an index of that name.
type ExistsError struct {
	Name, UUID string
}

func (e *ExistsError) Error() string {
	return fmt.Sprintf("index [%s/%s] exists already; delete it first or choose another name", e.Name, e.UUID)
}

// MissingError says that there is no index of that name.
type MissingError struct {
	Name string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("no such index [%s]; create it first", e.Name)
}

// A Registry is the live set of indices. It is safe for concurrent use, also beside others over the same repository.
type Registry struct {
	set *records.Registry[*Index, *Snapshot]
}

// Open reads the indices from the repository. It fails when that fails, or holds something that is no index.
func Open(ctx context.Context, repository records.Repository) (*Registry, error) {
	set, err := records.Open(ctx, repository, records.Kind[*Index, *Snapshot]{
		Name: "the indices", Encode: encode, Decode: decode,
		Snapshot: func(_ uint64, all map[string]*Index) (*Snapshot, error) {
			sorted := slices.SortedFunc(maps.Values(all), func(a, b *Index) int { return strings.Compare(a.Name, b.Name) })
			return &Snapshot{all: sorted, byName: all}, nil
		},
	})
	if err != nil {
		return nil, err
	}
	return &Registry{set: set}, nil
}

// Snapshot returns the indices as they are now.
func (r *Registry) Snapshot() *Snapshot { return r.set.Snapshot() }

// OnChange has f called after every change from now on, one call at a time and in the order of the changes, before the
// change is answered. It must not make a change itself.
func (r *Registry) OnChange(f func(old, new *Snapshot)) { r.set.OnChange(f) }

// Reload takes in what others have changed in the repository, and returns when every listener knows. On an error the
// indices stay as they were here.
func (r *Registry) Reload(ctx context.Context) error { return r.set.Reload(ctx) }

// Create adds an index. The error is an *ExistsError, the cause of ctx's end, or the repository's.
func (r *Registry) Create(ctx context.Context, index Index) error {
	return r.set.Change(ctx, func(now *Snapshot) (records.Edit[*Index], error) {
		if there := now.ByName(index.Name); there != nil {
			return records.Edit[*Index]{}, &ExistsError{Name: there.Name, UUID: there.UUID}
		}
		return records.Edit[*Index]{Put: map[string]*Index{index.Name: &index}}, nil
	})
}

// Update changes the index of that name into what change makes of it, with the same name and UUID. It is called again
// when somebody else has changed the set meanwhile. The error is a *MissingError, that of change, the cause of ctx's end,
// or the repository's.
func (r *Registry) Update(ctx context.Context, name string, change func(Index) (Index, error)) error {
	return r.set.Change(ctx, func(now *Snapshot) (records.Edit[*Index], error) {
		there := now.ByName(name)
		if there == nil {
			return records.Edit[*Index]{}, &MissingError{Name: name}
		}
		next, err := change(*there)
		if err != nil {
			return records.Edit[*Index]{}, err
		}
		next.Name, next.UUID, next.unknown = there.Name, there.UUID, there.unknown
		return records.Edit[*Index]{Put: map[string]*Index{name: &next}}, nil
	})
}

// Delete removes the index of that name, unless it is another one by now: an empty uuid is any. The error is a
// *MissingError, the cause of ctx's end, or the repository's.
func (r *Registry) Delete(ctx context.Context, name, uuid string) error {
	return r.set.Change(ctx, func(now *Snapshot) (records.Edit[*Index], error) {
		there := now.ByName(name)
		if there == nil || uuid != "" && there.UUID != uuid {
			return records.Edit[*Index]{}, &MissingError{Name: name}
		}
		return records.Edit[*Index]{Delete: []string{name}}, nil
	})
}
