package stub

import (
	"context"
	"sync"
	"time"

	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
)

// PoolStats tells what the workers of the search pool do and did.
type PoolStats struct {
	Size, QueueSize int // the bounds

	Threads int // workers there are
	Active  int // workers at work
	Queue   int // pieces of work that wait
	Largest int // the most workers there ever were

	Rejected, Completed uint64
	Wait                time.Duration // what all work together has waited for a worker
}

// errPoolClosed is why work fails that the pool had when it was closed.
var errPoolClosed = &tasks.CancelledError{Cause: tasks.ShutdownCause()}

// pool is a bounded set of workers with a bounded queue before them, oldest
// first. Workers start as they are needed and stay until close.
type pool struct {
	name     string
	size     int
	capacity int
	quit     chan struct{} // closed by close: whatever works is to stop
	workers  sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	idle      []chan *job // of the workers without work, each with room for one
	threads   int
	largest   int
	active    int
	first     *job // of the queue
	last      *job
	queued    int
	rejected  uint64
	completed uint64
	wait      time.Duration
}

// work is what a worker does. Exactly one of two things happens to it: run and
// then finish are called on a worker, of light work perhaps on the goroutine that
// submits it, or drop is, with the reason, on any goroutine. The pool has forgotten it when it calls finish. None of them may
// panic.
type work interface {
	run()
	finish()
	drop(why error)
	what() string // for the message that there was no room for it
}

// job is the place of work in the pool.
type job struct {
	work  work
	light bool // over in microseconds, without waiting for anything

	// Guarded by the pool's lock.
	waiting  bool
	since    time.Time
	unwatch  func() bool
	previous *job
	next     *job
}

func newPool(name string, size, capacity int) *pool {
	return &pool{name: name, size: size, capacity: capacity, quit: make(chan struct{})}
}

// submit hands j to a worker, or does what is light in its place, or lets j wait for
// one; then it leaves the queue as soon as ctx ends, with context.Cause. When there is no room it is dropped with
// a *search.PoolFullError.
func (p *pool) submit(ctx context.Context, j *job) {
	p.mu.Lock()
	switch {
	case p.closed:
		p.mu.Unlock()
		j.work.drop(errPoolClosed)
	case len(p.idle) > 0:
		worker := p.idle[len(p.idle)-1] // the one whose caches are warmest
		p.idle = p.idle[:len(p.idle)-1]
		p.active++
		p.mu.Unlock()
		if j.light {
			p.standIn(worker, j)
			return
		}
		worker <- j
	case p.threads < p.size:
		p.threads++
		p.largest = p.threads // they only become fewer when the pool is closed
		p.active++
		p.workers.Add(1)
		p.mu.Unlock()
		go p.worker(j)
	case p.queued < p.capacity:
		p.pushLocked(j)
		p.mu.Unlock()
		p.watch(ctx, j)
	default:
		p.rejected++
		full := &search.PoolFullError{
			Pool: p.name, Threads: p.threads, Active: p.active,
			Queued: p.queued, Capacity: p.capacity, Completed: p.completed,
		}
		p.mu.Unlock()
		full.Work = j.work.what()
		j.work.drop(full)
	}
}

// watch takes j out of the queue when ctx ends.
func (p *pool) watch(ctx context.Context, j *job) {
	unwatch := context.AfterFunc(ctx, func() {
		p.mu.Lock()
		waits := j.waiting
		if waits {
			p.removeLocked(j)
		}
		p.mu.Unlock()
		if waits {
			j.work.drop(context.Cause(ctx))
		}
	})
	p.mu.Lock()
	if j.waiting {
		j.unwatch, unwatch = unwatch, nil
	}
	p.mu.Unlock()
	if unwatch != nil { // it left the queue meanwhile
		unwatch()
	}
}

// worker is the life of a worker, which begins with a job.
func (p *pool) worker(j *job) {
	defer p.workers.Done()
	mailbox := make(chan *job, 1)
	for j != nil {
		j.work.run()
		next, over := p.turn(mailbox)
		j.work.finish()
		if next == nil && !over {
			next = <-mailbox // nil when the pool is closed
		}
		j = next
	}
}

// standIn does the job of a worker that has no work, on this goroutine: to wake the worker, and it to wake who waits for the
// result, takes longer than what is light. The worker stays taken until then.
func (p *pool) standIn(worker chan *job, j *job) {
	j.work.run()
	next, over := p.turn(worker)
	switch {
	case next != nil:
		worker <- next
	case over:
		close(worker)
	}
	j.work.finish()
}

// turn says that a worker has done its job, and gives it the next. If there is none the worker is idle, or over if the pool is
// closed.
func (p *pool) turn(mailbox chan *job) (next *job, over bool) {
	var unwatch func() bool
	p.mu.Lock()
	p.active--
	p.completed++
	next = p.first
	switch {
	case next != nil:
		p.removeLocked(next)
		p.active++
		p.wait += time.Since(next.since)
		unwatch = next.unwatch
	case p.closed:
		p.threads--
		over = true
	default:
		p.idle = append(p.idle, mailbox)
	}
	p.mu.Unlock()
	if unwatch != nil {
		unwatch()
	}
	return next, over
}

func (p *pool) pushLocked(j *job) {
	j.waiting, j.since = true, time.Now()
	j.previous = p.last
	if p.last != nil {
		p.last.next = j
	} else {
		p.first = j
	}
	p.last = j
	p.queued++
}

func (p *pool) removeLocked(j *job) {
	if j.previous != nil {
		j.previous.next = j.next
	} else {
		p.first = j.next
	}
	if j.next != nil {
		j.next.previous = j.previous
	} else {
		p.last = j.previous
	}
	j.previous, j.next = nil, nil
	j.waiting = false
	p.queued--
}

// close drops what waits, tells what works to stop, and returns when no worker is
// left. A second call waits too.
func (p *pool) close() {
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.threads -= len(idle)
	var dropped []*job
	for p.first != nil {
		dropped = append(dropped, p.first)
		p.removeLocked(p.first)
	}
	p.mu.Unlock()
	if first {
		close(p.quit)
	}
	for _, mailbox := range idle {
		close(mailbox)
	}
	for _, j := range dropped {
		if j.unwatch != nil {
			j.unwatch()
		}
		j.work.drop(errPoolClosed)
	}
	p.workers.Wait()
}

func (p *pool) stats() PoolStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return PoolStats{
		Size: p.size, QueueSize: p.capacity,
		Threads: p.threads, Active: p.active, Queue: p.queued,
		Largest:  p.largest,
		Rejected: p.rejected, Completed: p.completed, Wait: p.wait,
	}
}
