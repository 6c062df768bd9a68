package peer

import (
	"errors"
	"testing"

	"github.com/wlmserver/wlmserver/internal/cluster/peer/clusterpb"
	"github.com/wlmserver/wlmserver/internal/cluster/tier"
	"github.com/wlmserver/wlmserver/internal/sharedtier"
)

// wire keeps the frames that it is sent, until it breaks.
type wire struct {
	sent   []*clusterpb.SessionFrame
	broken error
}

func (w *wire) Send(f *clusterpb.SessionFrame) error {
	if w.broken == nil {
		w.sent = append(w.sent, f)
	}
	return w.broken
}

func (w *wire) Recv() (*clusterpb.SessionFrame, error) { return nil, errors.New("nothing comes") }

func over(w *wire) *session { return newSession(w, func(err error) error { return err }, func() {}) }

// A batch of any size arrives in its order, in frames of a bounded one, each with its revision.
func TestBatchesInFrames(t *testing.T) {
	for size, frames := range map[int]int{0: 1, 1: 1, maxFrame: 1, maxFrame + 1: 2, 5 * maxFrame: 5} {
		w := &wire{}
		b := tier.Batch{Revision: 7, Envelopes: make([]tier.Envelope, size)}
		for i := range b.Envelopes {
			b.Envelopes[i].Message = sharedtier.Message{Kind: sharedtier.Beat, Sent: int64(i)}
		}
		if err := over(w).Send(b); err != nil {
			t.Error(err)
		}
		if len(w.sent) != frames {
			t.Errorf("%d envelopes are sent in %d frames, want %d", size, len(w.sent), frames)
		}
		next := 0
		for _, f := range w.sent {
			got := fromBatch(f.GetBatch())
			if got.Revision != 7 || len(got.Envelopes) > maxFrame {
				t.Errorf("a frame of %d envelopes, revision %d", len(got.Envelopes), got.Revision)
			}
			for _, e := range got.Envelopes {
				if e.Message.Sent != int64(next) {
					t.Fatalf("message %d came as the %d-th", e.Message.Sent, next)
				}
				next++
			}
		}
		if next != size {
			t.Errorf("%d of %d came", next, size)
		}
	}
}

// Nothing is sent after Close or behind what was lost.
func TestNoFramesAfterTheEnd(t *testing.T) {
	w := &wire{}
	s := over(w)
	s.Close()
	if err := s.Send(tier.Batch{}); !errors.Is(err, ErrClosed) || len(w.sent) != 0 {
		t.Errorf("closed: %v, and %d frames are sent", err, len(w.sent))
	}
	w.broken = errors.New("broken")
	if err := over(w).Send(tier.Batch{Envelopes: make([]tier.Envelope, 2*maxFrame)}); !errors.Is(err, w.broken) {
		t.Errorf("broken: %v", err)
	}
}
