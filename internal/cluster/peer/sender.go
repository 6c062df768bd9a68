package peer

import (
	"sync"

	"github.com/wlmserver/wlmserver/internal/cluster/tier"
)

const (
	maxFrame   = 1024  // envelopes
	maxPending = 16384 // envelopes
)

// sender passes batches on in their order, one goroutine at a time: the first that comes sends, and while it does the others leave their
// batches to it, which become one. Nobody waits for somebody else's batch unless too much is pending. It is safe for concurrent use.
type sender struct {
	send func(tier.Batch) error // may block; of at most maxFrame envelopes

	mu      sync.Mutex
	room    sync.Cond
	sending bool
	left    bool // pending holds something, if only a revision
	pending tier.Batch
	ended   error
}

func newSender(send func(tier.Batch) error) *sender {
	s := &sender{send: send}
	s.room.L = &s.mu
	return s
}

// Send passes a batch on, or leaves it to who sends now. What it returns is why the stream has ended; nil does not say that the batch
// has arrived.
func (s *sender) Send(b tier.Batch) error {
	s.mu.Lock()
	for s.ended == nil && s.sending && len(s.pending.Envelopes) >= maxPending {
		s.room.Wait()
	}
	switch {
	case s.ended != nil:
		s.mu.Unlock()
		return s.ended
	case s.sending:
		s.left = true
		s.pending.Revision = max(s.pending.Revision, b.Revision)
		s.pending.Envelopes = append(s.pending.Envelopes, b.Envelopes...)
		s.mu.Unlock()
		return nil
	}
	s.sending = true
	s.mu.Unlock()
	for {
		err := s.inFrames(b)
		s.mu.Lock()
		if err != nil && s.ended == nil {
			s.ended = err
		}
		if s.ended != nil || !s.left {
			s.sending = false
			err := s.ended
			s.mu.Unlock()
			s.room.Broadcast()
			return err
		}
		b, s.pending, s.left = s.pending, tier.Batch{}, false
		s.mu.Unlock()
		s.room.Broadcast()
	}
}

// inFrames sends a batch in as many parts as it takes.
func (s *sender) inFrames(b tier.Batch) error {
	for len(b.Envelopes) > maxFrame {
		if err := s.send(tier.Batch{Revision: b.Revision, Envelopes: b.Envelopes[:maxFrame]}); err != nil {
			return err
		}
		b.Envelopes = b.Envelopes[maxFrame:]
	}
	return s.send(b)
}

// end has Send fail from now on. The first reason stays.
func (s *sender) end(why error) {
	s.mu.Lock()
	if s.ended == nil {
		s.ended = why
	}
	s.mu.Unlock()
	s.room.Broadcast()
}
