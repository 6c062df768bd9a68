package stub

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
)

// recorded is work that tells what became of it.
type recorded struct {
	job   job
	doing func()
	ran   atomic.Bool
	ended atomic.Int32
	why   error
	after func() // called when it has ended
}

func newWork(doing func()) *recorded {
	w := &recorded{doing: doing}
	w.job.work = w
	return w
}

func (w *recorded) run() {
	w.ran.Store(true)
	if w.doing != nil {
		w.doing()
	}
}

func (w *recorded) finish() {
	w.ended.Add(1)
	if w.after != nil {
		w.after()
	}
}

func (w *recorded) drop(why error) {
	w.why = why
	w.finish()
}

func (w *recorded) what() string { return "test" }

func TestPoolRunsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool("n/search", 1, 10)
		defer p.close()
		var order []int
		for i := range 5 {
			p.submit(t.Context(), &newWork(func() {
				order = append(order, i)
				time.Sleep(time.Second)
			}).job)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if !slices.Equal(order, []int{0, 1, 2, 3, 4}) {
			t.Errorf("order %v", order)
		}
	})
}

func TestPoolDropsCancelledWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool("n/search", 1, 10)
		defer p.close()
		p.submit(t.Context(), &newWork(func() { time.Sleep(time.Hour) }).job)
		why := errors.New("why")
		var waiting []*recorded
		var cancel []context.CancelCauseFunc
		for range 3 {
			ctx, c := context.WithCancelCause(t.Context())
			w := newWork(nil)
			p.submit(ctx, &w.job)
			waiting, cancel = append(waiting, w), append(cancel, c)
		}
		synctest.Wait()
		for _, i := range []int{1, 0, 2} { // the middle, the first, the last
			cancel[i](why)
			synctest.Wait()
			w := waiting[i]
			if w.ran.Load() || w.ended.Load() != 1 || w.why != why {
				t.Errorf("cancelled work %d: ran %v, ended %d times, because of %v", i, w.ran.Load(), w.ended.Load(), w.why)
			}
		}
		if s := p.stats(); s.Queue != 0 || p.first != nil || p.last != nil {
			t.Errorf("pool %+v", s)
		}
		// A context that has ended already.
		w := newWork(nil)
		p.submit(context.WithoutCancel(t.Context()), &newWork(nil).job)
		ctx, c := context.WithCancelCause(t.Context())
		c(why)
		p.submit(ctx, &w.job)
		synctest.Wait()
		if w.ran.Load() || w.why != why {
			t.Errorf("work of an ended context: ran %v, %v", w.ran.Load(), w.why)
		}
	})
}

func TestPoolEndsEachWorkOnce(t *testing.T) {
	p := newPool("n/search", 3, 4)
	var ended, refused atomic.Int64
	var all, done sync.WaitGroup
	const workers, each = 8, 300
	for range workers {
		all.Go(func() {
			for i := range each {
				ctx, cancel := context.WithCancelCause(t.Context())
				w := newWork(nil)
				done.Add(1)
				w.after = func() {
					if w.ended.Load() != 1 {
						t.Error("work ends twice")
					}
					if w.ran.Load() == (w.why != nil) {
						t.Errorf("work ran: %v, dropped because of %v", w.ran.Load(), w.why)
					}
					if _, full := w.why.(*search.PoolFullError); full {
						refused.Add(1)
					}
					ended.Add(1)
					done.Done()
				}
				p.submit(ctx, &w.job)
				if i%2 == 0 {
					cancel(errors.New("cancelled"))
				} else {
					defer cancel(nil)
				}
			}
		})
	}
	all.Wait()
	done.Wait()
	s := p.stats()
	if ended.Load() != workers*each || s.Active != 0 || s.Queue != 0 || int64(s.Rejected) != refused.Load() {
		t.Errorf("%d of %d ended, %d refused, pool %+v", ended.Load(), workers*each, refused.Load(), s)
	}
	p.close()
}

