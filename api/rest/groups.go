package rest

import (
	"context"
	"unicode/utf8"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/settings"
	"github.com/wlmserver/wlmserver/wlm"
)

const groupAction = "cluster:admin/opensearch/wlm/workload_group/"

func (s *Server) groupRoutes() []route {
	const all, one = "/_wlm/workload_group", "/_wlm/workload_group/{name}"
	return []route{
		{methods: "PUT POST", pattern: all, params: timeouts, body: required, admin: true, change: true, prepare: s.createGroup},
		{methods: "PUT POST", pattern: one, params: timeouts, body: required, admin: true, change: true, prepare: s.updateGroup},
		{methods: "GET", pattern: all, params: timeouts + " local", prepare: s.listGroups},
		{methods: "GET", pattern: one, params: timeouts + " local", prepare: s.getGroup},
		{methods: "DELETE", pattern: one, params: timeouts, admin: true, change: true, prepare: s.deleteGroup},
	}
}

type groupDTO struct {
	ID         string            `json:"_id"`
	Name       string            `json:"name"`
	Mode       groups.Mode       `json:"resiliency_mode"`
	Limits     limitsDTO         `json:"resource_limits"`
	Settings   map[string]string `json:"settings"`
	Throttling throttlingDTO     `json:"throttling,omitzero"`
	Queue      queueDTO          `json:"queue,omitzero"`
	UpdatedAt  int64             `json:"updated_at"` // milliseconds since 1970
}

type limitsDTO struct {
	CPU          *double `json:"cpu,omitempty"`
	Memory       *double `json:"memory,omitempty"`
	NativeMemory *double `json:"native_memory,omitempty"`
}

type throttlingDTO struct {
	Attribute   groups.Attribute `json:"attribute,omitempty"`
	NodeLimit   *int             `json:"node_limit,omitempty"`
	SharedLimit *int             `json:"shared_limit,omitempty"`
}

type queueDTO struct {
	SizePerBucket *int `json:"size_per_bucket,omitempty"`
}

func newGroupDTO(g *groups.Group) groupDTO {
	d := groupDTO{
		ID:         g.ID,
		Name:       g.Name,
		Mode:       g.Mode,
		Limits:     limitsDTO{(*double)(g.Limits.CPU), (*double)(g.Limits.Memory), (*double)(g.Limits.NativeMemory)},
		Settings:   g.Settings,
		Throttling: throttlingDTO(g.Throttling),
		Queue:      queueDTO(g.Queue),
		UpdatedAt:  g.UpdatedAt.UnixMilli(),
	}
	if d.Settings == nil {
		d.Settings = map[string]string{}
	}
	return d
}

type groupsDTO struct {
	Groups []groupDTO `json:"workload_groups"`
}

func (s *Server) createGroup(c *call) (action, error) {
	patch, err := c.groupPatch("create")
	if err != nil {
		return nil, err
	}
	return c.changeGroup("_create", func(ctx context.Context) (any, error) {
		g, err := s.cfg.Groups.Create(ctx, patch)
		if err != nil {
			return nil, err
		}
		return newGroupDTO(g), nil
	}), nil
}

func (s *Server) updateGroup(c *call) (action, error) {
	name := c.param("name")
	if err := checkGroupName(name); err != nil {
		return nil, err
	}
	patch, err := c.groupPatch("update")
	if err != nil {
		return nil, err
	}
	return c.changeGroup("_update", func(ctx context.Context) (any, error) {
		g, err := s.cfg.Groups.Update(ctx, name, patch)
		if err != nil {
			return nil, err
		}
		return newGroupDTO(g), nil
	}), nil
}

func (s *Server) deleteGroup(c *call) (action, error) {
	if err := c.checkGroupChange("delete"); err != nil {
		return nil, err
	}
	name := c.param("name")
	return c.changeGroup("_delete", func(ctx context.Context) (any, error) {
		return acknowledged{true}, s.cfg.Groups.Delete(ctx, name)
	}), nil
}

func (s *Server) listGroups(c *call) (action, error) {
	if err := c.checkTimeouts(); err != nil {
		return nil, err
	}
	return func() (*answer, error) {
		return c.asTask(groupAction+"_get", false, func() (*answer, error) {
			all := s.cfg.Groups.Snapshot().All()
			d := groupsDTO{Groups: make([]groupDTO, len(all))}
			for i, g := range all {
				d.Groups[i] = newGroupDTO(g)
			}
			return ok(d)
		})
	}, nil
}

func (s *Server) getGroup(c *call) (action, error) {
	name := c.param("name")
	if err := checkGroupName(name); err != nil {
		return nil, err
	}
	if err := c.checkTimeouts(); err != nil {
		return nil, err
	}
	return func() (*answer, error) {
		return c.asTask(groupAction+"_get", false, func() (*answer, error) {
			g := s.cfg.Groups.Snapshot().ByName(name)
			if g == nil {
				return nil, &groups.NotFoundError{Name: name}
			}
			return ok(groupsDTO{[]groupDTO{newGroupDTO(g)}})
		})
	}, nil
}

// groupPatch reads the body of a change.
func (c *call) groupPatch(verb string) (groups.Patch, error) {
	if err := c.checkGroupChange(verb); err != nil {
		return groups.Patch{}, err
	}
	return groups.ParsePatch(c.body)
}

// checkGroupChange refuses changes of groups while workload management does not act on them.
func (c *call) checkGroupChange(verb string) error {
	if err := c.checkTimeouts(); err != nil {
		return err
	}
	if mode := wlm.Mode(c.s.cfg.Settings.Snapshot().String(settings.WLMMode)); mode != wlm.ModeEnabled {
		return illegalState("cannot %s a workload group: workload management is in mode [%s]; set [%s] to [%s] first", verb, mode, settings.WLMMode, wlm.ModeEnabled)
	}
	return nil
}

// changeGroup makes a change as a task. It goes through even when the client leaves meanwhile.
func (c *call) changeGroup(name string, change func(context.Context) (any, error)) action {
	return func() (*answer, error) {
		return c.asTask(groupAction+name, false, func() (*answer, error) {
			v, err := change(context.WithoutCancel(c.r.Context()))
			if err != nil {
				return nil, err
			}
			return ok(v)
		})
	}
}

// checkGroupName refuses a name that no group can have.
func checkGroupName(name string) error {
	if n := utf8.RuneCountInString(name); n > groups.MaxNameLength {
		return illegalArgument("the name of a workload group has 1 to %d characters, this one has %d", groups.MaxNameLength, n)
	}
	return nil
}
