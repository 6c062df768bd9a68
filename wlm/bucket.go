package wlm

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/sharedtier"
)

// bucket is one group's searches that share limits. Its methods decide. What follows from a decision, waking and sending, is left to
// the end of the step, when the lock is released, as far as it can be.
type bucket struct {
	a     *Admission
	group *group
	shard *shard // that keeps it; nil: the group does

	mu *keeper // the group's or the shard's
	contents
}

// contents is what a bucket's lock guards, and what is made anew when another principal uses the bucket's memory.
type contents struct {
	key     *BucketKey // never written to: tickets have it too
	plan    *plan
	used    bool // it is in the shard's table
	sending bool // somebody sends the outbox

	queue queue
	node  int // node permits that are out
	// lastAdmission is when a waiter was last admitted, or when the queue began; interval is the smoothed time between two.
	lastAdmission, interval time.Duration
	running                 list                   // the searches whose permits count against a limit
	counts                  sharedtier.Coordinator // of the queue, whether or not there is a shared tier

	// session is the one with the owner; nil while the bucket needs none and while there is none.
	session Session
	// outbox has messages of the session in order; only one goroutine at a time sends them.
	outbox   []sharedtier.Message
	shared   int // shared permits that are out
	verified int // node permits that were out when verification last looked

	// tries has the searches whose one question to the owner is under way; nil for one that has left meanwhile.
	tries   map[uint64]*Ticket
	lastTry uint64
}

// step is what happens to a bucket from one locking of it to its release.
type step struct {
	at    time.Duration // 0: nobody has looked at the clock yet
	ready chan struct{} // of the first search that was decided and is to be woken
}

// wake lets the Wait of a search go on that has been decided, if there is one to come. Most steps decide about one: it is woken when the
// lock has been released, because to wake somebody may take a call of the system. Further ones are woken at once. Neither blocks.
func (s *step) wake(t *Ticket) {
	switch {
	case t.wait == nil:
	case s.ready == nil:
		s.ready = t.wait.ready
	default:
		t.wait.ready <- struct{}{}
	}
}

// now is the time of the step by the admission's clock, which is read once.
func (b *bucket) now(s *step) time.Duration {
	if s.at == 0 {
		s.at = b.a.now()
	}
	return s.at
}

// adoptLocked makes a plan the bucket's if it is newer.
func (b *bucket) adoptLocked(p *plan, s *step) {
	if b.plan == nil || p.revision > b.plan.revision {
		b.changeLocked(p, s)
	}
}

// changeLocked makes a plan the bucket's, and lets waiters go that have nothing left to wait for.
func (b *bucket) changeLocked(p *plan, s *step) {
	if p.throttles() && p.attribute != b.key.Attribute {
		p = &plan{revision: p.revision, stopped: p.stopped} // other buckets are the group's now
	}
	b.plan = p
	b.a.recordChange(b)
	b.counts.Size = p.size
	if !p.parks() {
		b.emptyLocked(s)
	}
	if p.shared > 0 && b.session == nil {
		b.renewLocked(s)
	}
	b.applyLocked(b.counts.SetOn(p.shared > 0 && p.parks(), nil), s)
	b.drainLocked(s)
}

// renewLocked goes on in the session that the link now has. Its owner is told of all permits and waiters here before anything else;
// what was asked in the session before is void.
func (b *bucket) renewLocked(s *step) {
	if b.session == nil && b.shared == 0 && (b.plan == nil || b.plan.shared == 0) {
		return
	}
	next := b.a.link.Session(*b.key)
	if next == b.session {
		return
	}
	b.session, b.outbox = next, nil
	var buf [4]sharedtier.Effect
	b.applyLocked(b.counts.Renew(next != nil, buf[:0]), s)
	if next != nil && (b.shared > 0 || b.counts.Advertised > 0) {
		// Under the lock, so that no message of the session comes before it.
		next.Send(*b.key, []sharedtier.Message{{Kind: sharedtier.Announce, Held: b.heldLocked(), Depth: b.counts.Advertised}})
	}
	b.askAgainLocked(s)
}

// heldLocked lists the shared permits that are out.
func (b *bucket) heldLocked() []sharedtier.PermitID {
	held := make([]sharedtier.PermitID, 0, b.shared)
	for t := range b.running.all() {
		if t.kind == sharedPermit {
			held = append(held, t.shared)
		}
	}
	return held
}

// askAgainLocked repeats, in a new session, the questions that the one before has not answered. Without a session they are answered
// here: no owner can be asked.
func (b *bucket) askAgainLocked(s *step) {
	for _, id := range slices.Sorted(maps.Keys(b.tries)) {
		switch {
		case b.tries[id] == nil:
			delete(b.tries, id) // it has left; what the owner granted it is not announced, and so comes back
		case b.session != nil:
			b.outbox = append(b.outbox, sharedtier.Message{Kind: sharedtier.Try, Try: id})
		default:
			b.answerLocked(sharedtier.Message{Kind: sharedtier.Unavailable, Try: id}, s)
		}
	}
}

