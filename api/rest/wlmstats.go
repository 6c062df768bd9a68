package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/wlmserver/wlmserver/stats"
)

func (s *Server) wlmStatsRoutes() []route {
	return []route{
		{methods: "GET", pattern: "/_wlm/stats", view: true, prepare: s.wlmStats},
		{methods: "GET", pattern: "/_wlm/stats/{groups}", view: true, prepare: s.wlmStats},
		{methods: "GET", pattern: "/_wlm/{nodes}/stats", view: true, prepare: s.wlmStats},
		{methods: "GET", pattern: "/_wlm/{nodes}/stats/{groups}", view: true, prepare: s.wlmStats},
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
	nodes, ids := splitList(c.param("nodes")), splitTrimmed(c.param("groups"))
	return func() (*answer, error) {
		return show(c, s.groupsView(c.named(nodes), nodeWait, ids, func(parts []part[nodeGroups]) (*answer, error) {
			d := members{{"_nodes", tally(parts)}, {"cluster_name", s.cfg.Node.ClusterName}}
			for _, p := range parts {
				if p.failed == nil {
					d = append(d, member{p.member.ID, p.value})
				}
			}
			return ok(d)
		}))
	}, nil
}

// nodeGroups are the statistics of groups on one node.
type nodeGroups struct {
	Groups groupList `json:"workload_groups"`
}

// groupList is printed as an object, with the ids of the groups as keys.
type groupList []groupStats

type groupStats struct {
	id string
	groupStatsDTO
}

// MarshalJSON prints the groups in their order.
func (l groupList) MarshalJSON() ([]byte, error) {
	d := make(members, len(l))
	for i, g := range l {
		d[i] = member{g.id, g.groupStatsDTO}
	}
	return d.MarshalJSON()
}

// UnmarshalJSON reads the groups, and sorts them by id. What a node does not count is 0.
func (l *groupList) UnmarshalJSON(b []byte) error {
	var byID map[string]groupStatsDTO
	if err := json.Unmarshal(b, &byID); err != nil {
		return err
	}
	*l = make(groupList, 0, len(byID))
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		*l = append(*l, groupStats{id, byID[id]})
	}
	return nil
}

// groupsView asks nodes for the statistics of groups. That a node does not know a group is its failure.
func (s *Server) groupsView(nodes []Member, wait time.Duration, ids []string, merge func([]part[nodeGroups]) (*answer, error)) view[nodeGroups] {
	return view[nodeGroups]{
		action: "cluster:monitor/wlm/stats", members: nodes, wait: wait, read: decoded[nodeGroups], merge: merge,
		own: func(context.Context) (nodeGroups, error) {
			wanted, missing := s.groupStats(ids)
			if missing != "" {
				return nodeGroups{}, notFound(fmt.Sprintf("no workload group has the id [%s]; GET _wlm/workload_group lists those there are", missing))
			}
			d := nodeGroups{make(groupList, len(wanted))}
			for i, g := range wanted {
				d.Groups[i] = groupStats{g.Group, newGroupStatsDTO(g)}
			}
			return d, nil
		},
	}
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
