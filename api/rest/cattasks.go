package rest

import (
	"context"
	"time"
)

// tasksColumns are the columns of a list of tasks. What a task works on is a column only of a detailed one.
func tasksColumns(detailed bool) []column {
	columns := []column{
		{name: "id", description: "number of the task on its node", hidden: true},
		{name: "action", aliases: "ac", description: "task action"},
		{name: "task_id", aliases: "ti", description: "unique task id"},
		{name: "parent_task_id", aliases: "pti", description: "parent task id"},
		{name: "type", aliases: "ty", description: "task type"},
		{name: "start_time", aliases: "start", description: "start time in ms"},
		{name: "timestamp", aliases: "ts,hms,hhmmss", description: "start time in HH:MM:SS"},
		{name: "running_time_ns", aliases: "time", description: "running time ns", hidden: true},
		{name: "running_time", aliases: "time", description: "running time"},
		{name: "node_id", aliases: "ni", description: "unique node id", hidden: true},
		{name: "ip", aliases: "i", description: "ip address"},
		{name: "port", aliases: "po", description: "bound transport port", hidden: true},
		{name: "node", aliases: "n", description: "node name"},
		{name: "version", aliases: "v", description: "version of the API", hidden: true},
		{name: "x_opaque_id", aliases: "x", description: "X-Opaque-ID header", hidden: true},
	}
	if detailed {
		columns = append(columns, column{name: "description", aliases: "desc", description: "what the task works on"})
	}
	return columns
}

// catTasks lists tasks, each followed by those below it.
func (s *Server) catTasks(c *call) (action, error) {
	q, err := c.taskChoice()
	if err != nil {
		return nil, err
	}
	detailed, err := c.flag("detailed", false)
	if err != nil {
		return nil, err
	}
	v := c.tasksView(listTasksAction, q, 0, func(context.Context) ([]*taskDTO, error) {
		return c.printAll(s.cfg.Tasks.List(q.filter), detailed), nil
	})
	return tableOf(c, tasksColumns(detailed), v, func(parts []part[nodeTasks]) [][]any {
		nodes := make(map[string]Member, len(parts))
		for _, p := range parts {
			nodes[p.member.ID] = p.member
		}
		all := [][]any{}
		var add func([]*taskDTO)
		add = func(list []*taskDTO) {
			for _, t := range list {
				all = append(all, s.taskRow(t, nodes[t.Node]))
				add(t.Children)
			}
		}
		add(underParents(together(parts)))
		return all
	})
}

// taskRow is the row of a task on a node.
func (s *Server) taskRow(t *taskDTO, n Member) []any {
	ip := n.host()
	if n.ID == s.cfg.Node.ID {
		ip = s.cfg.Node.IP
	}
	row := []any{
		t.ID, t.Action, t.taskID().String(), dashIfEmpty(t.ParentTaskID), t.Type,
		t.StartMillis, time.UnixMilli(t.StartMillis).UTC().Format(clock), t.RunningNanos, time.Duration(t.RunningNanos),
		t.Node, ip, n.port(), n.Name, n.Version, t.Headers[opaqueIDHeader],
	}
	if t.Description != nil {
		row = append(row, *t.Description)
	}
	return row
}
