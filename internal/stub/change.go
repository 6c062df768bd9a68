package stub

import (
	"slices"
	"strings"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/search"
)

// open returns an *IndexClosedError if the index is closed.
func (ix *index) open() error {
	if ix.now.Load().shut {
		return &IndexClosedError{Index: ix.name, UUID: ix.uuid}
	}
	return nil
}

// change replaces what may change of the index by what f makes of a copy, unless f
// fails.
func (ix *index) change(f func(*dynamic) error) error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.closed { // deleted meanwhile
		return &search.IndexNotFoundError{Index: ix.name}
	}
	d := *ix.now.Load()
	d.settings = slices.Clone(d.settings)
	if err := f(&d); err != nil {
		return err
	}
	ix.now.Store(&d)
	return nil
}

// SetClosed closes indices, or opens them, and returns their names. A closed index
// keeps its documents, and is neither searched nor written to. Names and patterns
// are those of Expand.
func (e *Engine) SetClosed(pattern string, rules Expansion, closed bool) ([]string, error) {
	found, err := e.resolve(selection{splitNames(pattern), rules})
	if err != nil {
		return nil, err
	}
	names := make([]string, len(found))
	for i, ix := range found {
		names[i] = ix.name
		err := ix.change(func(d *dynamic) error {
			d.shut = closed
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}

// private are settings that say what an index is, and so never change.
var private = []string{"index.search.throttled", "index.uuid", "index.creation_date", "index.provided_name", "index.version.created", "index.replication.type"}

// ChangeSettings changes settings of indices as the body says: an object of them,
// or one that holds it under settings. A null goes back to the default. Searches
// that have begun keep the costs they began with. Besides errors of the body it
// returns *PrivateSettingError and *search.InvalidError, and then nothing has changed;
// and *FullError, and then the first of several indices may have.
func (e *Engine) ChangeSettings(pattern string, rules Expansion, body []byte) error {
	root, err := parseObject(body)
	if err != nil {
		return err
	}
	if s := root.Member("settings"); s != nil && s.Kind == jsondoc.Object && len(root.Members) == 1 {
		root = s
	}
	changes := flatten(nil, "", root)
	if len(changes) == 0 {
		return &search.ValidationError{Problems: []string{"there are no settings to change"}}
	}
	found, err := e.resolve(selection{splitNames(pattern), rules})
	if err != nil {
		return err
	}
	// What is wrong with a change is wrong with it for every index, and so for the first.
	for _, ix := range found {
		err := ix.change(func(d *dynamic) error {
			if err := d.apply(changes, e.config.Defaults); err != nil {
				return err
			}
			before := d.extra
			d.extra = max(0, d.size()-ix.size)
			return e.stored.take(d.extra - before)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// size is what the settings take, roughly.
func (d *dynamic) size() (n int64) {
	const each = 64 // beside their text
	for _, kv := range d.settings {
		n += int64(len(kv.Key)+len(kv.Value)) + each
	}
	return n
}

// apply takes over changes; costs that are not said are those of defaults.
func (d *dynamic) apply(changes []given, defaults Cost) error {
	for _, c := range changes {
		switch {
		case slices.Contains(private, c.Key):
			return &PrivateSettingError{Key: c.Key}
		case c.Key == shardsKey:
			return &search.InvalidError{Reason: "[" + shardsKey + "] cannot be changed: create another index"}
		case !c.null:
			if err := d.set(c.KV); err != nil {
				return err
			}
		case c.Key == replicasKey:
			d.replicas = defaultReplicas
		default:
			d.forget(c.Key)
		}
	}
	d.cost = defaults
	for _, kv := range d.settings {
		if strings.HasPrefix(kv.Key, costPrefix) {
			if err := d.cost.Set(kv.Key, kv.Value); err != nil {
				return err
			}
		}
	}
	return nil
}
