package peer

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/wlmserver/wlmserver/internal/cluster/peer/clusterpb"
	"github.com/wlmserver/wlmserver/internal/cluster/ring"
)

const (
	// cancelTimeout is how long a shard's node may take to say that it has heard of a cancel.
	cancelTimeout = 5 * time.Second
	closeTimeout  = 10 * time.Second
	maxClosing    = 10_000 // readers in one message
)

// ask puts one question to a shard of another node and returns what it answers, also when ctx has ended meanwhile: then the shard is
// told why and its answer comes soon, as from a shard that is here. Errors are those of [Peers.Await].
func (p *Peers) ask(ctx context.Context, to ring.Member, question *clusterpb.ShardCall) (*clusterpb.ShardAnswer, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	client, err := p.client(to)
	if err != nil {
		return nil, err
	}
	// The call outlives ctx, so that the shard has the time to say how it ended.
	rpc, abort := context.WithCancel(p.config.introduce(context.WithoutCancel(ctx), to))
	defer abort()
	a := &asking{peers: p, ctx: ctx, abort: abort}
	defer context.AfterFunc(ctx, a.cancel)()
	defer a.end()
	if deadline, ok := ctx.Deadline(); ok {
		question.RemainingNanos = max(1, int64(time.Until(deadline)))
	}
	stream, err := client.Shard(rpc)
	if err != nil {
		return nil, explain(ctx, to, err)
	}
	// A failed Send has its reason in Recv.
	_ = stream.Send(question)
	a.asked(stream)
	for {
		m, err := stream.Recv()
		switch {
		case err != nil:
			return nil, explain(ctx, to, err)
		case m.GetCancelling() != nil:
			a.end()
		default:
			_, _ = stream.Recv() // the end of the call, which frees what it holds
			return m, nil
		}
	}
}

// asking is the caller's side of a call, as far as it concerns its cancellation.
type asking struct {
	peers *Peers
	ctx   context.Context
	abort func()

	mu     sync.Mutex
	stream grpc.BidiStreamingClient[clusterpb.ShardCall, clusterpb.ShardAnswer] // nil until the question was sent
	timer  *time.Timer                                                          // aborts a call that does not react
	ended  bool
}

func (a *asking) asked(stream grpc.BidiStreamingClient[clusterpb.ShardCall, clusterpb.ShardAnswer]) {
	a.mu.Lock()
	a.stream = stream
	a.mu.Unlock()
}

// cancel tells the shard that ctx has ended.
func (a *asking) cancel() {
	a.mu.Lock()
	stream, ended := a.stream, a.ended
	if stream != nil && !ended {
		a.timer = time.AfterFunc(cancelTimeout, a.abort)
	}
	a.mu.Unlock()
	switch {
	case ended:
	case stream == nil:
		a.abort()
	default:
		why := a.peers.config.Failures.Describe(context.Cause(a.ctx))
		_ = stream.Send(&clusterpb.ShardCall{Call: &clusterpb.ShardCall_Cancel{Cancel: &clusterpb.Cancel{Why: toFailure(why)}}})
	}
}

// end has the call wait for its answer as long as that takes.
func (a *asking) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	if a.timer != nil {
		a.timer.Stop()
	}
}

// closeReader tells a member that a reader is not needed any more. It does not wait, and tells no one that it failed: the reader then
// ends when its time is over.
func (p *Peers) closeReader(to ring.Member, number uint64) {
	p.mu.Lock()
	numbers, running := p.unread[to]
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.unread[to] = append(numbers, number)
	if !running {
		p.running.Add(1)
	}
	p.mu.Unlock()
	if !running {
		go p.closeReaders(to)
	}
}

func (p *Peers) closeReaders(to ring.Member) {
	defer p.running.Done()
	for {
		p.mu.Lock()
		numbers := p.unread[to]
		if len(numbers) == 0 || p.closed {
			delete(p.unread, to)
			p.mu.Unlock()
			return
		}
		some := numbers[:min(len(numbers), maxClosing)]
		p.unread[to] = numbers[len(some):]
		p.mu.Unlock()

		if client, err := p.client(to); err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
			_, _ = client.CloseReaders(p.config.introduce(ctx, to), &clusterpb.CloseReadersRequest{Readers: some})
			cancel()
		}
	}
}
