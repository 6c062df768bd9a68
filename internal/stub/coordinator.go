package stub

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
)

const (
	phaseQuery = "query"
	phaseFetch = "fetch"

	phaseFrequencies = "dfs_pre_query"

	allFailed  = "all shards failed"
	someFailed = "Partial shards failure"
)

// coordinator carries one search out: the query phase over all shards, then the
// fetch phase over those that have documents of the page.
type coordinator struct {
	x       *execution
	ctx     context.Context
	task    *tasks.Task
	targets []target

	partial    bool // failing shards may be left out of the answer
	concurrent int  // shards asked at once
	timeout    time.Duration
	scroll     time.Duration // how long a scroll is kept after this page
	first      bool          // the first page of a scroll, or the only one

	one       single               // where the next three are when there is one target, as most often
	requests  []shard.QueryRequest // one for each target, as are the next two
	queries   []queryOutcome
	taken     []int // documents of the page
	page      []hit
	documents []shard.Document // of the page; without an ID where the fetch failed
	failed    []search.ShardFailure
	timedOut  bool
	queryTook time.Duration
	fetchTook time.Duration
}

type single struct {
	request [1]shard.QueryRequest
	query   [1]queryOutcome
	taken   [1]int
}

type queryOutcome struct {
	result *shard.QueryResult
	err    error
}

// hit is one document of the page.
type hit struct {
	target   int
	position int
	keys     []shard.Key
}

func (x *execution) coordinate(ctx context.Context, t *tasks.Task, l search.Limits, targets []target) *coordinator {
	c := &coordinator{
		x:          x,
		ctx:        ctx,
		task:       t,
		targets:    targets,
		partial:    l.AllowPartialResults(x.options.partial),
		concurrent: l.MaxConcurrentShardRequests(x.options.concurrent),
		timeout:    l.Timeout(x.options.timeout),
		scroll:     l.ScrollKeepAlive,
		first:      !x.opened,
	}
	if len(targets) == 1 {
		c.requests, c.queries, c.taken = c.one.request[:], c.one.query[:], c.one.taken[:]
		return c
	}
	c.requests = make([]shard.QueryRequest, len(targets))
	c.queries = make([]queryOutcome, len(targets))
	c.taken = make([]int, len(targets))
	return c
}

// run carries out the phases. It returns when no shard works for the search any
// more.
func (c *coordinator) run() error {
	start := time.Now()
	if err := c.query(); err != nil {
		return err
	}
	queried := time.Now()
	c.queryTook = queried.Sub(start)
	c.choose()
	if err := c.fetch(); err != nil {
		return err
	}
	c.fetchTook = time.Since(queried)
	return nil
}

// query asks every shard which documents match.
func (c *coordinator) query() error {
	o := &c.x.options
	wanted := 0
	if o.size > 0 {
		wanted = o.from + o.size
	}
	started := c.fanOut(len(c.targets), func(i int, done func()) {
		t, r := &c.targets[i], &c.requests[i]
		if t.refused != nil {
			c.queries[i].err = t.refused
			done()
			return
		}
		*r = shard.QueryRequest{
			Shard:   t.id,
			Parent:  c.parent(),
			Reader:  t.reader,
			Scroll:  c.x.opened,
			Skip:    t.taken,
			Size:    wanted,
			Sort:    o.sort,
			Matches: t.cost.matches(t.id.Number),
			Timeout: c.timeout,
			Work:    t.cost.query(t.id.Number),
			Keep:    c.keep(),
		}
		if len(c.targets) == 1 && o.size > 0 {
			r.Fetch = &shard.InlineFetch{From: o.from, Work: t.cost.fetch(t.id.Number)}
		}
		c.x.engine.shards.Query(c.ctx, r, func(result *shard.QueryResult, err error) {
			c.queries[i] = queryOutcome{result, err}
			done()
		})
	})
	for i := started; i < len(c.targets); i++ {
		c.queries[i].err = c.notStarted()
	}
	return c.settleQuery()
}

