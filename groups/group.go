package groups

import (
	"time"

	"github.com/wlmserver/wlmserver/records"
)

const (
	// DefaultID is the id of the group of searches that name no other. It is in no
	// snapshot: it has no limits and cannot be changed.
	DefaultID = "DEFAULT_WORKLOAD_GROUP"

	// MaxQueued is how many searches of one group may wait on one node in all, and so
	// the largest size_per_bucket.
	MaxQueued = 10_000

	// MaxNameLength is the most characters that a name may have.
	MaxNameLength = 50

	maxLimit = 1<<31 - 1 // the largest node_limit and shared_limit
)

// Mode says how strictly a group's limits are applied.
type Mode string

// The modes.
const (
	Enforced Mode = "enforced" // always
	Soft     Mode = "soft"     // resource limits only while the node is in duress
	Monitor  Mode = "monitor"  // never: it counts what would have happened
)

// Attribute says what a throttled group is divided into buckets by.
type Attribute string

// The attributes.
const (
	ByGroup    Attribute = "group"    // one bucket for all
	ByUsername Attribute = "username" // one for each user
	ByRole     Attribute = "role"     // one for each role
)

// Throttling limits how many searches of a bucket run at once. The zero value is off.
// It is immutable once published.
type Throttling struct {
	Attribute   Attribute // empty only when throttling is off
	NodeLimit   *int      // on each node; nil = not set
	SharedLimit *int      // in the cluster, on top of every node's own; nil = not set
}

// NodeTier returns the limit of the node tier, which is on from a limit of 1.
func (t Throttling) NodeTier() (limit int, on bool) { return tier(t.NodeLimit) }

// SharedTier returns the limit of the shared tier, which is on from a limit of 1.
func (t Throttling) SharedTier() (limit int, on bool) { return tier(t.SharedLimit) }

func tier(limit *int) (int, bool) {
	if limit == nil || *limit < 1 {
		return 0, false
	}
	return *limit, true
}

// Queue lets searches over a throttle limit wait. The zero value is off.
type Queue struct {
	SizePerBucket *int // most waiters of a bucket on one node; nil = not set, and as good as 0
}

// ResourceLimits are shares of a node's resources, each above 0 and at most 1. Nil = not
// set. They are immutable once published.
type ResourceLimits struct {
	CPU, Memory, NativeMemory *float64
}

// A Group is one workload group. It is immutable once published, and so safe for
// concurrent use.
type Group struct {
	ID         string // 22 characters of URL-safe base64; never has a colon
	Name       string
	Mode       Mode
	Limits     ResourceLimits
	Settings   map[string]string // search defaults as they were written; see SearchTimeout and the like
	Throttling Throttling
	Queue      Queue
	UpdatedAt  time.Time // UTC, in whole milliseconds; moves forward with every change

	unknown records.Unknown // what a newer version has written beside these
}
