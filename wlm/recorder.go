package wlm

import (
	"sync"
	"time"
)

// EventKind says what happened.
type EventKind string

// What a [Recorder] keeps.
const (
	Changed  EventKind = "changed"  // the bucket took in limits
	Asked    EventKind = "asked"    // a search that may not park asks the owner for a permit
	Parked   EventKind = "parked"   // a search parked
	Waiting  EventKind = "waiting"  // a search that had parked as a pending one became a waiting one
	Admitted EventKind = "admitted" // a search may run
	Tracked  EventKind = "tracked"  // a search that runs, watched, was given a shared permit
	Refused  EventKind = "refused"  // a search was refused, and that was counted
	Denied   EventKind = "denied"   // TryEnter found no permit, which is not counted
	Evicted  EventKind = "evicted"  // a search left without being admitted
	Closed   EventKind = "closed"   // a search ended its run
)

// Event is one thing that happened in a bucket, in the order in which it was decided under the bucket's lock.
type Event struct {
	Kind   EventKind `json:"kind"`
	Bucket string    `json:"bucket"`
	// Search names the search within the history; 0 when the event is none of a search.
	Search uint64 `json:"search,omitempty"`
	// Seq grows with each search that parks in the group; 0 when it did not park.
	Seq uint64 `json:"seq"`
	// Pending: a search that parks waits for the owner's answer.
	Pending bool `json:"pending,omitempty"`
	// Tier of the permit of an admitted, tracked or closed search; empty when it counts against no limit.
	Tier   Tier      `json:"tier,omitempty"`
	Limits *Limits   `json:"limits,omitempty"` // of a change
	At     time.Time `json:"at"`
}

// Limits are those of a bucket: see the fields of the group that they come from. 0 is no tier, or no queue.
type Limits struct {
	Node   int  `json:"node"`
	Shared int  `json:"shared"`
	Size   int  `json:"size"`
	Parks  bool `json:"parks"` // searches may wait
}

// Recorder keeps the history of all buckets in memory, without bound: it is for tests. It is safe for concurrent use.
type Recorder struct {
	mu       sync.Mutex
	events   []Event
	searches map[*Ticket]named // those that have not left
	last     uint64
}

// Events gives the history so far.
func (r *Recorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Event(nil), r.events...)
}

// Take gives the history since it was last taken, and forgets it.
func (r *Recorder) Take() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.events
	r.events = nil
	return taken
}

// named is what the events of one search have in common.
type named struct{ search, seq uint64 }

func (r *Recorder) add(e Event, t *Ticket) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t != nil {
		n, known := r.searches[t]
		if !known {
			r.last++
			n.search = r.last
		}
		n.seq = max(n.seq, e.Seq)
		e.Search, e.Seq = n.search, n.seq
		switch e.Kind {
		case Refused, Denied, Evicted, Closed:
			delete(r.searches, t)
		default:
			if r.searches == nil {
				r.searches = make(map[*Ticket]named)
			}
			r.searches[t] = n
		}
	}
	r.events = append(r.events, e)
}

// record keeps an event of a search, if there is somebody to keep it; the bucket's lock is held, so that the history has the order of
// the decisions.
func (a *Admission) record(k EventKind, t *Ticket) {
	if a.recorder != nil {
		a.recordEvent(k, t)
	}
}

func (a *Admission) recordEvent(k EventKind, t *Ticket) {
	e := Event{Kind: k, Bucket: t.Bucket().String(), Pending: k == Parked && t.state == pending, At: time.Now()}
	if k == Parked || k == Waiting {
		e.Seq = t.wait.number
	}
	switch k {
	case Admitted, Tracked, Closed:
		switch t.kind {
		case nodePermit:
			e.Tier = NodeTier
		case sharedPermit:
			e.Tier = SharedTier
		}
	}
	a.recorder.add(e, t)
}

// recordChange keeps that the bucket, whose lock is held, took in a plan.
func (a *Admission) recordChange(b *bucket) {
	if a.recorder == nil {
		return
	}
	p := b.plan
	a.recorder.add(Event{Kind: Changed, Bucket: b.key.String(), At: time.Now(),
		Limits: &Limits{Node: p.node, Shared: p.shared, Size: p.size, Parks: p.parks()}}, nil)
}
