package stub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/internal/stub"
	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/search"
)

// cluster is engines that are one, joined in memory.
type cluster struct {
	testing.TB
	memory   records.Memory
	watching sync.WaitGroup

	mu      sync.Mutex
	epoch   uint64
	lag     time.Duration // of the watch, and of calls
	nodes   map[shard.Node]*member
	cut     map[string]bool // nodes that nobody reaches, and that reach nobody
	members []shard.Node
}

// member is one engine of a cluster.
type member struct {
	*fixture
	cluster *cluster
	self    shard.Node
	frozen  *stub.Members // what it takes for the members, if that is not what they are
}

// clustered runs a test on fake time with a cluster of so many nodes, named a, b and so on.
func clustered(t *testing.T, nodes int, test func(c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{TB: t, nodes: make(map[shard.Node]*member), cut: make(map[string]bool), lag: time.Millisecond}
		t.Cleanup(c.watching.Wait)
		for i := range nodes {
			c.join(string(rune('a' + i)))
		}
		test(c)
	})
}

// join starts a node that becomes a member.
func (c *cluster) join(id string, configure ...func(*stub.Config)) *member {
	c.Helper()
	c.mu.Lock()
	n := &member{cluster: c, self: shard.Node{ID: id, Incarnation: itoa(len(c.nodes))}}
	c.mu.Unlock()
	n.fixture = newNode(c.TB, id, append(configure, func(s *stub.Config) {
		s.Cluster = &stub.Cluster{Indices: n, Self: n.self, Members: n.Members, Nodes: n, Settled: n.settled}
		s.Shards = func(local shard.Transport) shard.Transport { return &routing{n, local} }
	})...)
	c.mu.Lock()
	c.nodes[n.self] = n
	c.mu.Unlock()
	c.setMembers(append(slices.Clone(c.members), n.self))
	return n
}

// leave has a node be a member no longer.
func (c *cluster) leave(id string) {
	c.setMembers(slices.DeleteFunc(slices.Clone(c.members), func(n shard.Node) bool { return n.ID == id }))
}

// kill has a node be there no longer.
func (c *cluster) kill(id string) {
	c.isolate(id, true)
	c.leave(id)
}

func (c *cluster) isolate(id string, cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut[id] = cut
}

func (c *cluster) setMembers(now []shard.Node) {
	c.mu.Lock()
	c.members = now
	c.epoch++
	c.mu.Unlock()
	for _, n := range c.all() {
		n.engine.MembersChanged()
	}
}

// all returns the nodes that there are, in the order of their names.
func (c *cluster) all() []*member {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*member
	for _, n := range c.nodes {
		if !c.cut[n.self.ID] {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b *member) int { return strings.Compare(a.self.ID, b.self.ID) })
	return all
}

// node returns the newest node of a name.
func (c *cluster) node(id string) *member {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found *member
	for _, n := range c.nodes {
		if n.self.ID == id && (found == nil || n.self.Incarnation > found.self.Incarnation) {
			found = n
		}
	}
	return found
}

// quiet lets some time pass, in which everything comes to rest.
func (c *cluster) quiet() {
	time.Sleep(2 * time.Second)
	synctest.Wait()
}

// Members is the members as a node sees them.
func (n *member) Members() stub.Members {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	if n.frozen != nil {
		return *n.frozen
	}
	return stub.Members{Epoch: n.cluster.epoch, Nodes: slices.Clone(n.cluster.members)}
}

// Load implements records.Repository.
func (n *member) Load(ctx context.Context) (records.Set, error) { return n.cluster.memory.Load(ctx) }

// Commit implements records.Repository; the others hear of it a little later.
func (n *member) Commit(ctx context.Context, base uint64, change records.Change) (uint64, error) {
	c := n.cluster
	c.mu.Lock()
	lag, cut := c.lag, c.cut[n.self.ID]
	c.mu.Unlock()
	if cut {
		return 0, &records.UnavailableError{Cause: errors.New("cut off")}
	}
	time.Sleep(lag)
	revision, err := c.memory.Commit(ctx, base, change)
	if err != nil {
		return 0, err
	}
	for _, other := range c.all() {
		if other != n {
			c.watching.Go(func() {
				time.Sleep(lag)
				_ = other.engine.Reload(context.Background())
			})
		}
	}
	return revision, nil
}

// settled has all others know what there is.
func (n *member) settled(ctx context.Context) error {
	var errs []error
	for _, other := range n.cluster.all() {
		if other != n {
			errs = append(errs, other.engine.Reload(ctx))
		}
	}
	return errors.Join(errs...)
}

// Holder implements shard.Nodes.
func (n *member) Holder(to shard.Node) shard.Holder { return &remote{n, to} }

var errUnreachable = errors.New("cannot be reached")

