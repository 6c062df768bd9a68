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
	"github.com/wlmserver/wlmserver/tasks"
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

func TestCopiesAreSpread(t *testing.T) {
	clustered(t, 3, func(c *cluster) {
		c.node("b").create("logs", `{"settings":{"number_of_shards":6,"number_of_replicas":1}}`)
		c.quiet()
		for _, n := range c.all() {
			x := n.info("logs")
			if x.Active() != 12 || x.ActivePrimaries() != 6 || x.Unassigned() != 0 || x.Initializing() != 0 {
				c.Fatalf("%s sees %d active copies, %d primaries, %d unassigned: %v", n.self.ID, x.Active(), x.ActivePrimaries(), x.Unassigned(), x.Copies)
			}
			copies, primaries := make(map[string]int), make(map[string]int)
			for number, of := range x.Copies {
				if len(of) != 2 || of[0].Node == of[1].Node {
					c.Errorf("the copies of the shard %d: %v", number, of)
				}
				primaries[of[0].Node]++
				for _, copy := range of {
					copies[copy.Node]++
				}
			}
			for _, id := range []string{"a", "b", "c"} {
				if copies[id] != 4 || primaries[id] != 2 {
					c.Errorf("%s has %d copies and %d primaries: %v", id, copies[id], primaries[id], x.Copies)
				}
			}
		}
	})
}

func TestWhatIsWrittenIsFoundThroughAnyNode(t *testing.T) {
	for _, replicas := range []int{0, 1, 2} {
		t.Run(itoa(replicas), func(t *testing.T) {
			clustered(t, 3, func(c *cluster) {
				c.node("a").create("logs", fmt.Sprintf(`{"settings":{"number_of_shards":5,"number_of_replicas":%d}}`, replicas))
				for i, n := range c.all() {
					n.bulk("logs", n.self.ID, 20)
					c.everywhere("logs", 20*(i+1))
				}
				// Made as it is written to.
				c.node("c").bulk("auto", "x", 3)
				c.everywhere("auto", 3)

				a, b := c.node("a"), c.node("b")
				r := a.put("logs", "b7", `{"n":"again"}`)
				if r.Version != 2 || r.Result != stub.Updated || r.Shards != (stub.WriteShards{Total: 1 + replicas, Successful: 1 + replicas}) {
					c.Errorf("a second version is %+v", r)
				}
				if r, err := b.engine.UpdateDocument("logs", "b7", []byte(`{"doc":{"m":1}}`)); err != nil || r.Version != 3 {
					c.Errorf("an update: %+v, %v", r, err)
				}
				if r, err := b.engine.UpdateDocument("logs", "b7", []byte(`{"doc":{"m":1}}`)); err != nil || r.Result != stub.Noop || r.Shards != (stub.WriteShards{}) {
					c.Errorf("an update of nothing: %+v, %v", r, err)
				}
				if r, err := b.engine.DeleteDocument("logs", "a1"); err != nil || r.Result != stub.Deleted || r.Version != 2 {
					c.Errorf("a deletion: %+v, %v", r, err)
				}
				if r, err := a.engine.DeleteDocument("logs", "a1"); err != nil || r.Result != stub.NotFound {
					c.Errorf("a second deletion: %+v, %v", r, err)
				}
				c.everywhere("logs", 59)
				for _, n := range c.all() {
					d, err := n.engine.Document("logs", "b7")
					if err != nil || !d.Found || d.Version != 3 || string(d.Source) != `{"n":"again","m":1}` {
						c.Errorf("%s has %+v %s, %v", n.self.ID, d, d.Source, err)
					}
					if d, err := n.engine.Document("logs", "a1"); err != nil || d.Found {
						c.Errorf("%s still has %+v, %v", n.self.ID, d, err)
					}
					_, err = n.engine.PutDocument("logs", "b7", []byte(`{}`), true)
					if e, ok := errors.AsType[*stub.VersionConflictError](err); !ok || e.ID != "b7" || e.Version != 3 {
						c.Errorf("%s creates it once more: %v", n.self.ID, err)
					}
					_, err = n.engine.UpdateDocument("logs", "nosuch", []byte(`{"doc":{}}`))
					if _, ok := errors.AsType[*stub.DocumentMissingError](err); !ok {
						c.Errorf("%s updates what is not there: %v", n.self.ID, err)
					}
				}
			})
		})
	}
}

