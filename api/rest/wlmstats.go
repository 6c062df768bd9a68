package rest

import (
	"fmt"
	"slices"

	"github.com/wlmserver/wlmserver/stats"
)

func (s *Server) wlmStatsRoutes() []route {
	return []route{
		{methods: "GET", pattern: "/_wlm/stats", prepare: s.wlmStats},
		{methods: "GET", pattern: "/_wlm/stats/{groups}", prepare: s.wlmStats},
		{methods: "GET", pattern: "/_wlm/{nodes}/stats", prepare: s.wlmStats},
		{methods: "GET", pattern: "/_wlm/{nodes}/stats/{groups}", prepare: s.wlmStats},
	}
}

type groupStatsDTO struct {
	Completions        uint64      `json:"total_completions"`
	Rejections         uint64      `json:"total_rejections"`
	Cancellations      uint64      `json:"total_cancellations"`
	Throttled          uint64      `json:"total_throttled"`
	WouldThrottle      uint64      `json:"total_would_throttle"`
	Queued             uint64      `json:"total_queued"`
	QueueRejections    uint64      `json:"total_queue_rejections"`
	QueuedCurrent      uint64      `json:"queued_current"`
	QueuePeak          uint64      `json:"queue_peak"`
	QueueWaits         uint64      `json:"queue_wait_count"`
	QueueWaitMillis    uint64      `json:"total_queue_wait_millis"`
	MaxQueueWaitMillis uint64      `json:"max_queue_wait_millis"`
	CPU                resourceDTO `json:"cpu"`
	Memory             resourceDTO `json:"memory"`
}

// resourceDTO counts per resource; nothing is cancelled or rejected for its use of resources yet.
type resourceDTO struct {
	CurrentUsage  double `json:"current_usage"`
	Cancellations uint64 `json:"cancellations"`
	Rejections    uint64 `json:"rejections"`
}

func newGroupStatsDTO(g *stats.GroupStats) groupStatsDTO {
	return groupStatsDTO{
		Completions:        g.Completions,
		Rejections:         g.Rejections,
		Cancellations:      g.Cancellations,
		Throttled:          g.Throttled,
		WouldThrottle:      g.WouldThrottle,
		Queued:             g.Queued,
		QueueRejections:    g.QueueRejections,
		QueuedCurrent:      g.QueuedCurrent,
		QueuePeak:          g.QueuePeak,
		QueueWaits:         g.QueueWaits,
		QueueWaitMillis:    g.QueueWaitMillis,
		MaxQueueWaitMillis: g.MaxQueueWaitMillis,
		CPU:                resourceDTO{CurrentUsage: double(g.CPUUsage)},
		Memory:             resourceDTO{CurrentUsage: double(g.MemoryUsage)},
	}
}

func (s *Server) wlmStats(c *call) (action, error) {
	nodes, ids := splitList(c.param("nodes")), splitList(c.param("groups"))
	return func() (*answer, error) {
		return c.asTask("cluster:monitor/wlm/stats", true, func() (*answer, error) { return ok(s.statsOf(nodes, ids)) })
	}, nil
}

// statsOf is the answer for some nodes and groups. A group that a node does not know is that node's failure.
func (s *Server) statsOf(nodes, ids []string) members {
	with := func(count nodesDTO, results ...member) members {
		return append(members{{"_nodes", count}, {"cluster_name", s.cfg.Node.ClusterName}}, results...)
	}
	if !s.isThisNode(nodes) {
		return with(answered(0))
	}
	wanted, missing := s.groupStats(ids)
	if missing != "" {
		why := notFound(fmt.Sprintf("no workload group has the id [%s]; GET _wlm/workload_group lists those there are", missing))
		return with(nodesDTO{Total: 1, Failed: 1, Failures: []*failure{nodeFailure(s.cfg.Node.ID, why)}})
	}
	printed := members{}
	for _, g := range wanted {
		printed = append(printed, member{g.Group, newGroupStatsDTO(g)})
	}
	return with(answered(1), member{s.cfg.Node.ID, members{{"workload_groups", printed}}})
}

// groupStats are the statistics of the groups with the given ids, of all without ids or with _all, sorted by id. missing
// is the first id that no group has.
func (s *Server) groupStats(ids []string) (wanted []*stats.GroupStats, missing string) {
	all := s.cfg.Stats.Groups()
	everything := len(ids) == 0 || slices.Contains(ids, "_all")
	for _, id := range ids {
		if !everything && !slices.ContainsFunc(all, func(g stats.GroupStats) bool { return g.Group == id }) {
			return nil, id
		}
	}
	for i := range all {
		if g := &all[i]; everything || slices.Contains(ids, g.Group) {
			wanted = append(wanted, g)
		}
	}
	return wanted, ""
}
