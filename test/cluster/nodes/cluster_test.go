package nodes_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/test/cluster/etcd"
	"github.com/wlmserver/wlmserver/test/cluster/port"
	"github.com/wlmserver/wlmserver/test/faultproxy"
	"github.com/wlmserver/wlmserver/test/history"
	"github.com/wlmserver/wlmserver/test/server"
)

// lease is how long a silent node stays a member, and a silent session keeps its permits. grace is what is left of it at least when a
// node falls silent: its last sign of life was a third of it before, or more on a busy machine.
const (
	lease = 2 * time.Second
	grace = lease / 2
)

// patience is how long a test waits for what must come about. It bounds a failure, and says nothing of how long it may take.
const patience = 30 * time.Second

// cluster is nodes with one etcd. Only its own test uses it, and its methods but those of nodes that say so are for one goroutine.
type cluster struct {
	testing.TB
	etcd      []*etcd.Server
	prefix    string
	sweepless bool
	nodes     []*node // that were ever started
	lives     []*life
	links     map[[2]string]*faultproxy.Proxy // from one node to another, by their names
}

// life is one process of a node.
type life struct {
	history.Run
	journal string
}

// node is one of the cluster's nodes, in a process of its own.
type node struct {
	cluster   *cluster
	name      string
	id        string
	data      string
	port      int                 // for other nodes
	etcd      []*faultproxy.Proxy // its ways to etcd
	overrides []string

	mu      sync.Mutex
	process *server.Process
	life    *life
	started int  // processes so far
	up      bool // it was not killed or told to stop
	cut     time.Time
	killed  time.Time
}

// names of nodes, as many as a cluster ever has.
var names = []string{"a", "b", "c", "d", "e"}

// newCluster starts nodes that share the etcd of all tests.
func newCluster(t testing.TB, n int, overrides ...string) *cluster {
	t.Helper()
	return newClusterIn(t, keeperOnly(), n, overrides...)
}

// keeperOnly is the etcd of all tests.
func keeperOnly() []*etcd.Server { return []*etcd.Server{keeper} }

func newClusterIn(t testing.TB, in []*etcd.Server, n int, overrides ...string) *cluster {
	t.Helper()
	c := prepare(t, in)
	for _, name := range names[:n] {
		c.add(name, overrides...).start()
	}
	c.settled()
	return c
}

// prepare makes a cluster without nodes. At the end of the test its nodes are stopped and its history is checked.
func prepare(t testing.TB, in []*etcd.Server) *cluster {
	t.Helper()
	c := &cluster{TB: t, etcd: in, prefix: fmt.Sprintf("/wlmserver/nodes-%d", prefixes.Add(1)), links: make(map[[2]string]*faultproxy.Proxy)}
	t.Cleanup(func() {
		for _, l := range c.links {
			l.Close()
		}
		for _, n := range c.nodes {
			for _, l := range n.etcd {
				l.Close()
			}
		}
	})
	ports := make(map[string]int)
	for _, name := range names {
		p, err := port.Free()
		if err != nil {
			t.Fatal(err)
		}
		ports[name] = p
	}
	for _, from := range names {
		n := &node{cluster: c, name: from, data: t.TempDir(), port: ports[from]}
		for _, s := range in {
			n.etcd = append(n.etcd, c.link(strings.TrimPrefix(s.Beside(), "http://")))
		}
		c.nodes = append(c.nodes, n)
		for _, to := range names {
			if from != to {
				c.links[[2]string{from, to}] = c.link(address(ports[to]))
			}
		}
	}
	return c
}

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

func (c *cluster) link(target string) *faultproxy.Proxy {
	c.Helper()
	p, err := faultproxy.Start(target)
	if err != nil {
		c.Fatal(err)
	}
	return p
}

// add makes a node known to the test, not yet to the cluster.
func (c *cluster) add(name string, overrides ...string) *node {
	i := slices.Index(names, name)
	c.nodes[i].overrides = overrides
	return c.nodes[i]
}

// live are the nodes that run.
func (c *cluster) live() []*node {
	var out []*node
	for _, n := range c.nodes {
		if n.lives() {
			out = append(out, n)
		}
	}
	return out
}

func (n *node) lives() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.up
}