func TestIndicesAreTheSameEverywhere(t *testing.T) {
	clustered(t, 3, func(c *cluster) {
		a, b := c.node("a"), c.node("b")
		a.create("logs", `{"settings":{"number_of_shards":2,"number_of_replicas":0,"index.stub.query_time":"5ms","analysis":{"x":"<&>"}},
			"mappings":{"_meta":{"x":"<b>"},"properties":{"n":{"type":"long"}}}}`)
		same := func(what string) {
			c.Helper()
			want := fmt.Sprint(a.info("logs"))
			for _, n := range c.all() {
				if got := fmt.Sprint(n.info("logs")); got != want {
					c.Errorf("%s: %s has\n%s, want\n%s", what, n.self.ID, got, want)
				}
			}
		}
		same("made")
		if _, err := b.engine.PutDocument("logs", "1", []byte(`{"n":"no number"}`), false); err == nil {
			c.Error("what is mapped to numbers took another text")
		}
		err := b.engine.CreateIndex("logs", nil)
		if e, ok := errors.AsType[*stub.IndexExistsError](err); !ok || e.UUID != a.info("logs").UUID {
			c.Errorf("made once more: %v", err)
		}
		begun := time.Now()
		b.search("logs", "")
		if took := time.Since(begun); took < 5*time.Millisecond {
			c.Errorf("a search took %v, though the index says more", took)
		}
		if err := b.engine.ChangeSettings("logs", stub.Expansion{}, []byte(`{"number_of_replicas":2,"index.stub.query_time":null}`)); err != nil {
			c.Fatal(err)
		}
		c.quiet()
		same("changed")
		if x := a.info("logs"); x.Active() != 6 {
			c.Errorf("of two shards with two replicas each, %d copies are active", x.Active())
		}
		if err := b.engine.ChangeSettings("logs", stub.Expansion{}, []byte(`{"number_of_replicas":0}`)); err != nil {
			c.Fatal(err)
		}
		same("without replicas")
		if x := a.info("logs"); x.Active() != 2 {
			c.Errorf("of two shards without replicas, %d copies are active", x.Active())
		}
		if _, err := b.engine.SetClosed("logs", stub.Expansion{}, true); err != nil {
			c.Fatal(err)
		}
		for _, n := range c.all() {
			if _, ok := errors.AsType[*stub.IndexClosedError](n.searchFails("logs", "")); !ok {
				c.Errorf("a search through %s of a closed index works", n.self.ID)
			}
		}
		if err := b.engine.DeleteIndex("logs"); err != nil {
			c.Fatal(err)
		}
		for _, n := range c.all() {
			if !isIndexNotFound(n.searchFails("logs", ""), "logs") {
				c.Errorf("a search through %s of a deleted index works", n.self.ID)
			}
		}
	})
}

func TestANodeThatIsGoneMeansAnotherCopy(t *testing.T) {
	clustered(t, 3, func(c *cluster) {
		c.node("a").create("logs", `{"settings":{"number_of_shards":3,"number_of_replicas":1}}`)
		c.node("b").bulk("logs", "x", 50)
		c.isolate("b", true)
		c.everywhere("logs", 50) // nobody has noticed yet
		c.leave("b")
		c.quiet()
		c.everywhere("logs", 50)
		if x := c.node("a").info("logs"); x.Active() != 6 || x.Unassigned() != 0 {
			c.Fatalf("of three shards on two nodes, %d copies are active: %v", x.Active(), x.Copies)
		}
		c.node("c").bulk("logs", "y", 50)
		c.kill("a")
		c.quiet()
		c.everywhere("logs", 100)
		if x := c.node("c").info("logs"); x.Active() != 3 || x.Unassigned() != 3 {
			c.Errorf("of three shards on one node, %d copies are active, %d missing: %v", x.Active(), x.Unassigned(), x.Copies)
		}
		c.node("c").bulk("logs", "z", 50)
		// Another node of the name of one that was there before.
		c.join("a")
		c.quiet()
		c.everywhere("logs", 150)
		c.kill("c")
		c.quiet()
		c.everywhere("logs", 150)
	})
}

