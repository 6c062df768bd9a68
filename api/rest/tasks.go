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
		{methods: "GET", pattern: "/_tasks", params: choice + " detailed timeout", view: true, prepare: s.listTasks},
		{methods: "GET", pattern: "/_tasks/{id}", params: "wait_for_completion timeout", view: true, prepare: s.getTask},
		{methods: "POST", pattern: "/_tasks/_cancel", params: choice, view: true, prepare: s.cancelTasks},
		{methods: "POST", pattern: "/_tasks/{id}/_cancel", params: choice, view: true, prepare: s.cancelTask},
	}
}

// taskChoice is which tasks a request means, and how it wants them shown.
type taskChoice struct {
	filter   tasks.Filter
	members  []Member // the nodes that are meant
	grouping taskGrouping
	wait     bool
}

func (c *call) taskChoice() (taskChoice, error) {
	q := taskChoice{members: c.named(c.list("nodes")), grouping: byNodes}
	q.filter.Actions = c.list("actions")
	var err error
	if q.filter.Parent, err = tasks.ParseID(c.query.Get("parent_task_id")); err != nil {
		return q, err
	}
	if c.query.Has("group_by") {
		v := c.query.Get("group_by")
		q.grouping = taskGrouping(v)
		if !slices.Contains([]taskGrouping{byNodes, byParents, ungrouped}, q.grouping) {
			return q, illegalArgument("parameter [group_by] must be [nodes], [parents] or [none], not [%s]", v)
		}
	}
	q.wait, err = c.flag("wait_for_completion", false)
	return q, err
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
		return show(c, c.tasksView(listTasksAction, q, timeout, func(ctx context.Context) ([]*taskDTO, error) {
			list := s.cfg.Tasks.List(q.filter)
			if q.wait {
				// Lists do not wait for one another, nor for themselves.
				awaited := slices.DeleteFunc(slices.Clone(list), func(t *tasks.Task) bool { return isTaskList(t.Action()) })
				ended, err := awaitTasks(ctx, awaited, timeout)
				if err != nil {
					return nil, err
				}
				if !ended {
					return nil, &failure{status: http.StatusGatewayTimeout, typ: "receive_timeout_transport_exception",
						reason: "tasks still run after [" + units.FormatTime(timeout) + "]"}
				}
			}
			return c.printAll(list, detailed), nil
		}))
	}, nil
}

