package tier

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/sharedtier"
	"github.com/wlmserver/wlmserver/wlm"
)

var (
	errLeaseOver = errors.New("the owner has not been heard of for the time of a lease")
	errNoMember  = errors.New("this node's membership may have ended")
	errNewEpoch  = errors.New("the ring has changed")
	errReplaced  = errors.New("the coordinator has opened another session")
	errClosed    = errors.New("the node stops")
)

// EpochError says that a session is of an epoch that is over here, or of a member that is not in the ring.
type EpochError struct {
	Epoch, Here uint64
	Member      string
}

func (e *EpochError) Error() string {
	if e.Epoch == e.Here {
		return fmt.Sprintf("member %s is not in the ring of epoch %d: it has to join again", e.Member, e.Here)
	}
	return fmt.Sprintf("a session of epoch %d is not served in epoch %d: open one when the ring of that epoch is known", e.Epoch, e.Here)
}

// owning is what this node owns: the tenure of the epoch, and the sessions that it is asked over.
type owning struct {
	t *Tier

	mu       sync.Mutex
	ring     *ring.Ring
	changed  chan struct{}                     // closed when the ring changes
	tenure   *sharedtier.Tenure[wlm.BucketKey] // nil while this node may not own
	granting bool                              // this node was surely the owner when that was last looked at
	served   map[sharedtier.Member]*served
	last     uint64 // number of the session that began last
	posts    []sharedtier.Post[wlm.BucketKey]
	closed   bool
	waited   uint64 // revision that was waited for in vain in this epoch

	// overtaken is until when this node has to take it that others are in an epoch that it does not know. It grants nothing then: the
	// permits of who has gone on are announced elsewhere, and here they would be free a lease later.
	overtaken time.Duration
}

// served is a coordinator's session.
type served struct {
	number uint64
	outbox outbox
	end    context.CancelCauseFunc
}

func newOwning(t *Tier) *owning {
	return &owning{t: t, ring: ring.New(0, nil), changed: make(chan struct{}), served: make(map[sharedtier.Member]*served)}
}

// begin starts the tenure of an epoch, from nothing.
func (o *owning) begin(r *ring.Ring) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ring, o.tenure = r, nil
	o.waited, o.overtaken = 0, 0
	o.endAllLocked(errNewEpoch)
	if self := o.t.config.Self; self.Eligible() && r.Has(self) {
		members := make([]sharedtier.Member, len(r.Members()))
		for i, m := range r.Members() {
			members[i] = sharedtier.Member(m.ID)
		}
		o.tenure = sharedtier.NewTenure[wlm.BucketKey](r.Epoch(), members, o.t.config.Lease, o.t.now())
	}
	close(o.changed)
	o.changed = make(chan struct{})
}

func (o *owning) endAllLocked(why error) {
	for m, s := range o.served {
		s.end(why)
		delete(o.served, m)
	}
}

func (o *owning) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed, o.tenure = true, nil
	o.endAllLocked(errClosed)
	close(o.changed)
	o.changed = make(chan struct{})
}

// connect serves a session of this node with itself.
func (o *owning) connect(self ring.Member, epoch uint64) Stream {
	near, far := pipe()
	o.t.work.Go(func() {
		far.end(o.t.Serve(self, epoch, far))
	})
	return near
}

// Serve carries out the owner's side of a session that a member has opened for an epoch, until it ends. It waits for the ring of that
// epoch when the member knows it before this node does. Errors: [*EpochError], and what ended the session.
func (t *Tier) Serve(from ring.Member, epoch uint64, stream Stream) error {
	defer stream.Close()
	ctx, end := context.WithCancelCause(t.life)
	defer end(nil)
	s := &served{outbox: newOutbox(), end: end}
	var parts sync.WaitGroup
	defer parts.Wait()
	received := make(chan struct{})
	parts.Go(func() { // a stream that has nothing to say is only ended by its close
		select {
		case <-ctx.Done():
		case <-received:
		}
		stream.Close()
	})
	defer close(received)
	if err := t.owning.open(ctx, from, epoch, s); err != nil {
		return err
	}
	defer t.owning.broken(from, s)
	parts.Go(func() { end(s.outbox.carry(ctx, stream, t.config.Metadata.Revision)) })
	for {
		batch, err := stream.Receive()
		if err != nil {
			end(err)
			return context.Cause(ctx)
		}
		t.owning.catchUp(ctx, batch.Revision)
		t.owning.hear(from, s, batch.Envelopes)
	}
}

