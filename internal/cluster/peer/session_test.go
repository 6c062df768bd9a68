package peer_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/cluster/peer"
	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/cluster/tier"
	"github.com/wlmserver/wlmserver/internal/sharedtier"
	"github.com/wlmserver/wlmserver/test/faultproxy"
	"github.com/wlmserver/wlmserver/wlm"
)

// served is a session as the owner's side sees it.
type served struct {
	from   ring.Member
	epoch  uint64
	stream tier.Stream
	end    chan error // what Serve is to return
	left   chan struct{}
}

// owner hands out the sessions that it serves; each lasts until it is told to end.
type owner chan *served

func (o owner) Serve(from ring.Member, epoch uint64, s tier.Stream) error {
	x := &served{from, epoch, s, make(chan error, 1), make(chan struct{})}
	defer close(x.left)
	o <- x
	return <-x.end
}

// session opens one and returns both sides.
func session(t *testing.T, a *node, o owner, to ring.Member) (tier.Stream, *served) {
	t.Helper()
	s, err := a.peers.Session(t.Context(), to, 42)
	if err != nil {
		t.Fatal(err)
	}
	x := within(t, soon, "the session is served", o)
	t.Cleanup(func() {
		s.Close()
		select {
		case x.end <- nil:
		default:
		}
	})
	return s, x
}

func envelope(m sharedtier.Message) tier.Envelope {
	return tier.Envelope{Bucket: wlm.BucketKey{Group: "g", Attribute: groups.ByUsername, Value: "j\xf6rg"}, Message: m}
}

// beats is a batch of n messages that are numbered from first.
func beats(first, n int) tier.Batch {
	b := tier.Batch{Revision: 1}
	for i := range n {
		b.Envelopes = append(b.Envelopes, tier.Envelope{Message: sharedtier.Message{Kind: sharedtier.Beat, Sent: int64(first + i)}})
	}
	return b
}

func TestSession(t *testing.T) {
	o := make(owner, 1)
	a, b := start(t, "a", peer.Handlers{}), start(t, "b", peer.Handlers{Sessions: o})
	s, x := session(t, a, o, b.self)
	if x.from != a.self || x.epoch != 42 {
		t.Errorf("served for %v in epoch %d", x.from, x.epoch)
	}
	permit := sharedtier.PermitID{Epoch: 1 << 63, Seq: 3}
	for _, want := range []tier.Batch{
		{Revision: 7},
		{Revision: 1<<64 - 1, Envelopes: []tier.Envelope{
			envelope(sharedtier.Message{Kind: sharedtier.Acquire, Depth: 3, Generation: 1<<32 - 1}),
			envelope(sharedtier.Message{Kind: sharedtier.Announce, Depth: 9, Held: []sharedtier.PermitID{permit, {Epoch: 1}}}),
			{Message: sharedtier.Message{Kind: sharedtier.Done}},
			{Message: sharedtier.Message{Kind: sharedtier.Beat, Sent: -5}},
			envelope(sharedtier.Message{Kind: sharedtier.Try, Try: 1<<64 - 1}),
		}},
	} {
		for way, ends := range map[string][2]tier.Stream{"up": {s, x.stream}, "down": {x.stream, s}} {
			if err := ends[0].Send(want); err != nil {
				t.Fatalf("%s: %v", way, err)
			}
			got, err := ends[1].Receive()
			if err != nil || got.Revision != want.Revision || !slices.EqualFunc(got.Envelopes, want.Envelopes, equal) {
				t.Errorf("%s: got %v, %v, want %v", way, got, err, want)
			}
		}
	}
}

func equal(a, b tier.Envelope) bool {
	held := slices.Equal(a.Message.Held, b.Message.Held)
	a.Message.Held, b.Message.Held = nil, nil
	return held && a.Bucket == b.Bucket && a.Message.String() == b.Message.String()
}

