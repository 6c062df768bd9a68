package rest

import (
	"encoding/json"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/internal/stub"
)

// indexRoutes are what is done to indices as a whole, beside making and deleting them.
func (s *Server) indexRoutes() []route {
	const (
		change = timeouts + expansion + " wait_for_active_shards"
		lookup = managerTimeouts + expansion + " local flat_settings include_defaults"
	)
	return []route{
		{methods: "POST", pattern: "/{index}/_close", params: change, prepare: s.closeIndices},
		{methods: "POST", pattern: "/{index}/_open", params: change, prepare: s.openIndices},
		{methods: "GET", pattern: "/_settings", params: lookup, prepare: s.indexSettings},
		{methods: "GET", pattern: "/{index}/_settings", params: lookup, prepare: s.indexSettings},
		{methods: "PUT", pattern: "/_settings", params: timeouts + expansion + " flat_settings preserve_existing", body: required, prepare: s.changeIndexSettings},
		{methods: "PUT", pattern: "/{index}/_settings", params: timeouts + expansion + " flat_settings preserve_existing", body: required, prepare: s.changeIndexSettings},
	}
}

type openedDTO struct {
	Acknowledged       bool    `json:"acknowledged"`
	ShardsAcknowledged bool    `json:"shards_acknowledged"`
	Indices            members `json:"indices,omitzero"` // of closing
}

type closedDTO struct {
	Closed bool `json:"closed"`
}

// closeIndices closes indices: they are neither searched nor written to until they are opened again.
func (s *Server) closeIndices(c *call) (action, error) {
	return c.settingClosed(true, stub.OpenIndices, func(names []string) openedDTO {
		d := openedDTO{true, len(names) > 0, members{}}
		for _, name := range names {
			d.Indices = append(d.Indices, member{name, closedDTO{true}})
		}
		return d
	})
}

func (s *Server) openIndices(c *call) (action, error) {
	return c.settingClosed(false, stub.ClosedIndices, func([]string) openedDTO { return openedDTO{true, true, nil} })
}

// settingClosed closes indices, or opens them: of those that patterns find, those that are of the given kind.
func (c *call) settingClosed(closed bool, found stub.Wildcards, tell func(names []string) openedDTO) (action, error) {
	if err := c.checkTimeouts(); err != nil {
		return nil, err
	}
	if c.query.Has("wait_for_active_shards") {
		if err := checkActiveShards(c.query.Get("wait_for_active_shards")); err != nil {
			return nil, err
		}
	}
	rules, err := c.expansion(stub.Expansion{Wildcards: found})
	if err != nil {
		return nil, err
	}
	return func() (*answer, error) {
		names, err := c.s.cfg.Stub.SetClosed(c.param("index"), rules, closed)
		if err != nil {
			return nil, err
		}
		return ok(tell(names))
	}, nil
}

type indexSettingsDTO struct {
	Settings members `json:"settings"`
}

func (s *Server) indexSettings(c *call) (action, error) {
	flat, err := c.flag("flat_settings", false)
	if err != nil {
		return nil, err
	}
	if err := c.checkTimeouts(); err != nil {
		return nil, err
	}
	for _, name := range [...]string{"local", "include_defaults"} {
		if _, err := c.flag(name, false); err != nil {
			return nil, err
		}
	}
	rules, err := c.expansion(stub.Expansion{})
	if err != nil {
		return nil, err
	}
	return func() (*answer, error) {
		found, err := s.cfg.Stub.Expand(c.param("index"), rules)
		if err != nil {
			return nil, err
		}
		d := members{}
		for _, x := range found {
			d = append(d, member{x.Name, indexSettingsDTO{c.settingsOf(x).tree(flat)}})
		}
		return ok(d)
	}, nil
}

// settingsOf are all settings of an index, with the version of the API that made it; for people also in words.
func (c *call) settingsOf(x stub.IndexInfo) members {
	all := members{{"index.version.created", versionID}}
	for _, kv := range x.Settings {
		if kv.List {
			all = append(all, member{kv.Key, json.RawMessage(kv.Value)})
		} else {
			all = append(all, member{kv.Key, kv.Value})
		}
	}
	if c.human {
		all = append(all, member{"index.creation_date_string", x.Created.UTC().Format(dateAndTime)}, member{"index.version.created_string", Version})
	}
	if x.Closed {
		all = append(all, member{"index.verified_before_close", "true"})
	}
	return all
}

func (s *Server) changeIndexSettings(c *call) (action, error) {
	if err := c.checkTimeouts(); err != nil {
		return nil, err
	}
	rules, err := c.expansion(stub.Expansion{ForbidNone: true, Wildcards: stub.AllIndices})
	if err != nil {
		return nil, err
	}
	if _, err := jsondoc.Parse(c.body); err != nil {
		return nil, err
	}
	preserve, err := c.flag("preserve_existing", false)
	if err != nil {
		return nil, err
	}
	change := s.cfg.Stub.ChangeSettings
	if preserve {
		change = s.cfg.Stub.AddSettings
	}
	return func() (*answer, error) {
		if err := change(c.param("index"), rules, c.body); err != nil {
			return nil, err
		}
		return ok(acknowledged{true})
	}, nil
}
