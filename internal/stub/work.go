package stub

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"time"

	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
)

const (
	// burnStep is how much processor time passes between two looks at whether to
	// go on. It is far below the 5 ms that are promised, because on a busy machine
	// it may take many times as long.
	burnStep = 200 * time.Microsecond
	// holdStep is how many bytes are taken between two looks: touching them takes
	// well under a millisecond.
	holdStep = 1 << 20
	// reportStep is how much processor time passes before a running phase tells
	// its task of it.
	reportStep = 2 * time.Millisecond
	pageSize   = 4096
)

// errTimeIsOver ends a phase whose time limit has passed.
var errTimeIsOver = errors.New("time exceeded")

// phase is one phase of a search at work on one shard. It lives on a worker: on a
// goroutine that is locked to its thread, unless the phase is light.
type phase struct {
	task     *tasks.Task
	work     *tasks.Work
	budget   *budget
	quit     <-chan struct{}
	deadline time.Time // zero: none

	began   time.Time     // of a light one
	lastCPU time.Duration // by its clock, when it was told last
	used    shard.Usage
	ended   bool
}

// begin starts the account of a phase. A light one costs nothing on purpose and is
// over in microseconds without waiting for anything: to ask the thread's clock, a
// call of the kernel, would cost more than it does, and any clock is as good.
func (p *phase) begin(light bool) {
	p.work = p.task.StartWork()
	if light {
		p.began = time.Now()
		return
	}
	p.lastCPU = threadCPU()
}

// cpu is the processor time by the phase's clock.
func (p *phase) cpu() time.Duration {
	if !p.began.IsZero() {
		return time.Since(p.began)
	}
	return threadCPU()
}

// end closes the account and tells what is in it. It may be called again.
func (p *phase) end() shard.Usage {
	if !p.ended {
		p.ended = true
		p.report(0)
		p.work.Done()
	}
	return p.used
}

// report tells the task what was used since it was last told.
func (p *phase) report(bytes int64) {
	now := p.cpu()
	cpu := now - p.lastCPU
	p.lastCPU = now
	p.used.CPU += cpu
	p.used.Memory += bytes
	p.work.Add(cpu, bytes)
}

// do does what a phase costs on purpose: it takes the memory, burns the processor
// time, waits until the time is over, and gives the memory back. It returns
// errTimeIsOver, a *tasks.CancelledError, a *FullError, or a *search.ShardError
// for a failure that was asked for.
func (p *phase) do(w *shard.Work) error {
	if err := p.stopped(); err != nil && !w.IgnoreCancel {
		return err
	}
	if w.Free() {
		return p.cancelled()
	}
	start := time.Now()
	var h held
	defer func() { p.release(&h) }()
	err := p.hold(&h, w)
	if err == nil {
		err = p.burn(w)
	}
	if err == nil {
		err = p.waitUntil(start.Add(w.Time), w)
	}
	if err == nil {
		err = p.cancelled()
	}
	if err == nil && w.Fail != "" {
		err = &search.ShardError{Type: "query_phase_execution_exception", Reason: w.Fail, Status: http.StatusInternalServerError}
	}
	return err
}

// stopped says why the phase is to stop now, if it is.
func (p *phase) stopped() error {
	if err := p.cancelled(); err != nil {
		return err
	}
	if !p.deadline.IsZero() && !time.Now().Before(p.deadline) {
		return errTimeIsOver
	}
	return nil
}

// cancelled says that the task was cancelled, or the pool closed, if it was.
func (p *phase) cancelled() error {
	if p.task.Context().Err() != nil {
		return taskCancelled(p.task)
	}
	select {
	case <-p.quit:
		return errPoolClosed
	default:
		return nil
	}
}

// taskCancelled is the error of a task whose context has ended.
func taskCancelled(t *tasks.Task) error {
	cause, _ := t.Cancelled()
	if cause == nil { // it is not cancellable: only what it runs under has ended
		cause = &tasks.Cause{Kind: tasks.ByParent, Reason: context.Cause(t.Context()).Error()}
	}
	return &tasks.CancelledError{Cause: cause}
}

// look is stopped, for work that may choose not to look; the pool's end stops it
// all the same.
func (p *phase) look(w *shard.Work) error {
	if !w.IgnoreCancel {
		return p.stopped()
	}
	select {
	case <-p.quit:
		return errPoolClosed
	default:
		return nil
	}
}

// held is memory that a phase holds.
type held struct {
	bytes  int64
	blocks [][]byte
}

// hold takes memory and touches every page of it, so that it is really there.
func (p *phase) hold(h *held, w *shard.Work) error {
	if w.Memory <= 0 {
		return nil
	}
	if err := p.budget.take(w.Memory); err != nil {
		return err
	}
	h.bytes = w.Memory
	h.blocks = make([][]byte, 0, (w.Memory+holdStep-1)/holdStep)
	for left := w.Memory; left > 0; left -= holdStep {
		if err := p.look(w); err != nil {
			return err
		}
		block := make([]byte, min(left, holdStep))
		for i := 0; i < len(block); i += pageSize {
			block[i] = 1
		}
		h.blocks = append(h.blocks, block)
		p.report(int64(len(block)))
	}
	return nil
}

func (p *phase) release(h *held) {
	runtime.KeepAlive(h.blocks)
	p.budget.give(h.bytes)
}

// burn keeps the processor busy until the phase has used the processor time that
// it is to use, by the thread's own clock.
func (p *phase) burn(w *shard.Work) error {
	if w.CPU <= 0 {
		return nil
	}
	start := threadCPU()
	for {
		if err := p.look(w); err != nil {
			return err
		}
		burnt := threadCPU() - start
		if burnt >= w.CPU {
			return nil
		}
		spin(min(burnStep, w.CPU-burnt))
		if threadCPU()-p.lastCPU >= reportStep {
			p.report(0)
		}
	}
}

// spin uses processor time of the thread.
func spin(d time.Duration) {
	const rounds = 1000 // about a microsecond
	x := uint64(d) | 1
	for end := threadCPU() + d; threadCPU() < end; {
		for range rounds {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
	}
	runtime.KeepAlive(x)
}

// waitUntil holds the worker until then, or less when there is a reason to stop.
func (p *phase) waitUntil(then time.Time, w *shard.Work) error {
	d := time.Until(then)
	if d <= 0 {
		return p.look(w)
	}
	p.report(0)
	if clockRunsWhileWaiting {
		defer func() { p.lastCPU = threadCPU() }()
	}
	var cancelled <-chan struct{}
	over := false
	if !w.IgnoreCancel {
		cancelled = p.task.Context().Done()
		if !p.deadline.IsZero() && p.deadline.Before(then) {
			d, over = time.Until(p.deadline), true
		}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		if err := p.look(w); err != nil { // when both have come, the cancellation counts
			return err
		}
		if over {
			return errTimeIsOver
		}
		return nil
	case <-cancelled:
		return taskCancelled(p.task)
	case <-p.quit:
		return errPoolClosed
	}
}
