package tier_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/cluster/tier"
	"github.com/wlmserver/wlmserver/internal/cluster/tier/tiertest"
	"github.com/wlmserver/wlmserver/internal/sharedtier"
	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/wlm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const lease = 15 * time.Second

// cluster is several nodes in memory, with one set of groups.
type cluster struct {
	testing.TB
	registry *groups.Registry
	network  *tiertest.Network
	nodes    map[string]*node // that are alive, by id
	epoch    uint64
	members  []ring.Member

	running, most atomic.Int64 // searches that run on live nodes, in the shared tier
}

// node is one member.
type node struct {
	*wlm.Admission
	cluster *cluster
	member  ring.Member
	tier    *tier.Tier
	live    atomic.Bool // its membership holds
	lapses  atomic.Bool // it ends just when it has been found to hold
	revised atomic.Uint64
	dead    atomic.Bool

	learning sync.Mutex
	knows    uint64 // the epoch of its ring
}

func (n *node) Revision() uint64 { return n.revised.Load() }

func (n *node) Live() bool {
	if n.lapses.CompareAndSwap(true, false) {
		return n.live.Swap(false)
	}
	return n.live.Load()
}

func (n *node) Await(ctx context.Context, revision uint64) error {
	<-ctx.Done()
	return ctx.Err()
}

func newCluster(t testing.TB, ids ...string) *cluster {
	t.Helper()
	registry, err := groups.Open(context.Background(), new(records.Memory))
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{TB: t, registry: registry, network: tiertest.NewNetwork(), nodes: map[string]*node{}}
	registry.OnChange(func(_, now *groups.Snapshot) {
		for _, n := range c.nodes {
			n.GroupsChanged(now)
		}
	})
	for _, id := range ids {
		c.add(id)
	}
	c.publish()
	synctest.Wait()
	return c
}

// add starts a node. publish makes it known.
func (c *cluster) add(id string) *node { return c.addAs(id, ring.Since) }

// addAs is add for a node that is compatible with a version.
func (c *cluster) addAs(id, version string) *node {
	c.epoch++ // a new incarnation each time
	n := &node{cluster: c, member: ring.Member{ID: id, Incarnation: strconv.FormatUint(c.epoch, 10), Name: id, Version: version}}
	n.live.Store(true)
	n.Admission = wlm.New(
		wlm.WithVerification(func(violation string) { c.Errorf("node %s: %s", id, violation) }),
		wlm.WithLink(func(a *wlm.Admission) wlm.Link {
			n.tier = tier.New(tier.Config{Self: n.member, Lease: lease, Metadata: n, Dialer: c.network.Dialer(n.member), Log: zerolog.Nop()}, a)
			return n.tier
		}))
	n.GroupsChanged(c.registry.Snapshot())
	c.network.Attach(n.member, n.tier)
	c.nodes[id] = n
	c.members = append(c.members, n.member)
	return n
}

// kill is the end of a node's process. Its searches are over for all that the others can see.
func (c *cluster) kill(id string) {
	n := c.nodes[id]
	delete(c.nodes, id)
	n.dead.Store(true)
	c.network.Detach(n.member)
	n.tier.Close()
	c.members = slices.DeleteFunc(c.members, func(m ring.Member) bool { return m == n.member })
}

// ring is the next epoch's.
func (c *cluster) ring() *ring.Ring {
	c.epoch++
	return ring.New(c.epoch, slices.Clone(c.members))
}

// learn lets a node know of a ring, unless it knows a later one.
func (n *node) learn(r *ring.Ring) {
	n.learning.Lock()
	defer n.learning.Unlock()
	if r.Epoch() > n.knows {
		n.knows = r.Epoch()
		n.tier.SetRing(r)
	}
}

// publish makes a ring of the members known to all at once.
func (c *cluster) publish() {
	r := c.ring()
	for _, id := range slices.Sorted(maps.Keys(c.nodes)) {
		c.nodes[id].learn(r)
	}
}

// create makes a group and gives its id.
func (c *cluster) create(name, blocks string) string {
	c.Helper()
	p, err := groups.ParsePatch(fmt.Appendf(nil, `{"name":%q,"resiliency_mode":"enforced","resource_limits":{"cpu":0.01},%s}`, name, blocks))
	if err != nil {
		c.Fatal(err)
	}
	g, err := c.registry.Create(context.Background(), p)
	if err != nil {
		c.Fatal(err)
	}
	return g.ID
}

