package peer_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/wlmserver/wlmserver/internal/certificate"
	"github.com/wlmserver/wlmserver/internal/certificate/certificatetest"
	"github.com/wlmserver/wlmserver/internal/cluster/peer"
	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/cluster/tier"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soon bounds what happens at once on an idle machine.
const soon = 10 * time.Second

// node is both sides of one node.
type node struct {
	peer.Config
	self   ring.Member
	server *peer.Server
	peers  *peer.Peers
	log    *logBuffer
}

// start starts a node on a loopback port. Its server answers with the handlers.
func start(t testing.TB, id string, h peer.Handlers, change ...func(*peer.Config)) *node {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &node{self: ring.Member{ID: id, Incarnation: "1", Name: "node-" + id, Transport: l.Addr().String(), HTTP: "127.0.0.1:1", Version: "3.7.0"}, log: new(logBuffer)}
	n.Config = peer.Config{ClusterName: "a cluster", Self: func() ring.Member { return n.self }, Log: zerolog.New(n.log)}
	for _, c := range change {
		c(&n.Config)
	}
	n.server, n.peers = peer.NewServer(n.Config, h), peer.NewPeers(n.Config)
	served := make(chan error, 1)
	go func() { served <- n.server.Serve(l) }()
	t.Cleanup(func() {
		n.peers.Close()
		n.stop(t)
		if err := <-served; err != nil {
			t.Errorf("Serve of %s: %v", id, err)
		}
	})
	return n
}

// stop stops the server, which may be stopped already.
func (n *node) stop(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	n.server.Shutdown(ctx)
	if ctx.Err() != nil {
		t.Errorf("%s does not stop in time", n.self.ID)
	}
}

// secured gives a node a certificate.
func secured(t testing.TB, a *certificatetest.Authority) func(*peer.Config) {
	t.Helper()
	return certified(t, a.Issue(t, t.TempDir(), 1))
}

func certified(t testing.TB, f certificate.Files) func(*peer.Config) {
	t.Helper()
	source, err := certificate.Open(f, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	return func(c *peer.Config) { c.Certificate = source }
}

// logBuffer is a log that can be read.
type logBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// metadata has applied every revision up to itself.
type metadata uint64

func (m metadata) Await(ctx context.Context, revision uint64) error {
	if revision <= uint64(m) {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// sessions serves with a function.
type sessions func(from ring.Member, epoch uint64, s tier.Stream) error

func (f sessions) Serve(from ring.Member, epoch uint64, s tier.Stream) error {
	return f(from, epoch, s)
}

// echo sends back what it receives.
func echo(_ ring.Member, _ uint64, s tier.Stream) error {
	for {
		b, err := s.Receive()
		if err != nil {
			return err
		}
		if err := s.Send(b); err != nil {
			return err
		}
	}
}

// local answers with a function.
type local func(context.Context, peer.LocalRequest) (peer.LocalAnswer, error)

func (f local) ServeLocal(ctx context.Context, r peer.LocalRequest) (peer.LocalAnswer, error) {
	return f(ctx, r)
}

// within waits for something that a channel tells, for a while.
func within[T any](t testing.TB, d time.Duration, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(d):
		t.Fatalf("not within %v: %s", d, what)
		panic("unreachable")
	}
}

// until tries a condition again and again.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(soon); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", soon, what)
		}
		<-time.After(time.Millisecond)
	}
}
