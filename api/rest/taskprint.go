package rest

import (
	"time"

	"github.com/wlmserver/wlmserver/internal/units"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
	"github.com/wlmserver/wlmserver/wlm"
)

// taskDTO is a task as every answer shows it.
type taskDTO struct {
	Node            string            `json:"node"`
	ID              int64             `json:"id"`
	Type            string            `json:"type"`
	Action          string            `json:"action"`
	Status          *taskStatusDTO    `json:"status,omitempty"`
	Description     *string           `json:"description,omitempty"`
	StartTime       string            `json:"start_time,omitempty"`
	StartMillis     int64             `json:"start_time_in_millis"`
	RunningTime     string            `json:"running_time,omitempty"`
	RunningNanos    int64             `json:"running_time_in_nanos"`
	Cancellable     bool              `json:"cancellable"`
	Cancelled       bool              `json:"cancelled"`
	ParentTaskID    string            `json:"parent_task_id,omitempty"`
	Headers         map[string]string `json:"headers"`
	ResourceStats   *resourceStatsDTO `json:"resource_stats,omitempty"`
	CancelledMillis int64             `json:"cancellation_time_millis,omitempty"`
	Children        []*taskDTO        `json:"children,omitempty"`
}

func (d *taskDTO) taskID() tasks.ID { return tasks.ID{Node: d.Node, Number: d.ID} }

// parentID is the zero ID where there is no parent.
func (d *taskDTO) parentID() tasks.ID {
	id, err := tasks.ParseID(d.ParentTaskID)
	if err != nil { // printed by a node that knows better
		return tasks.ID{}
	}
	return id
}

// taskStatusDTO tells where a search stands. Its keys are none that clients know from other tasks.
type taskStatusDTO struct {
	State           string `json:"state"`
	Tier            string `json:"tier,omitempty"`
	Bucket          string `json:"bucket,omitempty"`
	Position        int    `json:"position,omitempty"`
	WaitingMillis   *int64 `json:"waiting_millis,omitempty"`
	EstimatedMillis *int64 `json:"estimated_wait_millis,omitempty"`
	Tracked         *bool  `json:"tracked,omitempty"`
	Reason          string `json:"reason,omitempty"`
}

type resourceStatsDTO struct {
	Average    usageDTO `json:"average"`
	Total      usageDTO `json:"total"`
	Min        usageDTO `json:"min"`
	Max        usageDTO `json:"max"`
	ThreadInfo struct {
		Executions int64 `json:"thread_executions"`
		Active     int64 `json:"active_threads"`
	} `json:"thread_info"`
}

type usageDTO struct {
	CPUNanos int64 `json:"cpu_time_in_nanos"`
	Memory   int64 `json:"memory_in_bytes"`
}

func newUsageDTO(r tasks.Resource) usageDTO { return usageDTO{r.CPU.Nanoseconds(), r.Memory} }

// taskPrinter prints the tasks of one answer for one user.
type taskPrinter struct {
	c        *call
	detailed bool
	admin    bool
	survey   *wlm.Survey // made when the first search is printed
}

func (c *call) printer(detailed bool) *taskPrinter {
	return &taskPrinter{c: c, detailed: detailed, admin: c.isAdmin()}
}

func (p *taskPrinter) print(t *tasks.Task) *taskDTO {
	id := t.ID()
	d := &taskDTO{
		Node:         id.Node,
		ID:           id.Number,
		Type:         t.Type(),
		Action:       t.Action(),
		StartMillis:  t.Start().UnixMilli(),
		RunningNanos: t.Running().Nanoseconds(),
		Cancellable:  t.Cancellable(),
		Headers:      t.Headers(),
	}
	if d.Headers == nil {
		d.Headers = map[string]string{}
	}
	if parent := t.Parent(); parent.IsSet() {
		d.ParentTaskID = parent.String()
	}
	if cause, at := t.Cancelled(); cause != nil {
		d.Cancelled, d.CancelledMillis = true, at.UnixMilli()
	}
	if p.c.human {
		d.StartTime = t.Start().UTC().Format("2006-01-02T15:04:05.000Z")
		d.RunningTime = units.HumanTime(time.Duration(d.RunningNanos))
	}
	if p.detailed {
		p.addDetails(d, t)
	}
	return d
}

