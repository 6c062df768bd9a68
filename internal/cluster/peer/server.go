package peer

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime/debug"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/wlmserver/wlmserver/internal/cluster/peer/clusterpb"
	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/cluster/tier"
	"github.com/wlmserver/wlmserver/internal/shard"
)

// Sessions takes in the sessions that coordinators open.
type Sessions interface {
	// Serve returns when the session has ended. The stream ends when it returns.
	Serve(from ring.Member, epoch uint64, s tier.Stream) error
}

// Local answers REST requests for this node alone.
type Local interface {
	// ServeLocal answers; an error is of the node, not of the request.
	ServeLocal(ctx context.Context, r LocalRequest) (LocalAnswer, error)
}

// LocalRequest is one node's part of a request.
type LocalRequest struct {
	Method, Path, RawQuery string
	Header                 http.Header
	Body                   []byte
	User                   string // as the node that the client asked has found
	Roles                  []string
}

// LocalAnswer is the answer to a LocalRequest.
type LocalAnswer struct {
	Status      int
	ContentType string
	Body        []byte
}

// Metadata knows which revision of the metadata this node has applied.
type Metadata interface {
	// Await returns when it has applied the revision, or with the error of ctx.
	Await(ctx context.Context, revision uint64) error
}

// Handlers is what a node does for others. What is nil is refused.
type Handlers struct {
	Sessions Sessions
	Local    Local
	Metadata Metadata
	Shards   shard.Transport // to the shards of this node
	Copies   shard.Holder    // their documents
}

// Server is the side that is called. It is safe for concurrent use.
type Server struct {
	clusterpb.UnimplementedPeerServer

	config   Config
	handlers Handlers
	grpc     *grpc.Server
	readers  *readers
	serving  sync.WaitGroup // sessions whose handler has not returned
	refusals refusals

	mu       sync.Mutex
	closing  bool
	sessions map[*session]struct{}
}

// NewServer returns a server that listens nowhere yet.
func NewServer(c Config, h Handlers) *Server {
	c.complete()
	s := &Server{config: c, handlers: h, readers: newReaders(), sessions: make(map[*session]struct{})}
	s.refusals.log = c.Log
	s.grpc = grpc.NewServer(
		grpc.Creds(c.credentials(s.refusals.tell)),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		grpc.ConnectionTimeout(connectTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: c.KeepAlive, Timeout: c.keepAliveTimeout()}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepAlive / 2, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(s.unary), grpc.StreamInterceptor(s.stream),
	)
	clusterpb.RegisterPeerServer(s.grpc, s)
	return s
}

// Serve answers on the listener until Shutdown, after which it returns nil. Without TLS the listener's address has to be a loopback one:
// else *[PlaintextError].
func (s *Server) Serve(l net.Listener) error {
	if address := l.Addr().String(); s.config.Certificate == nil && !loopback(address) {
		l.Close()
		return &PlaintextError{address}
	}
	if err := s.grpc.Serve(l); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// Update tells who the members are: what is kept for others is dropped.
func (s *Server) Update(members []ring.Member) { s.readers.only(members) }

// Shutdown ends all sessions, takes no new calls, and returns when those under way are answered, or after ctx's end: then they fail.
func (s *Server) Shutdown(ctx context.Context) {
	s.mu.Lock()
	s.closing = true
	var open []*session
	for x := range s.sessions {
		open = append(open, x)
	}
	s.mu.Unlock()
	for _, x := range open {
		x.Close()
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.grpc.GracefulStop()
	}()
	select {
	case <-stopped:
	case <-ctx.Done():
		s.grpc.Stop()
		<-stopped
	}
	s.serving.Wait()
	s.readers.only(nil)
}

// enter notes a session; false when the server is shutting down.
func (s *Server) enter(x *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.sessions[x] = struct{}{}
	s.serving.Add(1)
	return true
}

func (s *Server) leave(x *session) {
	s.mu.Lock()
	delete(s.sessions, x)
	s.mu.Unlock()
	s.serving.Done()
}

// unary admits a call and survives its panic.
func (s *Server) unary(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (answer any, err error) {
	if ctx, err = s.admitted(ctx); err != nil {
		return nil, err
	}
	defer s.survive(&err)
	return handle(ctx, request)
}

// stream does the same for a stream.
func (s *Server) stream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
	ctx, err := s.admitted(stream.Context())
	if err != nil {
		return err
	}
	defer s.survive(&err)
	return handle(srv, &admittedStream{stream, ctx})
}

func (s *Server) admitted(ctx context.Context) (context.Context, error) {
	admitted, err := s.config.admit(ctx)
	if err != nil {
		var from net.Addr
		if p, ok := peer.FromContext(ctx); ok {
			from = p.Addr
		}
		s.refusals.tell(from, err)
	}
	return admitted, err
}

// survive makes an error of a panic.
func (s *Server) survive(err *error) {
	if p := recover(); p != nil {
		s.config.Log.Error().Any("panic", p).Bytes("stack", debug.Stack()).Msg("answering another node panicked")
		*err = status.Error(codes.Internal, "the answer panicked; the node's log has more")
	}
}

type admittedStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *admittedStream) Context() context.Context { return s.ctx }

// Local implements the service.
func (s *Server) Local(ctx context.Context, r *clusterpb.LocalRequest) (*clusterpb.LocalAnswer, error) {
	if s.handlers.Local == nil {
		return s.UnimplementedPeerServer.Local(ctx, r)
	}
	header := make(http.Header, len(r.GetHeader()))
	for _, h := range r.GetHeader() {
		header[h.GetName()] = h.GetValues()
	}
	a, err := s.handlers.Local.ServeLocal(ctx, LocalRequest{
		Method: r.GetMethod(), Path: r.GetPath(), RawQuery: r.GetRawQuery(), Header: header, Body: r.GetBody(), User: r.GetUser(), Roles: r.GetRoles(),
	})
	if err != nil {
		return nil, failed(err)
	}
	return &clusterpb.LocalAnswer{Status: int32(a.Status), ContentType: a.ContentType, Body: a.Body}, nil
}

// Await implements the service.
func (s *Server) Await(ctx context.Context, r *clusterpb.AwaitRequest) (*clusterpb.AwaitAnswer, error) {
	if s.handlers.Metadata == nil {
		return s.UnimplementedPeerServer.Await(ctx, r)
	}
	if err := s.handlers.Metadata.Await(ctx, r.GetRevision()); err != nil {
		return nil, failed(err)
	}
	return new(clusterpb.AwaitAnswer), nil
}

// failed is the status of a handler's error.
func failed(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, err.Error())
	}
	return status.Error(codes.Unknown, err.Error())
}
