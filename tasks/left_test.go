package tasks_test

import (
	"context"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/wlmserver/wlmserver/tasks"
)

// TestContextKeepsNoEndedTask: a request's context may outlive many tasks that were registered with it. It must not keep them.
func TestContextKeepsNoEndedTask(t *testing.T) {
	m := tasks.NewManager("n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ended []weak.Pointer[tasks.Task]
	for range 100 {
		task, err := m.Register(ctx, tasks.Spec{Cancellable: true})
		if err != nil {
			t.Fatal(err)
		}
		task.Context()
		task.End()
		ended = append(ended, weak.Make(task))
	}
	runtime.GC()
	kept := 0
	for _, p := range ended {
		if p.Value() != nil {
			kept++
		}
	}
	if kept > 1 { // the last one may still be in a register
		t.Errorf("%d of %d ended tasks are kept", kept, len(ended))
	}
}

// TestNewestIsCancelledFirst: so what waits has gone before the end of something older could let it run.
func TestNewestIsCancelledFirst(t *testing.T) {
	m := tasks.NewManager("n")
	var all []*tasks.Task
	for range 200 {
		task, err := m.Register(t.Context(), tasks.Spec{Cancellable: true})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, task)
	}
	m.Cancel(all, tasks.UserCause())
	var older time.Time
	for i, task := range all {
		_, at := task.Cancelled()
		if i > 0 && at.After(older) {
			t.Fatalf("task %d was cancelled after task %d", i, i-1)
		}
		older = at
		task.End()
	}
}
