package wlm

import (
	"context"
	"time"
)

const (
	// sweepInterval is how often the backstop looks. It is not a setting: nothing may depend on it.
	sweepInterval = time.Second
	// sweepPatience is how long a cancelled waiter may stay before it counts as forgotten. Its own goroutine evicts it, as soon as
	// the machine lets it run: with very many cancelled at once on a busy machine that takes seconds.
	sweepPatience = 30 * time.Second
)

// Sweep looks once a second for waiters that were forgotten, and returns when ctx ends. It is a backstop, and nothing depends on it:
// what it finds is a defect, which is mended, and counted in [Totals.Recovered].
func (a *Admission) Sweep(ctx context.Context) {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			for _, g := range a.policy.Load().all() {
				for _, b := range g.buckets() {
					a.recovered.Add(b.sweep())
				}
			}
		}
	}
}

// sweep evicts waiters that have been cancelled for long and are still here, and fills free node permits.
func (b *bucket) sweep() (recovered uint64) {
	var s step
	b.mu.Lock()
	for t := b.queue.head; t != nil; {
		next := t.next
		switch {
		case t.wait.ctx.Err() == nil:
		case t.wait.foundCancelled == 0:
			t.wait.foundCancelled = b.now(&s)
		case b.now(&s)-t.wait.foundCancelled > sweepPatience:
			b.evictLocked(t, context.Cause(t.wait.ctx), &s)
			recovered++
		}
		t = next
	}
	before := b.node
	if b.plan != nil {
		b.drainLocked(&s)
	}
	recovered += uint64(b.node - before)
	b.leave(&s)
	return recovered
}
