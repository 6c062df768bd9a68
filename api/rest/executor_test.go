package rest_test

import (
	"context"
	"net/http"
	"sync"

	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
)

// gate is an executor whose searches wait at a gate, or end as they are told.
type gate struct {
	open   chan struct{} // nil: open
	panics bool
	err    error
	answer *search.Response // nil: a plain one

	mu       sync.Mutex
	requests []*search.Request
}

func (g *gate) Prepare(r *search.Request) (search.Execution, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.requests = append(g.requests, r)
	return g, nil
}

func (g *gate) Execute(ctx context.Context, _ *tasks.Task, _ search.Limits) (*search.Response, error) {
	switch {
	case g.panics:
		panic("a fault of the executor")
	case g.err != nil:
		return nil, g.err
	case g.open != nil:
		select {
		case <-g.open:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if g.answer != nil {
		return g.answer, nil
	}
	return &search.Response{Status: http.StatusOK, Body: []byte(`{"took":1}`)}, nil
}

func (g *gate) Description() string { return "a search at the gate" }

func (g *gate) Close() {}

// seen are the requests that were prepared.
func (g *gate) seen() []*search.Request {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.requests
}

// idle is an executor that answers at once.
type idle struct{}

func (*idle) Prepare(*search.Request) (search.Execution, error) { return &idle{}, nil }

func (*idle) Execute(context.Context, *tasks.Task, search.Limits) (*search.Response, error) {
	return &search.Response{Status: http.StatusOK, Body: []byte(`{"took":1}`)}, nil
}

func (*idle) Description() string { return "" }

func (*idle) Close() {}
