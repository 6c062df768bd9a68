package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/wlmserver/wlmserver/internal/node"
)

// Options say where the demonstration is shown and how long it takes.
type Options struct {
	Out  io.Writer
	Fast bool // under a second instead of five to eight
}

// Run gives the demonstration on a server of its own and returns when it has been shown. It fails when the server cannot
// be started or used, when ctx ends, and when what the client counted and what the server counted differ.
func Run(ctx context.Context, o Options) error {
	n, stop, err := startServer(ctx)
	if err != nil {
		return err
	}
	defer stop()
	p := newPlan(o.Fast)
	c := newClient(n.URL(), p.searches)
	defer c.close()
	group, err := prepare(ctx, c, p)
	if err != nil {
		return err
	}
	last, err := burst(ctx, c, p, group, o)
	if err != nil {
		return err
	}
	s, err := c.stats(ctx, group)
	if err != nil {
		return err
	}
	return conclude(o.Out, last, s)
}

// startServer starts a server on a free port with a data folder that goes when it stops.
func startServer(ctx context.Context) (*node.Node, func(), error) {
	folder, err := os.MkdirTemp("", "wlmserver-demo-")
	if err != nil {
		return nil, nil, err
	}
	c := node.Default()
	c.HTTP.Port = 0
	c.DataPath = folder
	c.Log.Level = zerolog.Disabled
	c.SearchPool.Size = 2 * newPlan(false).nodeLimit // that it is the group's limit that holds searches back, on any machine
	n, err := node.Start(ctx, c)
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(folder))
	}
	return n, func() {
		n.Close()
		os.RemoveAll(folder)
	}, nil
}

// prepare creates the index and the group and returns the group's id.
func prepare(ctx context.Context, c *client, p plan) (group string, err error) {
	if err := c.do(ctx, http.MethodPut, "/"+p.index, p.indexBody(), nil); err != nil {
		return "", err
	}
	var g struct {
		ID string `json:"_id"`
	}
	err = c.do(ctx, http.MethodPut, "/_wlm/workload_group", p.groupBody(), &g)
	return g.ID, err
}

// burst sends the searches and shows what becomes of them until the last has its answer.
func burst(ctx context.Context, c *client, p plan, group string, o Options) (picture, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sc := newScene(p)
	view := newScreen(o.Out, frameLines, p.takes/2)
	defer view.close()
	if !view.live {
		fmt.Fprintf(o.Out, "group %s: node_limit %d, size_per_bucket %d; %d searches of %s\n",
			p.group, p.nodeLimit, p.queueSize, p.searches, p.takes)
	}

	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { send(ctx, c, p, group, sc) })

	tick := time.NewTicker(min(100*time.Millisecond, p.takes/8))
	defer tick.Stop()
	byHand := false
	for {
		l, err := c.tasks(ctx)
		if err != nil {
			return picture{}, err
		}
		sc.listed(l)
		pic := sc.picture()
		view.show(pic)
		if pic.done() {
			return pic, nil
		}
		if !byHand && pic.elapsed >= p.cancelAt {
			byHand = true
			if err := cancelLast(ctx, c, p, sc, l); err != nil {
				return picture{}, err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return picture{}, context.Cause(ctx)
		}
	}
}

// send starts one search after the other and returns when all have ended.
func send(ctx context.Context, c *client, p plan, group string, sc *scene) {
	impatient := map[int]bool{}
	for _, i := range p.impatient {
		impatient[i] = true
	}
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := range p.searches {
		var patience time.Duration
		if impatient[i] {
			patience = p.patience
		}
		sc.sent(i)
		wg.Go(func() { sc.ended(i, c.search(ctx, p, group, i, patience)) })
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// cancelLast cancels the last in line through _tasks/_cancel.
func cancelLast(ctx context.Context, c *client, p plan, sc *scene, l listing) error {
	for _, w := range l.waiters {
		if w.position <= len(l.waiters)-p.cancelCount {
			continue
		}
		sc.cancelledByHand(w.search)
		if err := c.do(ctx, http.MethodPost, "/_tasks/"+w.task+"/_cancel", "", nil); err != nil {
			return err
		}
	}
	return nil
}

// conclude prints the group's statistics, whether they agree with the client's tally, and how to repeat it all.
func conclude(out io.Writer, p picture, s groupStats) error {
	view := newScreen(out, 0, 0)
	view.print(line{}, line{{"  GET /_wlm/stats says of the group", bold}}, line{})
	view.print(table(s)...)

	err := compare(p, s)
	if err == nil {
		view.print(line{}, line{{"  ✓ ", green}, {"The client counted the same: " + tally(p), plain}})
	}
	view.print(line{}, line{{"  Repeat it by hand: start `wlmserver` in another terminal, then", bold}}, line{})
	fmt.Fprint(out, recipe(newPlan(false), "http://127.0.0.1:9200"))
	return err
}

// tally says in words how the searches ended.
func tally(p picture) string {
	s := fmt.Sprintf("%d answered, %d refused, %d cancelled while they waited", p.count[answered], p.count[refused], p.count[cancelled]-p.ran)
	if p.ran > 0 {
		s += fmt.Sprintf(", %d while they ran", p.ran)
	}
	return s + "."
}

// compare holds the client's tally against the server's counters.
func compare(p picture, s groupStats) error {
	if p.count[failed] > 0 {
		return fmt.Errorf("%d searches failed, the first with %s", p.count[failed], p.failure)
	}
	for _, c := range []struct {
		what           string
		client, server int64
	}{
		{"refused (total_throttled)", int64(p.count[refused]), s.Throttled},
		{"refused (total_queue_rejections)", int64(p.count[refused]), s.QueueRejections},
		{"cancelled while waiting (total_queued - queue_wait_count)", int64(p.count[cancelled] - p.ran), s.Queued - s.QueueWaits},
		{"still waiting (queued_current)", 0, s.QueuedCurrent},
	} {
		if c.client != c.server {
			return fmt.Errorf("client and server disagree about searches %s: %d and %d", c.what, c.client, c.server)
		}
	}
	return nil
}
