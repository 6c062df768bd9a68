package tasks_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/wlmserver/wlmserver/tasks"
)

// TestContextIsMadeWhenAskedFor: the end of the context that a task was registered with is nothing to it before it has work.
func TestContextIsMadeWhenAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := tasks.NewManager("n")
		type key struct{}
		outer, leave := context.WithCancel(context.WithValue(t.Context(), key{}, 1))
		task := start(t, m, outer, tasks.Spec{Cancellable: true})
		leave()
		synctest.Wait()
		if c, _ := task.Cancelled(); c != nil {
			t.Errorf("cancelled, %v, before anybody has asked for its context", c)
		}
		ctx := task.Context()
		if ctx != task.Context() || ctx.Value(key{}) != 1 {
			t.Error("its context is another one each time, or has lost a value")
		}
		<-ctx.Done()
		if c, _ := task.Cancelled(); c == nil || c.Kind != tasks.ByDisconnect || context.Cause(ctx) != c {
			t.Errorf("the task was cancelled because of %v, its context ended because of %v", c, context.Cause(ctx))
		}
	})
}

// TestContextOfACancelledTask: it has ended when it is made.
func TestContextOfACancelledTask(t *testing.T) {
	m := tasks.NewManager("n")
	task := cancellable(t, m, nil)
	cause := tasks.UserCause()
	task.Cancel(cause)
	if ctx := task.Context(); ctx.Err() == nil || context.Cause(ctx) != cause {
		t.Errorf("its context has ended because of %v", context.Cause(ctx))
	}
}

// waiting is a status that is cancelled with its task.
type waiting struct{ cause error }

func (w *waiting) Cancel(cause error) { w.cause = cause }

// TestWaiterIsCancelledWithItsTask: what a task waits for by its status ends with it.
func TestWaiterIsCancelledWithItsTask(t *testing.T) {
	m := tasks.NewManager("n")
	parent := cancellable(t, m, nil)
	child := cancellable(t, m, parent)
	stubborn := start(t, m, t.Context(), tasks.Spec{Parent: parent})
	over := cancellable(t, m, parent)
	var former, now, never, gone, late waiting
	child.SetStatus(&former)
	child.SetStatus(&now)
	stubborn.SetStatus(&never)
	over.SetStatus(&gone)
	over.End()
	cause := tasks.UserCause()
	parent.Cancel(cause)
	if now.cause != cause || former.cause != nil {
		t.Errorf("the waiter was cancelled because of %v, the one before it because of %v", now.cause, former.cause)
	}
	if never.cause != nil || gone.cause != nil {
		t.Errorf("the waiter of a task that cannot be cancelled was, because of %v, or that of one that has ended, because of %v", never.cause, gone.cause)
	}
	child.SetStatus(&late)
	if late.cause != cause {
		t.Errorf("what begins to wait after the cancellation ends because of %v", late.cause)
	}
}
