package wlm

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/wlmserver/wlmserver/groups"
)

// ErrNoPermit says that [Admission.TryEnter] found no permit. Nothing was counted.
var ErrNoPermit = errors.New("wlm: no permit is free")

// Why says what made a refusal.
type Why uint8

const (
	// QueueOff refuses what finds no permit: the group has no queue.
	QueueOff Why = iota + 1
	// QueueFull refuses what finds size_per_bucket waiters in its bucket.
	QueueFull
	// GroupFull refuses what finds groups.MaxQueued waiters in its group.
	GroupFull
	// Unavailable refuses what may not wait while no owner of the bucket can be asked.
	Unavailable
)

// RejectedError is the refusal of a search by a throttle limit.
type RejectedError struct {
	GroupID    string
	Group      string // the group's name
	Attribute  groups.Attribute
	Value      string // the user's or role's name; empty for the whole group
	Tier       Tier
	Limit      int // of the tier, per bucket
	Why        Why
	Depth      int           // waiters of the bucket, or of the group when that is full
	Size       int           // size_per_bucket
	RetryAfter time.Duration // when to come again: a whole number of seconds, at least one
}

func (e *RejectedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Request throttled: workload group [%s]", e.Group)
	if e.Attribute != groups.ByGroup {
		fmt.Fprintf(&b, ", %s [%s]", e.Attribute, e.Value)
	}
	setting := "throttling.node_limit"
	if e.Tier == SharedTier {
		setting = "throttling.shared_limit"
		fmt.Fprintf(&b, " has reached its cluster-wide limit of %d concurrent requests", e.Limit)
	} else {
		fmt.Fprintf(&b, " has reached its per-node limit of %d concurrent requests", e.Limit)
	}
	switch e.Why {
	case QueueFull:
		fmt.Fprintf(&b, " and its queue is full (%d waiting, queue.size_per_bucket is %d); retry later, or raise %s or queue.size_per_bucket of the group",
			e.Depth, e.Size, setting)
	case GroupFull:
		fmt.Fprintf(&b, " and %d of the group's requests wait on this node already, the most that may; retry later, or raise %s of the group", e.Depth, setting)
	case Unavailable:
		b.WriteString(", as far as is known: the shared limit is unavailable, because no owner of the bucket answers; retry later")
	default:
		fmt.Fprintf(&b, " and its queue is off (%d waiting, queue.size_per_bucket is %d); retry later, or raise %s or queue.size_per_bucket of the group",
			e.Depth, e.Size, setting)
	}
	return b.String()
}

// StoppedError is the answer to searches that have not started when the node stops.
type StoppedError struct {
	RetryAfter time.Duration // when to come again: a whole number of seconds, at least one
}

func (e *StoppedError) Error() string {
	return "the node is shutting down and starts no more searches; retry on another node, or later"
}

// CancelledError is the answer to a search whose context ended before it was admitted.
type CancelledError struct {
	Cause  error // the context's cause
	Queued bool  // it was parked
}

func (e *CancelledError) Error() string {
	if e.Queued {
		return fmt.Sprintf("cancelled while queued in its workload group: %v", e.Cause)
	}
	return fmt.Sprintf("cancelled before it was admitted: %v", e.Cause)
}

// Unwrap gives the context's cause.
func (e *CancelledError) Unwrap() error { return e.Cause }

// errStopped is the cause with which waiters end when the node stops.
var errStopped = &StoppedError{RetryAfter: time.Second}

// ended is the error of a search that was not admitted because of cause.
func ended(cause error, queued bool) error {
	if errors.Is(cause, errStopped) {
		return errStopped
	}
	return &CancelledError{Cause: cause, Queued: queued}
}

// longestRetryAfter bounds what a client is told: past it the estimate says more about the past than about the queue.
const longestRetryAfter = 5 * time.Minute

// retryAfter rounds an estimate up to whole seconds, at least one.
func retryAfter(estimate time.Duration) time.Duration {
	return min(max(time.Duration(math.Ceil(estimate.Seconds()))*time.Second, time.Second), longestRetryAfter)
}