// addDetails tells what the task works on, where it stands and what it has used. What others search, and in whose
// bucket they wait, is only for administrators.
func (p *taskPrinter) addDetails(d *taskDTO, t *tasks.Task) {
	d.Description = new("")
	if p.admin || t.User() == p.c.user.Name {
		d.Description = new(t.Description())
		d.Status = p.status(t)
	}
	u := t.Usage()
	d.ResourceStats = &resourceStatsDTO{
		Average: newUsageDTO(u.Average), Total: newUsageDTO(u.Total), Min: newUsageDTO(u.Min), Max: newUsageDTO(u.Max),
	}
	d.ResourceStats.ThreadInfo.Executions, d.ResourceStats.ThreadInfo.Active = u.Executions, u.Active
}

// status is where a search stands: parked, held back by a sibling, or running in a bucket. Searches that no limit
// concerns have none.
func (p *taskPrinter) status(t *tasks.Task) *taskStatusDTO {
	switch status := t.Status().(type) {
	case search.Held:
		return &taskStatusDTO{State: "held", Reason: status.Reason}
	case *wlm.Ticket:
		if p.survey == nil {
			p.survey = p.c.s.cfg.Admission.Survey()
		}
		st, ok := p.survey.Status(status)
		if !ok || st.Bucket == "" {
			return nil
		}
		d := &taskStatusDTO{State: st.State, Tier: string(st.Tier), Bucket: st.Bucket}
		if st.State == wlm.StateRunning {
			d.Tier, d.Tracked = "", &st.Tracked
			return d
		}
		d.Position = st.Position
		d.WaitingMillis = new(st.Waiting.Milliseconds())
		if st.HasEstimate {
			d.EstimatedMillis = new(st.Estimated.Milliseconds())
		}
		return d
	}
	return nil
}

// taskGrouping is how a list of tasks is laid out.
type taskGrouping string

const (
	byNodes   taskGrouping = "nodes"
	byParents taskGrouping = "parents"
	ungrouped taskGrouping = "none"
)

// taskListDTO is an answer with tasks. One of Nodes and Tasks is set.
type taskListDTO struct {
	NodeFailures []*failure `json:"node_failures,omitempty"`
	Nodes        any        `json:"nodes,omitempty"`
	Tasks        any        `json:"tasks,omitempty"`
}

// nodeTasks are tasks of one node.
type nodeTasks struct {
	Node  taskNodeDTO `json:"node"`
	Tasks []*taskDTO  `json:"tasks"`
}

type taskNodeDTO struct {
	Name             string            `json:"name"`
	TransportAddress string            `json:"transport_address"`
	Host             string            `json:"host"`
	IP               string            `json:"ip"` // with the port, as OpenSearch prints it here
	Roles            []string          `json:"roles"`
	Attributes       map[string]string `json:"attributes"`
	Tasks            members           `json:"tasks,omitzero"`
}

func (s *Server) taskNode() taskNodeDTO {
	n := s.cfg.Node
	return taskNodeDTO{Name: n.Name, TransportAddress: n.TransportAddress, Host: n.Host, IP: n.TransportAddress,
		Roles: n.roles(), Attributes: n.attributes()}
}

// layOut prints the tasks of nodes, and which nodes have none to tell of.
func layOut(parts []part[nodeTasks], by taskGrouping) taskListDTO {
	d := taskListDTO{NodeFailures: tally(parts).Failures}
	switch by {
	case ungrouped:
		d.Tasks = append([]*taskDTO{}, together(parts)...)
	case byParents:
		d.Tasks = named(underParents(together(parts)))
	default:
		nodes := members{}
		for _, p := range parts {
			if len(p.value.Tasks) > 0 {
				n := p.value.Node
				n.Tasks = named(p.value.Tasks)
				nodes = append(nodes, member{p.member.ID, n})
			}
		}
		d.Nodes = nodes
	}
	return d
}

// together are the tasks of all nodes.
func together(parts []part[nodeTasks]) (all []*taskDTO) {
	for _, p := range parts {
		all = append(all, p.value.Tasks...)
	}
	return all
}

// named makes an object of tasks, with their ids as keys.
func named(list []*taskDTO) members {
	m := make(members, len(list))
	for i, t := range list {
		m[i] = member{t.taskID().String(), t}
	}
	return m
}

// underParents hangs each task below its parent and returns those whose parent is not in the list.
func underParents(list []*taskDTO) (roots []*taskDTO) {
	byID := make(map[tasks.ID]*taskDTO, len(list))
	for _, t := range list {
		byID[t.taskID()] = t
	}
	for _, t := range list {
		if parent := byID[t.parentID()]; parent != nil {
			parent.Children = append(parent.Children, t)
		} else {
			roots = append(roots, t)
		}
	}
	return roots
}
