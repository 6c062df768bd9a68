package tasks_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/wlmserver/wlmserver/tasks"
)

const (
	search = "indices:data/read/search"
	query  = "indices:data/read/search[phase/query]"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start registers a task that the test ends by itself.
func start(tb testing.TB, m *tasks.Manager, ctx context.Context, s tasks.Spec) *tasks.Task {
	tb.Helper()
	if s.Action == "" {
		s.Action = search
	}
	t, err := m.Register(ctx, s)
	if err != nil {
		tb.Fatalf("register: %v", err)
	}
	return t
}

// cancellable registers a cancellable task under parent, in its context.
func cancellable(tb testing.TB, m *tasks.Manager, parent *tasks.Task) *tasks.Task {
	tb.Helper()
	ctx := context.Background()
	if parent != nil {
		ctx = parent.Context()
	}
	return start(tb, m, ctx, tasks.Spec{Parent: parent, Cancellable: true})
}

func numbers(ts []*tasks.Task) []int64 {
	ns := []int64{}
	for _, t := range ts {
		ns = append(ns, t.ID().Number)
	}
	return ns
}
