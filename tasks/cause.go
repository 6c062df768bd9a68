package tasks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wlmserver/wlmserver/internal/units"
)

// Kind is who or what cancelled a task.
type Kind uint8

// The kinds of causes.
const (
	ByUser       Kind = iota // asked for through the API
	ByInterval               // its cancel_after_time_interval, or a deadline of its context, has passed
	ByDisconnect             // its client closed the connection
	ByParent                 // what it worked for ended, for a reason that is not known as a Cause
	ByDuress                 // the node or the workload group was short of resources
	ByShutdown               // the node stops
)

// String is the kind in one lower-case word, as metrics name it.
func (k Kind) String() string {
	switch k {
	case ByUser:
		return "user"
	case ByInterval:
		return "interval"
	case ByDisconnect:
		return "disconnect"
	case ByParent:
		return "parent"
	case ByDuress:
		return "duress"
	case ByShutdown:
		return "shutdown"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Cause is why a task was cancelled. It is an error, found by [context.Cause] of the task's context. It is immutable once a
// task has been cancelled with it.
type Cause struct {
	Kind   Kind
	Reason string // for people
}

func (c *Cause) Error() string { return c.Reason }

// UserCause is the cause of a task that somebody cancelled through the API.
func UserCause() *Cause { return &Cause{Kind: ByUser, Reason: "by user request"} }

// IntervalCause is the cause of a task that was still there d after [Task.CancelAfter] was called.
func IntervalCause(d time.Duration) *Cause {
	return &Cause{Kind: ByInterval, Reason: "Cancellation timeout of " + units.FormatTime(d) + " is expired"}
}

// DisconnectCause is the cause of a task whose client closed the connection.
func DisconnectCause() *Cause {
	return &Cause{Kind: ByDisconnect, Reason: "channel closed: the client is gone"}
}

// ShutdownCause is the cause of a task that was still running when the node had to stop.
func ShutdownCause() *Cause { return &Cause{Kind: ByShutdown, Reason: "the node is shutting down"} }

// CauseOf tells what err, the [context.Cause] of a context that has ended, means for a task. A plain cancellation is what a server
// does to the context of a request whose client has gone.
func CauseOf(err error) *Cause {
	if c, ok := errors.AsType[*Cause](err); ok {
		return c
	}
	switch {
	case errors.Is(err, context.Canceled):
		return DisconnectCause()
	case errors.Is(err, context.DeadlineExceeded):
		return &Cause{Kind: ByInterval, Reason: "its deadline has passed"}
	}
	return &Cause{Kind: ByParent, Reason: err.Error()}
}

// CancelledError says that a task was cancelled, or that it could not start because what it was to run under had been.
type CancelledError struct {
	Cause       *Cause
	BeforeStart bool
}

func (e *CancelledError) Error() string {
	if e.BeforeStart {
		return "task cancelled before starting: " + e.Cause.Reason
	}
	return "task cancelled: " + e.Cause.Reason
}

// Unwrap gives the Cause.
func (e *CancelledError) Unwrap() error { return e.Cause }