// arriveLocked decides about a search that has just come. What is not decided at once is parked or asks the owner.
func (b *bucket) arriveLocked(ctx context.Context, t *Ticket, s *step) error {
	p := b.plan
	if p.node > 0 && b.node < p.node && b.queue.n == 0 {
		b.admitLocked(t, nodePermit, sharedtier.PermitID{}, s)
		return nil
	}
	if p.monitor {
		b.watchLocked(t, s)
		return nil
	}
	if t.tryOnly || p.size == 0 {
		return b.tryLocked(ctx, t)
	}
	return b.parkLocked(ctx, t, s)
}

// tryLocked asks the owner for a search that may not park, where there is one to ask.
func (b *bucket) tryLocked(ctx context.Context, t *Ticket) error {
	if b.plan.shared == 0 || b.queue.n > 0 {
		return b.refusalLocked(t, QueueOff, b.queue.n)
	}
	if b.session == nil {
		return b.refusalLocked(t, Unavailable, 0)
	}
	t.state = trying
	t.wait = b.mu.newWaitLocked(ctx)
	b.a.record(Asked, t)
	t.wait.number = b.askLocked(t)
	return nil
}

// parkLocked puts a search at the end of the queue if there is room.
func (b *bucket) parkLocked(ctx context.Context, t *Ticket, s *step) error {
	g := b.group
	if !g.reserve(groups.MaxQueued) {
		return b.refusalLocked(t, GroupFull, groups.MaxQueued)
	}
	outcome, fx := b.counts.Arrive(nil) // a buffer would have the stack of each waiter grow, and few of them ask an owner
	switch outcome {
	case sharedtier.Full:
		g.waiters.Add(-1)
		return b.refusalLocked(t, QueueFull, b.counts.Waiting)
	case sharedtier.BecomesPending:
		t.state = pending
	case sharedtier.BecomesWaiting:
		t.state = waiting
		g.startWaiting()
	}
	if b.queue.n == 0 {
		b.lastAdmission = b.now(s)
	}
	t.wait = b.mu.newWaitLocked(ctx)
	t.wait.parked = b.now(s)
	t.wait.number = g.lastParked.Add(1)
	b.queue.push(t)
	b.a.record(Parked, t)
	b.applyLocked(fx, s)
	return nil
}

// watchLocked lets a search of a monitoring group run, whatever the limits say.
func (b *bucket) watchLocked(t *Ticket, s *step) {
	b.admitLocked(t, untrackedPermit, sharedtier.PermitID{}, s)
	if b.plan.shared == 0 {
		b.group.wouldThrottle.Add(1)
		return
	}
	if b.session == nil {
		return // nobody can say what the shared limit would have done
	}
	t.watched = true
	b.askLocked(t)
}

// askLocked asks the owner for one slot or nothing, and gives the question's number.
func (b *bucket) askLocked(t *Ticket) uint64 {
	if b.tries == nil {
		b.tries = make(map[uint64]*Ticket)
	}
	b.lastTry++
	b.tries[b.lastTry] = t
	b.sendLocked(sharedtier.Message{Kind: sharedtier.Try, Try: b.lastTry})
	return b.lastTry
}

// receiveLocked takes in a message of the owner.
func (b *bucket) receiveLocked(m sharedtier.Message, s *step) {
	if m.Try != 0 {
		b.answerLocked(m, s)
		return
	}
	b.reapLocked(s)
	headWaiting := b.queue.head != nil && b.queue.head.state == waiting
	var buf [4]sharedtier.Effect
	b.applyLocked(b.counts.Receive(m, headWaiting, buf[:0]), s)
}

// answerLocked takes in the answer to a try.
func (b *bucket) answerLocked(m sharedtier.Message, s *step) {
	t, known := b.tries[m.Try]
	delete(b.tries, m.Try)
	if !known {
		return
	}
	granted := m.Kind == sharedtier.Granted
	switch {
	case t != nil && t.watched:
		t.watched = false
		switch {
		case granted && !t.closed.Load():
			b.group.runningUntracked.Add(-1)
			b.giveLocked(t, sharedPermit, m.Permit)
			b.a.record(Tracked, t)
			return
		case !granted && m.Kind == sharedtier.Denied:
			b.group.wouldThrottle.Add(1)
		}
	case t != nil && t.wait.ctx.Err() != nil:
		b.dropTryLocked(t, context.Cause(t.wait.ctx), s)
	case t != nil && granted:
		b.admitLocked(t, sharedPermit, m.Permit, s)
		return
	case t != nil:
		why := QueueOff
		if m.Kind == sharedtier.Unavailable {
			why = Unavailable
		}
		t.state = refused
		t.wait.err = b.refusalLocked(t, why, b.queue.n)
		s.wake(t)
	}
	if granted {
		b.sendLocked(sharedtier.Message{Kind: sharedtier.Release, Permit: m.Permit})
	}
}

