package settings

import (
	"maps"
	"slices"
	"strings"
)

// newSnapshot is the settings that records stand for, beside the start values of the configuration file,
// which must keep every order. A stored value that cannot be used is archived. So servers that see the same
// records, and know the same settings, have the same values in force.
func newSnapshot(c *catalogue, file map[string]string, cluster bool, all map[string]string) (*Snapshot, error) {
	s := &Snapshot{known: c, file: file, cluster: cluster}
	persistent, transient, start := scopes(all)
	s.startRecords = start
	s.start = maps.Clone(file)
	if s.start == nil {
		s.start = make(map[string]string)
	}
	if cluster {
		dynamic := func(key, _ string) bool { d, ok := c.lookup(key); return !ok || d.Dynamic }
		maps.DeleteFunc(s.start, dynamic)
		for key, text := range start {
			if dynamic(key, text) {
				s.start[key] = text
			}
		}
	}
	s.persistent, s.transient = persistent, transient
	s.startless = c.usable(scopeStart, s.start)
	s.archived = c.usable(scopePersistent, s.persistent)
	s.shelved = c.usable(scopeTransient, s.transient)
	for _, judged := range []struct {
		scope    string
		archived map[string]*ArchivedError
		layers   []map[string]string // the first is the one judged; those below keep every order
	}{
		{scopeStart, s.startless, []map[string]string{s.start}},
		{scopePersistent, s.archived, []map[string]string{s.persistent, s.start}},
		{scopeTransient, s.shelved, []map[string]string{s.transient, s.persistent, s.start}},
	} {
		for {
			values, err := c.resolve(judged.layers...)
			if err != nil {
				return nil, err
			}
			s.values = values
			o, ok := c.violated(values)
			if !ok {
				break
			}
			// The layers below keep every order, so a side of this one is of the layer itself, and goes.
			for _, key := range []string{o.low, o.high} {
				archive(judged.scope, judged.layers[0], judged.archived, key, c.disorder(o, key, values, ""))
			}
		}
	}
	return s, nil
}

// usable takes the values out of a layer that are not allowed by themselves.
func (c *catalogue) usable(scope string, layer map[string]string) map[string]*ArchivedError {
	archived := make(map[string]*ArchivedError)
	for key, text := range maps.Clone(layer) {
		if err := c.check(scope, key, text); err != nil {
			archive(scope, layer, archived, key, err)
		}
	}
	return archived
}

// archive takes a value out of effect.
func archive(scope string, layer map[string]string, archived map[string]*ArchivedError, key string, reason error) {
	if text, ok := layer[key]; ok {
		archived[key] = &ArchivedError{Scope: scope, Key: key, Value: text, Reason: reason}
		delete(layer, key)
	}
}

// edited is the snapshot that an update of s leads to, and what the update set. s stays as it is.
func (s *Snapshot) edited(u Update) (*Snapshot, Applied, error) {
	c := s.known
	next := *s
	next.persistent, next.archived = maps.Clone(s.persistent), maps.Clone(s.archived)
	next.transient, next.shelved = maps.Clone(s.transient), maps.Clone(s.shelved)
	var (
		applied Applied
		err     error
	)
	applied.Persistent, err = layer{scopePersistent, next.persistent, next.archived}.edit(c, u.Persistent)
	if err != nil {
		return nil, Applied{}, err
	}
	applied.Transient, err = layer{scopeTransient, next.transient, next.shelved}.edit(c, u.Transient)
	if err != nil {
		return nil, Applied{}, err
	}
	if next.values, err = c.allowed(u, "", next.transient, next.persistent, next.start); err != nil {
		return nil, Applied{}, err
	}
	if _, err = c.allowed(u, " once the transient settings are gone", next.persistent, next.start); err != nil {
		return nil, Applied{}, err
	}
	if err := next.acts(applied); err != nil {
		return nil, Applied{}, err
	}
	return &next, applied, nil
}

// acts refuses what, once it is read back, would be archived beside a value that is archived now.
func (s *Snapshot) acts(applied Applied) error {
	if len(s.archived)+len(s.shelved) == 0 {
		return nil
	}
	read, err := newSnapshot(s.known, s.file, s.cluster, s.records())
	if err != nil {
		return err
	}
	for _, kv := range applied.Persistent {
		if a, ok := read.archived[kv.Key]; ok {
			return a.Reason
		}
	}
	for _, kv := range applied.Transient {
		if a, ok := read.shelved[kv.Key]; ok {
			return a.Reason
		}
	}
	return nil
}

// layer is the settings of one scope while an update edits them.
type layer struct {
	scope    string
	values   map[string]string
	archived map[string]*ArchivedError
}

