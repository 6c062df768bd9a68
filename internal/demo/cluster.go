package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// ClusterNode is a server of the cluster that the demonstration is given on. Its methods are called one at a time.
type ClusterNode interface {
	Name() string
	URL() string // where it listens now; another one after another start
	// Kill ends it without a chance to say anything.
	Kill() error
	// Start starts it again, on the data that it had. It returns when the server answers.
	Start(ctx context.Context) error
}

// ClusterOptions say on which cluster the demonstration is given, and where it is shown.
type ClusterOptions struct {
	Out   io.Writer
	Nodes []ClusterNode // three, which run; the last one is killed and started again
	Lease time.Duration // of members and of sessions, as the nodes have it
	Fast  bool          // short searches
}

// RunCluster shows one limit that three nodes share, what the end of one of them does, and its return. It fails when a server cannot
// be used, when ctx ends, when more searches run than the limit allows, and when one is lost on a node that was not killed.
func RunCluster(ctx context.Context, o ClusterOptions) error {
	p := newClusterPlan(o)
	d := &clusterDemo{ClusterOptions: o, plan: p, scene: newClusterScene(p), screen: newScreen(o.Out, clusterFrameLines, p.takes)}
	for _, n := range o.Nodes {
		d.clients = append(d.clients, newClient(n.URL(), p.size()))
	}
	defer func() {
		for _, c := range d.clients {
			c.close()
		}
	}()
	defer d.screen.close()
	if err := d.prepare(ctx); err != nil {
		return err
	}
	for i := range p.acts {
		if err := d.act(ctx, i); err != nil {
			return err
		}
	}
	return d.conclude(ctx)
}

// clusterPlan is what is done on a cluster. Numbers are of searches, of which act and node follow.
type clusterPlan struct {
	plan
	nodes []string
	acts  []act
}

// act is one part of the demonstration.
type act struct {
	title   string
	perNode int           // searches
	killAt  time.Duration // when the last node is killed, from the first search on; 0 = never
	restart bool          // the last node is started before
}

func newClusterPlan(o ClusterOptions) clusterPlan {
	p := clusterPlan{plan: plan{
		group: "reports", index: "demo", sharedLimit: 4, queueSize: 50, replicas: len(o.Nodes) - 1, takes: 600 * time.Millisecond, every: 15 * time.Millisecond,
	}}
	if o.Fast {
		p.takes /= 4
		p.every /= 4
	}
	for _, n := range o.Nodes {
		p.nodes = append(p.nodes, n.Name())
	}
	last := p.nodes[len(p.nodes)-1]
	p.acts = []act{
		{perNode: 8, title: fmt.Sprintf("Each node gets 8 searches. %d run at once in all, the others wait.", p.sharedLimit)},
		{perNode: 8, title: fmt.Sprintf("Again, and %s is killed: what it held is free once its lease (%v) ends.", last, o.Lease), killAt: 2 * p.takes},
		{perNode: 4, title: last + " is back. It joins, and gets its turn like the others.", restart: true},
	}
	for _, a := range p.acts {
		p.searches += a.perNode * len(p.nodes)
	}
	return p
}

// size is how many searches there are.
func (p clusterPlan) size() int { return p.searches }

// first is the number of an act's first search. Its searches go to the nodes in turn.
func (p clusterPlan) first(act int) int {
	n := 0
	for _, a := range p.acts[:act] {
		n += a.perNode * len(p.nodes)
	}
	return n
}

// node says to which node a search goes.
func (p clusterPlan) node(search int) int { return search % len(p.nodes) }

// clusterDemo is the demonstration under way.
type clusterDemo struct {
	ClusterOptions

	plan    clusterPlan
	clients []*client // by node
	scene   *clusterScene
	screen  *screen
	group   string // its id
}

// last is the node that is killed.
func (d *clusterDemo) last() int { return len(d.Nodes) - 1 }

