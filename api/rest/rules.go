package rest

import (
	"context"
	"slices"

	"github.com/wlmserver/wlmserver/rules"
)

const (
	ruleAction = "cluster:admin/opensearch/rule/"
	// ruleFeature is what rules are about, the only thing here.
	ruleFeature = "workload_group"
	// rulesPage is how many rules are listed at once.
	rulesPage = 50
	// searchAfter names the last rule of the page before.
	searchAfter = "search_after"
)

// ruleFilters are the attributes that the list of rules can be narrowed by.
func ruleFilters() []string { return []string{rules.IndexPattern, rules.Username, rules.Role} }

func (s *Server) ruleRoutes() []route {
	const all, one = "/_rules/{feature}", "/_rules/{feature}/{id}"
	return []route{
		{methods: "PUT POST", pattern: all, body: required, admin: true, change: true, prepare: s.createRule},
		{methods: "PUT POST", pattern: one, body: required, admin: true, change: true, prepare: s.updateRule},
		{methods: "GET", pattern: all, params: searchAfter + " " + rules.IndexPattern + " " + rules.Username + " " + rules.Role, prepare: s.listRules},
		{methods: "GET", pattern: one, prepare: s.getRule},
		{methods: "DELETE", pattern: one, admin: true, change: true, prepare: s.deleteRule},
	}
}

type ruleDTO struct {
	ID          string           `json:"id"`
	Description string           `json:"description"`
	Indices     []string         `json:"index_pattern,omitempty"`
	Principal   rulePrincipalDTO `json:"principal,omitzero"`
	Group       string           `json:"workload_group"`
	UpdatedAt   string           `json:"updated_at"` // ISO 8601
}

type rulePrincipalDTO struct {
	Usernames []string `json:"username,omitempty"`
	Roles     []string `json:"role,omitempty"`
}

// IsZero says whether the rule names nobody.
func (d rulePrincipalDTO) IsZero() bool { return len(d.Usernames)+len(d.Roles) == 0 }

func newRuleDTO(r *rules.Rule) ruleDTO {
	return ruleDTO{
		ID:          r.ID,
		Description: r.Description,
		Indices:     r.Indices,
		Principal:   rulePrincipalDTO{r.Usernames, r.Roles},
		Group:       r.Group,
		UpdatedAt:   r.UpdatedAt.UTC().Format(isoMillis),
	}
}

// isoMillis is how OpenSearch prints a moment for people.
const isoMillis = "2006-01-02T15:04:05.000Z"

type rulesDTO struct {
	Rules       []ruleDTO `json:"rules"`
	SearchAfter []string  `json:"search_after,omitempty"`
}

func (s *Server) createRule(c *call) (action, error) {
	patch, err := c.rulePatch()
	if err != nil {
		return nil, err
	}
	return c.changeRule("_create", func(ctx context.Context) (any, error) {
		r, err := s.cfg.Rules.Create(ctx, patch)
		if err != nil {
			return nil, err
		}
		return newRuleDTO(r), nil
	}), nil
}

func (s *Server) updateRule(c *call) (action, error) {
	patch, err := c.rulePatch()
	if err != nil {
		return nil, err
	}
	id := c.param("id")
	return c.changeRule("_update", func(ctx context.Context) (any, error) {
		r, err := s.cfg.Rules.Update(ctx, id, patch)
		if err != nil {
			return nil, err
		}
		return newRuleDTO(r), nil
	}), nil
}

func (s *Server) deleteRule(c *call) (action, error) {
	if err := c.checkFeature(); err != nil {
		return nil, err
	}
	id := c.param("id")
	return c.changeRule("_delete", func(ctx context.Context) (any, error) {
		return acknowledged{true}, s.cfg.Rules.Delete(ctx, id)
	}), nil
}

func (s *Server) listRules(c *call) (action, error) {
	if err := c.checkFeature(); err != nil {
		return nil, err
	}
	wanted := make(map[string][]string)
	for _, attribute := range ruleFilters() {
		if values := c.list(attribute); values != nil {
			wanted[attribute] = values
		}
	}
	after := c.query.Get(searchAfter)
	return func() (*answer, error) {
		return c.asTask(ruleAction+"_get", false, func() (*answer, error) {
			d := rulesDTO{Rules: []ruleDTO{}}
			for _, r := range s.cfg.Rules.Snapshot().After(after) {
				if !hasOneOfEach(r, wanted) {
					continue
				}
				d.Rules = append(d.Rules, newRuleDTO(r))
				if len(d.Rules) == rulesPage {
					d.SearchAfter = []string{r.ID}
					break
				}
			}
			return ok(d)
		})
	}, nil
}

// hasOneOfEach says whether a rule has, in each attribute, one of the patterns that are wanted there, as it is written.
func hasOneOfEach(r *rules.Rule, wanted map[string][]string) bool {
	for attribute, values := range wanted {
		if !slices.ContainsFunc(r.Values(attribute), func(v string) bool { return slices.Contains(values, v) }) {
			return false
		}
	}
	return true
}

func (s *Server) getRule(c *call) (action, error) {
	if err := c.checkFeature(); err != nil {
		return nil, err
	}
	id := c.param("id")
	return func() (*answer, error) {
		return c.asTask(ruleAction+"_get", false, func() (*answer, error) {
			r := s.cfg.Rules.Snapshot().ByID(id)
			if r == nil {
				return nil, &rules.NotFoundError{ID: id}
			}
			return ok(rulesDTO{Rules: []ruleDTO{newRuleDTO(r)}})
		})
	}, nil
}

// rulePatch reads the body of a change.
func (c *call) rulePatch() (rules.Patch, error) {
	if err := c.checkFeature(); err != nil {
		return rules.Patch{}, err
	}
	return rules.ParsePatch(c.body)
}

// checkFeature refuses rules about anything but workload groups.
func (c *call) checkFeature() error {
	if feature := c.param("feature"); feature != ruleFeature {
		return notFound("there are no rules about [" + feature + "]; those about workload groups are at /_rules/" + ruleFeature)
	}
	return nil
}

// changeRule makes a change as a task. It goes through even when the client leaves meanwhile.
func (c *call) changeRule(name string, change func(context.Context) (any, error)) action {
	return func() (*answer, error) {
		return c.asTask(ruleAction+name, false, func() (*answer, error) {
			v, err := change(context.WithoutCancel(c.r.Context()))
			if err != nil {
				return nil, err
			}
			return ok(v)
		})
	}
}