// Order is kept, in both directions at once, and however much is sent at once.
func TestOrderIsKept(t *testing.T) {
	a := start(t, "a", peer.Handlers{})
	b := start(t, "b", peer.Handlers{Sessions: sessions(echo)})
	s, err := a.peers.Session(t.Context(), b.self, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	sizes := []int{1, 0, 1024, 1025, 5000, 3, 1, 20000}
	total := 0
	for _, n := range sizes {
		total += n
	}
	sent := make(chan error, 1)
	go func() {
		first := 0
		for _, n := range sizes {
			if err := s.Send(beats(first, n)); err != nil {
				sent <- err
				return
			}
			first += n
		}
		sent <- nil
	}()
	for next := 0; next < total; {
		got, err := s.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Envelopes) > 1024 {
			t.Errorf("a frame of %d envelopes", len(got.Envelopes))
		}
		for _, e := range got.Envelopes {
			if e.Message.Sent != int64(next) {
				t.Fatalf("message %d came as the %d-th", e.Message.Sent, next)
			}
			next++
		}
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// Close ends both directions on both sides, also for who waits in them. The other side hears of it as it reads: what is under way comes
// first.
func TestCloseEndsBothSides(t *testing.T) {
	for name, close := range map[string]func(s, x tier.Stream){
		"by the coordinator": func(s, _ tier.Stream) { s.Close() },
		"by the owner":       func(_, x tier.Stream) { x.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			o := make(owner, 1)
			a, b := start(t, "a", peer.Handlers{}), start(t, "b", peer.Handlers{Sessions: o})
			s, x := session(t, a, o, b.self)
			heard, read := make(chan error, 2), make(chan error, 2)
			for _, end := range []tier.Stream{s, x.stream} {
				go func() { // fills what there is room for, and waits
					for {
						if err := end.Send(beats(0, 1024)); err != nil {
							heard <- err
							return
						}
					}
				}()
			}
			select {
			case err := <-heard:
				t.Fatalf("sending ends by itself: %v", err)
			case <-time.After(100 * time.Millisecond):
			}
			close(s, x.stream)
			close(s, x.stream)
			for _, end := range []tier.Stream{s, x.stream} {
				go func() {
					for {
						if _, err := end.Receive(); err != nil {
							read <- err
							return
						}
					}
				}()
			}
			for range 2 {
				if err := within(t, soon, "Send returns", heard); !errors.Is(err, peer.ErrClosed) && !isUnreachable(err) {
					t.Errorf("Send: %v", err)
				}
				if err := within(t, soon, "Receive returns", read); !errors.Is(err, peer.ErrClosed) && !isUnreachable(err) {
					t.Errorf("Receive: %v", err)
				}
			}
		})
	}
}

// A receiver that waits hears at once that the stream broke, on both sides.
func TestBreaksAreHeard(t *testing.T) {
	for name, c := range map[string]struct {
		break_ func(b *node, p *faultproxy.Proxy, cancel func(), x *served)
		ours   func(error) bool
	}{
		"the connection breaks":    {func(_ *node, p *faultproxy.Proxy, _ func(), _ *served) { p.Break() }, isUnreachable},
		"the context ends":         {func(_ *node, _ *faultproxy.Proxy, cancel func(), _ *served) { cancel() }, func(err error) bool { return errors.Is(err, context.Canceled) }},
		"the owner returns":        {func(_ *node, _ *faultproxy.Proxy, _ func(), x *served) { x.end <- nil }, func(err error) bool { return err != nil }},
		"the owner fails":          {func(_ *node, _ *faultproxy.Proxy, _ func(), x *served) { x.end <- errors.New("no more") }, func(err error) bool { return strings.Contains(err.Error(), "no more") }},
		"the owner's node stops":   {func(b *node, _ *faultproxy.Proxy, _ func(), x *served) { go b.server.Shutdown(context.Background()) }, isUnreachable},
		"the coordinator's leaves": {func(_ *node, _ *faultproxy.Proxy, _ func(), _ *served) {}, isUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			o := make(owner, 1)
			a, b := start(t, "a", peer.Handlers{}), start(t, "b", peer.Handlers{Sessions: o})
			p, err := faultproxy.Start(b.self.Transport)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Close)
			to := b.self
			to.Transport = p.Addr()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s, err := a.peers.Session(ctx, to, 1)
			if err != nil {
				t.Fatal(err)
			}
			x := <-o
			ours, theirs := make(chan error, 1), make(chan error, 1)
			go func() { _, err := s.Receive(); ours <- err }()
			go func() { _, err := x.stream.Receive(); theirs <- err }()
			if name == "the coordinator's leaves" {
				a.peers.Update(nil)
			} else {
				c.break_(b, p, cancel, x)
			}
			if err := within(t, soon, "the coordinator hears of it", ours); !c.ours(err) {
				t.Errorf("the coordinator hears %#v", err)
			}
			if err := within(t, soon, "the owner hears of it", theirs); !isUnreachable(err) && !errors.Is(err, peer.ErrClosed) {
				t.Errorf("the owner hears %#v", err)
			}
			for what, end := range map[string]tier.Stream{"coordinator": s, "owner": x.stream} {
				if err := end.Send(beats(0, 1)); err == nil {
					t.Errorf("the %s can send on", what)
				}
			}
			select {
			case x.end <- nil:
			default:
			}
			within(t, soon, "the handler has left", x.left)
		})
	}
}

