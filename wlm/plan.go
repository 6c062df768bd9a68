package wlm

import (
	"slices"
	"strings"

	"github.com/wlmserver/wlmserver/groups"
)

// Mode is the mode of workload management on this node (the setting wlm.workload_group.mode).
type Mode string

const (
	// ModeEnabled throttles and queues.
	ModeEnabled Mode = "enabled"
	// ModeMonitorOnly lets every search run.
	ModeMonitorOnly Mode = "monitor_only"
	// ModeDisabled lets every search run.
	ModeDisabled Mode = "disabled"
)

// Principal is who sends a search.
type Principal struct {
	User  string
	Roles []string
}

// BucketKey names a bucket. The zero value names none: the search is not throttled.
type BucketKey struct {
	Group     string // the group's id
	Attribute groups.Attribute
	Value     string // the user's or role's name; empty when the bucket is the whole group
}

// names reports whether the key is the bucket's that is named, among those of its group.
func (k *BucketKey) names(by groups.Attribute, value string) bool {
	return k.Attribute == by && k.Value == value
}

func (k BucketKey) String() string {
	switch {
	case k == BucketKey{}:
		return ""
	case k.Attribute == groups.ByGroup:
		return k.Group + ":" + string(k.Attribute)
	default:
		return k.Group + ":" + string(k.Attribute) + ":" + k.Value
	}
}

// Tier names the allowance that a waiter waits for or was refused by.
type Tier string

const (
	// NodeTier is this node's own allowance, node_limit.
	NodeTier Tier = "node"
	// SharedTier is the allowance of all nodes together, shared_limit.
	SharedTier Tier = "shared"
)

// plan is what the policy says about one group. It is immutable.
type plan struct {
	revision  uint64 // of the policy that brought it
	attribute groups.Attribute
	node      int // most node permits of a bucket; 0 = no node tier
	shared    int // most shared permits of a bucket; 0 = no shared tier
	size      int // most waiting waiters of a bucket
	monitor   bool
	stopped   bool
}

// newPlan reads a group. A nil group is one that is gone.
func newPlan(revision uint64, mode Mode, stopped bool, g *groups.Group) plan {
	p := plan{revision: revision, stopped: stopped}
	if g == nil || mode != ModeEnabled {
		return p
	}
	p.node, _ = g.Throttling.NodeTier()
	p.shared, _ = g.Throttling.SharedTier()
	if p.node == 0 && p.shared == 0 {
		return p
	}
	p.attribute = g.Throttling.Attribute
	p.monitor = g.Mode == groups.Monitor
	if g.Queue.SizePerBucket != nil {
		p.size = min(*g.Queue.SizePerBucket, groups.MaxQueued)
	}
	return p
}

// throttles reports whether a search of the group needs a permit, or is watched as if it did.
func (p *plan) throttles() bool { return p.node > 0 || p.shared > 0 }

// parks reports whether waiters have something to wait for. A plan with the size 0 still parks: those that wait stay.
func (p *plan) parks() bool { return p.throttles() && !p.monitor && !p.stopped }

// same reports whether two plans say the same, whichever policy brought them.
func (p *plan) same(q *plan) bool {
	a, b := *p, *q
	a.revision, b.revision = 0, 0
	return a == b
}

// tier is the last one that is asked: what a waiter waits for and what a refusal names.
func (p *plan) tier() (Tier, int) {
	if p.shared > 0 {
		return SharedTier, p.shared
	}
	return NodeTier, p.node
}

// value finds the bucket of a principal within the group. ok is false when the attribute has no value for it.
func (p *plan) value(who Principal) (value string, ok bool) {
	switch p.attribute {
	case groups.ByUsername:
		value = who.User
	case groups.ByRole:
		// The smallest is a stable choice whatever order the roles come in.
		for _, role := range who.Roles {
			if strings.TrimSpace(role) != "" && (value == "" || role < value) {
				value = role
			}
		}
	default:
		return "", true
	}
	return value, strings.TrimSpace(value) != ""
}

// policy is everything that decides about searches: one immutable value.
type policy struct {
	revision uint64
	mode     Mode
	stopped  bool
	snapshot *groups.Snapshot
	groups   map[string]planned
	fallback planned // the default group, also for unknown ids
	// retired has deleted groups some of whose searches still run.
	retired []*group
}

// planned is a group's state with the plan that holds for it.
type planned struct {
	*group
	plan *plan
}

func (p *policy) planned(id string) planned {
	if g, ok := p.groups[id]; ok {
		return g
	}
	return p.fallback
}

// all has every group of the policy: the default one, those of the snapshot, and the retired ones.
func (p *policy) all() []*group {
	out := make([]*group, 0, len(p.groups)+1+len(p.retired))
	out = append(out, p.fallback.group)
	for _, g := range p.groups {
		out = append(out, g.group)
	}
	out = append(out, p.retired...)
	slices.SortFunc(out[1:], func(a, b *group) int { return strings.Compare(a.id, b.id) })
	return out
}