// keepReaders is how long a shard is to keep what it has read for what comes
// next, which can be late when other shards are slow.
const keepReaders = 5 * time.Minute

// keep is how long the readers of the query phase are wanted.
func (c *coordinator) keep() time.Duration {
	switch {
	case c.x.isScroll():
		return keepReaders + max(c.scroll, c.x.request.ScrollKeepAlive)
	case len(c.targets) > 1 && c.x.options.size > 0:
		return keepReaders
	}
	return 0 // the documents come with the query, or none do
}

func (c *coordinator) parent() shard.Task {
	id := c.task.ID()
	t := shard.Task{Node: id.Node, Number: id.Number}
	if c.x.engine.config.Cluster != nil {
		t.User, t.Group, t.OpaqueID = c.task.User(), c.task.Group(), c.x.request.OpaqueID
	}
	return t
}

// settleQuery decides what the answers of the query phase come to.
func (c *coordinator) settleQuery() error {
	for i := range c.queries {
		q := &c.queries[i]
		if q.err == nil && c.requests[i].Keep > 0 && c.targets[i].reader == nil {
			c.x.readers = append(c.x.readers, q.result.Reader)
		}
		if q.err == nil && q.result.TimedOut {
			c.timedOut = true
			if !c.partial {
				q.err = &search.ShardError{Type: "query_phase_execution_exception", Reason: "Time exceeded", Status: http.StatusInternalServerError}
				if q.result.Node != "" {
					q.err = &shard.NodeError{Node: q.result.Node, Err: q.err}
				}
			}
		}
		if q.err != nil {
			q.result = nil
			c.failed = append(c.failed, c.x.failure(&c.targets[i], q.err))
		}
	}
	return c.settle(phaseQuery)
}

// settle decides whether a search whose shards have failed as told fails with
// them.
func (c *coordinator) settle(phase string) error {
	switch {
	case len(c.failed) == 0:
		return c.interrupted()
	case len(c.failed) == len(c.targets):
		return &search.PhaseError{Phase: phase, Reason: allFailed, Failures: c.failed, Cause: c.failed[0].Err}
	case !c.partial:
		return &search.PhaseError{Phase: phase, Reason: someFailed, Failures: c.failed, Cause: c.failed[0].Err}
	}
	return c.interrupted()
}

// interrupted is the error of a search that was cancelled and so goes no further,
// whatever it has. Every search that is cancelled before its answer is put
// together ends so; the phase that could not begin or end is the fetch.
func (c *coordinator) interrupted() error {
	if c.ctx.Err() == nil {
		return nil
	}
	return &search.PhaseError{Phase: phaseFetch, Failures: c.failed, Cause: taskCancelled(c.task)}
}

// notStarted is why a shard was not asked.
func (c *coordinator) notStarted() error {
	cause, _ := c.task.Cancelled()
	if cause == nil {
		return taskCancelled(c.task)
	}
	return &tasks.CancelledError{Cause: cause, BeforeStart: true}
}

// choose picks the documents of the page out of those that the shards offer. Of
// documents that come at the same place, that of the earlier shard is first.
func (c *coordinator) choose() {
	o := &c.x.options
	if o.size == 0 {
		return
	}
	sorted := c.sortedHits()
	skip := o.from
	if skip < len(sorted) {
		c.page = sorted[skip:min(skip+o.size, len(sorted))]
	}
	skip = max(0, skip-len(sorted))
	// Then come those without an order: the shards follow one another.
	for i, q := range c.queries {
		if q.result == nil {
			continue
		}
		first := len(q.result.Hits)
		passed := min(skip, q.result.Count-first)
		skip -= passed
		for at := first + passed; at < q.result.Count && len(c.page) < o.size; at++ {
			c.page = append(c.page, hit{target: i, position: q.result.Position(&c.requests[i], at)})
		}
	}
	for _, h := range c.page {
		c.taken[h.target]++
	}
}