// A connection that is half open, on which the kernels see nothing wrong, is given up by both sides.
func TestHalfOpen(t *testing.T) {
	if testing.Short() {
		t.Skip("gRPC asks a silent connection after 10 s at the earliest")
	}
	t.Parallel()
	o := make(owner, 1)
	shorter := func(c *peer.Config) { c.KeepAlive = time.Second }
	a, b := start(t, "a", peer.Handlers{}, shorter), start(t, "b", peer.Handlers{Sessions: o}, shorter)
	p, err := faultproxy.Start(b.self.Transport)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	to := b.self
	to.Transport = p.Addr()
	s, x := session(t, a, o, to)
	ours, theirs := make(chan error, 1), make(chan error, 1)
	go func() { _, err := s.Receive(); ours <- err }()
	go func() { _, err := x.stream.Receive(); theirs <- err }()
	p.HalfOpen(faultproxy.Both)
	if err := within(t, soon, "the side that is called notices", theirs); !isUnreachable(err) {
		t.Errorf("the owner hears %v", err)
	}
	if err := within(t, 20*time.Second, "the side that calls notices", ours); !isUnreachable(err) {
		t.Errorf("the coordinator hears %v", err)
	}
}

func TestSessionsThatAreNotOpened(t *testing.T) {
	a := start(t, "a", peer.Handlers{})
	none := start(t, "b", peer.Handlers{})
	if _, err := a.peers.Session(t.Context(), none.self, 1); !isRefused(err) {
		t.Errorf("a node that takes none: %v", err)
	}
	refusing := start(t, "c", peer.Handlers{Sessions: sessions(func(ring.Member, uint64, tier.Stream) error { return errors.New("of the past") })})
	if s, err := a.peers.Session(t.Context(), refusing.self, 1); err == nil {
		if _, err := s.Receive(); err == nil || !strings.Contains(err.Error(), "of the past") {
			t.Errorf("a session that is refused: %v", err)
		}
		s.Close()
	}
	panicking := start(t, "d", peer.Handlers{Sessions: sessions(func(ring.Member, uint64, tier.Stream) error { panic("oops 2") })})
	if s, err := a.peers.Session(t.Context(), panicking.self, 1); err == nil {
		if _, err := s.Receive(); err == nil || strings.Contains(err.Error(), "oops") {
			t.Errorf("a session whose handler panics: %v", err)
		}
		s.Close()
	}
	until(t, "the panic is in the log", func() bool { return strings.Contains(panicking.log.String(), "oops 2") })

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // it accepts and says nothing
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	silent := ring.Member{ID: "e", Incarnation: "1", Transport: l.Addr().String()}
	if _, err := a.peers.Session(ctx, silent, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("somebody who says nothing: %v", err)
	}
	stopped := start(t, "f", peer.Handlers{Sessions: sessions(echo)})
	stopped.stop(t)
	if _, err := a.peers.Session(t.Context(), stopped.self, 1); !isUnreachable(err) {
		t.Errorf("a node that has stopped: %v", err)
	}
}
