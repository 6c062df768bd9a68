package sharedtier

import (
	"maps"
	"slices"
	"time"
)

// Tenure is what one member owns during one epoch: the owners of its buckets, and for each member of the epoch the session over
// which it asks. It begins empty and grants nothing before every member has announced what it holds: whoever owned the buckets
// before, the permits that are out are then known. A new epoch is a new Tenure.
//
// Times are readings of one monotonic clock of the caller's. A Tenure is not safe for concurrent use.
type Tenure[K comparable] struct {
	epoch   uint64
	lease   time.Duration
	seats   map[Member]*seat[K]
	buckets map[K]*Owner
	most    int    // buckets that the map has had
	last    uint64 // number of the permit granted last
	missing int    // members that have not yet announced everything
	ticked  time.Duration

	out []Outgoing // kept for its memory only
}

// seat is what a Tenure knows of one member.
type seat[K comparable] struct {
	session uint64 // whose messages count; 0: none
	open    bool   // its stream is there
	done    bool   // it has announced everything once
	heard   time.Duration

	// stale has the buckets whose permits it held before its session began and that it has not spoken of in it.
	stale map[K]bool
}

// Post is a message to a member, in a session of its own.
type Post[K comparable] struct {
	To      Member
	Session uint64
	Bucket  K
	Message Message
}

// NewTenure begins an epoch. lease is how long a member that is silent keeps its permits.
func NewTenure[K comparable](epoch uint64, members []Member, lease, now time.Duration) *Tenure[K] {
	t := &Tenure[K]{
		epoch: epoch, lease: lease, missing: len(members), ticked: now,
		seats: make(map[Member]*seat[K], len(members)), buckets: make(map[K]*Owner),
	}
	for _, m := range members {
		t.seats[m] = &seat[K]{heard: now}
	}
	return t
}

// Epoch is the epoch of the tenure.
func (t *Tenure[K]) Epoch() uint64 { return t.epoch }

// Ready reports whether the tenure may grant.
func (t *Tenure[K]) Ready() bool { return t.missing == 0 }

// Missing are the members that have not yet announced everything, in order.
func (t *Tenure[K]) Missing() []Member {
	var out []Member
	for _, m := range slices.Sorted(maps.Keys(t.seats)) {
		if !t.seats[m].done {
			out = append(out, m)
		}
	}
	return out
}

// Open begins a member's session; the one before, if there is one, is over. The number of a session is never 0 and never used
// again. Permits that the member holds stay until it has announced what it still has. Open reports whether the member is one of
// the epoch.
func (t *Tenure[K]) Open(m Member, session uint64, now time.Duration) bool {
	s := t.seats[m]
	if s == nil {
		return false
	}
	s.session, s.open, s.heard = session, true, now
	s.stale = make(map[K]bool)
	for k, o := range t.buckets {
		o.leave(m)
		if o.holds(m) {
			s.stale[k] = true
		}
		t.tidy(k, o)
	}
	return true
}

// Broken tells that the stream of a session has ended. The member's permits stay until its next announcements or its lease's end.
func (t *Tenure[K]) Broken(m Member, session uint64) {
	s := t.seats[m]
	if s == nil || s.session != session {
		return
	}
	s.open = false
	for k, o := range t.buckets {
		o.leave(m)
		t.tidy(k, o)
	}
}

// Receive takes in a message of a member, in the order sent, and appends what has to be sent. limit is how many permits the bucket
// may have now. A message of a session that is over does nothing.
func (t *Tenure[K]) Receive(m Member, session uint64, k K, msg Message, limit int, now time.Duration, posts []Post[K]) []Post[K] {
	s := t.seats[m]
	if s == nil || s.session != session || !s.open {
		return posts
	}
	switch msg.Kind {
	case Beat:
		s.heard = now
		return append(posts, Post[K]{To: m, Session: session, Message: msg})
	case Done:
		return t.done(m, s, posts)
	}
	o := t.buckets[k]
	if o == nil {
		o = &Owner{ready: t.Ready()}
		t.buckets[k] = o
		t.most = max(t.most, len(t.buckets))
	}
	o.Limit = limit
	if s.stale[k] {
		// What a bucket has is the first that the session hears of it: if that is something else, it has nothing. What it is granted from
		// here on is not stale.
		delete(s.stale, k)
		o.free(m)
	}
	return t.step(k, o, posts, func(out []Outgoing) []Outgoing { return o.Receive(m, msg, out) })
}

