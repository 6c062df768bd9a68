package nodes_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/test/cluster/etcd"
	"github.com/wlmserver/wlmserver/test/faultproxy"
)

// What every kind of trouble happens under.
const (
	limit     = 4
	each      = 4 // searches under way on each node
	took      = 40 * time.Millisecond
	tooLong   = lease + lease*3/4 // longer than others wait for a silent node, with what etcd takes to notice
	afterward = 300 * time.Millisecond
)

// trouble is one kind of it: what happens in a round, and how all is well again. When it returns, all nodes can hear each other.
type trouble struct {
	name  string
	etcds int // members of an etcd of its own; 0: the etcd of all tests
	round func(s *scene)
}

// scene is a cluster in which trouble happens, round after round.
type scene struct {
	*cluster
	group  string
	number int // of the round
	random *rand.Rand
	owner  *node
	others []*node
}

// TestTrouble: whatever happens to nodes and to what is between them, no more searches run than the limit as far as live nodes count them, every
// search is answered, and when all is well again no permit is lost and nothing is left.
func TestTrouble(t *testing.T) {
	for _, x := range []trouble{
		{name: "kill of a holder", round: func(s *scene) { s.holder(s.others[0], s.killed) }},
		{name: "kill of the owner", round: func(s *scene) { s.during(s.live(), func() { s.killed(s.owner) }) }},
		{name: "kill of a coordinator with waiters", round: func(s *scene) { s.waiter(s.others[0], s.killed) }},
		{name: "pause of a holder", round: func(s *scene) { s.holder(s.others[0], s.paused) }},
		{name: "pause of the owner", round: func(s *scene) { s.during(s.live(), func() { s.paused(s.owner) }) }},
		{name: "pause of a coordinator with waiters", round: func(s *scene) { s.waiter(s.others[0], s.paused) }},
		{name: "cut of a link", round: func(s *scene) { s.during(s.live(), s.cutBoth) }},
		{name: "half-open link", round: func(s *scene) { s.during(s.live(), func() { s.halfOpen(faultproxy.Both) }) }},
		{name: "link with one way", round: func(s *scene) { s.during(s.live(), func() { s.halfOpen(faultproxy.Up) }) }},
		{name: "node without etcd", round: func(s *scene) { s.during(s.live(), s.withoutEtcd) }},
		{name: "loss of etcd's leader", etcds: 3, round: func(s *scene) { s.during(s.live(), s.leaderless) }},
		{name: "loss of etcd", etcds: 1, round: func(s *scene) { s.during(s.live(), s.etcdless) }},
		{name: "rolling restart", round: func(s *scene) { s.during(s.live(), s.restarted) }},
		{name: "join of a fourth", round: func(s *scene) { s.during(s.nodes[:4], s.joined) }},
		{name: "member that misses an epoch", round: func(s *scene) { s.during(s.live(), s.missing) }},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			in := keeperOnly()
			if x.etcds > 0 {
				var dirs []string
				for range x.etcds {
					dirs = append(dirs, t.TempDir())
				}
				var err error
				if in, err = etcd.NewGroup(dirs...); err != nil {
					t.Fatal(err)
				}
				for _, s := range in {
					t.Cleanup(s.Close)
				}
			}
			s := &scene{cluster: newClusterIn(t, in, 3), random: rand.New(rand.NewPCG(seed(t), 0))}
			s.group = s.create("g", shared(limit, 100))
			for s.number = range *rounds {
				s.owner, s.others = s.cluster.owner(s.group)
				s.random.Shuffle(len(s.others), func(i, j int) { s.others[i], s.others[j] = s.others[j], s.others[i] })
				x.round(s)
				s.quiet(s.group, limit)
			}
			got := s.finish()[bucketOf(s.group)]
			t.Logf("%+v", got)
			if got.Most < limit {
				t.Errorf("at most %d ran at once: the limit was never reached", got.Most)
			}
			if got.LongestIdle > tooLong+2*lease { // the trouble, and what it takes to find one another again
				t.Errorf("a permit that somebody waited for was free for %v, since %v", got.LongestIdle, got.IdleSince)
			}
		})
	}
}

// seed is what random tests begin with. It is printed.
func seed(t *testing.T) uint64 {
	t.Helper()
	s := uint64(time.Now().UnixNano())
	t.Logf("seed %d", s)
	return s
}

// during has trouble happen while nodes are under load.
func (s *scene) during(nodes []*node, happens func()) {
	s.Helper()
	l := s.load(nodes, each, s.group, took)
	time.Sleep(afterward)
	happens()
	time.Sleep(afterward)
	l.end()
}

