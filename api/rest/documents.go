package rest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/internal/stub"
	"github.com/wlmserver/wlmserver/search"
)

func (s *Server) documentRoutes() []route {
	const (
		index  = timeouts + " wait_for_active_shards"
		lookup = managerTimeouts + expansion + " local flat_settings include_defaults"
		write  = "timeout refresh routing wait_for_active_shards version version_type if_seq_no if_primary_term"
		put    = write + " op_type pipeline require_alias"
		fields = " _source _source_excludes _source_includes"
		update = write + fields + " retry_on_conflict require_alias"
		bulk   = "timeout refresh routing wait_for_active_shards pipeline require_alias" + fields
		read   = "preference realtime refresh routing stored_fields _source _source_excludes _source_includes version version_type"
	)
	return slices.Concat(s.maintenanceRoutes(), s.indexRoutes(), []route{
		{methods: "PUT", pattern: "/{index}", params: index, body: optional, prepare: s.createIndex},
		{methods: "GET HEAD", pattern: "/{index}", params: lookup, prepare: s.getIndex},
		{methods: "DELETE", pattern: "/{index}", params: timeouts + expansion, prepare: s.deleteIndex},

		{methods: "POST", pattern: "/{index}/_doc", params: put, body: required, prepare: s.putDocument(false)},
		{methods: "PUT POST", pattern: "/{index}/_doc/{id}", params: put, body: required, prepare: s.putDocument(false)},
		{methods: "PUT POST", pattern: "/{index}/_create/{id}", params: put, body: required, prepare: s.putDocument(true)},
		{methods: "POST", pattern: "/{index}/_update/{id}", params: update, body: required, prepare: s.updateDocument},
		{methods: "GET HEAD", pattern: "/{index}/_doc/{id}", params: read, prepare: s.getDocument},
		{methods: "DELETE", pattern: "/{index}/_doc/{id}", params: write, prepare: s.deleteDocument},

		{methods: "PUT POST", pattern: "/_bulk", params: bulk, body: requiredLines, prepare: s.bulk},
		{methods: "PUT POST", pattern: "/{index}/_bulk", params: bulk, body: requiredLines, prepare: s.bulk},
	})
}

type indexCreatedDTO struct {
	Acknowledged       bool   `json:"acknowledged"`
	ShardsAcknowledged bool   `json:"shards_acknowledged"`
	Index              string `json:"index"`
}

func (s *Server) createIndex(c *call) (action, error) {
	if err := c.checkTimeouts(); err != nil {
		return nil, err
	}
	if c.query.Has("wait_for_active_shards") {
		if err := checkActiveShards(c.query.Get("wait_for_active_shards")); err != nil {
			return nil, err
		}
	}
	name := c.param("index")
	if len(c.body) > 0 {
		if !bytes.HasPrefix(bytes.TrimSpace(c.body), []byte("{")) {
			return nil, &search.ParseError{Type: "not_x_content_exception", Reason: "the body must be an object, such as {}"}
		}
		if _, err := jsondoc.Parse(c.body); err != nil {
			return nil, &search.ParseError{Type: "parse_exception", Reason: "the body cannot be read: " + err.Error(), Cause: err}
		}
	}
	return func() (*answer, error) {
		if err := s.cfg.Stub.CreateIndex(name, c.body); err != nil {
			return nil, err
		}
		return ok(indexCreatedDTO{true, true, name})
	}, nil
}

func (s *Server) deleteIndex(c *call) (action, error) {
	if err := c.checkTimeouts(); err != nil {
		return nil, err
	}
	rules, err := c.expansion(stub.Expansion{Wildcards: stub.AllIndices})
	if err != nil {
		return nil, err
	}
	return func() (*answer, error) {
		if err := s.cfg.Stub.DeleteIndices(c.param("index"), rules); err != nil {
			return nil, err
		}
		return ok(acknowledged{true})
	}, nil
}

type indexDTO struct {
	Aliases  members         `json:"aliases"`
	Mappings json.RawMessage `json:"mappings"`
	Settings members         `json:"settings"`
}

func (s *Server) getIndex(c *call) (action, error) {
	flat, err := c.flag("flat_settings", false)
	if err != nil {
		return nil, err
	}
	if err := c.checkTimeouts(); err != nil {
		return nil, err
	}
	for _, name := range [...]string{"local", "include_defaults"} { // nothing here has a default that is not shown
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
			d = append(d, member{x.Name, indexDTO{Mappings: x.Mappings, Settings: c.settingsOf(x).tree(flat)}})
		}
		return ok(d)
	}, nil
}

// refreshes says whether a change was to be visible at once, which here it always is.
func (c *call) refreshes() (bool, error) {
	if c.query.Get("refresh") == "wait_for" {
		return false, nil
	}
	return c.flag("refresh", false)
}

// condition reads under which condition a document is to be changed or shown, and what else of it this server only checks.
func (c *call) condition() (stub.Condition, error) {
	var when stub.Condition
	for _, name := range [...]string{"version", "version_type", "if_seq_no", "if_primary_term", "require_alias"} {
		if c.query.Has(name) {
			if err := when.Set(name, c.query.Get(name)); err != nil {
				return when, err
			}
		}
	}
	if c.query.Has("wait_for_active_shards") {
		if err := checkActiveShards(c.query.Get("wait_for_active_shards")); err != nil {
			return when, err
		}
	}
	if _, err := c.number("retry_on_conflict", 0); err != nil {
		return when, err
	}
	if _, err := c.duration("timeout", 0); err != nil {
		return when, err
	}
	return when, stub.NoPipeline(c.query.Get("pipeline"))
}

