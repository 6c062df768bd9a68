package wlm

import (
	"fmt"

	"github.com/wlmserver/wlmserver/groups"
)

type permitKind uint8

const (
	untrackedPermit permitKind = iota // counts against no limit
	nodePermit
	sharedPermit
)

// Permit is the ticket of a search that was admitted: it lets it run until it is closed. It is safe for concurrent use.
type Permit Ticket

// Bucket is the bucket whose limits hold for the search; the zero key when none do.
func (p *Permit) Bucket() BucketKey { return (*Ticket)(p).Bucket() }

// Tracked reports whether the permit counts against a limit.
func (p *Permit) Tracked() bool {
	b := p.bucket
	b.mu.Lock()
	defer b.mu.Unlock()
	return p.kind != untrackedPermit
}

// Close ends the search's run and hands its slot to the bucket's oldest waiter. Only the first call does something.
func (p *Permit) Close() {
	t, b := (*Ticket)(p), p.bucket
	if !p.closed.CompareAndSwap(false, true) {
		b.a.reclosed.Add(1)
		b.a.report(func() string { return fmt.Sprintf("I9: a permit of %q was closed twice", t.Bucket()) })
		return
	}
	if t.state == free {
		b.group.runningUntracked.Add(-1)
		return
	}
	var s step
	b.mu.Lock()
	b.takeBackLocked(t)
	b.a.record(Closed, t)
	b.drainLocked(&s)
	b.leave(&s)
}

// covers reports whether the permit is open and of the bucket named.
func (p *Permit) covers(g *group, by groups.Attribute, value string) bool {
	return p != nil && p.key != nil && p.bucket.group == g && p.key.names(by, value) && !p.closed.Load()
}
