package rest

import (
	"context"
	"strings"
)

func (s *Server) wlmCheckRoutes() []route {
	return []route{{methods: "GET", pattern: "/_wlm/check", view: true, prepare: s.wlmCheck}}
}

type checkDTO struct {
	Buckets   int               `json:"buckets"`
	Waiting   int               `json:"waiting"`
	Running   int               `json:"running"` // under a permit that counts against a limit
	Evicted   map[string]uint64 `json:"evicted"` // by cause
	Recovered uint64            `json:"recovered"`
}

// wlmCheck has nodes check their admission against itself and against their tasks, and compares the permits of shared limits that are out
// with those that searches run under. A path of our own: OpenSearch has none. What disagrees is the failure of the whole, so that it is not
// overlooked.
func (s *Server) wlmCheck(c *call) (action, error) {
	v := view[checkPart]{
		members: c.named(nil), wait: nodeWait,
		own:  func(ctx context.Context) (checkPart, error) { return s.selfCheck(ctx), nil },
		read: decoded[checkPart],
	}
	v.merge = func(parts []part[checkPart]) (*answer, error) {
		astray, err := c.astray(v, parts)
		if err != nil {
			return nil, err
		}
		return s.checked(parts, astray)
	}
	return func() (*answer, error) { return show(c, v) }, nil
}

// checkPart is what a node has found.
type checkPart struct {
	Found         checkDTO     `json:"found"`
	Disagreements []string     `json:"disagreements,omitempty"`
	Permits       *permitsPart `json:"permits,omitempty"` // of shared limits; nil on a node alone
}

func (s *Server) selfCheck(ctx context.Context) checkPart {
	found := s.cfg.Stats.Check(ctx)
	totals := s.cfg.Admission.Totals()
	return checkPart{
		Found:         checkDTO{Buckets: found.Buckets, Waiting: found.Waiting, Running: found.Running, Evicted: totals.EvictedBy, Recovered: totals.Recovered},
		Disagreements: found.Disagreements,
		Permits:       s.permits(found.Shared),
	}
}

// checked is the answer: what is wrong, on one node or between nodes, or else the figures.
func (s *Server) checked(parts []part[checkPart], wrong []string) (*answer, error) {
	d := members{{"_nodes", tally(parts)}, {"cluster_name", s.cfg.Node.ClusterName}}
	for _, p := range parts {
		for _, why := range p.value.Disagreements {
			if s.cfg.Cluster != nil {
				why = "on node [" + p.member.Name + "]: " + why
			}
			wrong = append(wrong, why)
		}
		if p.failed == nil {
			d = append(d, member{p.member.ID, p.value.Found})
		}
	}
	if len(wrong) > 0 {
		return nil, illegalState("workload management disagrees with itself: %s", strings.Join(wrong, "; "))
	}
	return ok(d)
}
