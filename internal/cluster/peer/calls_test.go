package peer_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/internal/cluster/peer"
	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/cluster/tier"
	"github.com/wlmserver/wlmserver/test/faultproxy"
)

func TestLocal(t *testing.T) {
	var got peer.LocalRequest
	b := start(t, "b", peer.Handlers{Local: local(func(_ context.Context, r peer.LocalRequest) (peer.LocalAnswer, error) {
		got = r
		return peer.LocalAnswer{Status: 418, ContentType: "text/plain; charset=UTF-8", Body: []byte{0, 0xff}}, nil
	})})
	a := start(t, "a", peer.Handlers{})
	want := peer.LocalRequest{
		Method: "POST", Path: "/_tasks/\xff", RawQuery: "q=%ff&x", Header: http.Header{"X-Opaque-Id": {"1", "\xfe"}},
		Body: []byte{1, 0xff}, User: "j\xf6rg", Roles: []string{"admin", "\xf6"},
	}
	answer, err := a.peers.Local(t.Context(), b.self, want)
	if err != nil || answer.Status != 418 || answer.ContentType != "text/plain; charset=UTF-8" || string(answer.Body) != "\x00\xff" {
		t.Errorf("answer %+v, %v", answer, err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("arrived %+v, want %+v", got, want)
	}
}

func TestErrorsOfAHandler(t *testing.T) {
	b := start(t, "b", peer.Handlers{
		Local: local(func(context.Context, peer.LocalRequest) (peer.LocalAnswer, error) {
			return peer.LocalAnswer{}, errors.New("no luck")
		}),
	})
	a := start(t, "a", peer.Handlers{})
	_, err := a.peers.Local(t.Context(), b.self, peer.LocalRequest{})
	if e, ok := errors.AsType[*peer.FailedError](err); !ok || e.Reason != "no luck" || e.Member != b.self || !strings.Contains(e.Error(), "node-b") {
		t.Errorf("%#v", err)
	}
	if err := a.peers.Await(t.Context(), b.self, 1); !isRefused(err) {
		t.Errorf("a node that has no such handler: %#v", err)
	}
}

func isRefused(err error) bool {
	_, ok := errors.AsType[*peer.RefusedError](err)
	return ok
}

func isUnreachable(err error) bool {
	_, ok := errors.AsType[*peer.UnreachableError](err)
	return ok
}

func TestPanicsAreSurvived(t *testing.T) {
	b := start(t, "b", peer.Handlers{
		Metadata: metadata(1),
		Local: local(func(context.Context, peer.LocalRequest) (peer.LocalAnswer, error) {
			panic("oops 1")
		}),
	})
	a := start(t, "a", peer.Handlers{})
	_, err := a.peers.Local(t.Context(), b.self, peer.LocalRequest{})
	if _, ok := errors.AsType[*peer.FailedError](err); !ok || strings.Contains(err.Error(), "oops") {
		t.Errorf("%#v", err)
	}
	if log := b.log.String(); !strings.Contains(log, "oops 1") || !strings.Contains(log, "calls_test.go") {
		t.Errorf("the log has neither the panic nor where it was: %s", log)
	}
	if err := a.peers.Await(t.Context(), b.self, 1); err != nil {
		t.Errorf("after the panic: %v", err)
	}
}

// The other node's work ends with the caller's patience, and with the caller.
func TestDeadlineAndCancellationTravel(t *testing.T) {
	ended := make(chan error, 1)
	deadlines := make(chan time.Duration, 1)
	b := start(t, "b", peer.Handlers{Local: local(func(ctx context.Context, _ peer.LocalRequest) (peer.LocalAnswer, error) {
		d, _ := ctx.Deadline()
		deadlines <- time.Until(d)
		<-ctx.Done()
		ended <- ctx.Err()
		return peer.LocalAnswer{}, ctx.Err()
	})})
	a := start(t, "a", peer.Handlers{})

	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the client is gone")
	answered := make(chan error, 1)
	go func() { _, err := a.peers.Local(ctx, b.self, peer.LocalRequest{}); answered <- err }()
	<-deadlines
	cancel(why)
	if err := within(t, soon, "the call ends", answered); !errors.Is(err, why) {
		t.Errorf("a cancelled call: %v", err)
	}
	if err := within(t, soon, "the handler ends", ended); !errors.Is(err, context.Canceled) {
		t.Errorf("its handler: %v", err)
	}

	short, done := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer done()
	if _, err := a.peers.Local(short, b.self, peer.LocalRequest{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a late call: %v", err)
	}
	if d := <-deadlines; d > 50*time.Millisecond {
		t.Errorf("the handler has %v left", d)
	}
	if err := within(t, soon, "the late handler ends", ended); err == nil {
		t.Error("the late handler ends without a reason")
	}
}

func TestAwait(t *testing.T) {
	a, b := start(t, "a", peer.Handlers{}), start(t, "b", peer.Handlers{Metadata: metadata(5)})
	if err := a.peers.Await(t.Context(), b.self, 5); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := a.peers.Await(ctx, b.self, 6); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a revision that is not there: %v", err)
	}
}

func TestOfWhomCallsAreRefused(t *testing.T) {
	b := start(t, "b", peer.Handlers{Metadata: metadata(5)})
	for name, c := range map[string]struct {
		change func(*peer.Config)
		to     ring.Member
		want   []string
	}{
		"another cluster":     {func(c *peer.Config) { c.ClusterName = "Köln" }, b.self, []string{"[a cluster]", "[Köln]", "cluster.name"}},
		"without a cluster":   {func(c *peer.Config) { c.ClusterName = "" }, b.self, []string{"does not say"}},
		"another incarnation": {func(*peer.Config) {}, ring.Member{ID: "b", Incarnation: "0", Name: "node-b", Transport: b.self.Transport}, []string{"b/0", "b/1"}},
		"another node":        {func(*peer.Config) {}, ring.Member{ID: "c", Incarnation: "1", Transport: b.self.Transport}, []string{"c/1"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := start(t, "a", peer.Handlers{}, c.change)
			for what, err := range map[string]error{
				"a call":    a.peers.Await(t.Context(), c.to, 1),
				"a session": second(a.peers.Session(t.Context(), c.to, 1)),
			} {
				if !isRefused(err) {
					t.Errorf("%s: %#v", what, err)
					continue
				}
				for _, part := range c.want {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%s: %v does not say %q", what, err, part)
					}
				}
			}
		})
	}
	// Who is refused tries on; the log is told once.
	if n := strings.Count(b.log.String(), "calls of another node are refused"); n != 1 {
		t.Errorf("the log tells of refusals %d times: %s", n, b.log)
	}
}

