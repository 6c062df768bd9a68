package peer

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/wlmserver/wlmserver/internal/cluster/ring"
)

// UnreachableError: a member could not be reached, or was lost before it answered. What it was asked to do may have been done.
type UnreachableError struct {
	Member ring.Member
	Reason string
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("node [%s] at %s cannot be reached: %s", e.Member.Name, e.Member.Transport, e.Reason)
}

// RefusedError: who answers at a member's address does not take the call: it is of another cluster, or another node.
type RefusedError struct {
	Member ring.Member
	Reason string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("node [%s] at %s refuses: %s", e.Member.Name, e.Member.Transport, e.Reason)
}

// FailedError: a member has answered that it could not do what it was asked.
type FailedError struct {
	Member ring.Member
	Reason string
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("node [%s] failed: %s", e.Member.Name, e.Reason)
}

// ErrClosed says that this side has closed the session, or all connections.
var ErrClosed = errors.New("closed here")

// explain says what the error of a call means. When ctx has ended it is that.
func explain(ctx context.Context, to ring.Member, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, io.EOF) {
		return &UnreachableError{to, "it has ended the call"}
	}
	s := status.Convert(err)
	switch s.Code() {
	case codes.Unavailable, codes.Canceled:
		return &UnreachableError{to, s.Message()}
	case codes.DeadlineExceeded: // the other side's clock, or the connection's, was a little faster
		if _, ok := ctx.Deadline(); ok {
			return context.DeadlineExceeded
		}
	case codes.PermissionDenied, codes.FailedPrecondition, codes.Unimplemented:
		return &RefusedError{to, s.Message()}
	}
	return &FailedError{to, s.Message()}
}