// open begins a session once the ring of its epoch is known here. It waits for that as long as the coordinator does, which then opens
// another session.
func (o *owning) open(ctx context.Context, from ring.Member, epoch uint64, s *served) error {
	giveUp := time.NewTimer(o.t.config.Lease)
	defer giveUp.Stop()
	for {
		o.mu.Lock()
		here, changed := o.ring.Epoch(), o.changed
		if o.closed {
			o.mu.Unlock()
			return errClosed
		}
		if here >= epoch {
			defer o.mu.Unlock()
			return o.openLocked(from, epoch, s)
		}
		o.overtaken = o.t.now() + 2*(o.t.config.Lease+lastRetry) // the next session is opened before
		o.mu.Unlock()
		select {
		case <-changed:
		case <-giveUp.C:
			return &EpochError{Epoch: epoch, Here: here, Member: from.ID}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (o *owning) openLocked(from ring.Member, epoch uint64, s *served) error {
	if o.tenure == nil || o.ring.Epoch() != epoch || !o.ring.Has(from) {
		return &EpochError{Epoch: epoch, Here: o.ring.Epoch(), Member: from.ID}
	}
	m := sharedtier.Member(from.ID)
	if before := o.served[m]; before != nil {
		before.end(errReplaced)
	}
	o.last++
	s.number = o.last
	o.served[m] = s
	o.tenure.Open(m, s.number, o.t.now())
	return nil
}

// broken tells the tenure that a session's stream has ended.
func (o *owning) broken(from ring.Member, s *served) {
	s.outbox.end()
	o.mu.Lock()
	defer o.mu.Unlock()
	m := sharedtier.Member(from.ID)
	if o.served[m] == s {
		delete(o.served, m)
		if o.tenure != nil {
			o.tenure.Broken(m, s.number)
		}
	}
}

// catchUpTimeout bounds how long an owner waits for metadata that a coordinator knows already.
const catchUpTimeout = time.Second

// catchUp lets this node know of what the sender acted by: else it could grant by a limit that has passed. When etcd does not tell,
// it goes on by what it knows, and does not wait for that revision again.
func (o *owning) catchUp(ctx context.Context, revision uint64) {
	if revision <= o.t.config.Metadata.Revision() {
		return
	}
	o.mu.Lock()
	waited := o.waited
	o.mu.Unlock()
	if revision <= waited {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	if o.t.config.Metadata.Await(ctx, revision) != nil {
		o.mu.Lock()
		o.waited = max(o.waited, revision)
		o.mu.Unlock()
	}
}

// hear has the tenure take in what came in a session.
func (o *owning) hear(from ring.Member, s *served, envelopes []Envelope) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m := sharedtier.Member(from.ID)
	if o.tenure == nil || o.served[m] != s {
		return
	}
	o.lookLocked()
	now := o.t.now()
	for _, e := range envelopes {
		if e.Message.Kind == sharedtier.Try && !o.granting { // denied would say that the limit is reached
			no := sharedtier.Message{Kind: sharedtier.Unavailable, Try: e.Message.Try}
			o.posts = append(o.posts, sharedtier.Post[wlm.BucketKey]{To: m, Session: s.number, Bucket: e.Bucket, Message: no})
			continue
		}
		o.posts = o.tenure.Receive(m, s.number, e.Bucket, e.Message, o.limitLocked(e.Bucket), now, o.posts)
	}
	o.postLocked()
}

// limitLocked is what a bucket may be granted now: nothing while this node cannot be sure that it is the owner.
func (o *owning) limitLocked(k wlm.BucketKey) int {
	if !o.granting {
		return 0
	}
	return o.t.admission.SharedLimit(k)
}

// lookLocked looks whether this node's membership holds, in the newest epoch that it has heard of; when that has changed, all limits have.
func (o *owning) lookLocked() {
	if sure := o.t.config.Metadata.Live() && o.t.now() >= o.overtaken; sure != o.granting {
		o.granting = sure
		o.relimitLocked()
	}
}

func (o *owning) relimitLocked() {
	for _, k := range o.tenure.Buckets() {
		o.posts = o.tenure.SetLimit(k, o.limitLocked(k), o.posts)
	}
	o.postLocked()
}

func (o *owning) limitsChanged() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.tenure != nil {
		o.lookLocked()
		o.relimitLocked()
	}
}

// tick ends sessions whose lease is over, and what has waited in vain.
func (o *owning) tick() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.tenure == nil {
		return
	}
	o.lookLocked()
	posts, ended := o.tenure.Tick(o.t.now(), o.posts)
	o.posts = posts
	for _, m := range ended {
		o.t.config.Log.Warn().Str("member", string(m)).Msg("a member has not been heard of for the time of a lease: its permits are free")
		if s := o.served[m]; s != nil {
			s.end(errLeaseOver)
			delete(o.served, m)
		}
	}
	o.postLocked()
}

// postLocked queues what the tenure has said on the streams.
func (o *owning) postLocked() {
	for _, p := range o.posts {
		if s := o.served[p.To]; s != nil && s.number == p.Session {
			s.outbox.add(func(e []Envelope) []Envelope { return append(e, Envelope{Bucket: p.Bucket, Message: p.Message}) })
		}
	}
	clear(o.posts)
	o.posts = o.posts[:0]
}

func (o *owning) status() (ready bool, missing []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.tenure == nil {
		self := o.t.config.Self
		return !self.Eligible() && o.ring.Has(self), nil
	}
	for _, m := range o.tenure.Missing() {
		missing = append(missing, string(m))
	}
	return o.tenure.Ready(), missing
}

// Permits are the permits that are out of the buckets that this node owns, in no order.
func (t *Tier) Permits() []sharedtier.Held[wlm.BucketKey] {
	t.owning.mu.Lock()
	defer t.owning.mu.Unlock()
	if t.owning.tenure == nil {
		return nil
	}
	return t.owning.tenure.Permits()
}
