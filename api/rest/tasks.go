package rest

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/wlmserver/wlmserver/internal/units"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
)

const (
	listTasksAction = "cluster:monitor/tasks/lists"
	// taskWait is how long a request waits for tasks to end unless it says otherwise.
	taskWait = 30 * time.Second
)

func (s *Server) taskRoutes() []route {
	const choice = "nodes actions parent_task_id group_by wait_for_completion"
	return []route{
		{methods: "GET", pattern: "/_tasks", params: choice + " detailed timeout", prepare: s.listTasks},
		{methods: "GET", pattern: "/_tasks/{id}", params: "wait_for_completion timeout", prepare: s.getTask},
		{methods: "POST", pattern: "/_tasks/_cancel", params: choice, prepare: s.cancelTasks},
		{methods: "POST", pattern: "/_tasks/{id}/_cancel", params: choice, prepare: s.cancelTask},
	}
}

// taskChoice is which tasks a request means, and how it wants them shown.
type taskChoice struct {
	filter   tasks.Filter
	here     bool // this node is among those meant
	grouping taskGrouping
	wait     bool
}

func (c *call) taskChoice() (taskChoice, error) {
	q := taskChoice{here: c.s.isThisNode(c.list("nodes")), grouping: byNodes}
	q.filter.Actions = c.list("actions")
	var err error
	if q.filter.Parent, err = tasks.ParseID(c.query.Get("parent_task_id")); err != nil {
		return q, err
	}
	if v := c.query.Get("group_by"); v != "" {
		q.grouping = taskGrouping(v)
		if !slices.Contains([]taskGrouping{byNodes, byParents, ungrouped}, q.grouping) {
			return q, illegalArgument("parameter [group_by] must be [nodes], [parents] or [none], not [%s]", v)
		}
	}
	q.wait, err = c.flag("wait_for_completion", false)
	return q, err
}

// chosen are the tasks that a choice means now.
func (s *Server) chosen(q taskChoice) []*tasks.Task {
	if !q.here {
		return nil
	}
	return s.cfg.Tasks.List(q.filter)
}

func (s *Server) listTasks(c *call) (action, error) {
	q, err := c.taskChoice()
	if err != nil {
		return nil, err
	}
	detailed, err := c.flag("detailed", false)
	if err != nil {
		return nil, err
	}
	timeout, err := c.duration("timeout", taskWait)
	if err != nil {
		return nil, err
	}
	return func() (*answer, error) {
		return c.asTask(listTasksAction, true, func() (*answer, error) {
			list := s.chosen(q)
			if q.wait {
				// Lists do not wait for one another, nor for themselves.
				awaited := slices.DeleteFunc(slices.Clone(list), func(t *tasks.Task) bool { return isTaskList(t.Action()) })
				ended, err := c.awaitTasks(awaited, timeout)
				if err != nil {
					return nil, err
				}
				if !ended {
					why := &failure{typ: "receive_timeout_transport_exception", reason: "tasks still run after [" + units.FormatTime(timeout) + "]"}
					return ok(s.layOut(nil, q.grouping, nodeFailure(s.cfg.Node.ID, why)))
				}
			}
			return ok(s.layOut(c.printAll(list, detailed), q.grouping))
		})
	}, nil
}

func isTaskList(action string) bool {
	return action == listTasksAction || action == listTasksAction+"[n]"
}

func (c *call) printAll(list []*tasks.Task, detailed bool) []*taskDTO {
	p := c.printer(detailed)
	printed := make([]*taskDTO, len(list))
	for i, t := range list {
		printed[i] = p.print(t)
	}
	return printed
}

