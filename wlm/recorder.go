package wlm

import (
	"sync"
	"time"
)

// EventKind says what happened to a search.
type EventKind string

// What a [Recorder] keeps.
const (
	Parked   EventKind = "parked"
	Admitted EventKind = "admitted"
	Evicted  EventKind = "evicted"
	Closed   EventKind = "closed"
)

// Event is one thing that happened to a search of a bucket, in the order in which it was decided under the bucket's lock.
type Event struct {
	Kind   EventKind `json:"kind"`
	Bucket string    `json:"bucket"`
	// Seq grows with each search that parks in the group; 0 when it did not park.
	Seq uint64    `json:"seq"`
	At  time.Time `json:"at"`
}

// Recorder keeps the history of a bucket's decisions in memory, without bound: it is for tests. It is safe for concurrent use.
type Recorder struct {
	mu     sync.Mutex
	events []Event
}

// Events gives the history so far.
func (r *Recorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Event(nil), r.events...)
}

// record keeps an event; the bucket's lock is held, so that the history has the order of the decisions.
func (a *Admission) record(k EventKind, t *Ticket) {
	if a.recorder == nil {
		return
	}
	e := Event{Kind: k, Bucket: t.key.String(), Seq: t.seq, At: time.Now()}
	a.recorder.mu.Lock()
	a.recorder.events = append(a.recorder.events, e)
	a.recorder.mu.Unlock()
}
