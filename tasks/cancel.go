package tasks

import "time"

// Cancel cancels the task and all under it with cause c, which must not be nil. It reports whether the task is a cancelled
// one now: false if it cannot be cancelled or has ended, true also if it had been cancelled before, whose cause stays. It
// returns when the contexts have ended, not when the tasks have.
func (t *Task) Cancel(c *Cause) bool {
	if !t.cancellable {
		return false
	}
	pending, ok := t.cancelOne(c, nil)
	for len(pending) > 0 {
		last := len(pending) - 1
		next := pending[last]
		pending, _ = next.cancelOne(c, pending[:last])
	}
	return ok
}

// cancelOne cancels t alone and adds its children to pending. A task cancelled before adds none: whoever did it tells them.
// One that is not cancellable only remembers that nothing more may start under it.
func (t *Task) cancelOne(c *Cause, pending []*Task) (_ []*Task, ok bool) {
	t.mu.Lock()
	if t.ended || t.cause != nil {
		ok = !t.ended
		t.mu.Unlock()
		return pending, ok
	}
	t.cause = c
	t.cancelled = time.Since(t.start)
	pending = t.childrenLocked(pending)
	timer, cancelCtx, status := t.timer, t.cancelCtx, t.status
	t.timer = nil
	t.mu.Unlock()

	if timer != nil {
		timer.Stop()
	}
	if cancelCtx != nil {
		cancelCtx(c)
	}
	if t.cancellable {
		cancelWaiter(status, c)
	}
	return pending, true
}

// Cancelled tells why and when the task was cancelled; a nil Cause if it was not.
func (t *Task) Cancelled() (*Cause, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.cancellable || t.cause == nil {
		return nil, time.Time{}
	}
	return t.cause, t.start.Add(t.cancelled)
}

// CancelAfter cancels the task, with an [IntervalCause], if it still runs d from now; at once if d is 0. A negative d, as
// in units.None, means never. A later call takes the place of an earlier one. It does nothing to a task that is not
// cancellable.
func (t *Task) CancelAfter(d time.Duration) {
	if !t.cancellable {
		return
	}
	if d == 0 {
		t.Cancel(IntervalCause(d))
		return
	}
	var timer *time.Timer
	if d > 0 {
		timer = time.AfterFunc(d, func() { t.Cancel(IntervalCause(d)) })
	}
	t.mu.Lock()
	if !t.ended && t.cause == nil {
		timer, t.timer = t.timer, timer
	}
	t.mu.Unlock()
	if timer != nil {
		timer.Stop()
	}
}
