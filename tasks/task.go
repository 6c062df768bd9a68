package tasks

import (
	"context"
	"sync"
	"time"
)

// Task is one request that runs on this node. Its methods are safe for concurrent use, also after it has ended, when they
// tell how it was at its end.
//
// A busy node has many of them, and they are 256 bytes, which is a size of the allocator's: what is added to them may cost more
// than its own size.
type Task struct {
	manager     *Manager
	parent      *Task
	origin      *ID // the parent on another node
	number      int64
	action      string
	description func() string
	headers     map[string]string
	user        string
	start       time.Time

	// ctx is the context that the task was registered with; of a cancellable one its own, once that has been asked for.
	ctx       context.Context
	cancelCtx context.CancelCauseFunc // of its own context
	unwatch   func() bool             // nil unless the context from outside is watched

	// The small ones share a word.
	slot        int32 // guarded by the shard's lock
	cancellable bool
	direct      bool // its type is Direct
	ended       bool // no longer runs: End has begun; guarded by mu
	over        bool // End is through; guarded by mu

	// older and younger are the neighbours among the parent's children, guarded by the parent's lock.
	older, younger *Task

	mu        sync.Mutex
	children  *Task         // the youngest; those that have not ended
	cause     *Cause        // once set, nothing more starts under the task
	cancelled time.Duration // from start until then
	timer     *time.Timer   // of CancelAfter
	group     string
	status    any
	ran       time.Duration // from start to end
	done      chan struct{} // made when first asked for
	account   *account      // made when work begins
}

// ID names the task.
func (t *Task) ID() ID { return ID{Node: t.manager.node, Number: t.number} }

// Parent names the task that this one works for, even if that has ended; the zero ID if there is none.
func (t *Task) Parent() ID {
	switch {
	case t.parent != nil:
		return t.parent.ID()
	case t.origin != nil:
		return *t.origin
	}
	return ID{}
}

// Action tells what kind of request it is, for example "indices:data/read/search".
func (t *Task) Action() string { return t.action }

// Type tells how the request came: [Transport] or [Direct].
func (t *Task) Type() string {
	if t.direct {
		return Direct
	}
	return Transport
}

// Description tells what in particular the task works on; it may be empty.
func (t *Task) Description() string {
	if t.description == nil {
		return ""
	}
	return t.description()
}

// Headers are the request headers that are shown with the task. They must not be changed.
func (t *Task) Headers() map[string]string { return t.headers }

// User is who asked for the task; empty if nobody is known.
func (t *Task) User() string { return t.user }

// Cancellable reports whether the task can be cancelled at all.
func (t *Task) Cancellable() bool { return t.cancellable }

// Context is what the task's work must run under. Cancelling the task ends it with the *[Cause] as [context.Cause]; ending
// the task does not: what outlives its task goes on. Values come from the context given to [Manager.Register], the deadline
// does not, but that it passes cancels the task. A task that is not cancellable has that very context.
//
// The first call makes it, and only from then on does the end of the context given to Register cancel the task: a task that has
// no work yet, but waits, costs less so. Who has it wait looks at that context.
func (t *Task) Context() context.Context {
	if !t.cancellable {
		return t.ctx
	}
	t.mu.Lock()
	ctx, own := t.ctx, t.cancelCtx != nil
	t.mu.Unlock()
	if own {
		return ctx
	}
	// A context that ends only when the parent is cancelled needs no watch: the parent tells.
	watch := ctx.Done() != nil && (t.parent == nil || !t.parent.ends(ctx))
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cancelCtx == nil {
		t.openLocked(watch)
	}
	return t.ctx
}

// openLocked makes the task's own context, which nobody has yet, so that it may end under the lock.
func (t *Task) openLocked(watch bool) {
	outer := t.ctx
	t.ctx, t.cancelCtx = context.WithCancelCause(context.WithoutCancel(outer))
	switch {
	case t.cause != nil:
		t.cancelCtx(t.cause)
	case watch && !t.ended:
		t.unwatch = context.AfterFunc(outer, func() { t.Cancel(CauseOf(context.Cause(outer))) })
	}
}