// start starts the node, on the data of its last process if there was one, with the index that all searches are for.
func (n *node) start() {
	c := n.cluster
	c.Helper()
	r := &life{journal: filepath.Join(n.data, fmt.Sprintf("journal-%d", n.started)), Run: history.Run{Node: n.name}}
	var endpoints []string
	for _, l := range n.etcd {
		endpoints = append(endpoints, "http://"+l.Addr())
	}
	links := make(map[string]string)
	for _, to := range c.nodes {
		if to != n {
			links[address(to.port)] = c.links[[2]string{n.name, to.name}].Addr()
		}
	}
	p := server.StartMember(c.TB, server.Member{
		Data: n.data, Journal: r.journal, Links: links, Sweepless: c.sweepless,
		Overrides: append([]string{
			"cluster.etcd.endpoints=" + strings.Join(endpoints, ","), "cluster.etcd.prefix=" + c.prefix,
			"cluster.member_ttl=" + lease.String(), "cluster.session_lease=" + lease.String(),
			"node.name=" + n.name, fmt.Sprint("transport.port=", n.port), "thread_pool.search.queue_size=20000",
		}, n.overrides...),
	})
	c.lives = append(c.lives, r)
	a := p.Send(c.Context(), http.MethodPut, "/docs", fmt.Sprintf(`{"settings":{"number_of_shards":1,"number_of_replicas":%d}}`, len(names)-1))
	if a.Err != nil || a.Status != http.StatusOK && a.ErrorType() != "resource_already_exists_exception" {
		c.Fatalf("creating the index: %v %s", a.Err, a.Body)
	}
	n.mu.Lock()
	n.process, n.life, n.up = p, r, true
	n.started++
	n.mu.Unlock()
	var info struct {
		Nodes map[string]json.RawMessage `json:"nodes"`
	}
	p.Must(http.MethodGet, "/_nodes/_local", "", &info)
	for id := range info.Nodes {
		n.id = id
	}
}

// unwritten is for how long what a node does may not be in its journal yet, on a busy machine.
const unwritten = 100 * time.Millisecond

// kill ends the node's process as a crash does.
func (n *node) kill() {
	n.down()
	n.killed = time.Now()
	n.mu.Lock()
	n.life.Killed = n.killed.Add(-unwritten)
	n.mu.Unlock()
	n.process.Kill()
}

// stop stops the node in order.
func (n *node) stop() {
	n.down()
	n.process.Stop()
}

func (n *node) down() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.up = false
}

// pause has the process do nothing until resume.
func (n *node) pause() {
	n.process.Pause()
	n.silent()
}

func (n *node) resume() {
	n.process.Resume()
	n.heard()
}

// silent notes that from now on others may hear nothing of the node, heard that they do again.
func (n *node) silent() { n.cut = time.Now() }

func (n *node) heard() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.life.Cuts = append(n.life.Cuts, history.Cut{From: n.cut, To: time.Now()})
}

// server is the node's process at this moment. It is safe for concurrent use.
func (n *node) server() *server.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process
}

// state tells of which process the node is, and whether it is meant to answer. It is safe for concurrent use.
func (n *node) state() (started int, up bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.started, n.up
}

// get asks this node alone.
func (n *node) get(path string, v any) {
	n.cluster.Helper()
	n.server().Must(http.MethodGet, path, "", v)
}

// settled waits until the live nodes, and no others, are a cluster in which each can ask each.
func (c *cluster) settled() {
	c.Helper()
	live := c.live()
	for _, n := range live {
		var said string
		c.eventually(func() bool {
			var h struct {
				Nodes   int      `json:"number_of_nodes"`
				Reasons []string `json:"reasons"`
			}
			a := n.server().Send(c.Context(), http.MethodGet, "/_cluster/health", "")
			said = string(a.Body)
			if a.Err != nil || json.Unmarshal(a.Body, &h) != nil {
				return false
			}
			return h.Nodes == len(live) && !slices.ContainsFunc(h.Reasons, func(r string) bool { return !strings.Contains(r, "of a version before") })
		}, func() string { return "node " + n.name + " has settled; it says " + said })
	}
}

