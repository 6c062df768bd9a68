package rest

import (
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
	return c.table(listTasksAction, true, tasksColumns(detailed), func() ([][]any, error) {
		rows := [][]any{}
		var add func([]*taskDTO)
		add = func(list []*taskDTO) {
			for _, t := range list {
				rows = append(rows, s.taskRow(t))
				add(t.Children)
			}
		}
		add(underParents(c.printAll(s.chosen(q), detailed)))
		return rows, nil
	})
}

func (s *Server) taskRow(t *taskDTO) []any {
	n := s.cfg.Node
	row := []any{
		t.ID, t.Action, t.id.String(), dashIfEmpty(t.ParentTaskID), t.Type,
		t.StartMillis, time.UnixMilli(t.StartMillis).UTC().Format(clock), t.RunningNanos, time.Duration(t.RunningNanos),
		t.Node, n.IP, n.port(), n.Name, Version, t.Headers[opaqueIDHeader],
	}
	if t.Description != nil {
		row = append(row, *t.Description)
	}
	return row
}