// prepare creates the group, for all nodes, and the index where there is none.
func (d *clusterDemo) prepare(ctx context.Context) error {
	if err := d.await(ctx, len(d.Nodes)); err != nil {
		return err
	}
	var g struct {
		ID string `json:"_id"`
	}
	if err := d.clients[0].do(ctx, http.MethodPut, "/_wlm/workload_group", d.plan.groupBody(), &g); err != nil {
		return err
	}
	d.group = g.ID
	for i := range d.clients {
		if err := d.index(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (d *clusterDemo) index(ctx context.Context, node int) error {
	a, err := d.clients[node].call(ctx, http.MethodHead, "/"+d.plan.index, "", nil)
	if err != nil || a.status == http.StatusOK {
		return err
	}
	return d.clients[node].do(ctx, http.MethodPut, "/"+d.plan.index, d.plan.indexBody(), nil)
}

// patience bounds how long is waited for the nodes to become a cluster.
const patience = 30 * time.Second

// await waits until the first node counts so many, and permits are shared out.
func (d *clusterDemo) await(ctx context.Context, nodes int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the nodes have not become a cluster of %d within %v", nodes, patience))
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		h, err := d.clients[0].health(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		case h.Nodes == nodes && len(h.Reasons) == 0:
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// act plays one part and returns when each of its searches has its answer.
func (d *clusterDemo) act(ctx context.Context, i int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := d.plan.acts[i]
	if !d.screen.live {
		fmt.Fprintf(d.Out, "%d. %s\n", i+1, a.title)
	}
	if a.restart {
		if err := d.restart(ctx); err != nil {
			return err
		}
	}
	d.scene.begin(i)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { d.send(ctx, i) })

	tick := time.NewTicker(min(50*time.Millisecond, d.plan.takes/4))
	defer tick.Stop()
	killed := a.killAt == 0
	for {
		l, err := d.listing(ctx)
		if err != nil {
			return err
		}
		if err := d.scene.listed(l); err != nil {
			return err
		}
		pic := d.scene.picture()
		d.screen.show(pic)
		if pic.done() {
			return nil
		}
		if !killed && pic.inAct >= a.killAt {
			killed = true
			d.scene.killed(d.last())
			if err := d.Nodes[d.last()].Kill(); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// restart starts the last node again, with an index as the others have it.
func (d *clusterDemo) restart(ctx context.Context) error {
	i := d.last()
	if err := d.Nodes[i].Start(ctx); err != nil {
		return err
	}
	d.clients[i].close()
	d.clients[i] = newClient(d.Nodes[i].URL(), d.plan.size())
	if err := d.await(ctx, len(d.Nodes)); err != nil {
		return err
	}
	d.scene.started(i)
	return d.index(ctx, i)
}

// send starts the searches of an act one after the other and returns when all have ended.
func (d *clusterDemo) send(ctx context.Context, i int) {
	tick := time.NewTicker(d.plan.every)
	defer tick.Stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	first := d.plan.first(i)
	for s := first; s < first+d.plan.acts[i].perNode*len(d.plan.nodes); s++ {
		c := d.clients[d.plan.node(s)]
		d.scene.sent(s)
		wg.Go(func() { d.scene.ended(s, c.search(ctx, d.plan.plan, d.group, s, 0)) })
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// listing is what runs and waits on all nodes, as the first one tells it. The nodes are read one beside the other: where a permit
// goes from one to the next meanwhile, both its old holder and its new one may be told. So a list of more than the limit allows is
// read again, and only those that both name ran at once.
func (d *clusterDemo) listing(ctx context.Context) (listing, error) {
	l, err := d.clients[0].tasks(ctx)
	for range 5 {
		if err != nil || len(l.running) <= d.plan.sharedLimit {
			return l, err
		}
		var again listing
		if again, err = d.clients[0].tasks(ctx); err != nil {
			return l, err
		}
		if both := common(l.running, again.running); len(both) > d.plan.sharedLimit {
			return l, fmt.Errorf("%d searches run at once: shared_limit is %d", len(both), d.plan.sharedLimit)
		}
		l = again
	}
	return l, errors.New("the nodes' lists of tasks do not agree with one another")
}

// conclude tells what the nodes counted, and holds that against what the client saw.
func (d *clusterDemo) conclude(ctx context.Context) error {
	pic := d.scene.picture()
	view := newScreen(d.Out, 0, 0)
	view.print(line{}, line{{"  GET /_wlm/stats says of the group", bold}}, line{})
	nodes, err := d.clients[0].statsByNode(ctx, d.group)
	if err != nil {
		return err
	}
	view.print(clusterTable(d.plan.nodes, nodes, d.last())...)
	if err := compareCluster(pic, nodes, d.last()); err != nil {
		return err
	}
	h, err := d.clients[0].health(ctx)
	if err != nil {
		return err
	}
	view.print(line{}, line{{"  ✓ ", green}, {fmt.Sprintf("%d answered, %d lost with their node; never more than %d ran; %d nodes again.",
		pic.count[answered], pic.count[lost], d.plan.sharedLimit, h.Nodes), plain}})
	view.print(line{}, line{{"  docs/cluster.md: set one up by hand, and what holds when nodes or etcd end.", plain}})
	return nil
}

// compareCluster holds the client's tally against what the nodes counted. The last one was started again in between.
func compareCluster(p clusterPicture, nodes map[string]groupStats, restarted int) error {
	if p.count[failed]+p.count[refused]+p.count[cancelled] > 0 {
		return fmt.Errorf("%d searches were not answered with 200, the first with %s", p.count[failed]+p.count[refused]+p.count[cancelled], p.failure)
	}
	for i, name := range p.plan.nodes {
		s, ok := nodes[name]
		if !ok {
			return fmt.Errorf("_wlm/stats does not speak of node %s", name)
		}
		if s.QueuedCurrent != 0 || s.Throttled != 0 {
			return fmt.Errorf("node %s says that %d wait and %d were refused: none should", name, s.QueuedCurrent, s.Throttled)
		}
		if i != restarted && s.Queued != s.QueueWaits {
			return fmt.Errorf("of node %s %d waited and %d were admitted after that", name, s.Queued, s.QueueWaits)
		}
		if n := p.rows[i].count[lost]; i != restarted && n > 0 {
			return fmt.Errorf("%d searches were lost on node %s, which was not killed", n, name)
		}
	}
	return nil
}

// common are the numbers that both have.
func common(a, b []int) []int {
	in := map[int]bool{}
	for _, n := range a {
		in[n] = true
	}
	var both []int
	for _, n := range b {
		if in[n] {
			both = append(both, n)
		}
	}
	return both
}
