package tiertest

import (
	"errors"
	"sync"
	"time"

	"github.com/wlmserver/wlmserver/internal/cluster/tier"
)

// capacity is how many batches one direction holds before Send waits, as the windows of a connection do.
const capacity = 1024

// Errors of a stream.
var (
	// ErrClosed says that one of the two sides has closed the stream.
	ErrClosed = errors.New("the session was closed")
	// ErrCut says that the network has ended it.
	ErrCut = errors.New("the session's connection broke")
)

// Link is one stream between two sides, in memory. Faults of one direction or both can be set at any time.
type Link struct {
	directions [2]direction // from the side of that number
}

// NewLink returns a link without faults.
func NewLink() *Link {
	l := new(Link)
	for i := range l.directions {
		l.directions[i].cond.L = &l.directions[i].mu
	}
	return l
}

// End returns one of the link's two ends: 0 or 1.
func (l *Link) End(side int) tier.Stream { return &end{l, side} }

// Pair returns the two ends of a new link.
func Pair() (a, b tier.Stream) {
	l := NewLink()
	return l.End(0), l.End(1)
}

// Cut breaks the link: both sides hear of it at once, and what is under way is lost.
func (l *Link) Cut() { l.end(ErrCut, -1) }

// end ends both directions. What is under way from the side keep still arrives before the end does.
func (l *Link) end(why error, keep int) {
	for i := range l.directions {
		l.directions[i].end(why, i == keep)
	}
}

// Set changes the faults of the direction from a side. It concerns what is sent from now on, and Hold also what is under way.
func (l *Link) Set(from int, f Faults) { l.directions[from].set(f) }

// Faults of one direction. The zero value has none.
type Faults struct {
	// Delay is how long a batch is under way.
	Delay time.Duration
	// Hold keeps everything under way until it is false again: a connection that is half open.
	Hold bool
	// Lose, if not nil, is asked about each envelope that is sent. The first for which it returns true is lost, and with it the stream:
	// what was sent before it arrives, and then both sides hear that the stream broke.
	Lose func(tier.Envelope) bool
}

type direction struct {
	mu      sync.Mutex
	cond    sync.Cond
	faults  Faults
	queue   []sent
	timer   *time.Timer // wakes a receiver when the oldest batch is due
	waiting bool        // for the timer
	ended   error
}

type sent struct {
	batch tier.Batch
	due   time.Time
}

func (d *direction) set(f Faults) {
	d.mu.Lock()
	d.faults = f
	d.cond.Broadcast()
	d.mu.Unlock()
}

// send takes in a batch. It reports whether an envelope of it was lost.
func (d *direction) send(b tier.Batch) (lost bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.ended == nil && len(d.queue) >= capacity {
		d.cond.Wait()
	}
	if d.ended != nil {
		return false, d.ended
	}
	b.Envelopes = append([]tier.Envelope(nil), b.Envelopes...) // the sender may use its list again
	if d.faults.Lose != nil {
		for i, e := range b.Envelopes {
			if d.faults.Lose(e) {
				b.Envelopes = b.Envelopes[:i]
				lost = true
				break
			}
		}
	}
	if !lost || len(b.Envelopes) > 0 {
		d.queue = append(d.queue, sent{b, time.Now().Add(d.faults.Delay)})
		d.cond.Broadcast()
	}
	return lost, nil
}

func (d *direction) receive() (tier.Batch, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		if len(d.queue) > 0 && !d.faults.Hold {
			first := d.queue[0]
			wait := time.Until(first.due)
			if wait <= 0 {
				d.queue = d.queue[1:]
				d.cond.Broadcast()
				return first.batch, nil
			}
			d.wakeLocked(wait)
		} else if d.ended != nil && len(d.queue) == 0 {
			return tier.Batch{}, d.ended
		}
		d.cond.Wait()
	}
}

// wakeLocked has the receiver look again after a while.
func (d *direction) wakeLocked(after time.Duration) {
	if d.waiting {
		return
	}
	d.waiting = true
	d.timer = time.AfterFunc(after, func() {
		d.mu.Lock()
		d.waiting = false
		d.cond.Broadcast()
		d.mu.Unlock()
	})
}

// end ends the direction. The first reason stays.
func (d *direction) end(why error, keep bool) {
	d.mu.Lock()
	if d.ended == nil {
		d.ended = why
	}
	if !keep {
		d.queue = nil
	}
	if d.timer != nil && len(d.queue) == 0 {
		d.timer.Stop()
	}
	d.cond.Broadcast()
	d.mu.Unlock()
}

// end is one side of a link.
type end struct {
	link *Link
	side int
}

func (e *end) Send(b tier.Batch) error {
	lost, err := e.link.directions[e.side].send(b)
	if lost {
		e.link.end(ErrCut, e.side)
		return ErrCut
	}
	return err
}

func (e *end) Receive() (tier.Batch, error) { return e.link.directions[1-e.side].receive() }

// Close ends both directions, as the real stream does: what is under way may be lost.
func (e *end) Close() { e.link.end(ErrClosed, -1) }
