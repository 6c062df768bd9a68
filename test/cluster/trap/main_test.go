package trap_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/wlmserver/wlmserver/internal/cluster/peer/clusterpb"
	"github.com/wlmserver/wlmserver/test/cluster/trap"
	"github.com/wlmserver/wlmserver/test/faultproxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soon bounds what should happen at once.
const soon = 10 * time.Second

// echo answers each frame of a session with one of the same, and tells of both the frame and the end.
type echo struct {
	clusterpb.UnimplementedPeerServer
	heard chan *clusterpb.SessionFrame
	ends  chan error
}

func (e *echo) Session(s grpc.BidiStreamingServer[clusterpb.SessionFrame, clusterpb.SessionFrame]) error {
	for {
		f, err := s.Recv()
		if err != nil {
			e.ends <- err
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		e.heard <- f
		if err := s.Send(f); err != nil {
			e.ends <- err
			return err
		}
	}
}

func (e *echo) Local(_ context.Context, r *clusterpb.LocalRequest) (*clusterpb.LocalAnswer, error) {
	return &clusterpb.LocalAnswer{Body: r.GetBody()}, nil
}

// rig is a client and a server, with a trap on the link between them.
type rig struct {
	*testing.T
	trap   *trap.Trap
	proxy  *faultproxy.Proxy
	server *echo
	client clusterpb.PeerClient
}

func newRig(t *testing.T) *rig {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, trap: new(trap.Trap), server: &echo{heard: make(chan *clusterpb.SessionFrame, 1000), ends: make(chan error, 100)}}
	s := grpc.NewServer()
	clusterpb.RegisterPeerServer(s, r.server)
	go func() { _ = s.Serve(l) }()
	if r.proxy, err = faultproxy.Start(l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	r.proxy.Watch(r.trap.Watch)
	c, err := grpc.NewClient("passthrough:///"+r.proxy.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry())
	if err != nil {
		t.Fatal(err)
	}
	r.client = clusterpb.NewPeerClient(c)
	t.Cleanup(func() {
		c.Close()
		s.Stop()
		r.proxy.Close()
		if err := r.trap.Err(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// session opens one, when there is a connection.
func (r *rig) session() grpc.BidiStreamingClient[clusterpb.SessionFrame, clusterpb.SessionFrame] {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	r.Cleanup(cancel)
	s, err := r.client.Session(ctx, grpc.WaitForReady(true))
	if err != nil {
		r.Fatal(err)
	}
	return s
}
