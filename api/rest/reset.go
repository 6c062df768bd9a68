package rest

import (
	"context"
	"errors"
	"time"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/rules"
	"github.com/wlmserver/wlmserver/settings"
	"github.com/wlmserver/wlmserver/tasks"
)

// resetTasks cancels whatever can be cancelled, frees all scrolls, and waits until the tasks have ended; ended is false when the
// time is up before.
func (c *call) resetTasks(timeout time.Duration) (ended bool, err error) {
	m := c.s.cfg.Tasks
	cancelled := m.Cancel(m.List(tasks.Filter{Cancellable: true}), tasks.UserCause())
	c.s.cfg.Search.ClearAllScrolls()
	ctx, done := c.untilGone()
	defer done()
	return awaitTasks(ctx, cancelled, timeout)
}

// resetPart resets any other part.
func (s *Server) resetPart(ctx context.Context, part string) error {
	switch part {
	case faultsPart:
		s.control.script.Set(nil)
	case rulesPart:
		return s.resetRules(ctx)
	case groupsPart:
		return s.resetGroups(ctx)
	case settingsPart:
		all := []settings.Entry{{Key: "*"}}
		_, err := s.cfg.Settings.Apply(ctx, settings.Update{Persistent: all, Transient: all})
		return err
	case indicesPart:
		return s.cfg.Stub.DeleteIndex("*")
	case requestsPart:
		s.control.requests.clear()
	}
	return nil
}

func (s *Server) resetRules(ctx context.Context) error {
	for _, r := range s.cfg.Rules.Snapshot().After("") {
		if err := s.cfg.Rules.Delete(ctx, r.ID); err != nil {
			if _, gone := errors.AsType[*rules.NotFoundError](err); !gone {
				return err
			}
		}
	}
	return nil
}

func (s *Server) resetGroups(ctx context.Context) error {
	for _, g := range s.cfg.Groups.Snapshot().All() {
		if err := s.cfg.Groups.Delete(ctx, g.Name); err != nil {
			if _, gone := errors.AsType[*groups.NotFoundError](err); !gone {
				return err
			}
		}
	}
	return nil
}
