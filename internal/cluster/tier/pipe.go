package tier

import (
	"errors"
	"slices"
	"sync"
)

var errPipeClosed = errors.New("the session was closed")

// pipe is a stream within the process, for a node's session with itself.
func pipe() (a, b *pipeEnd) {
	ab, ba := make(chan Batch, pipeDepth), make(chan Batch, pipeDepth)
	over := &ending{done: make(chan struct{})}
	return &pipeEnd{in: ba, out: ab, over: over}, &pipeEnd{in: ab, out: ba, over: over}
}

// pipeDepth is how many batches one side may be ahead. More makes none faster: each batch has all that was queued.
const pipeDepth = 4

type pipeEnd struct {
	in   <-chan Batch
	out  chan<- Batch
	over *ending
}

type ending struct {
	once sync.Once
	done chan struct{}
	why  error // set before done is closed
}

func (p *pipeEnd) Send(b Batch) error {
	b.Envelopes = slices.Clone(b.Envelopes) // the sender uses its list again
	select {
	case p.out <- b:
		return nil
	case <-p.over.done:
		return p.over.why
	}
}

func (p *pipeEnd) Receive() (Batch, error) {
	select {
	case b := <-p.in:
		return b, nil
	case <-p.over.done:
		return Batch{}, p.over.why
	}
}

func (p *pipeEnd) Close() { p.end(errPipeClosed) }

// end closes both directions for a reason; nil means that the session was closed.
func (p *pipeEnd) end(why error) {
	if why == nil {
		why = errPipeClosed
	}
	p.over.once.Do(func() {
		p.over.why = why
		close(p.over.done)
	})
}
