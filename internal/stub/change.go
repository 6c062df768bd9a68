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

// SetClosed closes indices, or opens them, and returns the names of those that were
// not so before. A closed index
// keeps its documents, and is neither searched nor written to. Names and patterns
// are those of Expand.
func (e *Engine) SetClosed(pattern string, rules Expansion, closed bool) ([]string, error) {
	found, err := e.resolve(selection{splitNames(pattern), rules})
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, ix := range found {
		if ix.now.Load().shut != closed {
			names = append(names, ix.name)
		}
	}
	err = e.redefine(found, func(d *dynamic) error {
		d.shut = closed
		return nil
	})
	if err != nil {
		return nil, err
	}
	return names, nil
}

// private are settings that say what an index is, and so never change.
var private = []string{"index.search.throttled", "index.uuid", "index.provided_name", "index.version.created"}

// fixed are settings that only a new index is given.
var fixed = []string{shardsKey, "index.creation_date", "index.replication.type"}

// ChangeSettings changes settings of indices as the body says: an object of them,
// or one that holds it under settings. A null goes back to the default. Searches
// that have begun keep the costs they began with. Besides errors of the body it
// returns *PrivateSettingError, *search.InvalidError and *FullError, and then nothing
// has changed.
func (e *Engine) ChangeSettings(pattern string, rules Expansion, body []byte) error {
	return e.changeSettings(pattern, rules, body, false)
}

// AddSettings is ChangeSettings for what has not been set: what has been stays.
func (e *Engine) AddSettings(pattern string, rules Expansion, body []byte) error {
	return e.changeSettings(pattern, rules, body, true)
}

func (e *Engine) changeSettings(pattern string, rules Expansion, body []byte, add bool) error {
	root, err := jsondoc.Parse(body)
	if err != nil {
		return err
	}
	if s := root.Member("settings"); s != nil && s.Kind == jsondoc.Object && len(root.Members) == 1 {
		root = s
	}
	var changes []given
	if root.Kind == jsondoc.Object {
		if changes, err = flatten(nil, "", root); err != nil {
			return err
		}
	}
	if len(changes) == 0 {
		return &search.ValidationError{Problems: []string{"there are no settings to change"}}
	}
	found, err := e.resolve(selection{splitNames(pattern), rules})
	if err != nil {
		return err
	}
	return e.redefine(found, func(d *dynamic) error {
		if add {
			return d.apply(slices.DeleteFunc(slices.Clone(changes), func(c given) bool { return d.isSet(c.Key) }), e.config.Defaults)
		}
		return d.apply(changes, e.config.Defaults)
	})
}

// extra is what the settings take beyond what the index took when it was made.
func (d *definition) extra() int64 {
	const each = 64 // beside their text
	n := -d.size
	for _, kv := range d.settings {
		n += int64(len(kv.Key)+len(kv.Value)) + each
	}
	return max(0, n)
}

// isSet says whether a setting is set, be it by default.
func (d *dynamic) isSet(key string) bool {
	return key == replicasKey || slices.ContainsFunc(d.settings, func(kv KV) bool { return kv.Key == key })
}

// apply takes over changes; costs that are not said are those of defaults.
func (d *dynamic) apply(changes []given, defaults Cost) error {
	for _, c := range changes {
		switch {
		case slices.Contains(private, c.Key):
			return &PrivateSettingError{Key: c.Key}
		case slices.Contains(fixed, c.Key):
			return &search.InvalidError{Reason: "[" + c.Key + "] cannot be changed: create another index"}
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
