package tasks

import (
	"maps"
	"sync"
	"time"
)

// WithPatience gives how many milliseconds a cancelled task may run on before it is late; see [Manager.Late]. It is asked when a
// cancelled task ends and when somebody wants to know. Without it no task is ever late.
func WithPatience(f func() int) Option {
	return func(m *Manager) { m.late.patience = f }
}

// Late counts the tasks of one action that ran on for longer than they should have after they had been cancelled.
type Late struct {
	Current uint64 // that still run
	Total   uint64 // and those that have ended
}

// lateCounts remembers the late ones that have ended.
type lateCounts struct {
	patience func() int // in milliseconds; nil: nobody is ever late

	mu    sync.Mutex
	ended map[string]uint64 // by action
}

// Late counts the late tasks by their action.
func (m *Manager) Late() map[string]Late {
	counts := make(map[string]Late)
	if m.late.patience == nil {
		return counts
	}
	patience, now := m.late.patience(), time.Now()
	for _, t := range m.live() {
		if c, at := t.Cancelled(); c != nil && isLate(now.Sub(at), patience) {
			l := counts[t.action]
			l.Current++
			l.Total++
			counts[t.action] = l
		}
	}
	m.late.mu.Lock()
	ended := maps.Clone(m.late.ended)
	m.late.mu.Unlock()
	for action, n := range ended {
		l := counts[action]
		l.Total += n
		counts[action] = l
	}
	return counts
}

// left counts a task that ends some time after it was cancelled.
func (c *lateCounts) left(action string, after time.Duration) {
	if c.patience == nil || !isLate(after, c.patience()) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil {
		c.ended = make(map[string]uint64)
	}
	c.ended[action]++
}

func isLate(after time.Duration, patience int) bool { return after.Milliseconds() > int64(patience) }