func second[T any](_ T, err error) error { return err }

func TestPlaintextIsForLoopbackOnly(t *testing.T) {
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	self := ring.Member{ID: "a", Incarnation: "1"}
	c := peer.Config{ClusterName: "c", Self: func() ring.Member { return self }}
	err = peer.NewServer(c, peer.Handlers{}).Serve(l)
	if e, ok := errors.AsType[*peer.PlaintextError](err); !ok || !strings.Contains(e.Error(), "transport.ssl.certificate_authorities") {
		t.Errorf("a server for everybody: %v", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is left open: %v", err)
	}

	peers := peer.NewPeers(c)
	defer peers.Close()
	// An address for documentation: nothing must be sent there, so nothing is waited for.
	err = peers.Await(t.Context(), ring.Member{ID: "b", Incarnation: "1", Transport: "192.0.2.1:9300"}, 1)
	if !isUnreachable(err) || !strings.Contains(err.Error(), "unencrypted") {
		t.Errorf("a call to another machine: %v", err)
	}
}

// A connection that broke is made again, without anybody's doing.
func TestHealing(t *testing.T) {
	a, b := start(t, "a", peer.Handlers{}), start(t, "b", peer.Handlers{Metadata: metadata(5)})
	p, err := faultproxy.Start(b.self.Transport)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	to := b.self
	to.Transport = p.Addr()
	if err := a.peers.Await(t.Context(), to, 1); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	until(t, "the cut is noticed", func() bool { return isUnreachable(a.peers.Await(t.Context(), to, 1)) })
	p.Heal()
	until(t, "the connection is back", func() bool { return a.peers.Await(t.Context(), to, 1) == nil })
}

func TestUpdateClosesWhatLeft(t *testing.T) {
	closed := make(chan error, 1)
	serve := sessions(func(_ ring.Member, _ uint64, s tier.Stream) error { _, err := s.Receive(); closed <- err; return err })
	a, b, c := start(t, "a", peer.Handlers{}), start(t, "b", peer.Handlers{Sessions: serve, Metadata: metadata(1)}), start(t, "c", peer.Handlers{Metadata: metadata(1)})
	s, err := a.peers.Session(t.Context(), b.self, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.peers.Await(t.Context(), c.self, 1); err != nil {
		t.Fatal(err)
	}
	a.peers.Update([]ring.Member{a.self, c.self})
	if _, err := s.Receive(); !isUnreachable(err) {
		t.Errorf("the session with the one that left: %v", err)
	}
	if err := within(t, soon, "the one that left hears of it", closed); err == nil {
		t.Error("the one that left hears of no error")
	}
	if err := a.peers.Await(t.Context(), c.self, 1); err != nil {
		t.Errorf("the one that stayed: %v", err)
	}
	a.peers.Close()
	if err := a.peers.Await(t.Context(), c.self, 1); !errors.Is(err, peer.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