// eventually waits until something holds.
func (c *cluster) eventually(holds func() bool, what func() string) {
	c.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			var logs strings.Builder
			for _, n := range c.live() {
				fmt.Fprintf(&logs, "\n--- node %s:\n%s", n.name, n.server().Log())
			}
			c.Fatalf("never: %s%s", what(), logs.String())
		}
	}
}

// create makes a group by way of the first live node, and gives its id.
func (c *cluster) create(name, blocks string) string {
	c.Helper()
	return c.live()[0].server().CreateGroup(name, blocks)
}

// shared is the block of a group that only the shared tier limits; a size of 0 is no queue.
func shared(limit, size int) string {
	return fmt.Sprintf(`"throttling":{"attribute":"group","shared_limit":%d},"queue":{"size_per_bucket":%d}`, limit, size)
}

func bucketOf(group string) string { return group + ":group" }

// owner is the live node that owns the group's bucket; others are the rest.
func (c *cluster) owner(group string) (owner *node, others []*node) {
	c.Helper()
	var members []ring.Member
	for _, n := range c.live() {
		m := ring.Member{ID: n.id, Version: ring.Since}
		for _, o := range n.overrides {
			if version, ok := strings.CutPrefix(o, "node.compatibility_version="); ok {
				m.Version = version
			}
		}
		members = append(members, m)
	}
	m, _ := ring.New(1, members).Owner(bucketOf(group))
	for _, n := range c.live() {
		if n.id == m.ID {
			owner = n
		} else {
			others = append(others, n)
		}
	}
	return owner, others
}

// stats are a group's counters on this node alone.
func (n *node) stats(group string) server.GroupStats {
	n.cluster.Helper()
	var all map[string]json.RawMessage
	n.get("/_wlm/_local/stats/"+group, &all)
	var own struct {
		Groups map[string]server.GroupStats `json:"workload_groups"`
	}
	if err := json.Unmarshal(all[n.id], &own); err != nil {
		n.cluster.Fatal(err)
	}
	return own.Groups[group]
}

// check is what a node finds of itself.
type check struct {
	Waiting int
	Running int
}

// checks asks every live node for what all have found, and gives the sums of one answer.
func (c *cluster) checks() (sum check, err error) {
	for _, n := range c.live() {
		a := n.server().Send(c.Context(), http.MethodGet, "/_wlm/check", "")
		if a.Err != nil || a.Status != http.StatusOK {
			return sum, fmt.Errorf("_wlm/check of node %s: %w %s", n.name, a.Err, a.Body)
		}
		var all map[string]json.RawMessage
		if err := json.Unmarshal(a.Body, &all); err != nil {
			return sum, err
		}
		sum = check{}
		seen := 0
		for _, one := range c.live() {
			var k check
			if text, ok := all[one.id]; ok && json.Unmarshal(text, &k) == nil {
				seen++
				sum.Waiting += k.Waiting
				sum.Running += k.Running
			}
		}
		if seen != len(c.live()) {
			return sum, fmt.Errorf("_wlm/check of node %s knows %d of %d nodes: %s", n.name, seen, len(c.live()), a.Body)
		}
	}
	return sum, nil
}

// awaitChecked waits until so many searches wait and run on all nodes together.
func (c *cluster) awaitChecked(waiting, running int) {
	c.Helper()
	var got check
	var err error
	c.eventually(func() bool {
		got, err = c.checks()
		return err == nil && got.Waiting == waiting && got.Running == running
	}, func() string {
		return fmt.Sprintf("%d wait and %d run; the last answer was %+v, %v", waiting, running, got, err)
	})
}

// finish stops the nodes, and gives what happened in each bucket. The test fails if it was not as promised.
func (c *cluster) finish() map[string]history.Shared {
	c.Helper()
	for _, n := range c.live() {
		n.stop()
	}
	var runs []history.Run
	for _, r := range c.lives {
		var err error
		if r.Events, err = server.ReadJournal(r.journal); err != nil {
			c.Fatal(err)
		}
		runs = append(runs, r.Run)
	}
	found, err := history.CheckNodes(runs, grace, lease)
	if err != nil {
		c.Error(err)
		for _, r := range runs {
			c.Logf("node %s: killed %v, cut off %v", r.Node, r.Killed, r.Cuts)
		}
	}
	return found
}
