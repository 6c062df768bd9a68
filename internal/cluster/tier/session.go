package tier

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/sharedtier"
	"github.com/wlmserver/wlmserver/wlm"
)

const (
	// firstRetry and lastRetry bound the time between two tries to open a session. An owner that has just learnt of the ring answers
	// soon; one that is gone leaves the ring within its lease.
	firstRetry = 20 * time.Millisecond
	lastRetry  = time.Second
)

// session is this node's conversation with one owner in one epoch, over one stream.
type session struct {
	t      *Tier
	until  atomic.Int64 // by the tier's clock: so long a permit of the session may be used
	end    context.CancelCauseFunc
	outbox outbox
}

// Live reports whether the owner surely still holds for us what it has granted, and this node surely is a member: searches of one that
// is none do not count in the next ring, even if an owner that has not heard of that goes on granting. When it is not sure the session
// is over: the permit that is not used for that is neither held nor given back, and only another session's announcements tell so.
func (s *session) Live() bool {
	switch {
	case s.lapsed():
		s.end(errLeaseOver)
	case !s.t.config.Metadata.Live():
		s.end(errNoMember)
	default:
		return true
	}
	return false
}

// lapsed reports whether the owner has not been heard of for the time of a lease.
func (s *session) lapsed() bool { return s.t.now() >= time.Duration(s.until.Load()) }

// Send queues messages for the owner.
func (s *session) Send(k wlm.BucketKey, messages []sharedtier.Message) {
	s.outbox.add(func(e []Envelope) []Envelope {
		for _, m := range messages {
			e = append(e, Envelope{Bucket: k, Message: m})
		}
		return e
	})
}

// say queues a message that is of no bucket.
func (s *session) say(m sharedtier.Message) {
	s.outbox.add(func(e []Envelope) []Envelope { return append(e, Envelope{Message: m}) })
}

// coordinate keeps a session with an owner for as long as the epoch lasts.
func (t *Tier) coordinate(epoch context.Context, owner ring.Member, number uint64) {
	wait, since, told := firstRetry, t.now(), false // since: there is no session
	for epoch.Err() == nil {
		began := t.now()
		stream, err := t.dial(epoch, owner, number)
		if err == nil {
			err = t.hold(epoch, owner, number, stream, began)
			stream.Close()
			if now := t.now(); now-began > lastRetry {
				wait, since, told = firstRetry, now, false
			}
		}
		if epoch.Err() != nil {
			return
		}
		if !told && t.now()-since >= t.config.Lease/3 {
			told = true
			t.config.Log.Warn().Err(err).Str("owner", owner.Name).
				Msg("a node that shares out permits cannot be asked: searches under a shared limit may wait; it is tried again")
		}
		select {
		case <-time.After(wait):
			wait = min(2*wait, lastRetry)
		case <-epoch.Done():
		}
	}
}

func (t *Tier) dial(ctx context.Context, owner ring.Member, number uint64) (Stream, error) {
	if owner == t.config.Self {
		return t.owning.connect(t.config.Self, number), nil
	}
	return t.config.Dialer.Session(ctx, owner, number)
}

// hold carries a session out until it ends.
func (t *Tier) hold(epoch context.Context, owner ring.Member, number uint64, stream Stream, began time.Duration) error {
	ctx, cancel := context.WithCancelCause(epoch)
	defer cancel(nil)
	s := &session{t: t, end: cancel, outbox: newOutbox()}
	s.until.Store(int64(began + t.config.Lease)) // the owner heard of us after that
	var parts sync.WaitGroup
	parts.Go(func() { cancel(s.listen(stream)) })
	parts.Go(func() { cancel(s.outbox.carry(ctx, stream, t.config.Metadata.Revision)) })
	if t.setSession(owner, number, s) {
		s.say(sharedtier.Message{Kind: sharedtier.Done}) // every bucket has announced by now
		cancel(s.beat(ctx))
		t.setSession(owner, number, nil)
	}
	s.outbox.end()
	cancel(nil)
	stream.Close()
	parts.Wait()
	return context.Cause(ctx)
}

// listen takes in what the owner says.
func (s *session) listen(stream Stream) error {
	for {
		batch, err := stream.Receive()
		if err != nil {
			return err
		}
		for _, e := range batch.Envelopes {
			if e.Message.Kind == sharedtier.Beat {
				s.until.Store(e.Message.Sent + int64(s.t.config.Lease))
				continue
			}
			s.t.admission.Receive(e.Bucket, s, e.Message)
		}
	}
}

// beat keeps the session alive until it ends, or its lease does.
func (s *session) beat(ctx context.Context) error {
	tick := time.NewTicker(s.t.config.Lease / 3)
	defer tick.Stop()
	for {
		s.say(sharedtier.Message{Kind: sharedtier.Beat, Sent: int64(s.t.now())})
		select {
		case <-tick.C:
			if s.lapsed() {
				return errLeaseOver
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
