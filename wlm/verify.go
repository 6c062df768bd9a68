package wlm

import (
	"fmt"
	"slices"

	"github.com/wlmserver/wlmserver/groups"
)

// walkAtMost bounds how long a queue may be to be walked after each step; a longer one is walked when the group's numbers come to
// a multiple of walkEvery.
const (
	walkAtMost = 64
	walkEvery  = 1024
)

func (a *Admission) report(violation func() string) {
	if a.verify != nil {
		a.verify(violation())
	}
}

// verifyLocked checks the invariants of a bucket at the end of a step, if somebody wants to know.
func (a *Admission) verifyLocked(b *bucket) {
	if a.verify != nil && b.plan != nil {
		a.reportViolationsLocked(b)
	}
}

func (a *Admission) reportViolationsLocked(b *bucket) {
	if b.node > b.verified && b.node > b.plan.node && b.plan.node > 0 {
		a.verify(b.violationLocked("I6", "permits grew from %d past the limit", b.verified))
	}
	b.verified = b.node
	walk := b.queue.n <= walkAtMost || b.group.lastParked.Load()%walkEvery == 0
	for _, v := range b.violationsLocked(walk) {
		a.verify(v)
	}
}

func (b *bucket) violationLocked(invariant, format string, args ...any) string {
	return fmt.Sprintf("%s: bucket %q: %s (plan %+v, counts %+v, queue %d, node %d, shared %d)",
		invariant, *b.key, fmt.Sprintf(format, args...), *b.plan, b.counts, b.queue.n, b.node, b.shared)
}

// violationsLocked lists what is wrong with a bucket between two steps. walk says whether to look at each search of it too.
func (b *bucket) violationsLocked(walk bool) (out []string) {
	fail := func(invariant, format string, args ...any) {
		out = append(out, b.violationLocked(invariant, format, args...))
	}
	if b.counts.Waiters() != b.queue.n {
		fail("I10", "%d waiters are counted and %d are parked", b.counts.Waiters(), b.queue.n)
	}
	if b.node+b.shared != b.running.n {
		fail("I10", "%d permits are counted and %d searches run", b.node+b.shared, b.running.n)
	}
	if n := b.group.waiters.Load(); n < int64(b.queue.n) || n > groups.MaxQueued {
		fail("I3", "the group counts %d waiters, this bucket has %d", n, b.queue.n)
	}
	if b.plan.parks() && b.plan.node > 0 && b.queue.n > 0 && b.node < b.plan.node {
		fail("I7", "waiters are parked while a node permit is free")
	}
	if !b.plan.parks() && b.queue.n > 0 {
		fail("I8", "waiters are parked with nothing to wait for")
	}
	if b.counts.On && b.counts.Linked && b.queue.n > 0 && b.counts.Quiet() {
		fail("I4", "no owner knows of the waiters")
	}
	if !b.used && !b.idleLocked() {
		fail("I4", "the bucket was taken out and is not idle")
	}
	if !walk {
		return out
	}
	var last uint64
	pendings, waitings := 0, 0
	for t := range b.queue.all() {
		if t.wait.number <= last {
			fail("I5", "waiter %d stands behind %d", t.wait.number, last)
		}
		last = t.wait.number
		switch t.state {
		case pending:
			pendings++
		case waiting:
			waitings++
		default:
			fail("I2", "a decided waiter (state %d) is still parked", t.state)
		}
	}
	if pendings != b.counts.Pending || waitings != b.counts.Waiting {
		fail("I10", "%d pending and %d waiting are parked", pendings, waitings)
	}
	for t := range b.running.all() {
		if t.state != admitted || t.kind == untrackedPermit {
			fail("I2", "a search in state %d, permit %d, is among those that run", t.state, t.kind)
		}
	}
	return out
}

// Check is a reading of every bucket, each checked under its lock.
type Check struct {
	Violations []string  // of invariants
	Buckets    int       // that are in use
	Waiting    []*Ticket // parked searches
	Running    []*Ticket // searches whose permits count against a limit
	Shared     []SharedPermit
}

// SharedPermit names a permit of the shared tier that a search runs under, as its owner has named it.
type SharedPermit struct {
	Bucket     BucketKey
	Epoch, Seq uint64
}

// Check checks every bucket against the invariants and lists what is in them. Buckets are read one after the other, while
// searches go on.
func (a *Admission) Check() Check {
	var c Check
	for _, g := range a.policy.Load().all() {
		for _, b := range g.buckets() {
			b.mu.Lock()
			if b.plan != nil && !b.idleLocked() {
				c.Buckets++
				c.Violations = append(c.Violations, b.violationsLocked(true)...)
				c.Waiting = slices.AppendSeq(c.Waiting, b.queue.all())
				c.Running = slices.AppendSeq(c.Running, b.running.all())
				for _, p := range b.heldLocked() {
					c.Shared = append(c.Shared, SharedPermit{*b.key, p.Epoch, p.Seq})
				}
			}
			b.mu.Unlock()
		}
	}
	if n := a.recovered.Load(); n != 0 {
		c.Violations = append(c.Violations, fmt.Sprintf("I7: the sweep recovered %d waiters", n))
	}
	if n := a.reclosed.Load(); n != 0 {
		c.Violations = append(c.Violations, fmt.Sprintf("I9: %d permits were closed twice", n))
	}
	return c
}

// CheckQuiet reports every reason why the admission is not at rest without searches: permits, waiters or buckets that are left.
// Tests call it when all their searches have ended.
func (a *Admission) CheckQuiet() []string {
	var out []string
	for _, g := range a.policy.Load().all() {
		if n := g.tracked(); n != 0 {
			out = append(out, fmt.Sprintf("I10: group %s counts %d tracked permits", g.id, n))
		}
		if n := g.runningUntracked.Load(); n != 0 {
			out = append(out, fmt.Sprintf("I10: group %s counts %d untracked permits", g.id, n))
		}
		if w, q := g.waiters.Load(), g.waiting.Load(); w != 0 || q != 0 {
			out = append(out, fmt.Sprintf("I10: group %s counts %d waiters, %d of them waiting", g.id, w, q))
		}
		if bs := g.buckets(); len(bs) != 0 {
			out = append(out, fmt.Sprintf("I4: group %s keeps %d buckets", g.id, len(bs)))
		}
		if s := g.read(); s.Queued != s.QueueWaits+s.QueuedCurrent+s.Evicted {
			out = append(out, fmt.Sprintf("I1: group %s: %d queued, but %d admitted, %d waiting, %d evicted",
				g.id, s.Queued, s.QueueWaits, s.QueuedCurrent, s.Evicted))
		}
	}
	out = append(out, a.Check().Violations...)
	return out
}