// edit carries out the resets, then the values, and lists the values.
func (l layer) edit(c *catalogue, entries []Entry) ([]KV, error) {
	var set []KV
	seen := make(map[string]bool, len(entries))
	for _, e := range entries {
		if seen[e.Key] {
			return nil, malformed(e.Key, "is given twice under [%s]", l.scope)
		}
		seen[e.Key] = true
		var err error
		if e.Value == nil {
			err = l.reset(c, e.Key)
		} else {
			err = c.check(l.scope, e.Key, *e.Value)
			set = append(set, KV{e.Key, *e.Value})
		}
		if err != nil {
			return nil, err
		}
	}
	for _, kv := range set {
		l.values[kv.Key] = kv.Value
		delete(l.archived, kv.Key)
	}
	return set, nil
}

// reset removes the values of a key or of all keys that match a pattern. Nothing there to remove is no
// error, but the key must be one that can be set.
func (l layer) reset(c *catalogue, key string) error {
	if strings.Contains(key, "*") {
		maps.DeleteFunc(l.values, func(k, _ string) bool { return match(key, k) })
		maps.DeleteFunc(l.archived, func(k string, _ *ArchivedError) bool { return match(key, archivedPrefix+k) })
		return nil
	}
	if name, ok := strings.CutPrefix(key, archivedPrefix); ok {
		delete(l.archived, name)
		return nil
	}
	if _, err := c.dynamic(l.scope, key); err != nil {
		return err
	}
	delete(l.values, key)
	delete(l.archived, key)
	return nil
}

// checkStart judges the start values of the configuration file, by themselves and beside each other.
func (c *catalogue) checkStart(start map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(start)) {
		if err := c.check(scopeStart, key, start[key]); err != nil {
			return err
		}
	}
	_, err := c.allowed(Update{}, "", start)
	return err
}

// check judges one key and value by themselves.
func (c *catalogue) check(scope, key, text string) error {
	find := c.dynamic
	if scope == scopeStart {
		find = c.find
	}
	d, err := find(scope, key)
	if err != nil {
		return err
	}
	_, err = d.parse(key, text)
	return err
}

// find finds a setting.
func (c *catalogue) find(scope, key string) (definition, error) {
	d, ok := c.lookup(key)
	if !ok {
		return definition{}, &UnknownError{Scope: scope, Key: key, Nearest: c.nearest(key)}
	}
	return d, nil
}

// dynamic finds a setting that a request may change.
func (c *catalogue) dynamic(scope, key string) (definition, error) {
	d, err := c.find(scope, key)
	if err != nil {
		return definition{}, err
	}
	if !d.Dynamic {
		return definition{}, &NotDynamicError{Scope: scope, Key: key}
	}
	return d, nil
}

// resolve parses the value in force of every setting, from layers of texts, the strongest first.
func (c *catalogue) resolve(layers ...map[string]string) ([]value, error) {
	values := make([]value, len(c.definitions))
	for i, d := range c.definitions {
		text, ok := first(d.Key, layers...)
		if !ok && d.Fallback != "" {
			text, ok = first(d.Fallback, layers...)
		}
		if !ok {
			if text = d.Default; text == "" {
				continue // worked out elsewhere
			}
		}
		var err error
		if values[i], err = d.parse(d.Key, text); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// allowed is resolve for a state that must keep every order. The update that led to it and when it
// comes about serve the message.
func (c *catalogue) allowed(u Update, when string, layers ...map[string]string) ([]value, error) {
	values, err := c.resolve(layers...)
	if err != nil {
		return nil, err
	}
	if o, ok := c.violated(values); ok {
		blamed := o.low
		if u.names(o.high) && !u.names(o.low) {
			blamed = o.high
		}
		return nil, c.disorder(o, blamed, values, when)
	}
	return values, nil
}

// violated finds an order that values do not keep.
func (c *catalogue) violated(values []value) (order, bool) {
	for _, o := range c.orders {
		if values[c.index[o.low]].float > values[c.index[o.high]].float {
			return o, true
		}
	}
	return order{}, false
}

// disorder words an order that is not kept from the side of one of its settings.
func (c *catalogue) disorder(o order, blamed string, values []value, when string) *InvalidError {
	low, high := values[c.index[o.low]].text, values[c.index[o.high]].text
	if blamed == o.low {
		return invalid(o.low, low, "must not be above [%s], which is [%s]%s; one request may change both", o.high, high, when)
	}
	return invalid(o.high, high, "must not be below [%s], which is [%s]%s; one request may change both", o.low, low, when)
}