// ends reports whether ctx is the task's own, and so ends when it is cancelled, and not otherwise.
func (t *Task) ends(ctx context.Context) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cancelCtx != nil && t.ctx.Done() == ctx.Done()
}

// Start is when the task was registered.
func (t *Task) Start() time.Time { return t.start }

// Running is how long the task has been running, or ran.
func (t *Task) Running() time.Duration {
	t.mu.Lock()
	ended, ran := t.ended, t.ran
	t.mu.Unlock()
	if ended {
		return ran
	}
	return time.Since(t.start)
}

// Children are the tasks registered under this one that have not ended, in the order of their numbers.
func (t *Task) Children() []*Task {
	t.mu.Lock()
	children := t.childrenLocked(nil)
	t.mu.Unlock()
	sortByNumber(children)
	return children
}

func (t *Task) childrenLocked(to []*Task) []*Task {
	for c := t.children; c != nil; c = c.older {
		to = append(to, c)
	}
	return to
}

// adopt takes in a new child, which is given the task's group, unless nothing may start under the task any more: then it
// tells why.
func (t *Task) adopt(child *Task) *Cause {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause != nil {
		return t.cause
	}
	child.group = t.group
	child.older = t.children
	if child.older != nil {
		child.older.younger = child
	}
	t.children = child
	return nil
}

// forget lets an ended child go.
func (t *Task) forget(child *Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if child.younger != nil {
		child.younger.older = child.older
	} else {
		t.children = child.older
	}
	if child.older != nil {
		child.older.younger = child.younger
	}
	child.older, child.younger = nil, nil
}

// SetGroup says which workload group the task runs for, from now on. Tasks registered under it later inherit it.
func (t *Task) SetGroup(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.group = id
}

// Group is the id of the workload group that the task runs for; empty until it has been told.
func (t *Task) Group() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.group
}

// Waiter is a status of a task that waits and must not wait longer than the task lives.
type Waiter interface {
	// Cancel ends the wait, if it has not ended, because of the *[Cause] given. It must not call the task.
	Cancel(cause error)
}

// SetStatus hangs a value on the task that tells how far it is. What it is means nothing here, unless it is a [Waiter]: that is
// cancelled with the task, at once if the task has been cancelled already.
func (t *Task) SetStatus(status any) {
	t.mu.Lock()
	t.status = status
	cause := t.cause
	t.mu.Unlock()
	if cause != nil && t.cancellable {
		cancelWaiter(status, cause)
	}
}

func cancelWaiter(status any, c *Cause) {
	if w, ok := status.(Waiter); ok {
		w.Cancel(c)
	}
}

// Status is what [Task.SetStatus] was given last; nil before.
func (t *Task) Status() any {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status
}

// End says that the task is over: it is no longer listed, its timer is off, and it cannot be cancelled any more. It must be
// called once for every registered task; a second call changes nothing.
func (t *Task) End() {
	t.mu.Lock()
	if t.ended {
		t.mu.Unlock()
		return
	}
	t.ended = true
	t.ran = time.Since(t.start)
	timer, unwatch := t.timer, t.unwatch
	t.timer = nil
	cancelledFor := time.Duration(-1)
	if t.cause != nil && t.cancellable {
		cancelledFor = t.ran - t.cancelled
	}
	t.mu.Unlock()

	if timer != nil {
		timer.Stop()
	}
	if cancelledFor >= 0 {
		t.manager.late.left(t.action, cancelledFor)
	}
	if unwatch != nil {
		unwatch()
	}
	t.manager.shard(t.number).remove(t)
	if t.parent != nil {
		t.parent.forget(t)
	}
	defer t.finish()
	if t.manager.onEnd != nil {
		t.manager.onEnd(t)
	}
}

func (t *Task) finish() {
	t.mu.Lock()
	t.over = true
	done := t.done
	t.mu.Unlock()
	if done != nil {
		close(done)
	}
}

// Ended is closed when the task has ended and everybody who wanted to know of it has been told.
func (t *Task) Ended() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done == nil {
		t.done = make(chan struct{})
		if t.over {
			close(t.done)
		}
	}
	return t.done
}
