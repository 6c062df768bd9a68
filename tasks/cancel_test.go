package tasks_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/tasks"
)

func wantCause(t *testing.T, task *tasks.Task, want *tasks.Cause) {
	t.Helper()
	if got, _ := task.Cancelled(); got != want {
		t.Errorf("%v: cause %v, want %v", task.ID(), got, want)
	}
	if got := context.Cause(task.Context()); want != nil && got != error(want) {
		t.Errorf("%v: cause of its context %v, want %v", task.ID(), got, want)
	}
	if want == nil && task.Context().Err() != nil {
		t.Errorf("%v: its context has ended: %v", task.ID(), context.Cause(task.Context()))
	}
}

func TestCancelReachesDescendants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := tasks.NewManager("n")
		top := cancellable(t, m, nil)
		a, b := cancellable(t, m, top), cancellable(t, m, top)
		under, stranger := cancellable(t, m, a), cancellable(t, m, nil)

		own, all := tasks.UserCause(), tasks.ShutdownCause()
		time.Sleep(time.Second)
		if !a.Cancel(own) {
			t.Error("a was not cancelled")
		}
		wantCause(t, top, nil)
		wantCause(t, b, nil)
		at := time.Now()
		time.Sleep(time.Second)
		if !top.Cancel(all) || !top.Cancel(tasks.UserCause()) {
			t.Error("top was not cancelled")
		}
		for task, want := range map[*tasks.Task]*tasks.Cause{a: own, under: own, top: all, b: all, stranger: nil} {
			wantCause(t, task, want)
		}
		if _, when := a.Cancelled(); !when.Equal(at) {
			t.Errorf("a was cancelled at %v, want %v: the first time stays", when, at)
		}
		if m.Len() != 5 {
			t.Errorf("%d tasks: cancelled ones run on until they end", m.Len())
		}
	})
}

func TestNothingStartsUnderACancelledTask(t *testing.T) {
	m := tasks.NewManager("n")
	parent := cancellable(t, m, nil)
	between := start(t, m, t.Context(), tasks.Spec{Parent: parent}) // not cancellable
	c := tasks.UserCause()
	parent.Cancel(c)

	for _, p := range []*tasks.Task{parent, between} {
		for _, can := range []bool{true, false} {
			_, err := m.Register(t.Context(), tasks.Spec{Parent: p, Cancellable: can})
			var cancelled *tasks.CancelledError
			if !errors.As(err, &cancelled) || !cancelled.BeforeStart || cancelled.Cause != c {
				t.Errorf("registered under %v: %v", p.ID(), err)
			}
			if !errors.Is(err, c) || !strings.Contains(err.Error(), "task cancelled before starting") || !strings.Contains(err.Error(), c.Reason) {
				t.Errorf("text %q", err)
			}
		}
	}
	if m.Len() != 2 || len(parent.Children()) != 1 {
		t.Errorf("%d tasks, %d children", m.Len(), len(parent.Children()))
	}
}

func TestNotCancellable(t *testing.T) {
	m := tasks.NewManager("n")
	task := start(t, m, t.Context(), tasks.Spec{})
	below := cancellable(t, m, task)
	task.CancelAfter(0)
	if task.Cancel(tasks.UserCause()) {
		t.Error("a task that is not cancellable was cancelled")
	}
	wantCause(t, task, nil)
	wantCause(t, below, nil)

	parent := cancellable(t, m, nil)
	middle := start(t, m, t.Context(), tasks.Spec{Parent: parent})
	leaf := start(t, m, t.Context(), tasks.Spec{Parent: middle, Cancellable: true})
	c := tasks.UserCause()
	parent.Cancel(c)
	wantCause(t, middle, nil)
	wantCause(t, leaf, c)
}

func TestCancelAfterTheEnd(t *testing.T) {
	m := tasks.NewManager("n")
	task := cancellable(t, m, nil)
	task.End()
	if task.Cancel(tasks.UserCause()) {
		t.Error("an ended task was cancelled")
	}
	task.CancelAfter(0)
	wantCause(t, task, nil)
}

