package wlm

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/wlmserver/wlmserver/internal/sharedtier"
)

type permitKind uint8

const (
	untrackedPermit permitKind = iota // counts against no limit
	nodePermit
	sharedPermit
)

// Permit lets one search run until it is closed. It is safe for concurrent use.
type Permit struct {
	ticket *Ticket
	closed atomic.Bool

	// The bucket's lock guards them, once the permit is out.
	kind   permitKind
	shared sharedtier.PermitID
}

// Bucket is the bucket whose limits hold for the search; the zero key when none do.
func (p *Permit) Bucket() BucketKey { return p.ticket.key }

// Tracked reports whether the permit counts against a limit.
func (p *Permit) Tracked() bool {
	b := p.ticket.bucket
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return p.kind != untrackedPermit
}

// Close ends the search's run and hands its slot to the bucket's oldest waiter. Only the first call does something.
func (p *Permit) Close() {
	t := p.ticket
	if !p.closed.CompareAndSwap(false, true) {
		t.a.reclosed.Add(1)
		t.a.report(func() string { return fmt.Sprintf("I9: a permit of %q was closed twice", t.key) })
		return
	}
	b := t.bucket
	if b == nil {
		t.group.runningUntracked.Add(-1)
		return
	}
	var s step
	b.mu.Lock()
	b.takeBackLocked(t)
	b.a.record(Closed, t)
	b.drainLocked(&s)
	b.leave(&s)
}

type permitKey struct{}

// ContextWithPermit marks everything done under the context as part of the permit's search: a nested search of the same bucket
// takes no second permit, which could not come free before the first is closed.
func ContextWithPermit(ctx context.Context, p *Permit) context.Context {
	return context.WithValue(ctx, permitKey{}, p)
}

// holds reports whether the context belongs to a running search of the bucket.
func holds(ctx context.Context, g *group, k BucketKey) bool {
	p, _ := ctx.Value(permitKey{}).(*Permit)
	return p != nil && p.ticket.group == g && p.ticket.key == k && !p.closed.Load()
}
