package nodes_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/wlmserver/wlmserver/test/server"
)

type answer = server.Answer

// search sends one search of the group that lasts for so long, and gives its answer. It is safe for concurrent use.
func (n *node) search(ctx context.Context, group string, took time.Duration) answer {
	return n.searchWith(ctx, group, took, "")
}

// searchWith is search with a query string.
func (n *node) searchWith(ctx context.Context, group string, took time.Duration, query string) answer {
	body := fmt.Sprintf(`{"size":0,"ext":{"stub":{"query_time":"%dms"}}}`, took.Milliseconds())
	return n.server().Send(ctx, http.MethodPost, "/docs/_search"+query, body, "workloadGroupId", group)
}

// searchSoon is search with an answer within a time that is long for a search that does not wait for ever.
func (n *node) searchSoon(group string, took time.Duration) answer {
	ctx, cancel := context.WithTimeout(n.cluster.Context(), patience)
	defer cancel()
	return n.search(ctx, group, took)
}

// answers are those of many searches.
type answers struct {
	mu  sync.Mutex
	by  map[int]int // by status
	bad []string    // searches that had no answer, or one that they should not have had
}

// take notes an answer. Statuses that a search may have are 200 and those given.
func (s *answers) take(n *node, a server.Answer, may ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = make(map[int]int)
	}
	s.by[a.Status]++
	ok := a.Err == nil && a.Status == http.StatusOK
	for _, m := range may {
		ok = ok || a.Err == nil && a.Status == m
	}
	if !ok && len(s.bad) < 10 {
		s.bad = append(s.bad, fmt.Sprintf("node %s answered %d %v: %s", n.name, a.Status, a.Err, a.Body))
	}
}

// load keeps so many searches of a group under way on each of some nodes until it is ended.
type load struct {
	answers
	cluster *cluster
	stop    chan struct{}
	running sync.WaitGroup
}

// load begins a load. Nodes may go and come meanwhile.
func (c *cluster) load(nodes []*node, each int, group string, took time.Duration) *load {
	l := &load{cluster: c, stop: make(chan struct{})}
	for _, n := range nodes {
		for range each {
			l.running.Go(func() { l.work(n, group, took) })
		}
	}
	return l
}

func (l *load) work(n *node, group string, took time.Duration) {
	for {
		select {
		case <-l.stop:
			return
		default:
		}
		started, up := n.state()
		if !up {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		a := n.search(ctx, group, took)
		cancel()
		if now, up := n.state(); now == started && up {
			l.take(n, a)
			continue
		}
		// A node that stops refuses those that wait, or is gone.
		if a.Err == nil {
			l.take(n, a, http.StatusTooManyRequests, http.StatusInternalServerError)
		}
	}
}

// end ends the load: every search that was sent is answered.
func (l *load) end() {
	l.cluster.Helper()
	close(l.stop)
	l.running.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.bad {
		l.cluster.Error(b)
	}
}

// hold has so many searches of a group run on a node for as long as the test likes, and returns when they do. Nothing else may run or
// wait meanwhile. What it gives ends them, and returns when they are answered.
func (c *cluster) hold(n *node, group string, count int) (release func()) {
	c.Helper()
	release = n.begin(group, count)
	c.awaitChecked(0, count)
	return release
}

// begin sends searches of a group that last until what it gives is called. Their clients leave then, so there are no answers to look at.
func (n *node) begin(group string, count int) (release func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for range count {
		running.Go(func() { n.search(ctx, group, time.Hour) })
	}
	n.cluster.Cleanup(cancel)
	return func() {
		cancel()
		running.Wait()
	}
}

// holdBeside is hold while other nodes cannot be asked.
func (n *node) holdBeside(group string, count int) (release func()) {
	n.cluster.Helper()
	release = n.begin(group, count)
	n.cluster.eventually(func() bool { return n.metric(`wlmserver_running{tracked="true"}`) == float64(count) },
		func() string { return fmt.Sprintf("%d run on node %s", count, n.name) })
	return release
}

// still waits until the nodes are as one again, and nothing waits or runs.
func (c *cluster) still() {
	c.Helper()
	c.settled()
	c.awaitChecked(0, 0)
}

// quiet checks that nothing is held or waited for, and that exactly as many searches as the limit can run at once, wherever they are sent:
// no permit is lost, and there is none too many.
func (c *cluster) quiet(group string, limit int) {
	c.Helper()
	c.still()
	live := c.live()
	var probes answers
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	for i := range limit + len(live) {
		n := live[i%len(live)]
		running.Go(func() { probes.take(n, n.search(ctx, group, time.Hour), http.StatusInternalServerError) })
	}
	c.awaitChecked(len(live), limit)
	c.cancelAll()
	running.Wait()
	c.awaitChecked(0, 0)
	for _, b := range probes.bad {
		c.Error(b)
	}
}

// cancelAll cancels all searches on all nodes.
func (c *cluster) cancelAll() {
	c.Helper()
	c.live()[0].server().Must(http.MethodPost, "/_tasks/_cancel?actions=indices:data/read/search", "", nil)
}

// metric reads one number of a node.
func (n *node) metric(name string) (value float64) {
	n.cluster.Helper()
	a := n.server().Send(n.cluster.Context(), http.MethodGet, "/metrics", "")
	for line := range strings.Lines(string(a.Body)) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			if _, err := fmt.Sscan(text, &value); err != nil {
				n.cluster.Fatal(err)
			}
			return value
		}
	}
	n.cluster.Fatalf("node %s has no metric %s: %v %s", n.name, name, a.Err, a.Body)
	return 0
}