func TestWithoutReplicasANodeTakesItsShardsAlong(t *testing.T) {
	clustered(t, 3, func(c *cluster) {
		c.node("a").create("logs", `{"settings":{"number_of_shards":3,"number_of_replicas":0}}`)
		a := c.node("a")
		a.bulk("logs", "x", 60)
		c.isolate("b", true)
		got := parse(c, a.search("logs", ""))
		if got.Shards.Total != 3 || got.Shards.Failed != 1 || len(got.Shards.Failures) != 1 || got.Shards.Failures[0].Node != "b" {
			c.Errorf("a search without one of three nodes: %+v", got.Shards)
		}
		p, ok := errors.AsType[*search.PhaseError](a.searchFails("logs?allow_partial_search_results=false", ""))
		if !ok || len(p.Failures) != 1 || p.Failures[0].Node != "b" || !errors.Is(p.Failures[0].Err, errUnreachable) {
			c.Errorf("a search that takes nothing less than all: %+v", p)
		}
		left := a.info("logs").Documents
		c.leave("b")
		c.quiet()
		if x := a.info("logs"); x.Active() != 3 || x.Documents != left || left == 60 {
			c.Errorf("then there are %d copies with %d documents, want the %d of two shards", x.Active(), x.Documents, left)
		}
		c.everywhere("logs", left)
		a.bulk("logs", "x", 60)
		c.everywhere("logs", 60)
	})
}

func TestAChangeWaitsForThePrimary(t *testing.T) {
	clustered(t, 3, func(c *cluster) {
		a := c.node("a")
		a.create("logs", `{"settings":{"number_of_shards":3,"number_of_replicas":1}}`)
		c.isolate("b", true)
		time.AfterFunc(10*time.Second, func() { c.leave("b") })
		begun := time.Now()
		a.bulk("logs", "x", 30)
		if took := time.Since(begun); took < 10*time.Second || took > 11*time.Second {
			c.Errorf("documents of a shard without a primary were stored after %v, want when there is one again", took)
		}
		c.everywhere("logs", 30)

		c.isolate("c", true)
		begun = time.Now()
		r, err := a.engine.Bulk("logs", []byte(strings.Repeat(`{"index":{}}`+"\n{}\n", 30)))
		refused := 0
		for _, item := range r.Items {
			if _, ok := errors.AsType[*stub.UnavailableShardError](item.Err); ok {
				refused++
			} else if item.Err != nil {
				c.Errorf("%+v", item.Err)
			}
		}
		if took := time.Since(begun); err != nil || refused == 0 || refused == 30 || took > 31*time.Second {
			c.Errorf("without the primaries of some shards, %d of 30 documents are refused after %v, %v", refused, took, err)
		}
	})
}

// A node that stops takes no changes any more; they wait for the next primary.
func TestAChangeDoesNotEndOnANodeThatStops(t *testing.T) {
	clustered(t, 3, func(c *cluster) {
		a := c.node("a")
		a.create("logs", `{"settings":{"number_of_shards":3,"number_of_replicas":1}}`)
		c.node("b").engine.Close()
		time.AfterFunc(3*time.Second, func() { c.leave("b") })
		begun := time.Now()
		a.bulk("logs", "x", 30)
		if took := time.Since(begun); took < 3*time.Second || took > 4*time.Second {
			c.Errorf("documents were stored after %v, want when the node has left", took)
		}
		c.isolate("b", true)
		c.everywhere("logs", 30)
	})
}

func TestAReplicaThatMissesAChangeIsGivenUp(t *testing.T) {
	clustered(t, 3, func(c *cluster) {
		a := c.node("a")
		a.create("logs", `{"settings":{"number_of_replicas":2}}`)
		c.quiet()
		primary := c.node(a.info("logs").Copies[0][0].Node)
		replica := a.info("logs").Copies[0][1].Node
		c.isolate(replica, true)
		r := primary.put("logs", "1", `{}`)
		if r.Shards != (stub.WriteShards{Total: 3, Successful: 2, Failed: 1}) {
			c.Errorf("a change that one of two replicas did not take: %+v", r.Shards)
		}
		c.everywhere("logs", 1)
		c.isolate(replica, false)
		if err := c.node(replica).engine.Reload(c.Context()); err != nil {
			c.Fatal(err)
		}
		c.quiet()
		c.everywhere("logs", 1)
		if x := a.info("logs"); x.Active() != 3 {
			c.Errorf("once it is back there are %d copies: %v", x.Active(), x.Copies)
		}
	})
}

