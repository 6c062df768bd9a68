package wlm

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/sharedtier"
)

// Request is a search that wants to run.
type Request struct {
	Group     string // its workload group's id; an unknown one means the default group
	Principal Principal

	// Under is the permit of the search that this one is part of; nil when it is part of none. While it is open, a search of the
	// same bucket takes no second permit, which could not come free before the first is closed.
	Under *Permit
}

// Admission decides when searches may start on this node. It is safe for concurrent use.
type Admission struct {
	link     Link
	recorder *Recorder
	verify   func(violation string)
	causes   func(error) string

	policy   atomic.Pointer[policy]
	changing sync.Mutex // one change of policy at a time
	born     time.Time  // when the clock showed 0

	unattributed, unused, recovered, reclosed atomic.Uint64
	evictions                                 sync.Map // cause name → *atomic.Uint64
}

// Option changes how an [Admission] is made.
type Option func(*Admission)

// WithMode sets the mode to begin with; it is [ModeEnabled] otherwise.
func WithMode(m Mode) Option {
	return func(a *Admission) { a.policy.Load().mode = m }
}

// WithVerification checks the invariants after each step, under the bucket's lock, and hands each violation to report. It costs
// time and is meant for tests.
func WithVerification(report func(violation string)) Option {
	return func(a *Admission) { a.verify = report }
}

// WithRecorder keeps a history of what happens to searches.
func WithRecorder(r *Recorder) Option {
	return func(a *Admission) { a.recorder = r }
}

// WithCauseName names the causes of evictions for [Totals]; all are "context" otherwise.
func WithCauseName(name func(cause error) string) Option {
	return func(a *Admission) { a.causes = name }
}

// WithLink replaces the in-process owner of every bucket by what connect gives.
func WithLink(connect func(*Admission) Link) Option {
	return func(a *Admission) { a.link = connect(a) }
}

// New makes an admission without groups. It starts nothing and needs no end.
func New(opts ...Option) *Admission {
	a := &Admission{causes: func(error) string { return "context" }, born: time.Now()}
	p := &policy{mode: ModeEnabled}
	p.fallback = planned{newGroup(a, groups.DefaultID, groups.DefaultID), &plan{}}
	a.policy.Store(p)
	for _, o := range opts {
		o(a)
	}
	if a.link == nil {
		a.link = newOwners(a)
	}
	return a
}

// Enter decides whether a search runs at once, parks, or is refused. The ticket's Wait must be called. Errors: [*RejectedError],
// [*StoppedError], and [*CancelledError] when ctx has ended already.
func (a *Admission) Enter(ctx context.Context, r Request) (*Ticket, error) {
	return a.enter(ctx, &r, false)
}

// TryEnter is Enter for a search that can wait elsewhere: it never parks, and counts nothing when it finds no permit. The error,
// here or of the ticket's Wait, is then [ErrNoPermit].
func (a *Admission) TryEnter(ctx context.Context, r Request) (*Ticket, error) {
	return a.enter(ctx, &r, true)
}

func (a *Admission) enter(ctx context.Context, r *Request, tryOnly bool) (*Ticket, error) {
	for {
		p := a.policy.Load()
		g := p.planned(r.Group)
		if err := a.turnAway(ctx, p, g.group, tryOnly); err != nil {
			return nil, err
		}
		if !g.plan.throttles() {
			return g.runFree(nil), nil
		}
		value, ok := g.plan.value(r.Principal)
		if !ok {
			a.unattributed.Add(1)
			return g.runFree(nil), nil
		}
		if r.Under.covers(g.group, g.plan.attribute, value) {
			return g.runFree(r.Under.key), nil
		}
		t := &Ticket{tryOnly: tryOnly}
		var s step
		b := g.lockBucket(g.plan.attribute, value)
		if now := a.policy.Load(); now != p && now.planned(r.Group) != g {
			b.leave(&s) // decided by a policy that has passed: start over
			continue
		}
		t.bucket, t.key = b, b.key
		b.adoptLocked(g.plan, &s)
		err := b.arriveLocked(ctx, t, &s)
		b.leave(&s)
		if err != nil {
			return nil, err
		}
		return t, nil
	}
}

// now is the time by the clock of the admission, which only counts spans.
func (a *Admission) now() time.Duration { return time.Since(a.born) }

// turnAway ends a search that need not be looked at any further.
func (a *Admission) turnAway(ctx context.Context, p *policy, g *group, tryOnly bool) error {
	var err error
	switch {
	case p.stopped:
		err = errStopped
	case ctx.Err() != nil:
		err = ended(context.Cause(ctx), false)
	default:
		return nil
	}
	if !tryOnly {
		g.cancelled.Add(1)
	}
	return err
}

// runFree admits a search that needs no permit. key is of the bucket whose permit it has already, if any.
func (g *group) runFree(key *BucketKey) *Ticket {
	g.admitted.Add(1)
	g.runningUntracked.Add(1)
	return &Ticket{bucket: &g.whole, key: key, state: free}
}

// SetMode changes the mode. It returns when every waiter that this concerns has been decided.
func (a *Admission) SetMode(m Mode) {
	a.change(func(p *policy) { p.mode = m })
}

// GroupsChanged takes in a new set of groups. It returns when every waiter that this concerns has been decided. Counters of a
// group begin at 0 here, and go with the group.
func (a *Admission) GroupsChanged(s *groups.Snapshot) {
	a.change(func(p *policy) { p.snapshot = s })
}