// done ends a member's announcements. What it held before and has not announced is free.
func (t *Tenure[K]) done(m Member, s *seat[K], posts []Post[K]) []Post[K] {
	for k := range s.stale {
		if o := t.buckets[k]; o != nil {
			o.free(m)
			posts = t.step(k, o, posts, o.Push)
		}
	}
	s.stale = nil
	if s.done {
		return posts
	}
	s.done = true
	t.missing--
	if t.Ready() {
		for k, o := range t.buckets {
			posts = t.step(k, o, posts, o.start)
		}
	}
	return posts
}

// SetLimit tells how many permits a bucket may have now. A lower limit takes no permit back.
func (t *Tenure[K]) SetLimit(k K, limit int, posts []Post[K]) []Post[K] {
	o := t.buckets[k]
	if o == nil || o.Limit == limit {
		return posts
	}
	o.Limit = limit
	return t.step(k, o, posts, o.Push)
}

// Buckets are the keys of all buckets that hold something.
func (t *Tenure[K]) Buckets() []K { return slices.Collect(maps.Keys(t.buckets)) }

// patience is how many ticks a Try waits for an owner that may not grant yet.
const patience = 2

// Tick ends the sessions whose lease is over and frees their permits, and tells each Try that has waited through [patience] ticks
// for an owner that may not grant yet that it is unavailable. A tick that comes late, by more than a third of the lease after the
// one before, shows that this process did not run: every session then gets a lease anew, since beats were not read.
func (t *Tenure[K]) Tick(now time.Duration, posts []Post[K]) (_ []Post[K], ended []Member) {
	late := now-t.ticked > t.lease/3
	t.ticked = now
	for _, m := range slices.Sorted(maps.Keys(t.seats)) {
		s := t.seats[m]
		switch {
		case s.session == 0:
		case late:
			s.heard = now
		case now-s.heard > t.lease:
			ended = append(ended, m)
			posts = t.expire(m, s, posts)
		}
	}
	return t.giveUp(posts), ended
}

// giveUp answers the tries that have waited long enough for an owner that may not grant yet.
func (t *Tenure[K]) giveUp(posts []Post[K]) []Post[K] {
	for k, o := range t.buckets {
		waiting := o.asked[:0]
		for _, q := range o.asked {
			q.ticks++
			if q.message.Kind == Try && q.ticks >= patience {
				posts = t.post(k, Outgoing{q.from, Message{Kind: Unavailable, Try: q.message.Try}}, posts)
				continue
			}
			waiting = append(waiting, q)
		}
		o.asked = waiting
		t.tidy(k, o)
	}
	return posts
}

// expire ends a member's session and frees all that it has.
func (t *Tenure[K]) expire(m Member, s *seat[K], posts []Post[K]) []Post[K] {
	s.session, s.open, s.stale = 0, false, nil
	for k, o := range t.buckets {
		o.leave(m)
		o.free(m)
		posts = t.step(k, o, posts, o.Push)
	}
	return posts
}

// step has a bucket's owner do something under numbers that no other bucket uses.
func (t *Tenure[K]) step(k K, o *Owner, posts []Post[K], do func([]Outgoing) []Outgoing) []Post[K] {
	o.Last = PermitID{Epoch: t.epoch, Seq: t.last}
	t.out = do(t.out[:0])
	t.last = o.Last.Seq
	for _, out := range t.out {
		posts = t.post(k, out, posts)
	}
	t.tidy(k, o)
	return posts
}

// post addresses a message. Without a stream it is lost, as if it had been lost with the stream.
func (t *Tenure[K]) post(k K, o Outgoing, posts []Post[K]) []Post[K] {
	if s := t.seats[o.To]; s.open {
		posts = append(posts, Post[K]{To: o.To, Session: s.session, Bucket: k, Message: o.Message})
	}
	return posts
}

// smallMap is how many buckets the map may have had and still be kept when it is empty: a map never shrinks, so after a storm of
// principals it has to go whole.
const smallMap = 64

// tidy drops an owner that holds nothing.
func (t *Tenure[K]) tidy(k K, o *Owner) {
	if o.Idle() {
		delete(t.buckets, k)
		if len(t.buckets) == 0 && t.most > smallMap {
			t.buckets, t.most = make(map[K]*Owner), 0
		}
	}
}

// Held tells of a permit that is out.
type Held[K comparable] struct {
	Bucket K
	Permit PermitID
	By     Member
}

// Permits are all permits that are out, in no order.
func (t *Tenure[K]) Permits() []Held[K] {
	var out []Held[K]
	for k, o := range t.buckets {
		for p, m := range o.holders {
			out = append(out, Held[K]{Bucket: k, Permit: p, By: m})
		}
	}
	return out
}
