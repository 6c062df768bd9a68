package tasks

import "strings"

// Filter chooses tasks. What is left out chooses all.
type Filter struct {
	// Nodes: the node is named by one of these: its id, one of its other names, "_local", "_all", or a pattern.
	Nodes []string
	// Actions: the task's action is one of these. Patterns as in Nodes; nothing is taken out by a leading '-'.
	Actions []string
	// Parent: the task was registered under this one, which may have ended.
	Parent ID
	// User: the task belongs to this user.
	User string
	// Cancellable: the task can be cancelled.
	Cancellable bool
}

func (f *Filter) match(t *Task) bool {
	return (!f.Cancellable || t.cancellable) &&
		(f.User == "" || f.User == t.user) &&
		(!f.Parent.IsSet() || f.Parent == t.Parent()) &&
		(len(f.Actions) == 0 || matchAny(f.Actions, t.action))
}

// matchesNode reports whether patterns name this node.
func (m *Manager) matchesNode(patterns []string) bool {
	if len(patterns) == 0 {
		return true
	}
	for _, p := range patterns {
		if p == "_all" || p == "_local" || match(p, m.node) {
			return true
		}
	}
	for _, name := range m.names {
		if matchAny(patterns, name) {
			return true
		}
	}
	return false
}

func matchAny(patterns []string, s string) bool {
	for _, p := range patterns {
		if match(p, s) {
			return true
		}
	}
	return false
}

// match reports whether s is what pattern describes, in which '*' stands for any text, also none, and every other
// character for itself. It never goes back further than to the last '*', so that its time is bounded by the product of
// the two lengths.
func match(pattern, s string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == s
	}
	s, ok := strings.CutPrefix(s, first)
	if !ok {
		return false
	}
	for {
		part, next, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(s, part)
		}
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s, rest = s[i+len(part):], next
	}
}