// sendLocked puts a message into the outbox. Without a session there is nobody to tell: the next one begins with all there is to know.
func (b *bucket) sendLocked(m sharedtier.Message) {
	if m.Kind == sharedtier.Unused {
		b.a.unused.Add(1)
	}
	if b.session != nil {
		b.outbox = append(b.outbox, m)
	}
}

// dropTryLocked ends a search whose question is still under way, or has just been answered.
func (b *bucket) dropTryLocked(t *Ticket, cause error, s *step) {
	if _, asked := b.tries[t.wait.number]; asked {
		b.tries[t.wait.number] = nil
	}
	if !t.tryOnly {
		b.group.cancelled.Add(1)
	}
	t.state = evicted
	t.wait.err = ended(cause, false)
	b.a.record(Evicted, t)
	s.wake(t)
}

// applyLocked does what the counting machine asks of the queue, which mostly is nothing.
func (b *bucket) applyLocked(fx []sharedtier.Effect, s *step) {
	if len(fx) > 0 {
		b.applyAllLocked(fx, s)
	}
}

func (b *bucket) applyAllLocked(fx []sharedtier.Effect, s *step) {
	for _, e := range fx {
		switch e.Kind {
		case sharedtier.Send:
			b.sendLocked(e.Message)
		case sharedtier.RunOldest:
			b.leaveQueueLocked(b.queue.head, sharedPermit, e.Permit, s)
		case sharedtier.PromoteOldestPending:
			t := b.queue.oldestPending()
			t.state = waiting
			t.wait.parked = b.now(s)
			b.group.startWaiting()
			b.a.record(Waiting, t)
		case sharedtier.RefuseNewestPending:
			t := b.queue.newestPending()
			b.queue.remove(t)
			b.group.waiters.Add(-1)
			t.wait.err = b.refusalLocked(t, QueueFull, b.counts.Waiting)
			t.state = refused
			s.wake(t)
		}
	}
}

// drainLocked admits the oldest waiters to free node permits, then tells the owner of waiters that it does not know of.
func (b *bucket) drainLocked(s *step) {
	if b.queue.n == 0 {
		return
	}
	var buf [1]sharedtier.Effect
	for b.plan.parks() && b.node < b.plan.node {
		b.reapLocked(s)
		head := b.queue.head
		if head == nil {
			break
		}
		fx := b.counts.Admit(head.state == waiting, buf[:0])
		b.leaveQueueLocked(head, nodePermit, sharedtier.PermitID{}, s)
		b.applyLocked(fx, s)
	}
	b.applyLocked(b.counts.Settle(buf[:0]), s)
}

// reapLocked evicts cancelled waiters until the oldest one is not cancelled.
func (b *bucket) reapLocked(s *step) {
	for t := b.queue.head; t != nil && t.wait.ctx.Err() != nil; t = b.queue.head {
		b.evictLocked(t, context.Cause(t.wait.ctx), s)
	}
}

// emptyLocked lets all waiters go: they have nothing left to wait for, or the node stops.
func (b *bucket) emptyLocked(s *step) {
	stop := b.plan.stopped
	for t := b.queue.head; t != nil; t = b.queue.head {
		switch {
		case t.wait.ctx.Err() != nil:
			b.evictLocked(t, context.Cause(t.wait.ctx), s)
		case stop:
			b.evictLocked(t, errStopped, s)
		default:
			b.counts.Cancel(t.state == waiting)
			b.leaveQueueLocked(t, untrackedPermit, sharedtier.PermitID{}, s)
		}
	}
	for id, t := range b.tries {
		switch {
		case t == nil || t.watched:
			continue
		case t.wait.ctx.Err() != nil:
			b.dropTryLocked(t, context.Cause(t.wait.ctx), s)
		case stop:
			b.dropTryLocked(t, errStopped, s)
		default:
			b.tries[id] = nil
			b.admitLocked(t, untrackedPermit, sharedtier.PermitID{}, s)
		}
	}
}

// leaveQueueLocked admits a parked search. The counting machine has counted it already.
func (b *bucket) leaveQueueLocked(t *Ticket, kind permitKind, id sharedtier.PermitID, s *step) {
	b.queue.remove(t)
	b.group.waiters.Add(-1)
	now := b.now(s)
	if t.state == waiting {
		b.group.endWaiting(now - t.wait.parked)
	}
	if kind != untrackedPermit {
		b.observeLocked(now)
	}
	b.admitLocked(t, kind, id, s)
}