// tasksView asks nodes for some of their tasks, and lays them out.
func (c *call) tasksView(action string, q taskChoice, wait time.Duration, own func(context.Context) ([]*taskDTO, error)) view[nodeTasks] {
	return view[nodeTasks]{
		action: action, members: q.members, wait: wait, read: decoded[nodeTasks],
		own: func(ctx context.Context) (nodeTasks, error) {
			list, err := own(ctx)
			return nodeTasks{c.s.taskNode(), list}, err
		},
		merge: func(parts []part[nodeTasks]) (*answer, error) { return ok(layOut(parts, q.grouping)) },
	}
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

// awaitTasks waits until all tasks have ended; ended is false when the time is up before. The error is why nobody waits for it any
// more.
func awaitTasks(ctx context.Context, list []*tasks.Task, timeout time.Duration) (ended bool, err error) {
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

// checkTaskID refuses an id that is that of no task.
func checkTaskID(id tasks.ID) error {
	if !id.IsSet() {
		return &search.ValidationError{Problems: []string{"a task id is required: node, colon, number"}}
	}
	return nil
}

type taskResultDTO struct {
	Completed bool     `json:"completed"`
	Task      *taskDTO `json:"task"`
}

func (s *Server) getTask(c *call) (action, error) {
	id, err := tasks.ParseID(c.param("id"))
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
	if err := checkTaskID(id); err != nil {
		return nil, err
	}
	return func() (*answer, error) {
		return c.asTask("cluster:monitor/task/get", false, func() (*answer, error) {
			ctx, done := c.untilGone()
			defer done()
			if m, ok := s.member(id.Node); ok && m.ID != s.cfg.Node.ID && !c.local {
				return c.passOn(ctx, m, timeout)
			}
			t := s.cfg.Tasks.Task(id)
			if t == nil {
				return nil, s.taskMissing(id)
			}
			if wait {
				ended, err := awaitTasks(ctx, []*tasks.Task{t}, timeout)
				if err != nil {
					return nil, err
				}
				if !ended {
					return nil, taskLate("task ["+id.String()+"] still runs", timeout)
				}
			}
			return ok(taskResultDTO{Completed: wait, Task: c.printer(true).print(t)})
		})
	}, nil
}

// taskLate is the error when what is to be known of a task is not known in time.
func taskLate(what string, timeout time.Duration) *failure {
	return &failure{status: http.StatusGatewayTimeout, typ: "timeout_exception",
		reason: what + " after [" + units.FormatTime(timeout) + "]: wait longer, or ask again"}
}

// passOn has another node answer in this one's stead.
func (c *call) passOn(ctx context.Context, m Member, timeout time.Duration) (*answer, error) {
	other, cancel := within(ctx, timeout)
	defer cancel()
	a, err := c.s.cfg.Cluster.Ask(other, m.ID, c.forOthers())
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil && other.Err() != nil:
		return nil, taskLate("node ["+m.Name+"] has not answered", timeout)
	case err != nil:
		return nil, silence(other, m, timeout, err)
	case a.Status >= http.StatusBadRequest:
		return nil, failureOf(a)
	}
	return &answer{body: a.Body}, nil
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
	return func() (*answer, error) {
		return show(c, c.cancelView(q, func() ([]*tasks.Task, error) { return s.cfg.Tasks.List(q.filter), nil }))
	}, nil
}

func (s *Server) cancelTask(c *call) (action, error) {
	id, err := tasks.ParseID(c.param("id"))
	if err != nil {
		return nil, err
	}
	q, err := c.taskChoice()
	if err != nil {
		return nil, err
	}
	if err := checkTaskID(id); err != nil {
		return nil, err
	}
	if c.query.Get("nodes") != "" {
		return nil, &search.ValidationError{Problems: []string{"a task id names its node already: leave [nodes] out"}}
	}
	node, known := s.member(id.Node)
	q.members = []Member{node}
	v := c.cancelView(q, func() ([]*tasks.Task, error) {
		t, err := c.cancellable(id)
		return []*tasks.Task{t}, err
	})
	merge := v.merge
	v.merge = func(parts []part[nodeTasks]) (*answer, error) {
		if why := parts[0].failed; why != nil && why.status == http.StatusForbidden {
			return nil, why
		}
		return merge(parts)
	}
	return func() (*answer, error) {
		if known || c.local {
			return show(c, v)
		}
		return c.asTask(v.action, true, func() (*answer, error) {
			why := &failure{typ: "no_such_node_exception", reason: "there is no node [" + id.Node + "]", extra: fields{quoted("node_id", id.Node)}}
			return merge([]part[nodeTasks]{{member: Member{ID: id.Node}, failed: why}})
		})
	}, nil
}

// cancellable is the task on this node that the user may cancel; the error, why there is none.
func (c *call) cancellable(id tasks.ID) (*tasks.Task, error) {
	t := c.s.cfg.Tasks.Task(id)
	switch {
	case t == nil:
		return nil, notFound("task [" + id.String() + "] is not found")
	case t.User() != c.user.Name && !c.isAdmin():
		return nil, forbidden("user [%s] may not cancel task [%s]: it is somebody else's, which needs an administrator's role, see auth.admin_roles", c.user.Name, id)
	case !t.Cancellable():
		return nil, illegalArgument("task [%s] doesn't support cancellation", id)
	}
	return t, nil
}

// cancelView has nodes cancel tasks with all below them, and lists those that they could, once they have ended if that is wanted. Those
// below them on other nodes are cancelled by whoever has given them their work.
func (c *call) cancelView(q taskChoice, choose func() ([]*tasks.Task, error)) view[nodeTasks] {
	wait := nodeWait
	if q.wait {
		wait = units.None
	}
	return c.tasksView("cluster:admin/tasks/cancel", q, wait, func(ctx context.Context) ([]*taskDTO, error) {
		list, err := choose()
		if err != nil {
			return nil, err
		}
		list = c.s.cfg.Tasks.Cancel(list, tasks.UserCause())
		if q.wait {
			if _, err := awaitTasks(ctx, list, units.None); err != nil {
				return nil, err
			}
		}
		return c.printAll(list, false), nil
	})
}
