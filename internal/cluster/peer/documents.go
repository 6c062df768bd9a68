package peer

import (
	"context"

	"github.com/wlmserver/wlmserver/internal/cluster/peer/clusterpb"
	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/shard"
)

// Nodes finds the nodes of a cluster that hold copies of shards. It is safe for concurrent use.
type Nodes struct {
	peers *Peers
	find  func(shard.Node) (ring.Member, bool)
}

var _ shard.Nodes = (*Nodes)(nil)

// NewNodes returns the nodes that are reached by peers. Find tells which member a node is; false: none, any more.
func NewNodes(p *Peers, find func(shard.Node) (ring.Member, bool)) *Nodes {
	return &Nodes{peers: p, find: find}
}

// Holder implements [shard.Nodes]. The errors of its methods are those of the shard, and of [Peers.Await].
func (n *Nodes) Holder(to shard.Node) shard.Holder { return &holder{n, to} }

// holder is the copies of another node.
type holder struct {
	nodes *Nodes
	to    shard.Node
}

// call begins a call to the node.
func (h *holder) call(ctx context.Context) (context.Context, ring.Member, clusterpb.PeerClient, error) {
	m, ok := h.nodes.find(h.to)
	if !ok {
		m = ring.Member{ID: h.to.ID, Incarnation: h.to.Incarnation, Name: h.to.ID}
		return nil, m, nil, &UnreachableError{m, "it is not a member of the cluster"}
	}
	client, err := h.nodes.peers.client(m)
	if err != nil {
		return nil, m, nil, err
	}
	return h.nodes.peers.config.introduce(ctx, m), m, client, nil
}

// failed is the error that an answer tells of; nil if it does not.
func (h *holder) failed(f *clusterpb.Failure) error {
	if f == nil {
		return nil
	}
	return h.nodes.peers.config.Failures.Restore(fromFailure(f))
}

// Write implements [shard.Holder].
func (h *holder) Write(ctx context.Context, r *shard.WriteRequest) (*shard.WriteResult, error) {
	rpc, to, client, err := h.call(ctx)
	if err != nil {
		return nil, err
	}
	request := &clusterpb.WriteRequest{Copy: toCopy(r.Copy), Primary: r.Primary, Operations: make([]*clusterpb.Operation, len(r.Operations))}
	for i, o := range r.Operations {
		request.Operations[i] = &clusterpb.Operation{Kind: toOperationKind(o.Kind), Id: o.ID, Source: o.Source, Version: o.Version, SeqNo: o.SeqNo,
			Condition: toCondition(o.Condition), Expected: o.Expected}
	}
	a, err := client.Write(rpc, request)
	if err != nil {
		return nil, explain(ctx, to, err)
	}
	if err := h.failed(a.GetFailure()); err != nil {
		return nil, err
	}
	result := &shard.WriteResult{Taken: int(a.GetTaken()), Failed: int(a.GetFailed())}
	for _, o := range a.GetOutcomes() {
		result.Outcomes = append(result.Outcomes, shard.Outcome{
			Result: o.GetResult(), Version: o.GetVersion(), SeqNo: o.GetSeqNo(), Source: o.GetSource(), Err: h.failed(o.GetFailure()),
		})
	}
	return result, nil
}

// Read implements [shard.Holder].
func (h *holder) Read(ctx context.Context, r *shard.ReadRequest) (*shard.Page, error) {
	rpc, to, client, err := h.call(ctx)
	if err != nil {
		return nil, err
	}
	a, err := client.Read(rpc, &clusterpb.ReadRequest{Copy: toCopy(r.Copy), ForCopy: r.For, From: r.From, Amount: r.Amount})
	if err != nil {
		return nil, explain(ctx, to, err)
	}
	if err := h.failed(a.GetFailure()); err != nil {
		return nil, err
	}
	return &shard.Page{Documents: fromDocuments(a.GetDocuments()), Next: a.GetNext(), Last: a.GetLast()}, nil
}

// Measure implements [shard.Holder].
func (h *holder) Measure(ctx context.Context, shards []shard.ID) ([]shard.Size, error) {
	rpc, to, client, err := h.call(ctx)
	if err != nil {
		return nil, err
	}
	request := new(clusterpb.MeasureRequest)
	for _, id := range shards {
		request.Shards = append(request.Shards, toShardID(id))
	}
	a, err := client.Measure(rpc, request)
	if err != nil {
		return nil, explain(ctx, to, err)
	}
	if err := h.failed(a.GetFailure()); err != nil {
		return nil, err
	}
	var sizes []shard.Size
	for _, s := range a.GetSizes() {
		sizes = append(sizes, shard.Size{Shard: fromShardID(s.GetShard()), Documents: int(s.GetDocuments()), Bytes: s.GetBytes()})
	}
	return sizes, nil
}

// Write implements the service.
func (s *Server) Write(ctx context.Context, r *clusterpb.WriteRequest) (*clusterpb.WriteAnswer, error) {
	if s.handlers.Copies == nil {
		return s.UnimplementedPeerServer.Write(ctx, r)
	}
	request := &shard.WriteRequest{Copy: fromCopy(r.GetCopy()), Primary: r.GetPrimary(), Operations: make([]shard.Operation, len(r.GetOperations()))}
	for i, o := range r.GetOperations() {
		request.Operations[i] = shard.Operation{
			Kind: fromOperationKind(o.GetKind()), ID: o.GetId(), Source: o.GetSource(), Version: o.GetVersion(), SeqNo: o.GetSeqNo(),
			Condition: fromCondition(o.GetCondition()), Expected: o.GetExpected(),
		}
	}
	result, err := s.handlers.Copies.Write(ctx, request)
	if err != nil {
		return &clusterpb.WriteAnswer{Failure: s.describe(err)}, nil
	}
	a := &clusterpb.WriteAnswer{Taken: int64(result.Taken), Failed: int64(result.Failed)}
	for i := range result.Outcomes {
		o := &result.Outcomes[i]
		x := &clusterpb.Outcome{Result: o.Result, Version: o.Version, SeqNo: o.SeqNo, Source: o.Source}
		if o.Err != nil {
			x = &clusterpb.Outcome{Failure: s.describe(o.Err)}
		}
		a.Outcomes = append(a.Outcomes, x)
	}
	return a, nil
}

