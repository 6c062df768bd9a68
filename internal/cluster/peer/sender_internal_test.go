package peer

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/internal/cluster/tier"
	"github.com/wlmserver/wlmserver/internal/sharedtier"
)

// wire takes a second for each frame, and looks whether frames are sent one at a time.
type wire struct {
	t       *testing.T
	sending atomic.Bool

	mu     sync.Mutex
	frames []tier.Batch
	broken error
}

func (w *wire) send(b tier.Batch) error {
	if w.sending.Swap(true) {
		w.t.Error("two frames are sent at once")
	}
	time.Sleep(time.Second)
	w.sending.Store(false)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken != nil {
		return w.broken
	}
	w.frames = append(w.frames, b)
	return nil
}

// numbered are n envelopes that say where they belong.
func numbered(from, n int) []tier.Envelope {
	all := make([]tier.Envelope, n)
	for i := range all {
		all[i].Message = sharedtier.Message{Kind: sharedtier.Beat, Sent: int64(from + i)}
	}
	return all
}

// What comes while a frame is under way goes with the next one, in its order.
func TestSenderGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{t: t}
		s := newSender(w.send)
		go func() { _ = s.Send(tier.Batch{Revision: 1, Envelopes: numbered(0, 1)}) }()
		synctest.Wait()
		began := time.Now()
		for i := 1; i < 10; i++ {
			if err := s.Send(tier.Batch{Revision: uint64(10 - i), Envelopes: numbered(i, 1)}); err != nil {
				t.Error(err)
			}
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("who leaves a batch to another waits %v", d)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if len(w.frames) != 2 || len(w.frames[1].Envelopes) != 9 || w.frames[1].Revision != 9 {
			t.Fatalf("sent as %v", w.frames)
		}
		for i, e := range w.frames[1].Envelopes {
			if e.Message.Sent != int64(i+1) {
				t.Errorf("message %d came as %d-th", e.Message.Sent, i+1)
			}
		}
		if err := s.Send(tier.Batch{Revision: 20}); err != nil || len(w.frames) != 3 {
			t.Errorf("a batch of a revision alone: %v, %v", err, w.frames)
		}
	})
}

// More than is stated is not gathered: who sends then waits.
func TestSenderIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{t: t}
		s := newSender(w.send)
		const each = 64
		var sent atomic.Int64
		go func() { _ = s.Send(tier.Batch{Envelopes: numbered(0, 1)}) }()
		synctest.Wait()
		go func() {
			for i := range 2 * maxPending / each {
				if err := s.Send(tier.Batch{Envelopes: numbered(1+i*each, each)}); err != nil {
					t.Error(err)
				}
				sent.Add(each)
			}
		}()
		synctest.Wait()
		if n := sent.Load(); n != maxPending {
			t.Errorf("%d envelopes are gathered, want %d", n, maxPending)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := sent.Load(); n != 2*maxPending {
			t.Errorf("%d are sent in the end", n)
		}
		next := int64(0)
		for _, f := range w.frames {
			if len(f.Envelopes) > maxFrame {
				t.Errorf("a frame of %d envelopes", len(f.Envelopes))
			}
			for _, e := range f.Envelopes {
				if e.Message.Sent != next {
					t.Fatalf("message %d came as the %d-th", e.Message.Sent, next)
				}
				next++
			}
		}
		if next != 2*maxPending+1 {
			t.Errorf("%d came", next)
		}
	})
}

// The end is heard by who sends, who waits for room and who comes later.
func TestSenderEnds(t *testing.T) {
	why := errors.New("broken")
	for name, end := range map[string]func(*sender, *wire){
		"by the wire": func(_ *sender, w *wire) { w.mu.Lock(); w.broken = why; w.mu.Unlock() },
		"by Close":    func(s *sender, _ *wire) { s.end(why) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &wire{t: t}
				s := newSender(w.send)
				heard := make(chan error, 2)
				go func() { heard <- s.Send(tier.Batch{Envelopes: numbered(0, 1)}) }()
				synctest.Wait()
				if err := s.Send(tier.Batch{Envelopes: numbered(1, maxPending)}); err != nil {
					t.Error(err)
				}
				go func() { heard <- s.Send(tier.Batch{Envelopes: numbered(0, 1)}) }()
				synctest.Wait()
				end(s, w)
				time.Sleep(time.Second)
				synctest.Wait()
				for range 2 {
					select {
					case err := <-heard:
						if !errors.Is(err, why) {
							t.Errorf("heard %v", err)
						}
					default:
						t.Fatal("one still waits")
					}
				}
				if err := s.Send(tier.Batch{}); !errors.Is(err, why) {
					t.Errorf("later: %v", err)
				}
				if n := len(w.frames); n > 1 {
					t.Errorf("%d frames are sent after the end", n)
				}
			})
		})
	}
}