// holder has trouble happen to a node that has all permits, while the others have nothing but waiters.
func (s *scene) holder(n *node, happens func(*node)) {
	s.Helper()
	release := s.hold(n, s.group, limit)
	var rest []*node
	for _, x := range s.live() {
		if x != n {
			rest = append(rest, x)
		}
	}
	s.during(rest, func() {
		happens(n)
		release()
	})
}

// waiter has trouble happen to a node that has waiters and no permit.
func (s *scene) waiter(n *node, happens func(*node)) {
	s.Helper()
	var other *node
	for _, x := range s.others {
		if x != n {
			other = x
		}
	}
	release := s.hold(other, s.group, limit)
	s.during(s.live(), func() {
		happens(n)
		release()
	})
}

// killed kills a node, and starts it again when it is forgotten or, every other time, at once.
func (s *scene) killed(n *node) {
	s.Helper()
	n.kill()
	if s.number%2 == 0 {
		time.Sleep(tooLong)
	}
	n.start()
}

func (s *scene) paused(n *node) {
	n.pause()
	time.Sleep(tooLong)
	n.resume()
}

// pair is two nodes: the owner and one of the others, or now and then two others.
func (s *scene) pair() (a, b *node) {
	if s.number%4 == 3 {
		return s.others[0], s.others[1]
	}
	return s.owner, s.others[0]
}

// between has something done with the links between two nodes for longer than a lease. The first way is from the one to the other.
func (s *scene) between(a, b *node, do func(ab, ba *faultproxy.Proxy)) {
	ab, ba := s.links[[2]string{a.name, b.name}], s.links[[2]string{b.name, a.name}]
	do(ab, ba)
	a.silent()
	b.silent()
	time.Sleep(tooLong)
	ab.Heal()
	ba.Heal()
	a.heard()
	b.heard()
}

func (s *scene) cutBoth() {
	a, b := s.pair()
	s.between(a, b, func(ab, ba *faultproxy.Proxy) {
		ab.Cut()
		ba.Cut()
	})
}

// halfOpen holds back what one node sends to another; with both ways, also what that one sends.
func (s *scene) halfOpen(way faultproxy.Way) {
	a, b := s.pair()
	if s.random.IntN(2) == 0 {
		a, b = b, a
	}
	s.between(a, b, func(ab, ba *faultproxy.Proxy) {
		ab.HalfOpen(way)
		if way == faultproxy.Up {
			way = faultproxy.Down
		}
		ba.HalfOpen(way)
	})
}

func (s *scene) withoutEtcd() {
	n := s.live()[s.number%3]
	for _, l := range n.etcd {
		l.HalfOpen(faultproxy.Both)
	}
	n.silent()
	time.Sleep(tooLong)
	for _, l := range n.etcd {
		l.Heal()
	}
	n.heard()
}

func (s *scene) leaderless() {
	s.Helper()
	for _, e := range s.etcd {
		if !e.Leads() {
			continue
		}
		e.Stop()
		time.Sleep(tooLong)
		s.change(http.StatusOK)
		if err := e.Start(); err != nil {
			s.Fatal(err)
		}
		return
	}
	s.Fatal("etcd has no leader")
}

// change tries a change of the metadata, and wants this status of it.
func (s *scene) change(status int) {
	s.Helper()
	a := s.live()[0].server().Send(s.Context(), http.MethodPut, "/_wlm/workload_group/g", fmt.Sprintf(`{"queue":{"size_per_bucket":%d}}`, 100+s.number))
	if a.Status != status {
		s.Errorf("a change is answered %d %v: %s; %d was expected", a.Status, a.Err, a.Body, status)
	}
}

func (s *scene) etcdless() {
	s.Helper()
	s.etcd[0].Stop()
	for _, n := range s.live() {
		n.silent()
	}
	time.Sleep(tooLong)
	s.change(http.StatusServiceUnavailable)
	a := s.live()[0].server().Send(s.Context(), http.MethodGet, "/_cluster/health", "")
	if !strings.Contains(string(a.Body), "etcd cannot be reached") {
		s.Errorf("health says %s", a.Body)
	}
	if err := s.etcd[0].Start(); err != nil {
		s.Fatal(err)
	}
	for _, n := range s.live() {
		n.heard()
	}
}

func (s *scene) restarted() {
	for _, n := range s.live() {
		n.stop()
		n.start()
	}
}

// joined has a fourth node come, and go.
func (s *scene) joined() {
	n := s.nodes[3]
	n.start()
	time.Sleep(afterward)
	n.stop()
}

// missing has the ring change twice while a node is paused, but not for long enough to be no member any more.
func (s *scene) missing() {
	n := s.live()[s.number%3]
	began := time.Now()
	n.pause()
	fourth := s.nodes[3]
	fourth.start()
	fourth.stop()
	n.resume()
	s.Logf("paused for %v", time.Since(began))
}