// reach returns another node after a while, if it can be reached.
func (n *member) reach(ctx context.Context, to shard.Node) (*member, error) {
	c := n.cluster
	c.mu.Lock()
	lag, other := c.lag, c.nodes[to]
	cut := c.cut[n.self.ID] || c.cut[to.ID]
	c.mu.Unlock()
	select {
	case <-time.After(lag):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if cut || other == nil {
		return nil, errUnreachable
	}
	return other, nil
}

// travel is what becomes of an error on its way.
func travel(err error) error {
	if err == nil || errors.Is(err, errUnreachable) {
		return err
	}
	return stub.Failures{}.Restore(stub.Failures{}.Describe(err))
}

// remote is the holder on another node.
type remote struct {
	from *member
	to   shard.Node
}

func (r *remote) Write(ctx context.Context, w *shard.WriteRequest) (*shard.WriteResult, error) {
	n, err := r.from.reach(ctx, r.to)
	if err != nil {
		return nil, err
	}
	result, err := n.engine.Holder().Write(ctx, w)
	if err != nil {
		return nil, travel(err)
	}
	for i := range result.Outcomes {
		result.Outcomes[i].Err = travel(result.Outcomes[i].Err)
	}
	return result, nil
}

func (r *remote) Read(ctx context.Context, q *shard.ReadRequest) (*shard.Page, error) {
	n, err := r.from.reach(ctx, r.to)
	if err != nil {
		return nil, err
	}
	p, err := n.engine.Holder().Read(ctx, q)
	for range 3 { // it is large: smaller messages overtake it
		if _, err := r.from.reach(ctx, r.to); err != nil {
			return nil, err
		}
	}
	return p, travel(err)
}

func (r *remote) Measure(ctx context.Context, shards []shard.ID) ([]shard.Size, error) {
	n, err := r.from.reach(ctx, r.to)
	if err != nil {
		return nil, err
	}
	return n.engine.Holder().Measure(ctx, shards)
}

// routing is the transport between the nodes: a copy that is here first, and then the others.
type routing struct {
	*member
	local shard.Transport
}

// placed is a reader and where it is.
type placedReader struct {
	on     *member // nil: here
	reader shard.Reader
}

func (r *routing) Query(ctx context.Context, q *shard.QueryRequest, done func(*shard.QueryResult, error)) {
	ask(r, ctx, q.Shard, q.Reader, done, func(on *member, t shard.Transport, reader shard.Reader, done func(*shard.QueryResult, error)) {
		copied := *q
		copied.Reader = reader
		t.Query(ctx, &copied, func(result *shard.QueryResult, err error) {
			if err == nil {
				result.Reader = &placedReader{on, result.Reader}
				if on != nil {
					result.Node = on.self.ID
				}
			}
			done(result, err)
		})
	})
}

func (r *routing) Fetch(ctx context.Context, q *shard.FetchRequest, done func(*shard.FetchResult, error)) {
	ask(r, ctx, q.Shard, q.Reader, done, func(_ *member, t shard.Transport, reader shard.Reader, done func(*shard.FetchResult, error)) {
		copied := *q
		copied.Reader = reader
		t.Fetch(ctx, &copied, done)
	})
}

func (r *routing) Close(shard.Reader) {}

func ask[T any](r *routing, ctx context.Context, id shard.ID, reader shard.Reader, done func(T, error),
	call func(on *member, t shard.Transport, reader shard.Reader, done func(T, error)),
) {
	if p, ok := reader.(*placedReader); ok {
		if p.on == nil {
			call(nil, r.local, p.reader, done)
		} else {
			call(p.on, p.on.engine.Local(), p.reader, done)
		}
		return
	}
	copies := r.engine.Copies(id)
	if slices.Contains(copies, r.self) {
		call(nil, r.local, nil, done)
		return
	}
	r.cluster.watching.Go(func() {
		var none T
		var err error = &search.ShardError{Type: "no_shard_available_action_exception", Reason: "no copy", Status: 503}
		for _, to := range copies {
			var n *member
			if n, err = r.reach(ctx, to); err != nil {
				err = &shard.NodeError{Node: to.ID, Err: err}
				continue
			}
			call(n, n.engine.Local(), nil, func(result T, err error) {
				if err != nil {
					err = &shard.NodeError{Node: to.ID, Err: travel(err)}
				}
				done(result, err)
			})
			return
		}
		done(none, err)
	})
}

// found is how many documents a search through a node finds, which must not lack a shard.
func (n *member) found(index string) int {
	n.Helper()
	a := parse(n, n.search(index+"?size=10000", `{"track_total_hits":true}`))
	if a.Shards.Failed > 0 || len(a.Hits.Hits) != a.Hits.Total.Value {
		n.Errorf("a search through %s has %d failed shards, and %d hits of %d", n.self.ID, a.Shards.Failed, len(a.Hits.Hits), a.Hits.Total.Value)
	}
	return a.Hits.Total.Value
}

func (n *member) info(index string) stub.IndexInfo {
	n.Helper()
	infos, err := n.engine.Indices(index)
	if err != nil {
		n.Fatal(err)
	}
	n.engine.Measure(n.Context(), infos)
	return infos[0]
}

// bulk stores so many documents and fails unless all are stored.
func (n *member) bulk(index, prefix string, documents int) {
	n.Helper()
	var body strings.Builder
	for i := range documents {
		fmt.Fprintf(&body, `{"index":{"_id":"%s%d"}}`+"\n"+`{"n":%d}`+"\n", prefix, i, i)
	}
	r, err := n.engine.Bulk(index, []byte(body.String()))
	if err != nil {
		n.Fatal(err)
	}
	for _, item := range r.Items {
		if item.Err != nil {
			n.Fatalf("%s: %v", item.ID, item.Err)
		}
	}
}

// everywhere checks what all nodes find.
func (c *cluster) everywhere(index string, documents int) {
	c.Helper()
	for _, n := range c.all() {
		if got := n.found(index); got != documents {
			c.Errorf("a search through %s finds %d documents, want %d", n.self.ID, got, documents)
		}
		if x := n.info(index); x.Documents != documents {
			c.Errorf("%s counts %d documents, want %d", n.self.ID, x.Documents, documents)
		}
	}
}
