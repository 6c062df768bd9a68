package stub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/internal/units"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
)

// Prepare checks a search, or a count, as far as that goes without knowing which
// indices there will be when it runs.
func (e *Engine) Prepare(r *search.Request) (search.Execution, error) {
	if r.Kind == search.ScrollPage {
		return nil, &search.InvalidError{Reason: "the page of a scroll belongs to the search that opened it and cannot be prepared"}
	}
	x := &execution{engine: e, request: r}
	if err := x.options.read(r); err != nil {
		return nil, err
	}
	if x.options.nested() != "" && e.config.Nested == nil {
		return nil, &search.InvalidError{Reason: "[ext.stub.nested] is not provided by this server"}
	}
	return x, nil
}

// execution is one prepared search. Of a scroll it keeps what the pages share.
type execution struct {
	engine  *Engine
	request *search.Request
	options options

	opened  bool     // the first page of a scroll has been read
	shards  []target // of a scroll
	readers []shard.Reader
}

var _ search.Execution = (*execution)(nil)

// target is one shard that a search asks.
type target struct {
	id     shard.ID
	cost   *Cost
	reader shard.Reader // of a scroll, after its first page
	taken  int          // hits of the shard that earlier pages had

	refused error // why its index cannot take the query; nil for nearly all
}

// Description reads as OpenSearch's does.
func (x *execution) Description() string {
	var b strings.Builder
	b.WriteString("indices[")
	b.WriteString(strings.Join(x.request.Indices, ","))
	b.WriteString("], search_type[")
	if x.options.dfs {
		b.WriteString("DFS_")
	}
	b.WriteString("QUERY_THEN_FETCH]")
	if d := x.request.ScrollKeepAlive; d > 0 {
		b.WriteString(", scroll[" + units.FormatTime(d) + "]")
	}
	b.WriteString(", source[")
	if len(x.request.Body) > 0 {
		b.Write(compact(x.request.Body))
	}
	b.WriteString("]")
	return b.String()
}

// Close forgets what the search has read, and lets the shards do so.
func (x *execution) Close() {
	x.shards = nil
	for _, r := range x.readers {
		x.engine.shards.Close(r)
	}
	x.readers = nil
}

// Execute asks the shards and puts their answers together. Besides the errors of
// the indices it returns *search.PhaseError.
func (x *execution) Execute(ctx context.Context, t *tasks.Task, l search.Limits) (*search.Response, error) {
	start := time.Now()
	targets, err := x.targets()
	if err != nil {
		return nil, err
	}
	if err := x.checkWindow(targets); err != nil {
		return nil, err
	}
	if l.MaxShards > 0 && len(targets) > l.MaxShards {
		return nil, &search.InvalidError{Reason: fmt.Sprintf(
			"the search asks [%d] shards, and the most is [%d]; search fewer indices, or raise action.search.shard_count.limit", len(targets), l.MaxShards)}
	}
	if err := x.runNested(ctx); err != nil {
		return nil, err
	}
	c := x.coordinate(ctx, t, l, targets)
	if err := c.run(); err != nil {
		return nil, err
	}
	if x.isScroll() {
		x.keep(c)
	}
	return &search.Response{Status: http.StatusOK, Body: c.answer(time.Since(start)), Whole: len(targets) == 0}, nil
}

func (x *execution) isScroll() bool { return x.request.ScrollKeepAlive > 0 }

// targets returns the shards to ask: those of the indices as they are now that
// are preferred, or those that the scroll's first page asked.
func (x *execution) targets() ([]target, error) {
	if x.opened {
		return x.shards, nil
	}
	indices, err := x.engine.resolve(x.options.selection)
	if err != nil {
		return nil, err
	}
	preference := x.options.preference
	if preference != nil && preference.problem != nil && len(indices) > 0 {
		return nil, preference.problem
	}
	n := 0
	for _, ix := range indices {
		n += len(ix.stores)
	}
	targets := make([]target, 0, n)
	for _, ix := range indices {
		cost, refused := x.cost(ix), ix.refusal(x.options.terms)
		for number := range ix.stores {
			if !preference.asks(number) {
				continue
			}
			targets = append(targets, target{id: shard.ID{Index: ix.name, Number: number}, cost: cost, refused: refused})
		}
	}
	return targets, nil
}

// cost is what the search costs on a shard of that index.
func (x *execution) cost(ix *index) *Cost {
	now := ix.now.Load()
	ext := x.options.ext
	if ext == nil {
		return &now.cost
	}
	c := now.cost
	for _, set := range ext.costs {
		set(&c)
	}
	return &c
}

// checkWindow refuses what every shard would refuse: to gather too many hits.
func (x *execution) checkWindow(targets []target) error {
	o := &x.options
	window, remedy := o.from+o.size, "ask for less with [from] and [size], or read on with a scroll"
	if x.isScroll() {
		window, remedy = o.size, "make [size], the length of a page, smaller"
	}
	if window <= maxWindow || len(targets) == 0 {
		return nil
	}
	refusal := &search.InvalidError{Reason: fmt.Sprintf("the result window is [%d] hits, and the most is [%d]; %s", window, maxWindow, remedy)}
	failures := make([]search.ShardFailure, len(targets))
	for i := range targets {
		failures[i] = x.failure(&targets[i], refusal)
	}
	phase := phaseQuery
	if o.dfs && len(targets) > 1 { // which ask for the frequencies of terms first
		phase = phaseFrequencies
	}
	return &search.PhaseError{Phase: phase, Reason: allFailed, Failures: failures, Cause: refusal}
}

func (x *execution) failure(t *target, err error) search.ShardFailure {
	node := x.engine.config.Node
	if elsewhere, ok := errors.AsType[*shard.NodeError](err); ok {
		node, err = elsewhere.Node, elsewhere.Err
	}
	return search.ShardFailure{Shard: t.id.Number, Index: t.id.Index, Node: node, Err: err}
}

// runNested carries out the search that a test has asked for on behalf of this
// one. Its error is the error of this one.
func (x *execution) runNested(ctx context.Context) error {
	if x.options.nested() == "" {
		return nil
	}
	_, err := x.engine.config.Nested(ctx, &search.Request{
		Kind:      search.Search,
		Method:    http.MethodPost,
		Path:      "/" + x.options.nested() + "/_search",
		Indices:   splitNames(x.options.nested()),
		GroupID:   x.request.GroupID,
		Principal: x.request.Principal,
		OpaqueID:  x.request.OpaqueID,
	})
	return err
}

// keep remembers how far a scroll has been read. A page that failed has not come
// here, and is read again.
func (x *execution) keep(c *coordinator) {
	x.opened = true
	x.shards = c.targets
	for i := range x.shards {
		s := &x.shards[i]
		if r := c.queries[i].result; r != nil {
			s.reader = r.Reader
		}
		s.taken += c.taken[i]
	}
}
