package settings

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/wlmserver/wlmserver/records"
)

// Registry holds the live settings. It is safe for concurrent use, also beside others over the same
// repository.
type Registry struct {
	set *records.Registry[string, *Snapshot]
}

// An Option adjusts a [Registry].
type Option func(*options)

type options struct {
	cluster bool
}

// OfCluster says that the servers of a cluster share the repository. Then transient settings are kept
// in it, too, and so are start values: the first server that gives one for a dynamic setting gives it
// for the whole cluster.
func OfCluster() Option { return func(o *options) { o.cluster = true } }

// Open reads the settings from the repository, which holds persistent ones as text by key. start holds
// the values that the configuration file gives, by key; it is not kept.
//
// A start value that is unknown or not allowed is an error: [UnknownError], [InvalidError]. A stored
// one is not; see [Registry.Problems].
func Open(ctx context.Context, repository records.Repository, start map[string]string, with ...Option) (*Registry, error) {
	var o options
	for _, option := range with {
		option(&o)
	}
	c := newCatalogue()
	if err := c.checkStart(start); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if !o.cluster {
		repository = &forgetful{Repository: repository}
	}
	file := maps.Clone(start)
	r := &Registry{}
	var err error
	r.set, err = records.Open(ctx, repository, records.Kind[string, *Snapshot]{
		Name:   "the settings",
		Encode: func(text string) ([]byte, error) { return []byte(text), nil },
		Decode: func(_ string, text []byte) (string, error) { return string(text), nil },
		Snapshot: func(_ uint64, all map[string]string) (*Snapshot, error) {
			return newSnapshot(c, file, o.cluster, all)
		},
	})
	if err != nil {
		return nil, err
	}
	if o.cluster {
		err := r.set.Change(ctx, func(now *Snapshot) (records.Edit[string], error) { return now.started(), nil })
		if _, unavailable := errors.AsType[*records.UnavailableError](err); err != nil && !unavailable {
			return nil, err
		}
	}
	return r, nil
}

// Snapshot is the settings in force now.
func (r *Registry) Snapshot() *Snapshot { return r.set.Snapshot() }

// Problems lists the stored settings that have no effect, each an [ArchivedError], and the start values
// that have none, each a [StandingError]. A stored one is there until it has been reset or set anew.
func (r *Registry) Problems() []error { return r.Snapshot().problems() }

// OnChange adds a listener. Listeners are called one at a time, in the order in which they were added
// and in which changes were committed, with the settings before and after; [Registry.Apply] returns
// after the last of them. A listener must not call Apply.
func (r *Registry) OnChange(listener func(old, new *Snapshot)) { r.set.OnChange(listener) }

// Reload takes in what others have changed in the repository, and returns when every listener knows. On
// an error the settings stay as they were here.
func (r *Registry) Reload(ctx context.Context) error { return r.set.Reload(ctx) }

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
	var applied Applied
	err := r.set.Change(ctx, func(now *Snapshot) (records.Edit[string], error) {
		next, set, err := now.edited(u)
		if err != nil {
			return records.Edit[string]{}, err
		}
		applied = set
		return difference(now.stored(), next.stored()), nil
	})
	if err != nil {
		return Applied{}, err
	}
	return applied, nil
}

// difference is the edit that leads from one set of texts to another.
func difference(old, new map[string]string) records.Edit[string] {
	edit := records.Edit[string]{Put: make(map[string]string)}
	for id, text := range new {
		if was, ok := old[id]; !ok || was != text {
			edit.Put[id] = text
		}
	}
	for id := range old {
		if _, ok := new[id]; !ok {
			edit.Delete = append(edit.Delete, id)
		}
	}
	return edit
}
