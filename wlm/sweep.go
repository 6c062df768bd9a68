package wlm

import (
	"context"
	"time"
)

// sweepInterval is how often the backstop looks. It is not a setting: nothing may depend on it.
const sweepInterval = time.Second

// sweepUntilStopped looks for waiters that were forgotten. What it finds is a defect: it is mended, and counted in
// [Totals.Recovered].
func (a *Admission) sweepUntilStopped() {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		select {
		case <-a.stop:
			return
		case <-tick.C:
			for _, g := range a.policy.Load().all() {
				for _, b := range g.table.all() {
					a.recovered.Add(b.sweep())
				}
			}
		}
	}
}

// sweep evicts waiters that were cancelled when it last came and are still here, and fills free node permits.
func (b *bucket) sweep() (recovered uint64) {
	var s step
	b.mu.Lock()
	for t := b.queue.head; t != nil; {
		next := t.next
		switch {
		case t.ctx.Err() == nil:
		case t.swept:
			b.evictLocked(t, context.Cause(t.ctx), &s)
			recovered++
		default:
			t.swept = true // its own goroutine may be on the way
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