// shared is the block of a group that only the shared tier limits.
func shared(limit, size int) string {
	return fmt.Sprintf(`"throttling":{"attribute":"group","shared_limit":%d},"queue":{"size_per_bucket":%d}`, limit, size)
}

func bucketOf(group string) wlm.BucketKey {
	return wlm.BucketKey{Group: group, Attribute: groups.ByGroup}
}

// owner is the node that owns a group's bucket, other one that does not.
func (c *cluster) owner(group string) (owner, other *node) {
	m, _ := ring.New(1, c.members).Owner(bucketOf(group).String())
	for _, id := range slices.Sorted(maps.Keys(c.nodes)) {
		if id != m.ID {
			other = c.nodes[id]
		}
	}
	return c.nodes[m.ID], other
}

// search is one search in a goroutine of its own.
type search struct {
	node   *node
	cancel context.CancelCauseFunc
	finish chan struct{} // closed by the test: it may end
	end    chan struct{} // closed when it has
	once   sync.Once
	err    error // once it has ended
	runs   atomic.Bool
}

func (n *node) start(group string) *search {
	s := &search{node: n, finish: make(chan struct{}), end: make(chan struct{})}
	ctx, cancel := context.WithCancelCause(context.Background())
	s.cancel = cancel
	go func() {
		defer close(s.end)
		s.err = n.run(ctx, s, group)
	}()
	return s
}

func (n *node) run(ctx context.Context, s *search, group string) error {
	ticket, err := n.Enter(ctx, wlm.Request{Group: group})
	if err != nil {
		return err
	}
	permit, err := ticket.Wait(ctx)
	if err != nil {
		return err
	}
	c := n.cluster
	counted := permit.Tracked() && !n.dead.Load()
	if counted {
		c.most.Store(max(c.most.Load(), c.running.Add(1)))
	}
	s.runs.Store(true)
	<-s.finish
	s.runs.Store(false)
	if counted && !n.dead.Load() {
		c.running.Add(-1) // before another can have the permit
	}
	permit.Close()
	return nil
}

func (s *search) stop() { s.once.Do(func() { close(s.finish) }) }

func (s *search) over() bool {
	select {
	case <-s.end:
		return true
	default:
		return false
	}
}

func (s *search) parked() bool { return !s.runs.Load() && !s.over() }

// done checks that nothing is left, and ends the nodes.
func (c *cluster) done() {
	c.Helper()
	time.Sleep(time.Second) // the last releases are under way
	synctest.Wait()
	for id, n := range c.nodes {
		if held := n.tier.Permits(); len(held) > 0 {
			c.Errorf("node %s has granted %v and all searches are over", id, held)
		}
		for _, left := range n.CheckQuiet() {
			c.Errorf("node %s: %s", id, left)
		}
		n.tier.Close()
	}
	c.network.Close()
}

// lose has the stream break at the next message of a kind between two members, once. Messages take the delay.
func (c *cluster) lose(kind sharedtier.Kind, a, b string, delay time.Duration) (lost *atomic.Bool) {
	lost = new(atomic.Bool)
	f := tiertest.Faults{Delay: delay, Lose: func(e tier.Envelope) bool {
		return e.Message.Kind == kind && lost.CompareAndSwap(false, true)
	}}
	c.network.Set(a, b, f)
	c.network.Set(b, a, f)
	return lost
}

var errUser = errors.New("by user request")

// seed is what random tests begin with: WLM_SEED, or another one each time. It is printed.
func seed(t testing.TB) uint64 {
	t.Helper()
	s := uint64(time.Now().UnixNano())
	if v, err := strconv.ParseUint(os.Getenv("WLM_SEED"), 10, 64); err == nil {
		s = v
	}
	t.Logf("WLM_SEED=%d", s)
	return s
}

func faults(delay time.Duration) tiertest.Faults { return tiertest.Faults{Delay: delay} }

func slicesWithout(members []ring.Member, m ring.Member) []ring.Member {
	return slices.DeleteFunc(slices.Clone(members), func(x ring.Member) bool { return x == m })
}
