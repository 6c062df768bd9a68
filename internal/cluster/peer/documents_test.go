package peer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/internal/cluster/peer"
	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/internal/stub"
	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
)

// joined is engines that are one cluster over the network. What they know of the indices they share in memory.
type joined struct {
	records.Memory

	mu      sync.Mutex
	epoch   uint64
	nodes   []*joinedNode
	members []ring.Member
}

type joinedNode struct {
	*shards
	*node
	cluster *joined
}

// Commit implements records.Repository.
func (j *joined) Commit(ctx context.Context, base uint64, change records.Change) (uint64, error) {
	revision, err := j.Memory.Commit(ctx, base, change)
	if err == nil {
		j.mu.Lock()
		nodes := slices.Clone(j.nodes)
		j.mu.Unlock()
		for _, n := range nodes {
			go n.Reload(context.Background()) //nolint:errcheck // from memory
		}
	}
	return revision, err
}

func nodeOf(m ring.Member) shard.Node { return shard.Node{ID: m.ID, Incarnation: m.Incarnation} }

func (j *joined) find(n shard.Node) (ring.Member, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := slices.IndexFunc(j.members, func(m ring.Member) bool { return nodeOf(m) == n })
	if i < 0 {
		return ring.Member{}, false
	}
	return j.members[i], true
}

func (j *joined) setMembers(members []ring.Member) {
	j.mu.Lock()
	j.members = members
	j.epoch++
	nodes := slices.Clone(j.nodes)
	j.mu.Unlock()
	for _, n := range nodes {
		n.peers.Update(members)
		n.server.Update(members)
		n.MembersChanged()
	}
}

func (j *joined) Members() stub.Members {
	j.mu.Lock()
	defer j.mu.Unlock()
	m := stub.Members{Epoch: j.epoch}
	for _, member := range j.members {
		m.Nodes = append(m.Nodes, nodeOf(member))
	}
	return m
}

func (j *joined) settled(ctx context.Context) error {
	j.mu.Lock()
	nodes := slices.Clone(j.nodes)
	j.mu.Unlock()
	var errs []error
	for _, n := range nodes {
		errs = append(errs, n.Reload(ctx))
	}
	return errors.Join(errs...)
}