func (s *Server) putDocument(create bool) func(*call) (action, error) {
	return func(c *call) (action, error) {
		if create && c.query.Has("op_type") && !strings.EqualFold(c.query.Get("op_type"), "create") {
			return nil, illegalArgument("parameter [op_type] must be [create] where a document is created, not [%s]", c.query.Get("op_type"))
		}
		forced, err := c.refreshes()
		if err != nil {
			return nil, err
		}
		when, err := c.condition()
		if err != nil {
			return nil, err
		}
		creating, err := c.creating()
		if err != nil {
			return nil, err
		}
		creating = creating || create
		return func() (*answer, error) {
			r, err := s.cfg.Stub.PutDocument(c.param("index"), c.param("id"), c.body, creating, when)
			if err != nil {
				return nil, err
			}
			return changed(r, forced), nil
		}, nil
	}
}

// creating says whether a document is only to be stored when there is none under its id.
func (c *call) creating() (bool, error) {
	if !c.query.Has("op_type") {
		return false, nil
	}
	switch op := c.query.Get("op_type"); strings.ToLower(op) {
	case "index":
		return false, nil
	case "create":
		return true, nil
	default:
		return false, illegalArgument("parameter [op_type] must be [index] or [create], not [%s]", op)
	}
}

// changed tells of a document that was stored, and where it is if it is new.
func changed(r stub.DocumentResult, forced bool) *answer {
	r.ForcedRefresh = forced && r.Result != stub.Noop
	a := &answer{status: r.Status(), value: r}
	if r.Result == stub.Created {
		a.header = http.Header{"Location": {"/" + inLocation.Replace(url.QueryEscape(r.Index)) + "/_doc/" + inLocation.Replace(url.QueryEscape(r.ID))}}
	}
	return a
}

// inLocation makes of what stands in a query string what stands in Location.
var inLocation = strings.NewReplacer("+", "%20", "%2A", "*", "~", "%7E")

// updateDocument changes parts of a document.
func (s *Server) updateDocument(c *call) (action, error) {
	forced, err := c.refreshes()
	if err != nil {
		return nil, err
	}
	when, err := c.condition()
	if err != nil {
		return nil, err
	}
	return func() (*answer, error) {
		r, err := s.cfg.Stub.UpdateDocument(c.param("index"), c.param("id"), c.body, when)
		if err != nil {
			return nil, err
		}
		return changed(r, forced), nil
	}, nil
}

func (s *Server) deleteDocument(c *call) (action, error) {
	forced, err := c.refreshes()
	if err != nil {
		return nil, err
	}
	when, err := c.condition()
	if err != nil {
		return nil, err
	}
	return func() (*answer, error) {
		r, err := s.cfg.Stub.DeleteDocument(c.param("index"), c.param("id"), when)
		if err != nil {
			return nil, err
		}
		r.ForcedRefresh = forced
		return &answer{status: r.Status(), value: r}, nil
	}, nil
}

type documentDTO struct {
	Index       string          `json:"_index"`
	ID          string          `json:"_id"`
	Version     int64           `json:"_version,omitempty"`
	SeqNo       *int64          `json:"_seq_no,omitempty"`
	PrimaryTerm int64           `json:"_primary_term,omitempty"`
	Found       bool            `json:"found"`
	Source      json.RawMessage `json:"_source,omitempty"`
}

func (s *Server) getDocument(c *call) (action, error) {
	for _, name := range [...]string{"realtime", "refresh"} { // both are so anyway
		if _, err := c.flag(name, true); err != nil {
			return nil, err
		}
	}
	when, err := c.condition()
	if err != nil {
		return nil, err
	}
	return func() (*answer, error) {
		doc, err := s.cfg.Stub.Document(c.param("index"), c.param("id"), when)
		if err != nil {
			return nil, err
		}
		if err := stub.CheckPreference(c.query.Get("preference")); err != nil {
			return nil, err
		}
		d := documentDTO{Index: doc.Index, ID: doc.ID, Found: doc.Found}
		if !doc.Found {
			return &answer{status: http.StatusNotFound, value: d}, nil
		}
		d.Version, d.SeqNo, d.PrimaryTerm, d.Source = doc.Version, &doc.SeqNo, 1, doc.Source
		return ok(d)
	}, nil
}

type bulkDTO struct {
	Took   int64     `json:"took"`
	Errors bool      `json:"errors"`
	Items  []members `json:"items"`
}

type bulkItemDTO struct {
	stub.DocumentResult
	Status int `json:"status"`
}

type bulkFailureDTO struct {
	Index  string   `json:"_index"`
	ID     *string  `json:"_id"`
	Status int      `json:"status"`
	Error  *failure `json:"error"`
}

func (s *Server) bulk(c *call) (action, error) {
	forced, err := c.refreshes()
	if err != nil {
		return nil, err
	}
	when, err := c.condition()
	if err != nil {
		return nil, err
	}
	return func() (*answer, error) {
		r, err := s.cfg.Stub.Bulk(c.param("index"), c.body, when)
		if err != nil {
			return nil, err
		}
		d := bulkDTO{Took: r.Took.Milliseconds(), Errors: r.Errors, Items: make([]members, len(r.Items))}
		for i, item := range r.Items {
			d.Items[i] = members{{item.Action, c.bulkItem(item, forced)}}
		}
		return ok(d)
	}, nil
}

func (c *call) bulkItem(item stub.BulkItem, forced bool) any {
	if item.Err == nil {
		item.Result.ForcedRefresh = forced
		return bulkItemDTO{item.Result, item.Result.Status()}
	}
	f := c.explain(item.Err)
	d := bulkFailureDTO{Index: item.Index, Status: f.status, Error: f}
	if item.ID != "" || item.HasID {
		d.ID = &item.ID
	}
	return d
}