// Read implements the service.
func (s *Server) Read(ctx context.Context, r *clusterpb.ReadRequest) (*clusterpb.ReadAnswer, error) {
	if s.handlers.Copies == nil {
		return s.UnimplementedPeerServer.Read(ctx, r)
	}
	p, err := s.handlers.Copies.Read(ctx, &shard.ReadRequest{Copy: fromCopy(r.GetCopy()), For: r.GetForCopy(), From: r.GetFrom(), Amount: r.GetAmount()})
	if err != nil {
		return &clusterpb.ReadAnswer{Failure: s.describe(err)}, nil
	}
	return &clusterpb.ReadAnswer{Documents: toDocuments(p.Documents), Next: p.Next, Last: p.Last}, nil
}

// Measure implements the service.
func (s *Server) Measure(ctx context.Context, r *clusterpb.MeasureRequest) (*clusterpb.MeasureAnswer, error) {
	if s.handlers.Copies == nil {
		return s.UnimplementedPeerServer.Measure(ctx, r)
	}
	shards := make([]shard.ID, 0, len(r.GetShards()))
	for _, id := range r.GetShards() {
		shards = append(shards, fromShardID(id))
	}
	sizes, err := s.handlers.Copies.Measure(ctx, shards)
	if err != nil {
		return &clusterpb.MeasureAnswer{Failure: s.describe(err)}, nil
	}
	a := new(clusterpb.MeasureAnswer)
	for _, size := range sizes {
		a.Sizes = append(a.Sizes, &clusterpb.Size{Shard: toShardID(size.Shard), Documents: int64(size.Documents), Bytes: size.Bytes})
	}
	return a, nil
}

func (s *Server) describe(err error) *clusterpb.Failure {
	return toFailure(s.config.Failures.Describe(err))
}

func toCopy(c shard.Copy) *clusterpb.Copy {
	return &clusterpb.Copy{Shard: toShardID(c.Shard), Uuid: c.UUID, Number: c.Number}
}

func fromCopy(c *clusterpb.Copy) shard.Copy {
	return shard.Copy{Shard: fromShardID(c.GetShard()), UUID: c.GetUuid(), Number: c.GetNumber()}
}

// toCondition says how each condition travels.
func toCondition(c shard.Condition) clusterpb.OperationCondition {
	switch c {
	case shard.LastChange:
		return clusterpb.OperationCondition_OPERATION_CONDITION_LAST_CHANGE
	case shard.NewerVersion:
		return clusterpb.OperationCondition_OPERATION_CONDITION_NEWER_VERSION
	case shard.NotOlderVersion:
		return clusterpb.OperationCondition_OPERATION_CONDITION_NOT_OLDER_VERSION
	}
	return clusterpb.OperationCondition_OPERATION_CONDITION_UNSPECIFIED
}

// fromCondition is the way back; shard.Unknown, which is refused, for one that this version does not know.
func fromCondition(c clusterpb.OperationCondition) shard.Condition {
	switch c {
	case clusterpb.OperationCondition_OPERATION_CONDITION_UNSPECIFIED:
		return shard.Always
	case clusterpb.OperationCondition_OPERATION_CONDITION_LAST_CHANGE:
		return shard.LastChange
	case clusterpb.OperationCondition_OPERATION_CONDITION_NEWER_VERSION:
		return shard.NewerVersion
	case clusterpb.OperationCondition_OPERATION_CONDITION_NOT_OLDER_VERSION:
		return shard.NotOlderVersion
	}
	return shard.Unknown
}

// toOperationKind says how each kind of operation travels. The numbers there never change; those in memory may.
func toOperationKind(k shard.OperationKind) clusterpb.OperationKind {
	switch k {
	case shard.Index:
		return clusterpb.OperationKind_OPERATION_KIND_INDEX
	case shard.Create:
		return clusterpb.OperationKind_OPERATION_KIND_CREATE
	case shard.Update:
		return clusterpb.OperationKind_OPERATION_KIND_UPDATE
	case shard.Delete:
		return clusterpb.OperationKind_OPERATION_KIND_DELETE
	case shard.Get:
		return clusterpb.OperationKind_OPERATION_KIND_GET
	}
	return clusterpb.OperationKind_OPERATION_KIND_UNSPECIFIED
}

// fromOperationKind is the way back; 0, which is refused, for a kind that this version does not know.
func fromOperationKind(k clusterpb.OperationKind) shard.OperationKind {
	switch k {
	case clusterpb.OperationKind_OPERATION_KIND_INDEX:
		return shard.Index
	case clusterpb.OperationKind_OPERATION_KIND_CREATE:
		return shard.Create
	case clusterpb.OperationKind_OPERATION_KIND_UPDATE:
		return shard.Update
	case clusterpb.OperationKind_OPERATION_KIND_DELETE:
		return shard.Delete
	case clusterpb.OperationKind_OPERATION_KIND_GET:
		return shard.Get
	}
	return 0
}