// awaitTasks waits until all tasks have ended; ended is false when the time is up before. The error is why the client
// need not be waited for any more.
func (c *call) awaitTasks(list []*tasks.Task, timeout time.Duration) (ended bool, err error) {
	ctx, done := c.untilGone()
	defer done()
	var late <-chan time.Time
	if timeout != units.None {
		t := time.NewTimer(timeout)
		defer t.Stop()
		late = t.C
	}
	for _, t := range list {
		select {
		case <-t.Ended():
		case <-late:
			return false, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	return true, nil
}

// taskID reads the id in the path.
func (c *call) taskID() (tasks.ID, error) {
	id, err := tasks.ParseID(c.param("id"))
	if err != nil {
		return id, err
	}
	if !id.IsSet() {
		return id, &search.ValidationError{Problems: []string{"a task id is required: node, colon, number"}}
	}
	return id, nil
}

type taskResultDTO struct {
	Completed bool     `json:"completed"`
	Task      *taskDTO `json:"task"`
}

func (s *Server) getTask(c *call) (action, error) {
	id, err := c.taskID()
	if err != nil {
		return nil, err
	}
	wait, err := c.flag("wait_for_completion", false)
	if err != nil {
		return nil, err
	}
	timeout, err := c.duration("timeout", taskWait)
	if err != nil {
		return nil, err
	}
	return func() (*answer, error) {
		return c.asTask("cluster:monitor/task/get", false, func() (*answer, error) {
			t := s.cfg.Tasks.Task(id)
			if t == nil {
				return nil, s.taskMissing(id)
			}
			if wait {
				ended, err := c.awaitTasks([]*tasks.Task{t}, timeout)
				if err != nil {
					return nil, err
				}
				if !ended {
					return nil, &failure{status: http.StatusGatewayTimeout, typ: "timeout_exception",
						reason: "task [" + id.String() + "] still runs after [" + units.FormatTime(timeout) + "]: wait longer, or ask again"}
				}
			}
			return ok(taskResultDTO{Completed: wait, Task: c.printer(true).print(t)})
		})
	}, nil
}

// taskMissing is the error for a task that does not run here. Results of tasks are not kept, which is what OpenSearch's
// causes tell.
func (s *Server) taskMissing(id tasks.ID) *failure {
	noResults := indexNotFound(".tasks", "index_expression", "results of tasks are not kept: there is no index [.tasks]")
	f := notFound("task [" + id.String() + "] isn't running and hasn't stored its results")
	f.cause = noResults
	if id.Node != s.cfg.Node.ID {
		f = notFound("task [" + id.String() + "] belongs to the node [" + id.Node + "], which isn't part of the cluster, and there is no record of the task")
		f.cause = notFound("task [" + id.String() + "] isn't running and hasn't stored its results")
		f.cause.cause = noResults
	}
	return f
}

func (s *Server) cancelTasks(c *call) (action, error) {
	q, err := c.taskChoice()
	if err != nil {
		return nil, err
	}
	q.filter.Cancellable = true
	if !c.isAdmin() {
		q.filter.User = c.user.Name // other people's are left out in silence, like those that cannot be cancelled
	}
	return c.cancelling(func() (taskListDTO, error) {
		return c.cancel(s.chosen(q), q)
	}), nil
}

func (s *Server) cancelTask(c *call) (action, error) {
	id, err := c.taskID()
	if err != nil {
		return nil, err
	}
	q, err := c.taskChoice()
	if err != nil {
		return nil, err
	}
	if c.query.Get("nodes") != "" {
		return nil, validation(&search.ValidationError{Problems: []string{"a task id names its node already: leave [nodes] out"}})
	}
	return c.cancelling(func() (taskListDTO, error) {
		why := &failure{typ: "no_such_node_exception", reason: "there is no node [" + id.Node + "]", extra: fields{quoted("node_id", id.Node)}}
		if id.Node == s.cfg.Node.ID {
			t := s.cfg.Tasks.Task(id)
			switch {
			case t == nil:
				why = notFound("task [" + id.String() + "] is not found")
			case t.User() != c.user.Name && !c.isAdmin():
				return taskListDTO{}, forbidden("user [%s] may not cancel task [%s]: it is somebody else's, which needs an administrator's role, see auth.admin_roles", c.user.Name, id)
			case !t.Cancellable():
				why = illegalArgument("task [%s] doesn't support cancellation", id)
			default:
				return c.cancel([]*tasks.Task{t}, q)
			}
		}
		return s.layOut(nil, q.grouping, nodeFailure(id.Node, why)), nil
	}), nil
}

// cancelling makes a request for cancellation a task.
func (c *call) cancelling(do func() (taskListDTO, error)) action {
	return func() (*answer, error) {
		return c.asTask("cluster:admin/tasks/cancel", true, func() (*answer, error) {
			d, err := do()
			if err != nil {
				return nil, err
			}
			return ok(d)
		})
	}
}

// cancel cancels tasks with all below them and lists those that it could, once they have ended if that is wanted.
func (c *call) cancel(list []*tasks.Task, q taskChoice) (taskListDTO, error) {
	list = c.s.cfg.Tasks.Cancel(list, tasks.UserCause())
	if q.wait {
		if _, err := c.awaitTasks(list, units.None); err != nil {
			return taskListDTO{}, err
		}
	}
	return c.s.layOut(c.printAll(list, false), q.grouping), nil
}
