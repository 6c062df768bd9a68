package tiertest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/cluster/tier"
	"github.com/wlmserver/wlmserver/internal/cluster/tier/tiertest"
	"github.com/wlmserver/wlmserver/internal/sharedtier"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	a = ring.Member{ID: "a", Incarnation: "1"}
	b = ring.Member{ID: "b", Incarnation: "1"}
)

// echo sends back what it gets, and keeps it.
type echo struct {
	got   []uint64
	ended error
}

func (e *echo) Serve(_ ring.Member, _ uint64, s tier.Stream) error {
	for {
		batch, err := s.Receive()
		if err != nil {
			e.ended = err
			return err
		}
		e.got = append(e.got, batch.Revision)
		if err := s.Send(batch); err != nil {
			e.ended = err
			return err
		}
	}
}

func batch(revision uint64, kinds ...sharedtier.Kind) tier.Batch {
	b := tier.Batch{Revision: revision}
	for _, k := range kinds {
		b.Envelopes = append(b.Envelopes, tier.Envelope{Message: sharedtier.Message{Kind: k}})
	}
	return b
}

// bed is a network on which b echoes.
type bed struct {
	*testing.T
	network *tiertest.Network
	served  *echo
}

func bubble(t *testing.T, test func(f *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n, served := tiertest.NewNetwork(), new(echo)
		n.Attach(b, served)
		test(&bed{t, n, served})
		n.Close()
		if s := n.Streams(); s != 0 {
			t.Errorf("%d streams are left", s)
		}
	})
}

