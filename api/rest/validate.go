package rest

import (
	"errors"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/internal/stub"
	"github.com/wlmserver/wlmserver/search"
)

type validatedDTO struct {
	Shards       *copiesDTO       `json:"_shards,omitempty"`
	Valid        bool             `json:"valid"`
	Error        string           `json:"error,omitempty"`
	Explanations []explanationDTO `json:"explanations,omitempty"`
}

type explanationDTO struct {
	Index       string `json:"index,omitempty"`
	Valid       bool   `json:"valid"`
	Explanation string `json:"explanation,omitempty"`
	Error       string `json:"error,omitempty"`
}

// validateQuery tells whether a query could be searched with, without searching.
func (s *Server) validateQuery(c *call) (action, error) {
	explain, err := c.flag("explain", false)
	if err != nil {
		return nil, err
	}
	rules, err := c.expansion(stub.Expansion{ForbidNone: true})
	if err != nil {
		return nil, err
	}
	body, err := c.source()
	if err != nil {
		return nil, err
	}
	return func() (*answer, error) {
		indices, err := s.cfg.Stub.Expand(c.param("index"), rules)
		if err != nil {
			return nil, err
		}
		for _, x := range indices {
			if x.Closed {
				why := (&stub.IndexClosedError{Index: x.Name, UUID: x.UUID}).Error()
				return ok(validatedDTO{Shards: &copiesDTO{}, Explanations: []explanationDTO{{Error: why}}})
			}
		}
		if err := s.checkQuery(body); err != nil {
			d := validatedDTO{}
			if explain {
				d.Error = err.Error()
			}
			return ok(d)
		}
		d := validatedDTO{Shards: &copiesDTO{Total: 1, Successful: 1}, Valid: true}
		if explain {
			for _, x := range indices {
				d.Explanations = append(d.Explanations, explanationDTO{Index: x.Name, Valid: true, Explanation: "*:*"}) // whatever the query is
			}
		}
		return ok(d)
	}, nil
}

// checkQuery checks a body that holds a query and nothing else.
func (s *Server) checkQuery(body []byte) error {
	if len(body) == 0 {
		return nil
	}
	doc, err := jsondoc.Parse(body)
	if err != nil {
		return err
	}
	if doc.Kind != jsondoc.Object || len(doc.Members) > 1 || len(doc.Members) == 1 && doc.Members[0].Name != "query" {
		return errors.New("the body holds a query and nothing else")
	}
	x, err := s.cfg.Stub.Prepare(&search.Request{Kind: search.Search, Body: body})
	if err != nil {
		return err
	}
	x.Close()
	return nil
}
