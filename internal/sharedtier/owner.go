package sharedtier

import "slices"

// Member names a node that has searches of a bucket.
type Member string

// Outgoing is a message of the owner and its receiver.
type Outgoing struct {
	To      Member
	Message Message
}

// Owner has the permits of one bucket. The zero value is a bucket without permits and with the limit 0, whose owner may not grant
// yet. It is not safe for concurrent use.
type Owner struct {
	// Limit is how many permits there may be; 0 grants none but remembers who waits.
	Limit int
	// Last is the id of the permit that was granted last; ids grow from there. None may be used again while a message about it
	// may be under way: so an owner is only dropped, and made anew from zero, when it is idle and nothing is.
	Last PermitID

	// ready tells that the permits that may be out are known; before, questions wait in asked.
	ready bool
	asked []question

	holders map[PermitID]Member
	// turn has the members with waiters, whose turn it is first; depth how many each has.
	turn  []Member
	depth map[Member]int
}

// question is an Acquire or a Try that has no answer yet.
type question struct {
	from    Member
	message Message
	ticks   int // that it has seen; see Tenure.Tick
}

// NewOwner makes an owner that may grant at once: it is known that no permit is out.
func NewOwner() Owner { return Owner{ready: true} }

// Idle reports whether the owner holds nothing that would be lost with it.
func (o *Owner) Idle() bool { return len(o.holders) == 0 && len(o.turn) == 0 && len(o.asked) == 0 }

// Held is the number of permits that are out.
func (o *Owner) Held() int { return len(o.holders) }

// Depth is the number of waiters that the owner remembers of a member.
func (o *Owner) Depth(m Member) int { return o.depth[m] }

// Receive takes in a message of a member and appends what has to be sent.
func (o *Owner) Receive(from Member, m Message, out []Outgoing) []Outgoing {
	switch m.Kind {
	case Acquire, Try:
		if !o.ready {
			o.asked = append(o.asked, question{from: from, message: m})
			return out
		}
		out = o.answer(from, m, out)
	case Want:
		o.remember(from, m.Depth)
	case Release:
		o.takeBack(from, m.Permit)
	case Unused:
		o.takeBack(from, m.Permit)
		o.remember(from, 0)
	case Announce:
		o.free(from)
		o.remember(from, 0) // its turn comes after those of who was here meanwhile
		for _, p := range m.Held {
			o.hold(p, from)
			if p.Epoch == o.Last.Epoch {
				o.Last.Seq = max(o.Last.Seq, p.Seq) // granted in another epoch of that number: etcd's data were replaced by earlier ones
			}
		}
		o.remember(from, m.Depth)
	}
	return o.Push(out)
}

// answer decides about a question.
func (o *Owner) answer(from Member, m Message, out []Outgoing) []Outgoing {
	if o.room() && len(o.turn) == 0 {
		return append(out, Outgoing{from, Message{Kind: Granted, Permit: o.mint(from), Try: m.Try}})
	}
	if m.Kind == Acquire {
		o.remember(from, m.Depth)
	}
	return append(out, Outgoing{from, Message{Kind: Denied, Depth: m.Depth, Generation: m.Generation, Try: m.Try}})
}

// Push grants what is free to the members that wait, in turn. It has to follow a change of Limit.
func (o *Owner) Push(out []Outgoing) []Outgoing {
	for o.ready && o.room() && len(o.turn) > 0 {
		m := o.turn[0]
		copy(o.turn, o.turn[1:])
		o.turn = o.turn[:len(o.turn)-1]
		o.depth[m]--
		if o.depth[m] > 0 {
			o.turn = append(o.turn, m)
		} else {
			delete(o.depth, m)
		}
		out = append(out, Outgoing{m, Message{Kind: Grant, Permit: o.mint(m)}})
	}
	return out
}

// start lets the owner grant: every member has announced what it holds. Questions are answered in the order in which they came.
func (o *Owner) start(out []Outgoing) []Outgoing {
	o.ready = true
	asked := o.asked
	o.asked = nil
	out = o.Push(out)
	for _, q := range asked {
		out = o.answer(q.from, q.message, out)
	}
	return out
}

// leave forgets that a member waits and what it has asked. Its permits stay.
func (o *Owner) leave(m Member) {
	o.remember(m, 0)
	o.asked = slices.DeleteFunc(o.asked, func(q question) bool { return q.from == m })
}

func (o *Owner) room() bool { return len(o.holders) < o.Limit }

func (o *Owner) mint(m Member) PermitID {
	o.Last.Seq++
	o.hold(o.Last, m)
	return o.Last
}

func (o *Owner) hold(p PermitID, m Member) {
	if o.holders == nil {
		o.holders = make(map[PermitID]Member)
	}
	o.holders[p] = m
}

// takeBack ends a permit. One that the member does not hold is ignored, so that a message can be repeated.
func (o *Owner) takeBack(from Member, p PermitID) {
	if o.holders[p] == from {
		delete(o.holders, p)
	}
}

// free ends all permits of a member.
func (o *Owner) free(m Member) {
	for p, holder := range o.holders {
		if holder == m {
			delete(o.holders, p)
		}
	}
}

// holds reports whether a member has permits.
func (o *Owner) holds(m Member) bool {
	for _, holder := range o.holders {
		if holder == m {
			return true
		}
	}
	return false
}

func (o *Owner) remember(m Member, depth int) {
	switch known := o.depth[m] > 0; {
	case depth > 0:
		if !known {
			o.turn = append(o.turn, m)
			if o.depth == nil {
				o.depth = make(map[Member]int)
			}
		}
		o.depth[m] = depth
	case known:
		delete(o.depth, m)
		o.turn = slices.DeleteFunc(o.turn, func(x Member) bool { return x == m })
	}
}