// A panic in a shard's work fails the shard and nothing else.
func TestAPanicIsTheFailureOfOneShard(t *testing.T) {
	m := tasks.NewManager("node-1")
	var told []any
	e := New(Config{Node: "node-1", NodeName: "n", Tasks: m, PoolSize: 1, QueueSize: 1, Panicked: func(value any, stack []byte) {
		if !strings.Contains(string(stack), "TestAPanicIsTheFailureOfOneShard") {
			t.Errorf("the stack is %s", stack)
		}
		told = append(told, value)
	}})
	defer e.Close()
	l := e.shards.(*local)
	fail := func(do func(p *phase) (*shard.QueryResult, error)) error {
		failed := make(chan error, 1)
		begin(t.Context(), shard.Task{}, &shardWork[*shard.QueryResult]{engine: l.engine, id: shard.ID{Index: "a"}, action: actionQuery, do: do,
			done: func(_ *shard.QueryResult, err error) { failed <- err }})
		return <-failed
	}
	for range 3 { // with one worker: it is still there
		err := fail(func(p *phase) (*shard.QueryResult, error) {
			var h held
			defer p.release(&h)
			if err := p.hold(&h, &shard.Work{Memory: 1 << 20}); err != nil {
				return nil, err
			}
			panic("on purpose")
		})
		se, ok := err.(*search.ShardError)
		if !ok || se.Status != 500 || !strings.Contains(se.Reason, "on purpose") {
			t.Errorf("%v, want a ShardError that tells of the panic", err)
		}
	}
	if !slices.Equal(told, []any{"on purpose", "on purpose", "on purpose"}) {
		t.Errorf("told of the panics %v", told)
	}
	if m.Len() != 0 {
		t.Errorf("%d tasks are left", m.Len())
	}
	if n := e.work.taken.Load(); n != 0 {
		t.Errorf("%d bytes are still counted", n)
	}
	if s := e.PoolStats(); s.Active != 0 || s.Threads != 1 || s.Completed != 3 {
		t.Errorf("pool %+v", s)
	}
}

// What a phase costs on purpose is given back on every way out of it.
func TestMemoryIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := tasks.NewManager("node-1")
		e := New(Config{Node: "node-1", NodeName: "n", Tasks: m, PoolSize: 2, QueueSize: 10, MaxWorkBytes: 1 << 20})
		if err := e.CreateIndex("a", nil); err != nil {
			t.Fatal(err)
		}
		run := func(body string, cancel, answered bool) {
			x, err := e.Prepare(&search.Request{Indices: []string{"a"}, Body: []byte(body)})
			if err != nil {
				t.Fatal(err)
			}
			task, err := m.Register(t.Context(), tasks.Spec{Cancellable: true})
			if err != nil {
				t.Fatal(err)
			}
			if cancel {
				task.CancelAfter(time.Second)
			}
			if _, err := x.Execute(task.Context(), task, search.Limits{}); (err == nil) != answered {
				t.Errorf("%s, cancelled %v: %v, want an answer: %v", body, cancel, err, answered)
			}
			task.End()
			x.Close()
			if n := e.work.taken.Load(); n != 0 {
				t.Errorf("after %s, cancelled %v, %d bytes are still counted", body, cancel, n)
			}
		}
		run(`{"ext":{"stub":{"query_memory":"512kb","query_time":"2s"}}}`, false, true)
		run(`{"ext":{"stub":{"query_memory":"512kb","query_time":"2s"}}}`, true, false)
		run(`{"ext":{"stub":{"query_memory":"512kb","query_time":"2s"}},"timeout":"1s"}`, false, true)
		run(`{"ext":{"stub":{"query_memory":"512kb","fail_shards":1}}}`, false, false)
		run(`{"ext":{"stub":{"query_memory":"2mb"}}}`, false, false)
		e.Close()
	})
}

// Light work is done by who submits it, as if by a worker that has no other.
func TestPoolLightWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool("n/search", 1, 10)
		light := func(doing func()) *recorded {
			w := newWork(doing)
			w.job.light = true
			return w
		}
		first := light(nil)
		p.submit(t.Context(), &first.job)
		synctest.Wait()
		if s := p.stats(); first.ended.Load() != 1 || s.Threads != 1 || s.Active != 0 || s.Completed != 1 {
			t.Fatalf("the first ended %d times; pool %+v", first.ended.Load(), s)
		}

		heavy := newWork(func() { time.Sleep(time.Second) })
		second := light(func() {
			if s := p.stats(); s.Active != 1 || s.Threads != 1 {
				t.Errorf("while light work is done the pool is %+v", s)
			}
			p.submit(t.Context(), &heavy.job) // waits: the worker is taken
			if s := p.stats(); s.Queue != 1 || s.Active != 1 {
				t.Errorf("with work that waits the pool is %+v", s)
			}
		})
		p.submit(t.Context(), &second.job)
		if second.ended.Load() != 1 { // before the call returns
			t.Error("light work was left to the worker")
		}
		synctest.Wait()
		if s := p.stats(); !heavy.ran.Load() || s.Queue != 0 || s.Active != 1 {
			t.Errorf("what waited ran: %v; pool %+v", heavy.ran.Load(), s)
		}

		third := light(nil)
		p.submit(t.Context(), &third.job) // waits like any other
		if third.ended.Load() != 0 {
			t.Error("light work was done though all workers had work")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if s := p.stats(); third.ended.Load() != 1 || s.Active != 0 || s.Completed != 4 {
			t.Errorf("the third ended %d times; pool %+v", third.ended.Load(), s)
		}

		last := light(func() {
			go p.close()
			synctest.Wait()
		})
		p.submit(t.Context(), &last.job)
		p.close() // and here it returns
		if s := p.stats(); last.ended.Load() != 1 || s.Threads != 0 || s.Active != 0 {
			t.Errorf("the last ended %d times; pool %+v", last.ended.Load(), s)
		}
	})
}
