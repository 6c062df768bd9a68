package peer

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/wlmserver/wlmserver/internal/cluster/peer/clusterpb"
	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/cluster/tier"
)

// session is one side's stream. It implements [tier.Stream].
type session struct {
	frames frames
	why    func(error) error // what an error of the frames means
	finish func()            // ends the call

	closed sync.Once
	done   chan struct{} // closed by Close
}

var _ tier.Stream = (*session)(nil)

// frames is one side of the call that carries a session.
type frames interface {
	Send(*clusterpb.SessionFrame) error
	Recv() (*clusterpb.SessionFrame, error)
}

func newSession(f frames, why func(error) error, finish func()) *session {
	return &session{frames: f, why: why, finish: finish, done: make(chan struct{})}
}

// maxFrame is how many envelopes travel in one frame.
const maxFrame = 1024

// Send passes a batch on, in as many frames as it takes. An error is the end of the stream; nil does not say that the batch has arrived.
func (s *session) Send(b tier.Batch) error {
	for {
		select {
		case <-s.done: // a call that this side has ended may take frames without a word
			return ErrClosed
		default:
		}
		n := min(len(b.Envelopes), maxFrame)
		batch := toBatch(b.Revision, b.Envelopes[:n])
		if err := s.frames.Send(&clusterpb.SessionFrame{Frame: &clusterpb.SessionFrame_Batch{Batch: batch}}); err != nil {
			return s.explain(err)
		}
		if b.Envelopes = b.Envelopes[n:]; len(b.Envelopes) == 0 {
			return nil
		}
	}
}

// Receive waits for the other side's next batch. An error is the end of the stream.
func (s *session) Receive() (tier.Batch, error) {
	for {
		f, err := s.frames.Recv()
		if err != nil {
			return tier.Batch{}, s.explain(err)
		}
		if b := f.GetBatch(); b != nil { // other frames are of a newer node
			return fromBatch(b), nil
		}
	}
}

// Close ends the stream. The other side hears of it at once, and what is under way may be lost.
func (s *session) Close() {
	s.closed.Do(func() {
		close(s.done)
		s.finish()
	})
}

func (s *session) explain(err error) error {
	select {
	case <-s.done:
		return ErrClosed
	default:
		return s.why(err)
	}
}

// Session implements [tier.Dialer]. Errors are those of ctx, *[UnreachableError], *[RefusedError], and *[FailedError].
func (p *Peers) Session(ctx context.Context, to ring.Member, epoch uint64) (tier.Stream, error) {
	client, err := p.client(to)
	if err != nil {
		return nil, err
	}
	call, finish := context.WithCancel(p.config.introduce(ctx, to))
	why := func(err error) error { return explain(ctx, to, err) }
	stream, err := client.Session(call)
	if err == nil {
		err = stream.Send(&clusterpb.SessionFrame{Frame: &clusterpb.SessionFrame_Open{Open: &clusterpb.Open{Epoch: epoch, From: toMember(p.config.Self())}}})
	}
	if err == nil || stream != nil { // a failed Send has its reason in Recv
		var first *clusterpb.SessionFrame
		if first, err = stream.Recv(); err == nil && first.GetOpened() == nil {
			err = status.Error(codes.Internal, "it has not begun with opened")
		}
	}
	if err != nil {
		finish()
		return nil, why(err)
	}
	return newSession(stream, why, finish), nil
}

// Session implements the service.
func (s *Server) Session(stream grpc.BidiStreamingServer[clusterpb.SessionFrame, clusterpb.SessionFrame]) error {
	if s.handlers.Sessions == nil {
		return s.UnimplementedPeerServer.Session(stream)
	}
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	open := first.GetOpen()
	from := fromMember(open.GetFrom())
	if open == nil || identityOf(from) != callerOf(stream.Context()) {
		return status.Error(codes.InvalidArgument, "a session begins with an open of the node that calls")
	}
	x := newSession(stream, func(err error) error { return &UnreachableError{from, status.Convert(err).Message()} }, func() {})
	if !s.enter(x) {
		return status.Error(codes.Unavailable, "the node is shutting down")
	}
	if err := stream.Send(&clusterpb.SessionFrame{Frame: &clusterpb.SessionFrame_Opened{Opened: new(clusterpb.Opened)}}); err != nil {
		s.leave(x)
		return err
	}
	// That this call returns is what ends the stream for a handler that waits in it, so the handler has a goroutine of its own.
	served := make(chan error, 1)
	go func() {
		defer s.leave(x)
		served <- s.serveSession(from, open.GetEpoch(), x)
	}()
	select {
	case err := <-served:
		x.Close()
		if err != nil {
			return failed(err)
		}
		return nil
	case <-x.done:
		return status.Error(codes.Unavailable, "the node has closed the session")
	case <-stream.Context().Done():
		return status.FromContextError(stream.Context().Err()).Err()
	}
}

func (s *Server) serveSession(from ring.Member, epoch uint64, x *session) (err error) {
	defer s.survive(&err)
	return s.handlers.Sessions.Serve(from, epoch, x)
}
