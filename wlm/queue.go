package wlm

import "iter"

// list is a list of searches in the order in which they came. It is doubly linked through the tickets themselves, each of which is
// in at most one, so that any of them leaves in constant time and without garbage.
type list struct {
	head, tail *Ticket
	n          int
}

func (l *list) push(t *Ticket) {
	t.prev, t.next = l.tail, nil
	if l.tail == nil {
		l.head = t
	} else {
		l.tail.next = t
	}
	l.tail = t
	l.n++
}

func (l *list) remove(t *Ticket) {
	if t.prev == nil {
		l.head = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		l.tail = t.prev
	} else {
		t.next.prev = t.prev
	}
	t.prev, t.next = nil, nil
	l.n--
}

// all walks the list from the oldest. It must not change meanwhile.
func (l *list) all() iter.Seq[*Ticket] {
	return func(yield func(*Ticket) bool) {
		for t := l.head; t != nil; t = t.next {
			if !yield(t) {
				return
			}
		}
	}
}

// queue has a bucket's waiters.
type queue struct {
	list
	// pendingHint is the oldest pending waiter or one before it; nil when there may be none. Waiters become waiting in order, so
	// the search for the next pending one never starts over.
	pendingHint *Ticket
}

func (q *queue) push(t *Ticket) {
	q.list.push(t)
	if t.state == pending && q.pendingHint == nil {
		q.pendingHint = t
	}
}

func (q *queue) remove(t *Ticket) {
	if q.pendingHint == t {
		q.pendingHint = t.next
	}
	q.list.remove(t)
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
