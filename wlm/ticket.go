package wlm

import (
	"context"
	"time"
)

// state of a search on its way through a bucket. It changes under the bucket's lock only.
type state uint8

const (
	arriving state = iota
	pending        // parked, the question to the owner is under way
	waiting        // parked
	trying         // may not park; the one question to the owner is under way
	admitted
	evicted // left without being admitted: cancelled, or the node stops
	refused
)

// Ticket is one search's place between [Admission.Enter] and its permit. One goroutine calls Wait; the other methods are safe for
// concurrent use.
type Ticket struct {
	a       *Admission
	group   *group
	bucket  *bucket // nil: decided without a bucket
	key     BucketKey
	ctx     context.Context
	tryOnly bool          // never parks, and counts nothing unless it is admitted
	ready   chan struct{} // closed once decided; nil when Enter decided it

	// The bucket's lock guards what follows until the ticket is decided; what ready's closing or Enter's return publishes is
	// then read without it.
	state          state
	err            error // evicted, refused
	seq            uint64
	parked         time.Time // since when it waits
	foundCancelled time.Time // when the sweep first found it cancelled and still parked
	try            uint64    // of the question to the owner
	watched        bool      // it runs already; the answer to its question is only counted
	permit         Permit
	wokenNext      *Ticket
	prev           *Ticket
	next           *Ticket
}

// Bucket is the bucket whose limits hold for the search; the zero key when none do.
func (t *Ticket) Bucket() BucketKey { return t.key }

// Wait blocks until the search may run, is refused or its context ends, and gives its permit. Errors: [*CancelledError],
// [*RejectedError], [*StoppedError], and [ErrNoPermit] after [Admission.TryEnter]. ctx must be the one given to Enter, or end no
// later. A search that was admitted gets its permit even when its context has ended meanwhile; it has to close it all the same.
func (t *Ticket) Wait(ctx context.Context) (*Permit, error) {
	if t.ready != nil {
		select {
		case <-t.ready:
		case <-ctx.Done():
			t.bucket.cancel(t, context.Cause(ctx))
		}
	}
	if t.state != admitted {
		return nil, t.err
	}
	return &t.permit, nil
}
