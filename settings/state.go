package settings

import (
	"maps"
	"slices"
	"strings"
)

// opened is the snapshot of a start: defaults, the start values of the configuration file, and what
// was persisted. It fails on the start values only; a persisted value that cannot be used is archived.
func opened(c *catalogue, start, persisted map[string]string) (*Snapshot, error) {
	if err := c.checkStart(start); err != nil {
		return nil, err
	}
	s := &Snapshot{
		known:      c,
		start:      maps.Clone(start),
		persistent: make(map[string]string),
		transient:  make(map[string]string),
		archived:   make(map[string]*ArchivedError),
	}
	for key, text := range persisted {
		if err := c.check(scopePersistent, key, text); err != nil {
			s.archived[key] = &ArchivedError{Key: key, Value: text, Reason: err}
		} else {
			s.persistent[key] = text
		}
	}
	for {
		values, err := c.resolve(s.persistent, s.start)
		if err != nil {
			return nil, err
		}
		o, ok := c.violated(values)
		if !ok {
			s.values = values
			return s, nil
		}
		// The start values alone keep every order, so a side of this one is persisted and goes.
		s.archive(o.low, c.disorder(o, o.low, values, ""))
		s.archive(o.high, c.disorder(o, o.high, values, ""))
	}
}

// archive takes a persisted value out of effect.
func (s *Snapshot) archive(key string, reason error) {
	if text, ok := s.persistent[key]; ok {
		s.archived[key] = &ArchivedError{Key: key, Value: text, Reason: reason}
		delete(s.persistent, key)
	}
}

// edited is the snapshot that an update of s leads to, and what the update set. s stays as it is.
func (s *Snapshot) edited(u Update) (*Snapshot, Applied, error) {
	c := s.known
	next := &Snapshot{
		known:      c,
		start:      s.start,
		persistent: maps.Clone(s.persistent),
		transient:  maps.Clone(s.transient),
		archived:   maps.Clone(s.archived),
	}
	var (
		applied Applied
		err     error
	)
	applied.Persistent, err = layer{scopePersistent, next.persistent, next.archived}.edit(c, u.Persistent)
	if err != nil {
		return nil, Applied{}, err
	}
	applied.Transient, err = layer{scopeTransient, next.transient, nil}.edit(c, u.Transient)
	if err != nil {
		return nil, Applied{}, err
	}
	if next.values, err = c.allowed(u, "", next.transient, next.persistent, next.start); err != nil {
		return nil, Applied{}, err
	}
	if _, err = c.allowed(u, " once the transient settings are gone", next.persistent, next.start); err != nil {
		return nil, Applied{}, err
	}
	return next, applied, nil
}

// layer is the settings of one scope while an update edits them.
type layer struct {
	scope    string
	values   map[string]string
	archived map[string]*ArchivedError // nil for the transient scope
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
		d, ok := c.lookup(key)
		if !ok {
			return &UnknownError{Scope: scopeStart, Key: key, Nearest: c.nearest(key)}
		}
		if _, err := d.parse(key, start[key]); err != nil {
			return err
		}
	}
	_, err := c.allowed(Update{}, "", start)
	return err
}

// check judges one key and value by themselves.
func (c *catalogue) check(scope, key, text string) error {
	d, err := c.dynamic(scope, key)
	if err != nil {
		return err
	}
	_, err = d.parse(key, text)
	return err
}

// dynamic finds a setting that a request may change.
func (c *catalogue) dynamic(scope, key string) (definition, error) {
	d, ok := c.lookup(key)
	if !ok {
		return definition{}, &UnknownError{Scope: scope, Key: key, Nearest: c.nearest(key)}
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
