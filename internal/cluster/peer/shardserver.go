package peer

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/wlmserver/wlmserver/internal/cluster/peer/clusterpb"
	"github.com/wlmserver/wlmserver/internal/shard"
)

// Shard implements the service.
func (s *Server) Shard(stream grpc.BidiStreamingServer[clusterpb.ShardCall, clusterpb.ShardAnswer]) error {
	if s.handlers.Shards == nil {
		return s.UnimplementedPeerServer.Shard(stream)
	}
	question, err := stream.Recv()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	if remaining := time.Duration(question.GetRemainingNanos()); remaining > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, remaining)
		defer done()
	}
	a := &answering{stream: stream}
	go a.listen(func(why *clusterpb.Failure) { cancel(s.config.Failures.Restore(fromFailure(why))) })

	caller := callerOf(stream.Context())
	var answer *clusterpb.ShardAnswer
	switch q := question.GetCall().(type) {
	case *clusterpb.ShardCall_Query:
		answer = s.query(ctx, caller, q.Query)
	case *clusterpb.ShardCall_Fetch:
		answer = s.fetch(ctx, caller, q.Fetch)
	default:
		return status.Error(codes.InvalidArgument, "a call of a shard begins with a query or a fetch")
	}
	err = a.answer(answer)
	if n := answer.GetQuery().GetReader(); err != nil && n != 0 {
		s.readers.close(caller, []uint64{n}) // nobody knows its number
	}
	return err
}

// answering is the shard's side of a call.
type answering struct {
	stream grpc.BidiStreamingServer[clusterpb.ShardCall, clusterpb.ShardAnswer]

	mu   sync.Mutex
	done bool
}

// listen waits for a cancel, and acknowledges it. It returns when the call is over.
func (a *answering) listen(cancel func(why *clusterpb.Failure)) {
	for {
		m, err := a.stream.Recv()
		if err != nil {
			return // if the caller has gone, the context of the call has ended too
		}
		c := m.GetCancel()
		if c == nil {
			continue
		}
		cancel(c.GetWhy())
		a.mu.Lock()
		if !a.done {
			_ = a.stream.Send(&clusterpb.ShardAnswer{Answer: &clusterpb.ShardAnswer_Cancelling{Cancelling: new(clusterpb.Cancelling)}})
		}
		a.mu.Unlock()
	}
}

func (a *answering) answer(m *clusterpb.ShardAnswer) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done = true
	return a.stream.Send(m)
}

// query asks a shard here, and keeps the reader of its answer if that is wanted.
func (s *Server) query(ctx context.Context, caller identity, q *clusterpb.Query) *clusterpb.ShardAnswer {
	r, number := fromQuery(q), q.GetReader()
	if number != 0 {
		reader, ok := s.readers.use(caller, number, r.Shard, r.Keep)
		if !ok {
			return failure(readerGone(number))
		}
		r.Reader = reader
	}
	result, err := await(func(done func(*shard.QueryResult, error)) { s.handlers.Shards.Query(ctx, r, done) })
	if err != nil {
		return failure(s.config.Failures.Describe(err))
	}
	switch {
	case number != 0: // it began when the question came and the work may have taken long
		s.readers.use(caller, number, r.Shard, r.Keep)
	case r.Keep > 0 && result.Reader != nil:
		number = s.readers.add(caller, r.Shard, result.Reader, r.Keep)
	}
	return &clusterpb.ShardAnswer{Answer: &clusterpb.ShardAnswer_Query{Query: toQueryResult(result, number)}}
}

// fetch asks a shard here.
func (s *Server) fetch(ctx context.Context, caller identity, f *clusterpb.Fetch) *clusterpb.ShardAnswer {
	r, number := fromFetch(f), f.GetReader()
	if number != 0 {
		reader, ok := s.readers.use(caller, number, r.Shard, 0)
		if !ok {
			return failure(readerGone(number))
		}
		r.Reader = reader
	}
	result, err := await(func(done func(*shard.FetchResult, error)) { s.handlers.Shards.Fetch(ctx, r, done) })
	if err != nil {
		return failure(s.config.Failures.Describe(err))
	}
	if number != 0 {
		s.readers.use(caller, number, r.Shard, 0)
	}
	return &clusterpb.ShardAnswer{Answer: &clusterpb.ShardAnswer_Fetch{Fetch: toFetchResult(result)}}
}

// await waits for the one answer of a transport, which comes soon after its context has ended.
func await[T any](ask func(done func(T, error))) (T, error) {
	type outcome struct {
		result T
		err    error
	}
	answered := make(chan outcome, 1)
	ask(func(result T, err error) { answered <- outcome{result, err} })
	o := <-answered
	return o.result, o.err
}

func failure(f shard.Failure) *clusterpb.ShardAnswer {
	return &clusterpb.ShardAnswer{Answer: &clusterpb.ShardAnswer_Failure{Failure: toFailure(f)}}
}

func readerGone(number uint64) shard.Failure {
	return shard.Failure{Type: "search_context_missing_exception", Status: http.StatusNotFound,
		Reason: "the shard does not keep the state [" + strconv.FormatUint(number, 10) + "] any more: it was not used for too long; start the search again"}
}

// CloseReaders implements the service.
func (s *Server) CloseReaders(ctx context.Context, r *clusterpb.CloseReadersRequest) (*clusterpb.CloseReadersAnswer, error) {
	s.readers.close(callerOf(ctx), r.GetReaders())
	return new(clusterpb.CloseReadersAnswer), nil
}
