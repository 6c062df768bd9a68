package sharedtier

import (
	"encoding/binary"
	"maps"
	"slices"
)

// What the exploration needs of the machines beside their steps: copies, an encoding of what decides about their future, and the
// steps that the clock brings.

// Clone copies a tenure. The two share nothing that changes.
func (t *Tenure[K]) Clone() *Tenure[K] {
	if t == nil {
		return nil
	}
	c := *t
	c.out = nil
	c.seats = make(map[Member]*seat[K], len(t.seats))
	for m, s := range t.seats {
		copied := *s
		copied.stale = maps.Clone(s.stale)
		c.seats[m] = &copied
	}
	c.buckets = make(map[K]*Owner, len(t.buckets))
	for k, o := range t.buckets {
		copied := *o
		copied.asked = slices.Clone(o.asked)
		copied.holders = maps.Clone(o.holders)
		copied.turn = slices.Clone(o.turn)
		copied.depth = maps.Clone(o.depth)
		c.buckets[k] = &copied
	}
	return &c
}

// Names gives numbers to members, sessions and permits, so that states that differ in names only are encoded alike.
type Names struct {
	Member  func(Member) byte
	Session func(Member, uint64) byte
	Permit  func(PermitID) byte
}

// AppendState encodes what decides about the tenure's future, for one bucket and the members in the order given.
func (t *Tenure[K]) AppendState(b []byte, k K, members []Member, n Names) []byte {
	b = binary.AppendUvarint(b, t.epoch)
	for _, m := range members {
		s := t.seats[m]
		b = append(b, n.Session(m, s.session), flag(s.open), flag(s.done), flag(s.stale[k]))
	}
	o := t.buckets[k]
	if o == nil {
		return append(b, 0xff)
	}
	b = append(b, byte(o.Limit), flag(o.ready), byte(len(o.asked)))
	for _, q := range o.asked {
		b = AppendMessage(append(b, n.Member(q.from), byte(q.ticks)), q.message, n)
	}
	b = append(b, byte(len(o.holders)))
	for _, m := range members {
		var held []PermitID
		for p, holder := range o.holders {
			if holder == m {
				held = append(held, p)
			}
		}
		b = appendPermits(b, held, n)
	}
	b = append(b, byte(len(o.turn)))
	for _, m := range o.turn {
		b = append(b, n.Member(m), byte(o.depth[m]))
	}
	return b
}

// AppendMessage encodes a message.
func AppendMessage(b []byte, m Message, n Names) []byte {
	b = append(b, byte(m.Kind), n.Permit(m.Permit), byte(m.Depth), byte(m.Generation), byte(m.Try))
	return appendPermits(b, m.Held, n)
}

// appendPermits encodes a set of permits.
func appendPermits(b []byte, held []PermitID, n Names) []byte {
	held = slices.Clone(held)
	slices.SortFunc(held, func(x, y PermitID) int { return int(n.Permit(x)) - int(n.Permit(y)) })
	b = append(b, byte(len(held)))
	for _, p := range held {
		b = append(b, n.Permit(p))
	}
	return b
}

// AppendState encodes the counts. A generation matters by whether it is that of a question under way, so those are encoded beside it.
func (c *Coordinator) AppendState(b []byte) []byte {
	return append(b, flag(c.On), flag(c.Linked), byte(c.Size), byte(c.Pending), byte(c.Waiting), byte(c.Outstanding),
		byte(c.Advertised), byte(c.Generation))
}

func flag(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// Expire ends a member's session as the end of its lease does.
func (t *Tenure[K]) Expire(m Member, posts []Post[K]) []Post[K] {
	return t.expire(m, t.seats[m], posts)
}

// GiveUp is the part of a tick that answers tries.
func (t *Tenure[K]) GiveUp(posts []Post[K]) []Post[K] { return t.giveUp(posts) }

// Tries counts those that wait for the tenure to be ready.
func (t *Tenure[K]) Tries(k K) (n int) {
	if o := t.buckets[k]; o != nil {
		for _, q := range o.asked {
			if q.message.Kind == Try {
				n++
			}
		}
	}
	return n
}

// Trusting makes the tenure grant before anybody has announced: a fault that the exploration has to find.
func (t *Tenure[K]) Trusting() { t.missing = 0 }

// Renumber makes the tenure one of a later epoch without beginning anew: part of a fault that the exploration has to find.
func (t *Tenure[K]) Renumber(epoch uint64) { t.epoch = epoch }

// OwnerOf is the bucket's owner, nil when it holds nothing.
func (t *Tenure[K]) OwnerOf(k K) *Owner { return t.buckets[k] }

// Knows reports whether messages of the session count.
func (t *Tenure[K]) Knows(m Member, session uint64) bool {
	return t.seats[m].session == session && t.seats[m].open
}
