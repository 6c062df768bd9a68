package wlm

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wlmserver/wlmserver/internal/sharedtier"
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
	free // runs without a permit; no bucket has decided that
)

// Ticket is one search's place between [Admission.Enter] and its permit. One goroutine calls Wait; the other methods are safe for
// concurrent use.
//
// It is the one thing that an admission allocates, and no larger than a cache line.
type Ticket struct {
	bucket *bucket    // that decides; of a free search that of the whole group, which knows nothing of it
	key    *BucketKey // of the bucket whose limits hold, which is never written to; nil when none do

	// The bucket's lock guards what follows until the ticket is decided; what the signal of its wait or Enter's return publishes
	// is then read without it.
	wait       *wait   // nil when Enter decided the ticket, and again when the permit is closed
	prev, next *Ticket // in the queue of its bucket, or among those that run
	state      state
	tryOnly    bool // never parks, and counts nothing unless it is admitted
	watched    bool // it runs already; the answer to its question is only counted

	// The bucket's lock guards which permit it has, once it has one.
	kind   permitKind
	closed atomic.Bool // the permit
	shared sharedtier.PermitID
}

// wait is what a search needs besides its ticket while it is undecided, in one cache line. Once the ticket is decided it belongs to
// the goroutine in [Ticket.Wait]; when a permit is closed it may become another search's.
type wait struct {
	ctx   context.Context // nil again when Wait has given the permit
	ready chan struct{}   // gets one value, once the ticket is decided

	number         uint64        // of a parked search its place among all that have parked in the group, of one that asks its question's
	parked         time.Duration // since when it waits, by the admission's clock
	foundCancelled time.Duration // when the sweep first found it cancelled and still parked
	err            error         // evicted, refused
}

// keeper is the lock of a bucket, or of a shard's buckets, with waits to be used again: where searches come as fast as they go,
// each new one finds that of one that has just gone.
type keeper struct {
	sync.Mutex
	spare [2]*wait
}

func (k *keeper) newWaitLocked(ctx context.Context) *wait {
	for i, w := range k.spare {
		if w != nil {
			k.spare[i] = nil
			w.ctx = ctx
			return w
		}
	}
	return &wait{ctx: ctx, ready: make(chan struct{}, 1)}
}

// takeBackLocked takes the wait of a search that was admitted and got its permit. It has no context any more, no error, and nobody has
// found it cancelled.
func (k *keeper) takeBackLocked(w *wait) {
	for i, s := range k.spare {
		if s == nil {
			k.spare[i] = w
			return
		}
	}
}

// Bucket is the bucket whose limits hold for the search; the zero key when none do.
func (t *Ticket) Bucket() BucketKey {
	if t.key == nil {
		return BucketKey{}
	}
	return *t.key
}

// Cancel evicts the search, unless it has been decided: its Wait fails with a [*CancelledError] of the cause. It is the quick way
// for who cancels a search by name; a context that ends does the same as soon as Wait notices.
func (t *Ticket) Cancel(cause error) { t.bucket.cancel(t, cause) }

// Wait blocks until the search may run, is refused or its context ends, and gives its permit. Errors: [*CancelledError],
// [*RejectedError], [*StoppedError], and [ErrNoPermit] after [Admission.TryEnter]. ctx must be the one given to Enter, or end no
// later. A search that was admitted gets its permit even when its context has ended meanwhile; it has to close it all the same.
func (t *Ticket) Wait(ctx context.Context) (*Permit, error) {
	if w := t.wait; w != nil && w.ctx != nil {
		select {
		case <-w.ready:
		case <-ctx.Done():
			t.bucket.cancel(t, context.Cause(ctx))
			<-w.ready // whoever has decided sends it
		}
		if t.state != admitted {
			w.ready <- struct{}{} // for a second call
			return nil, w.err
		}
		w.ctx = nil
	}
	return (*Permit)(t), nil
}
