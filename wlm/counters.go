package wlm

import (
	"sync/atomic"
	"time"
)

// counters of one group. Each moves at the one place where what it counts is decided, under the bucket's lock where there is one.
// Those that move with every search that waits are neighbours: two processors take memory from each other by cache lines, not by words.
type counters struct {
	admitted      atomic.Uint64 // an exit of I1
	queued, waits atomic.Uint64
	waitMillis    atomic.Uint64
	waiters       atomic.Int64 // parked, pending ones too: bounded by groups.MaxQueued
	waiting, peak atomic.Int64
	// lastParked is the number of the waiter that parked last, in whichever bucket: so a bucket's numbers grow beyond its own life.
	lastParked atomic.Uint64

	completions              atomic.Uint64
	refused, cancelled       atomic.Uint64 // the other exits of I1
	throttled, wouldThrottle atomic.Uint64
	queueRejections, evicted atomic.Uint64
	longestMillis            atomic.Uint64
	runningUntracked         atomic.Int64
}

// GroupCounters is a reading of one group's counters. The fields are read one after the other: they agree with each other at
// rest, and each one is exact at any time.
type GroupCounters struct {
	Group string // the group's id

	Completions   uint64 // tasks of the group that ended
	Rejections    uint64 // searches refused for their group's resource usage (no such refusals yet)
	Cancellations uint64 // searches cancelled for their group's resource usage (no such cancellations yet)

	Throttled          uint64 // searches refused by a throttle limit, for whatever reason of the queue
	WouldThrottle      uint64 // searches that a monitoring group would have refused or parked
	Queued             uint64 // searches that started to wait
	QueueRejections    uint64 // of Throttled: those that found the queue or the group full
	QueuedCurrent      uint64 // searches that wait now, without those whose question to the owner is under way
	QueuePeak          uint64 // the most that QueuedCurrent has been
	QueueWaits         uint64 // searches admitted out of the queue
	QueueWaitMillis    uint64 // the sum of their waits
	MaxQueueWaitMillis uint64 // the longest of their waits, in milliseconds
	Evicted            uint64 // searches that left the queue without being admitted; Queued = QueueWaits + QueuedCurrent + Evicted

	Admitted, Refused, Cancelled uint64 // each search that came is in one of them, or parked

	Waiters          int64 // parked searches, also those whose question to the owner is under way
	RunningTracked   int64 // permits that count against a limit
	RunningUntracked int64 // searches that run without one
}

func (g *group) read() GroupCounters {
	return GroupCounters{
		Group:              g.id,
		Completions:        g.completions.Load(),
		Throttled:          g.throttled.Load(),
		WouldThrottle:      g.wouldThrottle.Load(),
		Queued:             g.queued.Load(),
		QueueRejections:    g.queueRejections.Load(),
		QueuedCurrent:      uint64(max(g.waiting.Load(), 0)),
		QueuePeak:          uint64(g.peak.Load()),
		QueueWaits:         g.waits.Load(),
		QueueWaitMillis:    g.waitMillis.Load(),
		MaxQueueWaitMillis: g.longestMillis.Load(),
		Evicted:            g.evicted.Load(),
		Admitted:           g.admitted.Load(),
		Refused:            g.refused.Load(),
		Cancelled:          g.cancelled.Load(),
		Waiters:            g.waiters.Load(),
		RunningTracked:     g.tracked(),
		RunningUntracked:   g.runningUntracked.Load(),
	}
}

// startWaiting counts a waiter that becomes a waiting one.
func (c *counters) startWaiting() {
	c.queued.Add(1)
	raise(&c.peak, c.waiting.Add(1))
}

// endWaiting counts that a waiting waiter was admitted after the given wait.
func (c *counters) endWaiting(wait time.Duration) {
	ms := max(wait.Milliseconds(), 0)
	c.waiting.Add(-1)
	c.waits.Add(1)
	if ms == 0 {
		return
	}
	c.waitMillis.Add(uint64(ms))
	for {
		longest := c.longestMillis.Load()
		if uint64(ms) <= longest || c.longestMillis.CompareAndSwap(longest, uint64(ms)) {
			return
		}
	}
}

// reserve takes one of the group's places for waiters. It reports false when all are taken.
func (c *counters) reserve(most int64) bool {
	for {
		n := c.waiters.Load()
		if n >= most {
			return false
		}
		if c.waiters.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func raise(peak *atomic.Int64, n int64) {
	for {
		p := peak.Load()
		if n <= p || peak.CompareAndSwap(p, n) {
			return
		}
	}
}

// Totals is a reading over all groups, deleted ones with running searches included.
type Totals struct {
	Buckets            int
	Waiters            int64
	Tracked, Untracked int64
	Unattributed       uint64            // searches let pass because the throttle attribute had no value for them
	Unused             uint64            // permits of the shared tier that came when nobody waited any more, and went back
	Recovered          uint64            // waiters that only the backstop sweep found: always 0 unless something is broken
	Reclosed           uint64            // second closes of a permit: always 0 unless something is broken
	EvictedBy          map[string]uint64 // evictions by the name of their cause
}