func open(t *testing.T, n *tiertest.Network) tier.Stream {
	t.Helper()
	s, err := n.Dialer(a).Session(t.Context(), b, 7)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func send(t *testing.T, s tier.Stream, batches ...tier.Batch) {
	t.Helper()
	for _, b := range batches {
		if err := s.Send(b); err != nil {
			t.Fatal(err)
		}
	}
}

func receive(t *testing.T, s tier.Stream) tier.Batch {
	t.Helper()
	b, err := s.Receive()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestOrderAndDelay(t *testing.T) {
	bubble(t, func(f *bed) {
		t, n := f.T, f.network
		n.Set("a", "b", tiertest.Faults{Delay: 30 * time.Millisecond})
		n.Set("b", "a", tiertest.Faults{Delay: 20 * time.Millisecond})
		start := time.Now()
		s := open(t, n)
		if d := time.Since(start); d != 50*time.Millisecond {
			t.Errorf("to open took %v, want one message each way: 50ms", d)
		}
		for i := range uint64(5) {
			send(t, s, batch(i))
			time.Sleep(time.Millisecond)
		}
		for i := range uint64(5) {
			if got := receive(t, s); got.Revision != i {
				t.Errorf("batch %d came as %d-th", got.Revision, i)
			}
		}
		if d := time.Since(start); d != 104*time.Millisecond {
			t.Errorf("the last one came back after %v, want 104ms", d)
		}
	})
}

// Exactly one message is lost: what was sent before it arrives, and both sides hear of the end.
func TestLoseOne(t *testing.T) {
	bubble(t, func(f *bed) {
		t, n := f.T, f.network
		n.Set("a", "b", tiertest.Faults{Lose: tiertest.LoseOne(sharedtier.Want)})
		s := open(t, n)
		send(t, s, batch(1, sharedtier.Acquire))
		if err := s.Send(batch(2, sharedtier.Release, sharedtier.Want, sharedtier.Release)); !errors.Is(err, tiertest.ErrCut) {
			t.Errorf("the sender hears %v", err)
		}
		if _, err := s.Receive(); !errors.Is(err, tiertest.ErrCut) {
			t.Errorf("the sender receives %v", err)
		}
		synctest.Wait()
		if !slices.Equal(f.served.got, []uint64{1, 2}) && !slices.Equal(f.served.got, []uint64{1}) {
			t.Errorf("got %v", f.served.got)
		}
		if !errors.Is(f.served.ended, tiertest.ErrCut) {
			t.Errorf("the other side hears %v", f.served.ended)
		}
		again := open(t, n)
		send(t, again, batch(3, sharedtier.Want))
		if got := receive(t, again); got.Revision != 3 || len(got.Envelopes) != 1 {
			t.Errorf("a second one is lost too: %v", got)
		}
	})
}

func TestWhatWasSentBeforeTheLostOneArrives(t *testing.T) {
	link := tiertest.NewLink()
	link.Set(0, tiertest.Faults{Lose: tiertest.LoseOne(sharedtier.Want)})
	if err := link.End(0).Send(batch(1, sharedtier.Release, sharedtier.Acquire, sharedtier.Want, sharedtier.Release)); !errors.Is(err, tiertest.ErrCut) {
		t.Errorf("the sender hears %v", err)
	}
	got := receive(t, link.End(1))
	if len(got.Envelopes) != 2 || got.Envelopes[1].Message.Kind != sharedtier.Acquire {
		t.Errorf("got %v", got)
	}
	if _, err := link.End(1).Receive(); !errors.Is(err, tiertest.ErrCut) {
		t.Errorf("then %v", err)
	}
}

func TestCutAndHeal(t *testing.T) {
	bubble(t, func(f *bed) {
		t, n := f.T, f.network
		s := open(t, n)
		n.Set("a", "b", tiertest.Faults{Delay: time.Second})
		send(t, s, batch(1))
		n.Cut("b", "a")
		if _, err := s.Receive(); !errors.Is(err, tiertest.ErrCut) {
			t.Errorf("received %v", err)
		}
		synctest.Wait()
		if len(f.served.got) != 0 || !errors.Is(f.served.ended, tiertest.ErrCut) {
			t.Errorf("the other side got %v and %v", f.served.got, f.served.ended)
		}
		if _, err := n.Dialer(a).Session(t.Context(), b, 7); err == nil {
			t.Error("a cut link can be dialled")
		}
		n.Heal("a", "b")
		again := open(t, n)
		send(t, again, batch(2))
		receive(t, again)
	})
}

// A half-open connection takes everything and delivers nothing, until it heals.
func TestHalfOpen(t *testing.T) {
	bubble(t, func(f *bed) {
		t, n := f.T, f.network
		s := open(t, n)
		n.Set("a", "b", tiertest.Faults{Hold: true})
		send(t, s, batch(1), batch(2))
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(f.served.got) != 0 {
			t.Errorf("%v arrived", f.served.got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := n.Dialer(a).Session(ctx, b, 8); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a dial: %v", err)
		}
		n.Heal("a", "b")
		receive(t, s)
		receive(t, s)
		if !slices.Equal(f.served.got, []uint64{1, 2}) {
			t.Errorf("got %v", f.served.got)
		}
	})
}

func TestCloseEndsBothSides(t *testing.T) {
	for side := range 2 {
		t.Run(fmt.Sprint("by side ", side), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				link := tiertest.NewLink()
				heard := make(chan error, 4)
				for i := range 2 {
					s := link.End(i)
					go func() {
						for {
							if _, err := s.Receive(); err != nil {
								heard <- err
								return
							}
						}
					}()
					go func() {
						for {
							if err := s.Send(batch(1)); err != nil {
								heard <- err
								return
							}
						}
					}()
				}
				link.Set(0, tiertest.Faults{Hold: true})
				link.Set(1, tiertest.Faults{Hold: true})
				synctest.Wait() // all four wait: nothing arrives and there is no room
				link.End(side).Close()
				link.End(side).Close()
				for range 4 {
					if err := <-heard; !errors.Is(err, tiertest.ErrClosed) {
						t.Errorf("heard %v", err)
					}
				}
			})
		})
	}
}

func TestTheEndOfTheContextEndsTheStream(t *testing.T) {
	bubble(t, func(f *bed) {
		t, n := f.T, f.network
		ctx, cancel := context.WithCancel(t.Context())
		s, err := n.Dialer(a).Session(ctx, b, 7)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := s.Receive(); !errors.Is(err, tiertest.ErrClosed) {
			t.Errorf("received %v", err)
		}
		synctest.Wait()
		if !errors.Is(f.served.ended, tiertest.ErrClosed) {
			t.Errorf("the other side hears %v", f.served.ended)
		}
	})
}

// Another incarnation is another member.
func TestAProcessThatEnded(t *testing.T) {
	bubble(t, func(f *bed) {
		t, n := f.T, f.network
		s := open(t, n)
		n.Detach(b)
		if _, err := s.Receive(); !errors.Is(err, tiertest.ErrCut) {
			t.Errorf("received %v", err)
		}
		n.Attach(ring.Member{ID: "b", Incarnation: "2"}, f.served)
		if _, err := n.Dialer(a).Session(t.Context(), b, 7); err == nil {
			t.Error("the incarnation that ended can be dialled")
		}
	})
}