// observeLocked learns how fast the queue drains.
func (b *bucket) observeLocked(now time.Duration) {
	const weight = 4 // a step's share of the smoothed interval is 1/weight: a few admissions tell, one outlier does not
	d := now - b.lastAdmission
	if b.interval == 0 {
		b.interval = d
	} else {
		b.interval += (d - b.interval) / weight
	}
	b.lastAdmission = now
}

// admitLocked decides that a search runs.
func (b *bucket) admitLocked(t *Ticket, kind permitKind, id sharedtier.PermitID, s *step) {
	b.group.admitted.Add(1)
	t.state = admitted
	b.giveLocked(t, kind, id)
	b.a.record(Admitted, t)
	s.wake(t)
}

// giveLocked counts a permit that goes out.
func (b *bucket) giveLocked(t *Ticket, kind permitKind, id sharedtier.PermitID) {
	t.kind, t.shared = kind, id
	switch kind {
	case untrackedPermit:
		b.group.runningUntracked.Add(1)
		return
	case nodePermit:
		b.node++
	case sharedPermit:
		b.shared++
	}
	b.running.push(t)
}

// takeBackLocked counts a permit that comes back.
func (b *bucket) takeBackLocked(t *Ticket) {
	if t.wait != nil {
		b.mu.takeBackLocked(t.wait)
		t.wait = nil
	}
	switch t.kind {
	case untrackedPermit:
		b.group.runningUntracked.Add(-1)
		return
	case nodePermit:
		b.node--
	case sharedPermit:
		b.shared--
		b.sendLocked(sharedtier.Message{Kind: sharedtier.Release, Permit: t.shared})
	}
	b.running.remove(t)
}

// evictLocked takes a waiter out of the queue without admitting it.
func (b *bucket) evictLocked(t *Ticket, cause error, s *step) {
	b.queue.remove(t)
	b.counts.Cancel(t.state == waiting)
	b.group.waiters.Add(-1)
	if t.state == waiting {
		b.group.waiting.Add(-1)
		b.group.evicted.Add(1)
	}
	b.group.cancelled.Add(1)
	b.a.countEviction(cause)
	t.state = evicted
	t.wait.err = ended(cause, true)
	b.a.record(Evicted, t)
	s.wake(t)
}

// refusalLocked counts a refusal and says why. A try that nobody may see counts nothing.
func (b *bucket) refusalLocked(t *Ticket, why Why, depth int) error {
	if t.tryOnly {
		b.a.record(Denied, t)
		return ErrNoPermit
	}
	b.a.record(Refused, t)
	g := b.group
	g.refused.Add(1)
	g.throttled.Add(1)
	if why == QueueFull || why == GroupFull {
		g.queueRejections.Add(1)
	}
	tier, limit := b.plan.tier()
	return &RejectedError{
		GroupID: g.id, Group: g.name, Attribute: b.key.Attribute, Value: b.key.Value,
		Tier: tier, Limit: limit, Why: why, Depth: depth, Size: b.plan.size,
		RetryAfter: retryAfter(b.interval * time.Duration(b.queue.n+1)),
	}
}

// cancel evicts a search whose context has ended, unless it has been decided already.
func (b *bucket) cancel(t *Ticket, cause error) {
	var s step
	b.mu.Lock()
	switch t.state {
	case pending, waiting:
		b.evictLocked(t, cause, &s)
		b.drainLocked(&s)
	case trying:
		b.dropTryLocked(t, cause, &s)
	}
	b.leave(&s)
}

// idleLocked reports whether nothing is left that the bucket is kept for (I4).
func (b *bucket) idleLocked() bool {
	return b.queue.n == 0 && b.node == 0 && b.shared == 0 && len(b.tries) == 0 &&
		b.counts.Quiet() && len(b.outbox) == 0 && !b.sending
}

// leave ends a step: it releases the bucket's lock, wakes who has been decided about, and sends what is in the outbox.
func (b *bucket) leave(s *step) {
	b.a.verifyLocked(b)
	send := len(b.outbox) > 0 && !b.sending
	b.sending = b.sending || send
	b.unlock()
	if s.ready != nil {
		s.ready <- struct{}{}
	}
	if send {
		b.flush()
	}
}

// unlock releases the bucket's lock. A bucket that nothing is left in is taken out before.
func (b *bucket) unlock() {
	if b.used && b.shard != nil && b.idleLocked() {
		b.shard.dropLocked(b)
	}
	b.mu.Unlock()
}

// flush sends the outbox. Only the goroutine that has set sending calls it; answers may fill the outbox again meanwhile.
func (b *bucket) flush() {
	for {
		b.mu.Lock()
		messages, session := b.outbox, b.session
		b.outbox = nil
		if len(messages) == 0 {
			b.sending = false
			b.unlock()
			return
		}
		b.mu.Unlock()
		session.Send(*b.key, messages)
	}
}