// Stop refuses all waiters and every arrival from now on with [*StoppedError]. Running searches go on.
func (a *Admission) Stop() {
	a.change(func(p *policy) { p.stopped = true })
}

// change stores a new policy, then visits the buckets that it concerns.
func (a *Admission) change(edit func(*policy)) {
	a.changing.Lock()
	defer a.changing.Unlock()
	old := a.policy.Load()
	next := &policy{revision: old.revision + 1, mode: old.mode, stopped: old.stopped, snapshot: old.snapshot, fallback: old.fallback}
	edit(next)

	var visits []planned
	gone := newPlan(next.revision, next.mode, next.stopped, nil)
	next.groups = make(map[string]planned)
	if next.snapshot != nil {
		for _, g := range next.snapshot.All() {
			p := newPlan(next.revision, next.mode, next.stopped, g)
			now, known := old.groups[g.ID]
			switch {
			case !known:
				now = planned{newGroup(a, g.ID, g.Name), &p}
			case !now.plan.same(&p):
				now.plan = &p
				visits = append(visits, now)
			}
			next.groups[g.ID] = now
		}
	}
	next.retired = slices.DeleteFunc(slices.Clone(old.retired), func(g *group) bool { return len(g.buckets()) == 0 })
	for id, g := range old.groups {
		if _, stays := next.groups[id]; !stays {
			next.retired = append(next.retired, g.group)
			visits = append(visits, planned{g.group, &gone})
		}
	}
	a.policy.Store(next)

	for _, g := range visits {
		for _, b := range g.buckets() {
			var s step
			b.mu.Lock()
			b.adoptLocked(g.plan, &s)
			b.leave(&s)
		}
	}
	a.link.LimitsChanged()
}

// Completed counts a task of the group that ended.
func (a *Admission) Completed(group string) {
	a.policy.Load().planned(group).completions.Add(1)
}

// Counters reads every group's counters, the default group's too, in the order of their ids.
func (a *Admission) Counters() []GroupCounters {
	p := a.policy.Load()
	out := make([]GroupCounters, 0, len(p.groups)+1)
	out = append(out, p.fallback.read())
	for _, g := range p.groups {
		out = append(out, g.read())
	}
	slices.SortFunc(out, func(x, y GroupCounters) int { return strings.Compare(x.Group, y.Group) })
	return out
}

// Totals reads what is counted over all groups.
func (a *Admission) Totals() Totals {
	t := Totals{
		Unattributed: a.unattributed.Load(), Unused: a.unused.Load(), Recovered: a.recovered.Load(), Reclosed: a.reclosed.Load(),
		EvictedBy: make(map[string]uint64),
	}
	for _, g := range a.policy.Load().all() {
		t.Buckets += len(g.buckets())
		t.Waiters += g.waiters.Load()
		t.Tracked += g.tracked()
		t.Untracked += g.runningUntracked.Load()
	}
	a.evictions.Range(func(name, n any) bool {
		t.EvictedBy[name.(string)] = n.(*atomic.Uint64).Load()
		return true
	})
	return t
}

// countEviction counts a waiter's end by the name of its cause.
func (a *Admission) countEviction(cause error) {
	name := "shutdown"
	if !errors.Is(cause, errStopped) {
		name = a.causes(cause)
	}
	n, ok := a.evictions.Load(name)
	if !ok {
		n, _ = a.evictions.LoadOrStore(name, new(atomic.Uint64))
	}
	n.(*atomic.Uint64).Add(1)
}

// Receive takes in a message of the bucket's owner that came in a session. Messages of one bucket must come in the order in which
// they were sent. One of a session that is over does nothing, nor does a permit of one that is no longer live.
func (a *Admission) Receive(k BucketKey, from Session, m sharedtier.Message) {
	if !a.receive(k, from, m) && m.Permit != (sharedtier.PermitID{}) {
		// It was under way when the bucket's waiters went with what they waited for.
		a.unused.Add(1)
		from.Send(k, []sharedtier.Message{{Kind: sharedtier.Release, Permit: m.Permit}})
	}
}

// receive has a bucket take in a message, and reports false when there is none that has a session.
func (a *Admission) receive(k BucketKey, from Session, m sharedtier.Message) bool {
	p := a.policy.Load()
	g, ok := p.groups[k.Group]
	if !ok {
		i := slices.IndexFunc(p.retired, func(g *group) bool { return g.id == k.Group })
		if i < 0 {
			return false
		}
		gone := newPlan(p.revision, p.mode, p.stopped, nil)
		g = planned{p.retired[i], &gone}
	}
	var s step
	b := g.lockBucket(k.Attribute, k.Value)
	b.adoptLocked(g.plan, &s)
	linked := b.session != nil
	if b.session == from && (m.Permit == sharedtier.PermitID{} || from.Live()) {
		b.receiveLocked(m, &s)
	}
	b.leave(&s)
	return linked
}

// Renew has every bucket go on in the session that the link has for it now. The link calls it when its sessions have changed, once
// the new ones are what it answers. When Renew returns, all that is to be announced has been sent.
func (a *Admission) Renew() {
	for _, g := range a.policy.Load().all() {
		for _, b := range g.every() {
			var s step
			b.mu.Lock()
			b.renewLocked(&s)
			b.leave(&s)
		}
	}
}