// sortedHits returns the documents that have an order, in it.
func (c *coordinator) sortedHits() []hit {
	sorts := c.x.options.sort
	if len(sorts) == 0 {
		return nil
	}
	var all []hit
	for i, q := range c.queries {
		if q.result == nil {
			continue
		}
		for _, h := range q.result.Hits {
			all = append(all, hit{target: i, position: h.Position, keys: h.Keys})
		}
	}
	slices.SortStableFunc(all, func(a, b hit) int { return shard.Compare(sorts, a.keys, b.keys) })
	return all
}

// fetch reads the documents of the page.
func (c *coordinator) fetch() error {
	if len(c.page) == 0 {
		return nil
	}
	if len(c.targets) == 1 { // they came with the query
		c.documents = c.queries[0].result.Fetched
		return nil
	}
	asked, requests := c.fetchRequests()
	results := make([]fetchOutcome, len(asked))
	started := c.fanOut(len(asked), func(i int, done func()) {
		c.x.engine.shards.Fetch(c.ctx, &requests[i], func(r *shard.FetchResult, err error) {
			results[i] = fetchOutcome{r, err}
			done()
		})
	})
	for i := started; i < len(asked); i++ {
		results[i].err = c.notStarted()
	}
	return c.settleFetch(asked, results)
}

type fetchOutcome struct {
	result *shard.FetchResult
	err    error
}

// fetchRequests returns which targets have documents of the page, and what each
// of them is asked for.
func (c *coordinator) fetchRequests() (asked []int, requests []shard.FetchRequest) {
	positions := make([][]int, len(c.targets))
	for _, h := range c.page {
		if positions[h.target] == nil {
			positions[h.target] = make([]int, 0, c.taken[h.target])
		}
		positions[h.target] = append(positions[h.target], h.position)
	}
	for i, p := range positions {
		if len(p) == 0 {
			continue
		}
		t := &c.targets[i]
		asked = append(asked, i)
		requests = append(requests, shard.FetchRequest{
			Shard:     t.id,
			Parent:    c.parent(),
			Reader:    c.queries[i].result.Reader,
			Scroll:    c.x.opened,
			Positions: p,
			Work:      t.cost.fetch(t.id.Number),
		})
	}
	return asked, requests
}

// settleFetch puts the documents in their places, and decides what failures come
// to. Unlike any other, a full pool fails the whole search: its hits are known,
// and there is no room to read them.
func (c *coordinator) settleFetch(asked []int, results []fetchOutcome) error {
	fetched := make([][]shard.Document, len(c.targets))
	for i, r := range results {
		if full, ok := errors.AsType[*search.PoolFullError](r.err); ok {
			return &search.PhaseError{Phase: phaseFetch, Failures: c.failed, Cause: full}
		}
		if r.err != nil {
			c.failed = append(c.failed, c.x.failure(&c.targets[asked[i]], r.err))
			continue
		}
		fetched[asked[i]] = r.result.Documents
	}
	if err := c.interrupted(); err != nil {
		return err
	}
	if err := c.settle(phaseFetch); err != nil {
		return err
	}
	c.documents = make([]shard.Document, len(c.page))
	for i, h := range c.page {
		if from := fetched[h.target]; len(from) > 0 {
			c.documents[i], fetched[h.target] = from[0], from[1:]
		}
	}
	return nil
}

// fanOut calls start for 0, 1, ... n-1, so that only so many shards are asked at
// once, and returns when all that were started are done. It starts none once the
// search is cancelled; started tells how many there were. Each start has to see
// to it that done is called once.
func (c *coordinator) fanOut(n int, start func(i int, done func())) (started int) {
	finished := make(chan struct{}, n)
	done := func() { finished <- struct{}{} }
	running := 0
	for started < n {
		if running == c.concurrent {
			<-finished
			running--
		}
		if c.ctx.Err() != nil {
			break
		}
		start(started, done)
		started++
		running++
	}
	for range running {
		<-finished
	}
	return started
}

// matched is how many documents match on all shards that answered.
func (c *coordinator) matched() int {
	n := 0
	for _, q := range c.queries {
		if q.result != nil {
			n += q.result.Matches
		}
	}
	return n
}
