package sharedtier

// Member names a node that has searches of a bucket.
type Member string

// Outgoing is a message of the owner and its receiver.
type Outgoing struct {
	To      Member
	Message Message
}

// Owner has the permits of one bucket. The zero value is a bucket without permits and with the limit 0. It is not safe for
// concurrent use.
type Owner struct {
	// Limit is how many permits there may be; 0 grants none but remembers who waits.
	Limit int
	// Last is the id of the permit that was granted last; ids grow from there. None may be used again while a message about it
	// may be under way: so an owner is only dropped, and made anew from zero, when it is idle and nothing is.
	Last PermitID

	holders map[PermitID]Member
	// turn has the members with waiters, whose turn it is first; depth how many each has.
	turn  []Member
	depth map[Member]int
}

// Idle reports whether the owner holds nothing that would be lost with it.
func (o *Owner) Idle() bool { return len(o.holders) == 0 && len(o.turn) == 0 }

// Held is the number of permits that are out.
func (o *Owner) Held() int { return len(o.holders) }

// Depth is the number of waiters that the owner remembers of a member.
func (o *Owner) Depth(m Member) int { return o.depth[m] }

// Receive takes in a message of a member and appends what has to be sent.
func (o *Owner) Receive(from Member, m Message, out []Outgoing) []Outgoing {
	switch m.Kind {
	case Acquire:
		if o.free() && len(o.turn) == 0 {
			out = append(out, Outgoing{from, Message{Kind: Granted, Permit: o.mint(from)}})
			break
		}
		o.remember(from, m.Depth)
		out = append(out, Outgoing{from, Message{Kind: Denied, Depth: m.Depth, Generation: m.Generation}})
	case Try:
		if o.free() && len(o.turn) == 0 {
			out = append(out, Outgoing{from, Message{Kind: Granted, Permit: o.mint(from), Try: m.Try}})
			break
		}
		out = append(out, Outgoing{from, Message{Kind: Denied, Try: m.Try}})
	case Want:
		o.remember(from, m.Depth)
	case Release:
		o.takeBack(from, m.Permit)
	case Unused:
		o.takeBack(from, m.Permit)
		o.remember(from, 0)
	}
	return o.Push(out)
}

// Push grants what is free to the members that wait, in turn. It has to follow a change of Limit.
func (o *Owner) Push(out []Outgoing) []Outgoing {
	for o.free() && len(o.turn) > 0 {
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

func (o *Owner) free() bool { return len(o.holders) < o.Limit }

func (o *Owner) mint(m Member) PermitID {
	if o.holders == nil {
		o.holders = make(map[PermitID]Member)
	}
	o.Last++
	o.holders[o.Last] = m
	return o.Last
}

// takeBack ends a permit. One that the member does not hold is ignored, so that a message can be repeated.
func (o *Owner) takeBack(from Member, p PermitID) {
	if o.holders[p] == from {
		delete(o.holders, p)
	}
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
		for i, x := range o.turn {
			if x == m {
				o.turn = append(o.turn[:i], o.turn[i+1:]...)
				break
			}
		}
	}
}
