package tier

import (
	"context"
	"sync"
)

// outbox has what is to be sent on one stream, in order. Adding never waits: a stream that takes nothing ends with its lease.
type outbox struct {
	wake chan struct{} // has room for one: there is something to send

	mu    *sync.Mutex
	queue []Envelope
	ended bool
}

func newOutbox() outbox { return outbox{wake: make(chan struct{}, 1), mu: new(sync.Mutex)} }

// add puts envelopes at the end. After the end they are lost.
func (o *outbox) add(put func([]Envelope) []Envelope) {
	o.mu.Lock()
	if !o.ended {
		o.queue = put(o.queue)
	}
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *outbox) take(last []Envelope) []Envelope {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := o.queue
	clear(last)
	o.queue = last[:0]
	return out
}

func (o *outbox) end() {
	o.mu.Lock()
	o.ended, o.queue = true, nil
	o.mu.Unlock()
}

// carry sends what is added until ctx or the stream ends. What comes while one batch is being sent makes the next.
func (o *outbox) carry(ctx context.Context, s Stream, revision func() uint64) error {
	var last []Envelope
	for {
		select {
		case <-o.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if last = o.take(last); len(last) == 0 {
			continue
		}
		if err := s.Send(Batch{Revision: revision(), Envelopes: last}); err != nil {
			return err
		}
	}
}