// join starts a node of the cluster.
func (j *joined) join(t *testing.T, id string) *joinedNode {
	t.Helper()
	n := &joinedNode{cluster: j}
	// The engine needs the node, and the node answers by the engine.
	n.node = start(t, id, peer.Handlers{Shards: later{n}, Copies: later{n}}, failures)
	m := tasks.NewManager(id)
	e, err := stub.Open(t.Context(), stub.Config{
		Node: id, NodeName: "n", Tasks: m, PoolSize: 4, QueueSize: 100,
		Cluster: &stub.Cluster{Indices: j, Self: nodeOf(n.self), Members: j.Members, Nodes: peer.NewNodes(n.peers, j.find), Settled: j.settled},
		Shards: func(local shard.Transport) shard.Transport {
			return peer.NewShards(n.peers, local, func(id shard.ID) (copies []ring.Member) {
				for _, c := range n.Copies(id) {
					if member, ok := j.find(c); ok {
						copies = append(copies, member)
					}
				}
				return copies
			})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	n.shards = &shards{e, m}
	j.mu.Lock()
	j.nodes = append(j.nodes, n)
	j.mu.Unlock()
	j.setMembers(append(slices.Clone(j.members), n.self))
	return n
}

// later answers by the engine of a node that gets one.
type later struct{ of *joinedNode }

func (l later) Query(ctx context.Context, r *shard.QueryRequest, done func(*shard.QueryResult, error)) {
	l.of.Engine.Local().Query(ctx, r, done)
}

func (l later) Fetch(ctx context.Context, r *shard.FetchRequest, done func(*shard.FetchResult, error)) {
	l.of.Engine.Local().Fetch(ctx, r, done)
}

func (l later) Close(r shard.Reader) { l.of.Engine.Local().Close(r) }

func (l later) Write(ctx context.Context, r *shard.WriteRequest) (*shard.WriteResult, error) {
	return l.of.Engine.Holder().Write(ctx, r)
}

func (l later) Read(ctx context.Context, r *shard.ReadRequest) (*shard.Page, error) {
	return l.of.Engine.Holder().Read(ctx, r)
}

func (l later) Measure(ctx context.Context, ids []shard.ID) ([]shard.Size, error) {
	return l.of.Engine.Holder().Measure(ctx, ids)
}

// found is what a search through a node finds.
func (n *joinedNode) found(t *testing.T, index string) (documents, failed int, by []string) {
	t.Helper()
	answers, err := n.run(t, t.Context(), index+"?size=0", `{"track_total_hits":true}`, 0)
	if err != nil {
		t.Fatal(err)
	}
	var a struct {
		Shards struct {
			Failed   int
			Failures []struct{ Node string }
		} `json:"_shards"`
		Hits struct{ Total struct{ Value int } }
	}
	if err := json.Unmarshal([]byte(answers[0]), &a); err != nil {
		t.Fatal(err)
	}
	for _, f := range a.Shards.Failures {
		by = append(by, f.Node)
	}
	return a.Hits.Total.Value, a.Shards.Failed, by
}

func (n *joinedNode) bulk(t *testing.T, index, prefix string, documents int) {
	t.Helper()
	var body strings.Builder
	for i := range documents {
		fmt.Fprintf(&body, `{"index":{"_id":"%s%d"}}`+"\n"+`{"n":%d}`+"\n", prefix, i, i)
	}
	r, err := n.Bulk(index, []byte(body.String()))
	if err != nil || r.Errors {
		t.Fatalf("%+v, %v", r, err)
	}
}

// Engines on several nodes are one: what is written through any of them is found through all, also when one of them is gone.
func TestEnginesOverTheNetwork(t *testing.T) {
	j := new(joined)
	var nodes []*joinedNode
	for _, id := range []string{"a", "b", "c"} {
		nodes = append(nodes, j.join(t, id))
	}
	a, b, c := nodes[0], nodes[1], nodes[2]
	if err := a.CreateIndex("logs", []byte(`{"settings":{"number_of_shards":3,"number_of_replicas":1}}`)); err != nil {
		t.Fatal(err)
	}
	if err := b.CreateIndex("single", []byte(`{"settings":{"number_of_shards":3,"number_of_replicas":0}}`)); err != nil {
		t.Fatal(err)
	}
	for i, n := range nodes {
		n.bulk(t, "logs", n.self.ID, 20)
		n.bulk(t, "single", n.self.ID, 20)
		for _, through := range nodes {
			for _, index := range []string{"logs", "single"} {
				if got, failed, _ := through.found(t, index); got != 20*(i+1) || failed > 0 {
					t.Errorf("a search of %s through %s finds %d documents, %d shards failed; want %d", index, through.self.ID, got, failed, 20*(i+1))
				}
			}
		}
	}
	infos, err := c.Indices("logs,single")
	if err != nil {
		t.Fatal(err)
	}
	if c.Measure(t.Context(), infos); infos[0].Documents != 60 || infos[1].Documents != 60 || infos[0].Active() != 6 {
		t.Errorf("counted: %+v", infos)
	}
	_, err = c.PutDocument("logs", "a1", []byte(`{}`), true)
	if e, ok := errors.AsType[*stub.VersionConflictError](err); !ok || e.ID != "a1" {
		t.Errorf("created once more: %v", err)
	}
	if d, err := b.Document("single", "c7"); err != nil || !d.Found || string(d.Source) != `{"n":7}` {
		t.Errorf("a document: %+v, %v", d, err)
	}
	for _, through := range nodes { // conditions travel with what they are conditions of
		d, err := through.Document("logs", "a1")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			parameters map[string]string
			conflict   bool
		}{
			{map[string]string{"if_seq_no": strconv.FormatInt(d.SeqNo+1, 10), "if_primary_term": "1"}, true},
			{map[string]string{"version": strconv.FormatInt(d.Version, 10), "version_type": "external"}, true},
			{map[string]string{"version": strconv.FormatInt(d.Version, 10), "version_type": "external_gte"}, false},
		} {
			var when stub.Condition
			for name, value := range c.parameters {
				if err := when.Set(name, value); err != nil {
					t.Fatal(err)
				}
			}
			_, err := through.PutDocument("logs", "a1", d.Source, false, when)
			if _, conflict := errors.AsType[*stub.VersionConflictError](err); conflict != c.conflict || err != nil && !conflict {
				t.Errorf("through %s, when %v: %v; a conflict was wanted: %v", through.self.ID, c.parameters, err, c.conflict)
			}
		}
	}

	// A search that is cancelled stops everywhere.
	x, task := a.prepare(t, t.Context(), "single", `{"ext":{"stub":{"query_time":"1h"}}}`, 0)
	done := make(chan error, 1)
	go func() {
		_, err := x.Execute(task.Context(), task, search.Limits{})
		done <- err
	}()
	for _, n := range nodes {
		until(t, "every node works for the search", func() bool { return len(n.tasks.List(tasks.Filter{Parent: task.ID()})) == 1 })
	}
	begun := time.Now()
	task.Cancel(tasks.UserCause())
	if err := within(t, soon, "the search ends", done); err == nil {
		t.Error("a cancelled search answers")
	}
	task.End()
	x.Close()
	for _, n := range nodes {
		n.idle(t)
	}
	if took := time.Since(begun); took > time.Second {
		t.Errorf("a cancelled search stopped after %v", took)
	}

	// One of them is gone. At first nobody has noticed.
	b.stop(t)
	for _, n := range []*joinedNode{a, c} {
		if got, failed, _ := n.found(t, "logs"); got != 60 || failed > 0 {
			t.Errorf("without b, a search through %s finds %d documents, %d shards failed", n.self.ID, got, failed)
		}
		if got, failed, by := n.found(t, "single"); got >= 60 || failed != 1 || !reflect.DeepEqual(by, []string{"b"}) {
			t.Errorf("without b, a search of single copies through %s finds %d documents, %d shards failed, on %v", n.self.ID, got, failed, by)
		}
	}
	j.setMembers([]ring.Member{a.self, c.self})
	until(t, "all copies are there again, without b", func() bool {
		infos, err := a.Indices("logs")
		return err == nil && infos[0].Active() == 6 && !strings.Contains(fmt.Sprint(infos[0].Copies), "b")
	})
	j.setMembers([]ring.Member{c.self})
	until(t, "the last node has all shards", func() bool {
		infos, err := c.Indices("logs")
		return err == nil && infos[0].Active() == 3
	})
	if got, failed, _ := c.found(t, "logs"); got != 60 || failed > 0 {
		t.Errorf("the last node finds %d documents, %d shards failed", got, failed)
	}
}

// Nodes that are not there, or have no documents, say so.
func TestHoldersThatCannotAnswer(t *testing.T) {
	a, b := start(t, "a", peer.Handlers{}, failures), start(t, "b", peer.Handlers{}, failures)
	nodes := peer.NewNodes(a.peers, func(n shard.Node) (ring.Member, bool) { return b.self, n.ID == "b" })
	for id, want := range map[string]func(error) bool{
		"b": func(err error) bool { _, ok := errors.AsType[*peer.RefusedError](err); return ok },
		"c": func(err error) bool { _, ok := errors.AsType[*peer.UnreachableError](err); return ok },
	} {
		h := nodes.Holder(shard.Node{ID: id})
		_, write := h.Write(t.Context(), new(shard.WriteRequest))
		_, read := h.Read(t.Context(), new(shard.ReadRequest))
		_, measure := h.Measure(t.Context(), nil)
		if !want(write) || !want(read) || !want(measure) {
			t.Errorf("%s: %v, %v, %v", id, write, read, measure)
		}
	}
}

// What an operation is survives the way.
func TestOperationsTravel(t *testing.T) {
	got := make(chan *shard.WriteRequest, 1)
	b := start(t, "b", peer.Handlers{Copies: holds(func(r *shard.WriteRequest) (*shard.WriteResult, error) {
		got <- r
		return &shard.WriteResult{Taken: 2, Failed: 1, Outcomes: []shard.Outcome{
			{Result: "found", Version: 3, SeqNo: 4, Source: []byte("{}")}, {Err: &stub.DocumentMissingError{Index: "i", ID: "7"}},
		}}, nil
	})}, failures)
	a := start(t, "a", peer.Handlers{}, failures)
	nodes := peer.NewNodes(a.peers, func(shard.Node) (ring.Member, bool) { return b.self, true })
	sent := &shard.WriteRequest{Copy: shard.Copy{Shard: shard.ID{Index: "i", Number: 2}, UUID: "u", Number: 5}, Primary: 6}
	for k := shard.Index; k <= shard.Get; k++ {
		sent.Operations = append(sent.Operations, shard.Operation{Kind: k, ID: "\xff", Source: []byte("{}"), Version: 7, SeqNo: 8})
	}
	w, err := nodes.Holder(shard.Node{}).Write(t.Context(), sent)
	if err != nil {
		t.Fatal(err)
	}
	if r := within(t, soon, "it is asked", got); !reflect.DeepEqual(r, sent) {
		t.Errorf("asked %+v, want %+v", r, sent)
	}
	want := &shard.WriteResult{Taken: 2, Failed: 1, Outcomes: []shard.Outcome{
		{Result: "found", Version: 3, SeqNo: 4, Source: []byte("{}")}, {Err: &stub.DocumentMissingError{Index: "i", ID: "7"}},
	}}
	if !reflect.DeepEqual(w, want) {
		t.Errorf("answered %+v, want %+v", w, want)
	}
}

// holds writes with a function.
type holds func(*shard.WriteRequest) (*shard.WriteResult, error)

func (f holds) Write(_ context.Context, r *shard.WriteRequest) (*shard.WriteResult, error) {
	return f(r)
}
func (f holds) Read(context.Context, *shard.ReadRequest) (*shard.Page, error) {
	return new(shard.Page), nil
}
func (f holds) Measure(context.Context, []shard.ID) ([]shard.Size, error) { return nil, nil }
