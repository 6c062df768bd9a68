package peer

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/wlmserver/wlmserver/internal/cluster/peer/clusterpb"
	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/shard"
)

// Shards asks the shards of a cluster, wherever they are.
//
// The copies of a shard are asked one after another, that of this node first, until one has answered. The next one is asked when a node
// cannot be reached, was lost before it answered, does not take the call, does not have the shard or has no room for the work (404, 429
// and 503); any other failure is the shard's answer. A question that names a reader goes to where that is and to no other. What a lost
// node was asked may go on there until it notices. An error from elsewhere is a [shard.NodeError]. It is safe for concurrent use.
type Shards struct {
	peers  *Peers
	local  shard.Transport
	copies func(shard.ID) []ring.Member
}

var _ shard.Transport = (*Shards)(nil)

// NewShards returns a transport that asks the shards of this node by local, and others by peers. copies tells which members have a
// copy of a shard, the one to be asked first at the front.
func NewShards(p *Peers, local shard.Transport, copies func(shard.ID) []ring.Member) *Shards {
	return &Shards{peers: p, local: local, copies: copies}
}

// held is a reader and where it is.
type held struct {
	member ring.Member
	local  shard.Reader // when it is here
	number uint64       // when it is not
}

// Query implements [shard.Transport].
func (s *Shards) Query(ctx context.Context, r *shard.QueryRequest, done func(*shard.QueryResult, error)) {
	h, _ := r.Reader.(*held)
	route(s, ctx, r.Shard, h, done, question[*shard.QueryResult]{
		local: func(reader shard.Reader, self ring.Member, done func(*shard.QueryResult, error)) {
			q := *r
			q.Reader = reader
			s.local.Query(ctx, &q, func(result *shard.QueryResult, err error) {
				if err == nil && result.Reader != nil {
					result.Reader = &held{member: self, local: result.Reader}
				}
				done(result, err)
			})
		},
		remote: func(number uint64) *clusterpb.ShardCall {
			return &clusterpb.ShardCall{Call: &clusterpb.ShardCall_Query{Query: toQuery(r, number)}}
		},
		result: func(m *clusterpb.ShardAnswer, from ring.Member) (*shard.QueryResult, bool) {
			q := m.GetQuery()
			if q == nil {
				return nil, false
			}
			result := fromQueryResult(q)
			result.Node = from.ID
			if n := q.GetReader(); n != 0 {
				result.Reader = &held{member: from, number: n}
			}
			return result, true
		},
	})
}

// Fetch implements [shard.Transport].
func (s *Shards) Fetch(ctx context.Context, r *shard.FetchRequest, done func(*shard.FetchResult, error)) {
	h, _ := r.Reader.(*held)
	route(s, ctx, r.Shard, h, done, question[*shard.FetchResult]{
		local: func(reader shard.Reader, _ ring.Member, done func(*shard.FetchResult, error)) {
			f := *r
			f.Reader = reader
			s.local.Fetch(ctx, &f, done)
		},
		remote: func(number uint64) *clusterpb.ShardCall {
			return &clusterpb.ShardCall{Call: &clusterpb.ShardCall_Fetch{Fetch: toFetch(r, number)}}
		},
		result: func(m *clusterpb.ShardAnswer, _ ring.Member) (*shard.FetchResult, bool) {
			if m.GetFetch() == nil {
				return nil, false
			}
			return fromFetchResult(m.GetFetch()), true
		},
	})
}

// Close implements [shard.Transport].
func (s *Shards) Close(r shard.Reader) {
	switch h, _ := r.(*held); {
	case h == nil:
	case h.number == 0:
		s.local.Close(h.local)
	default:
		s.peers.closeReader(h.member, h.number)
	}
}

// question is one question, however it is put.
type question[T any] struct {
	local  func(reader shard.Reader, self ring.Member, done func(T, error))
	remote func(reader uint64) *clusterpb.ShardCall
	result func(m *clusterpb.ShardAnswer, from ring.Member) (T, bool)
}

// route asks where the reader is, or the copies of the shard in turn.
func route[T any](s *Shards, ctx context.Context, id shard.ID, h *held, done func(T, error), q question[T]) {
	self := s.peers.config.Self()
	if h != nil {
		if h.number == 0 {
			q.local(h.local, self, done)
			return
		}
		try(s, ctx, []ring.Member{h.member}, self, h, done, q)
		return
	}
	copies := s.copies(id)
	if i := slices.Index(copies, self); i > 0 {
		copies = slices.Concat(copies[i:i+1], copies[:i], copies[i+1:])
	}
	if len(copies) == 0 {
		var none T
		done(none, &shard.NodeError{Err: s.restore(shard.Failure{Type: "no_shard_available_action_exception", Status: http.StatusServiceUnavailable,
			Reason: "no member of the cluster has a copy of the shard"})})
		return
	}
	try(s, ctx, copies, self, nil, done, q)
}

// try asks the first of the copies, and the others if that comes to nothing.
func try[T any](s *Shards, ctx context.Context, copies []ring.Member, self ring.Member, h *held, done func(T, error), q question[T]) {
	next := func(result T, err error) {
		if err != nil && len(copies) > 1 && ctx.Err() == nil && s.another(err) {
			try(s, ctx, copies[1:], self, nil, done, q)
			return
		}
		if err = s.known(err); err != nil && copies[0] != self {
			err = &shard.NodeError{Node: copies[0].ID, Err: err}
		}
		done(result, err)
	}
	if copies[0] == self {
		q.local(nil, self, next)
		return
	}
	if !s.peers.begin() {
		var none T
		next(none, &UnreachableError{copies[0], ErrClosed.Error()})
		return
	}
	go func() {
		defer s.peers.running.Done()
		var number uint64
		if h != nil {
			number = h.number
		}
		var result T
		m, err := s.peers.ask(ctx, copies[0], q.remote(number))
		if err == nil {
			var ok bool
			if result, ok = q.result(m, copies[0]); !ok {
				err = s.restore(fromFailure(m.GetFailure()))
			}
		}
		next(result, err)
	}()
}

func (s *Shards) restore(f shard.Failure) error { return s.peers.config.Failures.Restore(f) }

// another reports whether another copy of the shard may have an answer where one has failed.
func (s *Shards) another(err error) bool {
	if notReached(err) {
		return true
	}
	switch s.peers.config.Failures.Describe(err).Status {
	case http.StatusNotFound, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	}
	return false
}

// known makes what the nodes have to do with one another a failure of the shard.
func (s *Shards) known(err error) error {
	if err == nil || !notReached(err) {
		return err
	}
	f := shard.Failure{Type: "node_not_connected_exception", Status: http.StatusServiceUnavailable, Reason: err.Error()}
	if _, ok := errors.AsType[*FailedError](err); ok {
		f.Type, f.Status = "remote_transport_exception", http.StatusInternalServerError
	}
	return s.restore(f)
}

// notReached reports whether an error is of the nodes' talk, and not of a shard.
func notReached(err error) bool {
	if errors.Is(err, ErrClosed) {
		return true
	}
	if _, ok := errors.AsType[*UnreachableError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*RefusedError](err); ok {
		return true
	}
	_, ok := errors.AsType[*FailedError](err)
	return ok
}
