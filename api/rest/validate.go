package rest

import (
	"bytes"
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
	Shard       *int   `json:"shard,omitempty"`
	Valid       bool   `json:"valid"`
	Explanation string `json:"explanation,omitempty"`
	Error       string `json:"error,omitempty"`
}

// validateQuery tells whether a query could be searched with, without searching.
func (s *Server) validateQuery(c *call) (action, error) {
	var explain, rewrite, everyShard bool
	for _, p := range []struct {
		name string
		to   *bool
	}{{"explain", &explain}, {"rewrite", &rewrite}, {"all_shards", &everyShard}} {
		yes, err := c.flag(p.name, false)
		if err != nil {
			return nil, err
		}
		*p.to = yes
	}
	rules, err := c.expansion(stub.Expansion{ForbidNone: true})
	if err != nil {
		return nil, err
	}
	c.passOver(search.Count)
	body, unreadable := c.source()
	if unreadable == nil {
		unreadable = s.checkQuery(body)
	}
	if unreadable == nil && string(bytes.Join(bytes.Fields(body), nil)) == "{}" {
		return nil, &search.ValidationError{Problems: []string{"there is no query"}}
	}
	return func() (*answer, error) {
		if unreadable != nil {
			d := validatedDTO{}
			if explain {
				d.Error = unreadable.Error()
			}
			return ok(d)
		}
		indices, err := s.cfg.Stub.Expand(c.param("index"), rules)
		if _, wrong := errors.AsType[*search.InvalidIndexNameError](err); wrong {
			return ok(notValidated(err))
		}
		if err != nil {
			return nil, err
		}
		return ok(validated(indices, explain || rewrite, everyShard))
	}, nil
}

// notValidated tells why no index was asked.
func notValidated(why error) validatedDTO {
	return validatedDTO{Shards: &copiesDTO{}, Explanations: []explanationDTO{{Error: why.Error()}}}
}

// validated tells of a query that is fine: of one shard of each index, or of all of them.
func validated(indices []stub.IndexInfo, explain, everyShard bool) validatedDTO {
	d := validatedDTO{Shards: &copiesDTO{}, Valid: true}
	for _, x := range indices {
		if x.Closed {
			return notValidated(&stub.IndexClosedError{Index: x.Name, UUID: x.UUID})
		}
		asked := 1
		if everyShard {
			asked = x.Shards
		}
		for n := range asked {
			e := explanationDTO{Index: x.Name, Valid: true, Explanation: "*:*"} // whatever the query is
			if everyShard {
				e.Shard = &n
			}
			d.Explanations = append(d.Explanations, e)
		}
	}
	d.Shards.Total = len(d.Explanations)
	d.Shards.Successful = d.Shards.Total
	if !explain && !everyShard {
		d.Explanations = nil
	}
	return d
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
