package rest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Sizes of a page.
const (
	defaultPage = 10
	largestPage = 100
)

func (s *Server) listStatsRoutes() []route {
	const params = tableParams + " sort order next_token"
	return []route{
		{methods: "GET", pattern: "/_list/wlm_stats", params: params, view: true, prepare: s.listStats},
		{methods: "GET", pattern: "/_list/wlm_stats/{nodes}/stats", params: params, view: true, prepare: s.listStats},
		{methods: "GET", pattern: "/_list/wlm_stats/stats/{groups}", params: params, view: true, prepare: s.listStats},
		{methods: "GET", pattern: "/_list/wlm_stats/{nodes}/stats/{groups}", params: params, view: true, prepare: s.listStats},
	}
}

// separator is the heading, and every cell, of the columns between the others.
const separator = "|"

// statsColumns are OpenSearch's columns, with separators between them, and then those that are shown only when asked for.
func statsColumns() []column {
	shown := []column{
		{name: "NODE_ID", description: "node id"},
		{name: "WORKLOAD_GROUP_ID", description: "workload group id"},
		{name: "TOTAL_COMPLETIONS", description: "tasks of searches that ran and ended"},
		{name: "TOTAL_REJECTIONS", description: "searches refused for what the group uses"},
		{name: "TOTAL_CANCELLATIONS", description: "searches cancelled for what the group uses"},
		{name: "CPU_USAGE", description: "share of the processors that running tasks use"},
		{name: "MEMORY_USAGE", description: "share of the heap that running tasks use"},
	}
	var all []column
	for i, col := range shown {
		if i > 0 {
			all = append(all, column{name: separator, description: separator})
		}
		all = append(all, col)
	}
	return append(all,
		column{name: "TOTAL_THROTTLED", description: "searches refused by a throttle limit", hidden: true},
		column{name: "TOTAL_WOULD_THROTTLE", description: "searches that a monitoring group let run over its limit", hidden: true},
		column{name: "TOTAL_QUEUED", description: "searches that started to wait", hidden: true},
		column{name: "TOTAL_QUEUE_REJECTIONS", description: "throttled searches that found the queue full", hidden: true},
		column{name: "QUEUED_CURRENT", description: "searches that wait now", hidden: true},
		column{name: "QUEUE_PEAK", description: "the most searches that have waited at once", hidden: true},
		column{name: "QUEUE_WAIT_COUNT", description: "searches admitted out of the queue", hidden: true},
		column{name: "TOTAL_QUEUE_WAIT_MILLIS", description: "what those had waited", hidden: true},
		column{name: "MAX_QUEUE_WAIT_MILLIS", description: "the longest of these waits", hidden: true},
	)
}

func (r statsRow) cells() []any {
	return []any{
		r.node, separator, r.id, separator, r.Completions, separator, r.Rejections, separator, r.Cancellations, separator,
		r.CPU.CurrentUsage, separator, r.Memory.CurrentUsage,
		r.Throttled, r.WouldThrottle, r.Queued, r.QueueRejections, r.QueuedCurrent, r.QueuePeak, r.QueueWaits, r.QueueWaitMillis,
		r.MaxQueueWaitMillis,
	}
}

// noMorePages is the row behind the last page. Only where it follows others does it keep their separators.
func noMorePages(columns []column, follows bool) []any {
	row := []any{"No more pages available"}
	for _, col := range columns[1:] {
		if col.name == separator && follows {
			row = append(row, separator)
		} else {
			row = append(row, "-")
		}
	}
	return row
}

func (s *Server) listStats(c *call) (action, error) {
	nodes, ids := splitList(c.param("nodes")), splitTrimmed(c.param("groups"))
	columns := statsColumns()
	paging, err := c.statsPaging()
	if err != nil {
		return nil, err
	}
	view, err := c.tableView(columns)
	if err != nil {
		return nil, err
	}
	wait, err := c.nodeTimeout()
	if err != nil {
		return nil, err
	}
	return func() (*answer, error) {
		if view.help {
			return view.answer(nil)
		}
		return show(c, s.groupsView(c.named(nodes), wait, ids, func(parts []part[nodeGroups]) (*answer, error) {
			page, next, err := paging.page(statsRows(parts))
			if err != nil {
				if e, bad := errors.AsType[*pageTokenError](err); bad {
					return e.answer(), nil
				}
				return nil, err
			}
			var rows [][]any
			for _, r := range page {
				rows = append(rows, r.cells())
			}
			switch {
			case next == "":
				return view.answer(append(rows, noMorePages(columns, len(rows) > 0)))
			case view.structured:
				return ok(members{{"next_token", next}, {"wlm_stats", view.objects(rows)}})
			default:
				return textAnswer(append(view.text(rows), "next_token "+next+"\n"...))
			}
		}))
	}, nil
}

func (c *call) statsPaging() (statsPaging, error) {
	p := statsPaging{by: byNodeID, token: c.query.Get("next_token")}
	var err error
	if p.size, err = c.number("size", defaultPage); err != nil {
		return p, err
	}
	if p.size < 1 || p.size > largestPage {
		return p, unparsable(nil, "parameter [size] must be from 1 to 100, not [%s]", c.query.Get("size"))
	}
	by := "node_id"
	if c.query.Has("sort") {
		by = c.query.Get("sort")
	}
	switch strings.ToLower(by) {
	case "node_id":
	case "workload_group":
		p.by = byGroup
	default:
		return p, unparsable(illegalArgument("[%s] is no order of rows", by), "parameter [sort] must be node_id or workload_group, not [%s]", by)
	}
	switch order := c.query.Get("order"); strings.ToLower(order) {
	case "":
		if c.query.Has("order") {
			return p, unparsable(illegalArgument("no direction"), "parameter [order] must be asc or desc, not empty")
		}
	case "asc":
	case "desc":
		p.descending = true
	default:
		return p, unparsable(illegalArgument("[%s] is no direction", order), "parameter [order] must be asc or desc, not [%s]", order)
	}
	return p, nil
}

// unparsable is a parameter with a value that is none.
func unparsable(cause *failure, format string, args ...any) *failure {
	return &failure{status: http.StatusBadRequest, typ: "parse_exception", reason: fmt.Sprintf(format, args...), cause: cause}
}

// statsRows are a row for each group on each node. A node that does not know one of the groups has none to show.
func statsRows(parts []part[nodeGroups]) []statsRow {
	var rows []statsRow
	for _, p := range parts {
		if p.failed != nil {
			continue
		}
		for _, g := range p.value.Groups {
			rows = append(rows, statsRow{p.member.ID, g})
		}
	}
	return rows
}
