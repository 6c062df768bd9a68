package sharedtier

// EffectKind says what the coordinator's machine asks of the queue that it counts.
type EffectKind uint8

const (
	// Send this message to the owner.
	Send EffectKind = iota + 1
	// RunOldest runs the oldest waiter under the permit.
	RunOldest
	// PromoteOldestPending makes the oldest pending waiter a waiting one.
	PromoteOldestPending
	// RefuseNewestPending refuses the newest pending waiter: there is no room to wait.
	RefuseNewestPending
)

// Effect is one thing to be done, in the order given.
type Effect struct {
	Kind    EffectKind
	Message Message  // Send
	Permit  PermitID // RunOldest
}

// Outcome of an arrival.
type Outcome uint8

const (
	// BecomesWaiting parks the search as waiting.
	BecomesWaiting Outcome = iota + 1
	// BecomesPending parks the search until the owner has answered.
	BecomesPending
	// Full refuses the search: the bucket's queue has no room.
	Full
)

// Coordinator counts the waiters of one bucket on one node and decides when the owner is asked. The zero value is a bucket
// without waiters. It is not safe for concurrent use.
type Coordinator struct {
	// On tells whether the bucket has a shared tier now; see SetOn.
	On bool
	// Linked tells whether there is a session to the bucket's owner; see Renew.
	Linked bool
	// Size is how many may wait (not counting the pending ones) when one more arrives.
	Size int

	Pending     int // parked, their acquire is under way
	Waiting     int // parked, and remembered by the owner or kept by another tier
	Outstanding int // acquires without an answer
	Advertised  int // the depth that the owner remembers of us; never more than it really does
	Generation  uint32
}

// Waiters is the length of the queue.
func (c *Coordinator) Waiters() int { return c.Pending + c.Waiting }

// Quiet reports whether nothing of this coordinator is known to, or asked of, an owner.
func (c *Coordinator) Quiet() bool { return c.Outstanding == 0 && c.Advertised == 0 }

// Arrive takes in a search that found no room and may wait.
func (c *Coordinator) Arrive(fx []Effect) (Outcome, []Effect) {
	if !c.On || !c.Linked || c.Advertised > 0 {
		if c.Waiting >= c.Size {
			return Full, fx
		}
		c.Waiting++
		return BecomesWaiting, fx
	}
	c.Pending++
	c.Outstanding++
	return BecomesPending, append(fx, Effect{Kind: Send, Message: Message{Kind: Acquire, Depth: c.Waiters(), Generation: c.Generation}})
}

// Renew tells that a new session to the owner begins, or that there is none now. What was asked in the one before has no answer any
// more: who was pending waits, whatever the size. In a session the owner has to be told of the bucket's permits and of Advertised
// waiters before anything else.
func (c *Coordinator) Renew(linked bool, fx []Effect) []Effect {
	for ; c.Pending > 0; c.Pending-- {
		c.Waiting++
		fx = append(fx, Effect{Kind: PromoteOldestPending})
	}
	c.Linked, c.Outstanding, c.Advertised = linked, 0, 0
	if linked && c.On {
		c.Advertised = c.Waiting
	}
	return fx
}

// Receive takes in a message of the owner that does not answer a Try. headWaiting tells whether the oldest waiter is a waiting
// one; it does not matter when there is none.
func (c *Coordinator) Receive(m Message, headWaiting bool, fx []Effect) []Effect {
	switch m.Kind {
	case Granted:
		c.Outstanding--
		fx = c.use(m.Permit, headWaiting, fx)
	case Denied:
		c.Outstanding--
		if m.Generation == c.Generation {
			c.Advertised = m.Depth
		}
		if c.Pending > 0 {
			c.Pending--
			if c.Waiting < c.Size {
				c.Waiting++
				fx = append(fx, Effect{Kind: PromoteOldestPending})
			} else {
				fx = append(fx, Effect{Kind: RefuseNewestPending})
			}
		}
	case Grant:
		if c.Advertised > 0 {
			c.Advertised--
		}
		fx = c.use(m.Permit, headWaiting, fx)
		if c.Advertised == 1 && c.Outstanding == 0 && c.Waiters() > 1 {
			// The owner would forget us with the next grant, and until it has heard of us again our turn would go to others.
			return c.want(fx)
		}
	}
	return c.Settle(fx)
}

// use runs the oldest waiter under a permit of the owner, or sends the permit back.
func (c *Coordinator) use(p PermitID, headWaiting bool, fx []Effect) []Effect {
	if c.Waiters() == 0 {
		c.Advertised = 0
		c.Generation++
		return append(fx, Effect{Kind: Send, Message: Message{Kind: Unused, Permit: p}})
	}
	return c.Admit(headWaiting, append(fx, Effect{Kind: RunOldest, Permit: p}))
}

// Admit counts that the oldest waiter leaves the queue to run; the oldest pending one takes a waiting one's place. Settle has to
// follow.
func (c *Coordinator) Admit(headWaiting bool, fx []Effect) []Effect {
	if !headWaiting {
		c.Pending--
		return fx
	}
	c.Waiting--
	if c.Pending > 0 {
		c.Pending--
		c.Waiting++
		fx = append(fx, Effect{Kind: PromoteOldestPending})
	}
	return fx
}

// Cancel counts that a waiter leaves the queue without running. Settle has to follow.
func (c *Coordinator) Cancel(waiting bool) {
	if waiting {
		c.Waiting--
	} else {
		c.Pending--
	}
}

// SetOn tells that the bucket's shared tier came or went. When it goes the owner is told to forget our waiters, which another
// tier drains or which the caller runs.
func (c *Coordinator) SetOn(on bool, fx []Effect) []Effect {
	if c.On && !on && !c.Quiet() {
		c.Advertised = 0
		c.Generation++
		fx = append(fx, Effect{Kind: Send, Message: Message{Kind: Want}})
	}
	c.On = on
	return c.Settle(fx)
}

// Settle closes every step: waiters that no owner knows of and no question is under way for are announced.
func (c *Coordinator) Settle(fx []Effect) []Effect {
	if !c.On || !c.Linked || !c.Quiet() || c.Waiters() == 0 {
		return fx
	}
	return c.want(fx)
}

// want tells the owner how many wait.
func (c *Coordinator) want(fx []Effect) []Effect {
	c.Advertised = c.Waiters()
	return append(fx, Effect{Kind: Send, Message: Message{Kind: Want, Depth: c.Advertised}})
}