// A change that nobody waits for any more reaches the replicas all the same: they are not given up for that.
func TestAChangeOutlivesWhoAskedForIt(t *testing.T) {
	clustered(t, 2, func(c *cluster) {
		a := c.node("a")
		a.create("logs", `{"settings":{"number_of_replicas":1}}`)
		x := a.info("logs")
		c.mu.Lock()
		c.lag = time.Second
		c.mu.Unlock()
		ctx, cancel := context.WithTimeout(c.Context(), time.Second/2)
		defer cancel()
		w, err := c.node(x.Copies[0][0].Node).engine.Holder().Write(ctx, &shard.WriteRequest{
			Copy: shard.Copy{Shard: shard.ID{Index: "logs"}, UUID: x.UUID, Number: 1}, Operations: []shard.Operation{{Kind: shard.Index, ID: "1", Source: []byte("{}")}},
		})
		if err != nil || w.Taken != 2 || ctx.Err() == nil {
			c.Errorf("%+v, %v", w, err)
		}
		if x := a.info("logs"); x.Active() != 2 {
			c.Errorf("there are the copies %v", x.Copies)
		}
		c.everywhere("logs", 1)
	})
}

// A shard that is too slow on another node is told of with that node.
func TestATimeoutNamesTheNode(t *testing.T) {
	clustered(t, 2, func(c *cluster) {
		a := c.node("a")
		a.create("logs", `{"settings":{"number_of_replicas":0}}`)
		holder := a.info("logs").Copies[0][0].Node
		for _, n := range c.all() {
			err := n.searchFails("logs?allow_partial_search_results=false", `{"timeout":"5ms","ext":{"stub":{"query_time":"1s"}}}`)
			if p, ok := errors.AsType[*search.PhaseError](err); !ok || p.Failures[0].Node != holder {
				c.Errorf("through %s: %+v, want a failure of %s", n.self.ID, err, holder)
			}
		}
	})
}

func TestAPrimaryThatWasReplacedTakesNothing(t *testing.T) {
	clustered(t, 3, func(c *cluster) {
		c.node("a").create("logs", `{"settings":{"number_of_replicas":1}}`)
		c.quiet()
		old := c.node(c.node("a").info("logs").Copies[0][0].Node)
		c.isolate(old.self.ID, true)
		c.leave(old.self.ID)
		c.quiet()
		next := c.all()[0]
		next.put("logs", "1", `{}`)
		c.isolate(old.self.ID, false)
		// It has not heard of anything, and others may still take it for what it was.
		x := next.info("logs")
		_, err := old.engine.Holder().Write(c.Context(), &shard.WriteRequest{
			Copy: shard.Copy{Shard: shard.ID{Index: "logs"}, UUID: x.UUID, Number: 1}, Operations: []shard.Operation{{Kind: shard.Index, ID: "2", Source: []byte("{}")}},
		})
		if _, ok := errors.AsType[*stub.StaleCopyError](err); !ok {
			c.Errorf("a primary that is none any more: %v", err)
		}
		if got := next.found("logs"); got != 1 {
			c.Errorf("then there are %d documents", got)
		}
	})
}

// Nodes come and go while documents are written through all that are there. What was acknowledged stays.
func TestDocumentsStayWhileNodesComeAndGo(t *testing.T) {
	clustered(t, 3, func(c *cluster) {
		c.node("a").create("logs", `{"settings":{"number_of_shards":4,"number_of_replicas":1}}`)
		c.quiet()
		stop := make(chan struct{})
		var mu sync.Mutex
		stored := make(map[string]int64)
		var writing sync.WaitGroup
		for w := range 6 {
			writing.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					case <-time.After(time.Millisecond):
					}
					all := c.all()
					n := all[(w+i)%len(all)]
					id := fmt.Sprintf("w%d-%d", w, i%200)
					if i%7 == 3 {
						if _, err := n.engine.DeleteDocument("logs", id); err == nil {
							mu.Lock()
							delete(stored, id)
							mu.Unlock()
						}
						continue
					}
					r, err := n.engine.PutDocument("logs", id, fmt.Appendf(nil, `{"i":%d}`, i), false)
					mu.Lock()
					if err == nil {
						stored[id] = int64(i)
					} else {
						delete(stored, id) // not known
					}
					_ = r
					mu.Unlock()
				}
			})
		}
		for round := range 6 {
			gone := string(rune('a' + round%3))
			if round%2 == 0 {
				c.leave(gone) // it still answers
			} else {
				c.kill(gone)
			}
			c.quiet()
			c.isolate(gone, true)
			c.quiet()
			c.isolate(gone, false)
			c.mu.Lock()
			for n, m := range c.nodes {
				if n.ID == gone {
					delete(c.nodes, n)
					c.watching.Go(func() { m.engine.Close() })
				}
			}
			c.mu.Unlock()
			c.join(gone)
			c.quiet()
		}
		close(stop)
		writing.Wait()
		c.quiet()
		if x := c.node("a").info("logs"); x.Active() != 8 {
			c.Errorf("in the end there are %d copies: %v", x.Active(), x.Copies)
		}
		for _, n := range c.all() {
			for id, i := range stored {
				d, err := n.engine.Document("logs", id)
				if err != nil || !d.Found || string(d.Source) != fmt.Sprintf(`{"i":%d}`, i) {
					c.Fatalf("%s: %s was stored with %d; there is %+v %s, %v", n.self.ID, id, i, d, d.Source, err)
				}
			}
		}
		if len(stored) < 300 {
			c.Errorf("only %d documents were stored", len(stored))
		}
	})
}