func TestManagerCancel(t *testing.T) {
	m := tasks.NewManager("n")
	first, plain, second := cancellable(t, m, nil), start(t, m, t.Context(), tasks.Spec{}), cancellable(t, m, nil)
	c := tasks.ShutdownCause()
	m.Cancel(m.List(tasks.Filter{}), c)
	wantCause(t, first, c)
	wantCause(t, second, c)
	wantCause(t, plain, nil)
}

func TestCancelAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := tasks.NewManager("n")
		at, child, never, longer, disarmed, ended := cancellable(t, m, nil), (*tasks.Task)(nil), cancellable(t, m, nil),
			cancellable(t, m, nil), cancellable(t, m, nil), cancellable(t, m, nil)
		child = cancellable(t, m, at)
		at.CancelAfter(300 * time.Millisecond)
		never.CancelAfter(-1)
		longer.CancelAfter(100 * time.Millisecond)
		longer.CancelAfter(400 * time.Millisecond)
		disarmed.CancelAfter(100 * time.Millisecond)
		disarmed.CancelAfter(-1)
		ended.CancelAfter(100 * time.Millisecond)
		ended.End()
		ended.CancelAfter(100 * time.Millisecond)

		time.Sleep(300*time.Millisecond - 1)
		synctest.Wait()
		wantCause(t, at, nil)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		c, _ := at.Cancelled()
		if c == nil || c.Kind != tasks.ByInterval || c.Reason != "Cancellation timeout of 300ms is expired" {
			t.Fatalf("cause %+v", c)
		}
		wantCause(t, at, c)
		wantCause(t, child, c)
		wantCause(t, longer, nil)
		time.Sleep(time.Hour)
		for _, task := range []*tasks.Task{never, disarmed, ended} {
			wantCause(t, task, nil)
		}
		if c, when := longer.Cancelled(); c == nil || when.Sub(longer.Start()) != 400*time.Millisecond {
			t.Errorf("longer: %v at %v", c, when)
		}
	})
}

func TestCancelAfterZeroIsAtOnce(t *testing.T) {
	task := cancellable(t, tasks.NewManager("n"), nil)
	task.CancelAfter(0)
	if c, _ := task.Cancelled(); c == nil || c.Kind != tasks.ByInterval || task.Context().Err() == nil {
		t.Errorf("cause %v, context %v", c, task.Context().Err())
	}
}

func TestEndOfTheContextCancels(t *testing.T) {
	reset := errors.New("upstream reset")
	for name, c := range map[string]struct {
		end  func(context.Context) (context.Context, func())
		kind tasks.Kind
	}{
		"plain": {func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancel(ctx)
			return ctx, cancel
		}, tasks.ByDisconnect},
		"with a cause": {func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(tasks.ShutdownCause()) }
		}, tasks.ByShutdown},
		"with another error": {func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(reset) }
		}, tasks.ByParent},
		"deadline": {func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			return ctx, func() { time.Sleep(time.Second); synctest.Wait(); cancel() }
		}, tasks.ByInterval},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := tasks.NewManager("n")
				ctx, end := c.end(t.Context())
				task := start(t, m, ctx, tasks.Spec{Cancellable: true})
				child := start(t, m, context.WithValue(task.Context(), reset, 1), tasks.Spec{Parent: task, Cancellable: true})
				over := start(t, m, ctx, tasks.Spec{Cancellable: true})
				over.End()
				end()
				synctest.Wait()
				got, _ := task.Cancelled()
				if got == nil || got.Kind != c.kind {
					t.Fatalf("cause %+v, want one by %v", got, c.kind)
				}
				wantCause(t, task, got)
				wantCause(t, child, got)
				wantCause(t, over, nil)
			})
		})
	}
}

