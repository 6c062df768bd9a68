package rest

import (
	"context"
	"slices"
	"strings"

	"github.com/wlmserver/wlmserver/settings"
)

func (s *Server) settingsRoutes() []route {
	return []route{
		{methods: "GET", pattern: "/_cluster/settings", params: managerTimeouts + " flat_settings include_defaults local", prepare: s.clusterSettings},
		{methods: "PUT", pattern: "/_cluster/settings", params: timeouts + " flat_settings", body: required, admin: true, change: true, prepare: s.updateClusterSettings},
	}
}

// settingsDTO is the settings of each scope.
type settingsDTO struct {
	Acknowledged *bool   `json:"acknowledged,omitempty"` // only of a change
	Persistent   members `json:"persistent"`
	Transient    members `json:"transient"`
	Defaults     members `json:"defaults,omitzero"`
}

func (d settingsDTO) notAcknowledged() any {
	d.Acknowledged = new(bool)
	return d
}

func (s *Server) clusterSettings(c *call) (action, error) {
	flat, err := c.flag("flat_settings", false)
	if err != nil {
		return nil, err
	}
	defaults, err := c.flag("include_defaults", false)
	if err != nil {
		return nil, err
	}
	if _, err := c.flag("local", false); err != nil {
		return nil, err
	}
	if err := c.checkTimeouts(); err != nil {
		return nil, err
	}
	return func() (*answer, error) {
		now := s.cfg.Settings.Snapshot()
		d := settingsDTO{Persistent: settingsTree(now.Persistent(), flat), Transient: settingsTree(now.Transient(), flat)}
		if defaults {
			d.Defaults = settingsTree(now.Defaults(), flat)
		}
		return ok(d)
	}, nil
}

func (s *Server) updateClusterSettings(c *call) (action, error) {
	flat, err := c.flag("flat_settings", false)
	if err != nil {
		return nil, err
	}
	if err := c.checkTimeouts(); err != nil {
		return nil, err
	}
	update, err := settings.ParseUpdate(c.body)
	if err != nil {
		return nil, err
	}
	return func() (*answer, error) {
		return c.asTask("cluster:admin/settings/update", false, func() (*answer, error) {
			applied, err := s.cfg.Settings.Apply(context.WithoutCancel(c.r.Context()), update)
			if err != nil {
				return nil, err
			}
			return ok(settingsDTO{Acknowledged: new(true), Persistent: settingsTree(applied.Persistent, flat), Transient: settingsTree(applied.Transient, flat)})
		})
	}, nil
}

// settingsTree prints settings as dotted keys or nested at the dots.
func settingsTree(all []settings.KV, flat bool) members {
	dotted := members{}
	for _, kv := range all {
		dotted = append(dotted, member{kv.Key, kv.Value})
	}
	return dotted.tree(flat)
}

// tree nests members at the dots of their names, unless they are to stay flat. A name that goes on where another one ends keeps its
// rest dotted.
func (m members) tree(flat bool) members {
	if flat {
		return m
	}
	// A dot sorts first, so that what belongs under one name stands together.
	rank := func(x member) string { return strings.ReplaceAll(x.name, ".", "\x00") }
	return appendNested(members{}, slices.SortedFunc(slices.Values(m), func(a, b member) int { return strings.Compare(rank(a), rank(b)) }))
}

func appendNested(tree, all members) members {
	for len(all) > 0 {
		head, _, nested := strings.Cut(all[0].name, ".")
		n := 1
		for n < len(all) && strings.HasPrefix(all[n].name, head+".") {
			n++
		}
		if nested {
			below := make(members, n)
			for i, x := range all[:n] {
				below[i] = member{x.name[len(head)+1:], x.value}
			}
			tree = append(tree, member{head, appendNested(members{}, below)})
		} else {
			tree = append(tree, all[:n]...)
		}
		all = all[n:]
	}
	return tree
}