func TestCancelStopsTheWorkOnOtherNodes(t *testing.T) {
	clustered(t, 3, func(c *cluster) {
		a := c.node("a")
		a.create("logs", `{"settings":{"number_of_shards":6,"number_of_replicas":0}}`)
		o := a.start(request("logs?max_concurrent_shard_requests=6", `{"ext":{"stub":{"query_time":"1h"}}}`), search.Limits{})
		time.Sleep(time.Second)
		synctest.Wait()
		parent := o.task.ID()
		for _, n := range c.all() {
			below := n.tasks.List(tasks.Filter{Parent: parent})
			if len(below) != 2 || below[0].Parent().String() != parent.String() || below[0].Parent().Node != "a" {
				c.Errorf("%s has the tasks %v of the search %v", n.self.ID, below, parent)
			}
		}
		begun := time.Now()
		o.task.Cancel(tasks.UserCause())
		<-o.done
		if took := time.Since(begun); took > time.Second || o.err == nil {
			c.Errorf("ends after %v with %v", took, o.err)
		}
		for _, n := range c.all() {
			if left := n.tasks.Len(); left != 0 {
				c.Errorf("%d tasks go on at %s", left, n.self.ID)
			}
		}
	})
}

// A node that has not heard of new members does not undo what the others have made of them.
func TestOldMembersUndoNothing(t *testing.T) {
	clustered(t, 2, func(c *cluster) {
		a, b := c.node("a"), c.node("b")
		old := a.Members()
		a.create("logs", `{"settings":{"number_of_shards":2,"number_of_replicas":2}}`)
		a.bulk("logs", "x", 20)
		b.cluster.mu.Lock()
		b.frozen = &old
		b.cluster.mu.Unlock()
		c.join("c")
		c.quiet()
		want := fmt.Sprint(a.info("logs").Copies)
		b.engine.MembersChanged()
		c.quiet()
		if got := fmt.Sprint(a.info("logs").Copies); got != want || a.info("logs").Active() != 6 {
			c.Errorf("the copies are %s, were %s", got, want)
		}
		c.everywhere("logs", 20)
	})
}

func TestAScrollStaysWhereItBegan(t *testing.T) {
	clustered(t, 2, func(c *cluster) {
		a := c.node("a")
		a.create("logs", `{"settings":{"number_of_shards":2,"number_of_replicas":0}}`)
		a.bulk("logs", "x", 20)
		r := request("logs?size=7", `{"sort":"n"}`)
		r.ScrollKeepAlive, r.ScrollID = time.Hour, "the-scroll"
		s, err := a.prepare(r)
		if err != nil {
			c.Fatal(err)
		}
		defer s.end()
		var ids []string
		for range 4 {
			page, err := s.run(search.Limits{})
			if err != nil {
				c.Fatal(err)
			}
			ids = append(ids, parse(c, page).ids()...)
			a.bulk("logs", "y", 20) // what comes later is not seen
		}
		slices.Sort(ids)
		if len(ids) != 20 || len(slices.Compact(ids)) != 20 || strings.Contains(strings.Join(ids, ","), "y") {
			c.Errorf("pages of %v", ids)
		}
	})
}