// A child may have a context that ends apart from its parent's.
func TestChildWithAContextOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := tasks.NewManager("n")
		parent := cancellable(t, m, nil)
		ctx, cancel := context.WithCancel(parent.Context())
		child := start(t, m, ctx, tasks.Spec{Parent: parent, Cancellable: true})
		child.Context()
		cancel()
		synctest.Wait()
		if c, _ := child.Cancelled(); c == nil || c.Kind != tasks.ByDisconnect {
			t.Errorf("child: %v", c)
		}
		wantCause(t, parent, nil)
	})
}

func TestKinds(t *testing.T) {
	for kind, want := range map[tasks.Kind]string{
		tasks.ByUser: "user", tasks.ByInterval: "interval", tasks.ByDisconnect: "disconnect",
		tasks.ByParent: "parent", tasks.ByDuress: "duress", tasks.ByShutdown: "shutdown",
	} {
		if kind.String() != want {
			t.Errorf("%d is %q, want %q", kind, kind, want)
		}
	}
	for _, c := range []*tasks.Cause{tasks.UserCause(), tasks.DisconnectCause(), tasks.ShutdownCause(), tasks.IntervalCause(time.Second)} {
		if err := (&tasks.CancelledError{Cause: c}); c.Reason == "" || !strings.Contains(err.Error(), c.Reason) {
			t.Errorf("%v: %q", c.Kind, err)
		}
	}
}

// Tasks come and go under a parent that is cancelled meanwhile: each is refused or cancelled, and all are told the same.
func TestCancelRacesWithRegister(t *testing.T) {
	for range 200 {
		m := tasks.NewManager("n")
		parent := cancellable(t, m, nil)
		c := tasks.UserCause()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 10 {
					child, err := m.Register(parent.Context(), tasks.Spec{Parent: parent, Cancellable: true})
					if err != nil {
						if !errors.Is(err, c) {
							t.Errorf("refused for %v", err)
						}
						return
					}
					if child.ID().Number%2 == 0 {
						defer child.End()
						continue
					}
					<-child.Context().Done()
					if got := context.Cause(child.Context()); got != error(c) {
						t.Errorf("cancelled for %v", got)
					}
					child.End()
				}
			})
		}
		wg.Go(func() {
			runtime.Gosched()
			parent.Cancel(c)
		})
		wg.Wait()
		parent.End()
		if m.Len() != 0 || len(parent.Children()) != 0 {
			t.Fatalf("left: %d tasks, %d children", m.Len(), len(parent.Children()))
		}
	}
}

// Everything at once, for the race detector; the end is told once for each task.
func TestConcurrentUse(t *testing.T) {
	var mu sync.Mutex
	ends := map[tasks.ID]int{}
	m := tasks.NewManager("n", tasks.WithOnEnd(func(task *tasks.Task) {
		mu.Lock()
		defer mu.Unlock()
		ends[task.ID()]++
	}))
	const workers, rounds = 8, 100
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range rounds {
				ctx, disconnect := context.WithCancel(t.Context())
				task, err := m.Register(ctx, tasks.Spec{Cancellable: true})
				if err != nil {
					t.Errorf("register: %v", err)
					disconnect()
					return
				}
				task.SetGroup("g")
				task.CancelAfter(time.Microsecond)
				if child, err := m.Register(task.Context(), tasks.Spec{Parent: task, Cancellable: true}); err == nil {
					w := child.StartWork()
					w.Add(1, 1)
					w.Done()
					defer child.End() // an orphan for a while
				}
				m.GroupUsage()
				for _, other := range m.List(tasks.Filter{}) {
					other.Usage()
					other.Children()
					_, _ = other.Cancelled()
					other.Running()
				}
				disconnect()
				var ending sync.WaitGroup
				ending.Go(task.End)
				ending.Go(task.End)
				<-task.Ended()
				ending.Wait()
			}
		})
	}
	wg.Wait()
	if m.Len() != 0 {
		t.Errorf("%d tasks left", m.Len())
	}
	if len(ends) < workers*rounds {
		t.Errorf("%d ends were told, want at least %d", len(ends), workers*rounds)
	}
	for id, n := range ends {
		if n != 1 {
			t.Errorf("the end of %v was told %d times", id, n)
		}
	}
}
