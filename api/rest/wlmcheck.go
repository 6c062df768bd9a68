package rest

import (
	"maps"
	"slices"
	"strings"
)

func (s *Server) wlmCheckRoutes() []route {
	return []route{{methods: "GET", pattern: "/_wlm/check", prepare: s.wlmCheck}}
}

type checkDTO struct {
	Buckets   int     `json:"buckets"`
	Waiting   int     `json:"waiting"`
	Running   int     `json:"running"` // under a permit that counts against a limit
	Evicted   members `json:"evicted"` // by cause
	Recovered uint64  `json:"recovered"`
}

// wlmCheck has the node check its admission against itself and against the tasks. A path of our own: OpenSearch has none.
func (s *Server) wlmCheck(c *call) (action, error) {
	return func() (*answer, error) { return c.selfCheck() }, nil
}

func (c *call) selfCheck() (*answer, error) {
	s := c.s
	ctx, done := c.untilGone()
	defer done()
	found := s.cfg.Stats.Check(ctx)
	if len(found.Disagreements) > 0 {
		return nil, illegalState("workload management disagrees with itself: %s", strings.Join(found.Disagreements, "; "))
	}
	totals := s.cfg.Admission.Totals()
	d := checkDTO{Buckets: found.Buckets, Waiting: found.Waiting, Running: found.Running, Evicted: members{}, Recovered: totals.Recovered}
	for _, cause := range slices.Sorted(maps.Keys(totals.EvictedBy)) {
		d.Evicted = append(d.Evicted, member{cause, totals.EvictedBy[cause]})
	}
	return ok(members{{"_nodes", answered(1)}, {"cluster_name", s.cfg.Node.ClusterName}, {s.cfg.Node.ID, d}})
}
