package wlm

import "iter"

// queue is a list of searches in the order in which they came: a bucket's waiters, or those that run. It is doubly linked through
// the tickets themselves, each of which is in at most one, so that any of them leaves in constant time and without garbage.
type queue struct {
	head, tail *Ticket
	// pendingHint is the oldest pending waiter or one before it; nil when there may be none. Waiters become waiting in order, so
	// the search for the next pending one never starts over.
	pendingHint *Ticket
	n           int
}

func (q *queue) push(t *Ticket) {
	t.prev, t.next = q.tail, nil
	if q.tail == nil {
		q.head = t
	} else {
		q.tail.next = t
	}
	q.tail = t
	q.n++
	if t.state == pending && q.pendingHint == nil {
		q.pendingHint = t
	}
}

func (q *queue) remove(t *Ticket) {
	if q.pendingHint == t {
		q.pendingHint = t.next
	}
	if t.prev == nil {
		q.head = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		q.tail = t.prev
	} else {
		t.next.prev = t.prev
	}
	t.prev, t.next = nil, nil
	q.n--
}

// oldestPending is the first pending waiter, nil when there is none.
func (q *queue) oldestPending() *Ticket {
	for t := q.pendingHint; t != nil; t = t.next {
		q.pendingHint = t
		if t.state == pending {
			return t
		}
	}
	q.pendingHint = nil
	return nil
}

// newestPending is the last pending waiter, nil when there is none.
func (q *queue) newestPending() *Ticket {
	for t := q.tail; t != nil; t = t.prev {
		if t.state == pending {
			return t
		}
	}
	return nil
}

// all walks the queue from the oldest. The queue must not change meanwhile.
func (q *queue) all() iter.Seq[*Ticket] {
	return func(yield func(*Ticket) bool) {
		for t := q.head; t != nil; t = t.next {
			if !yield(t) {
				return
			}
		}
	}
}
