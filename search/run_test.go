package search_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/units"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
	"github.com/wlmserver/wlmserver/wlm"
)

func TestRunAnswers(t *testing.T) {
	bubble(t, func(f *fixture) {
		r, err := f.service.Run(f.Context(), work("", 30*time.Millisecond))
		if err != nil || r.Status != 200 || string(r.Body) != `{"page":1,"_scroll_id":""}` {
			f.Errorf("got %+v, %v", r, err)
		}
	})
}

func TestInvalidRequestLeavesNoTrace(t *testing.T) {
	bubble(t, func(f *fixture) {
		id := f.limited(1, 5)
		invalid := &search.InvalidError{Reason: "no"}
		f.engine.refuse = func(*search.Request) error {
			if n := f.tasks.Len(); n != 0 {
				f.Errorf("%d tasks while the request is checked", n)
			}
			return invalid
		}
		for _, r := range []*search.Request{
			work(id, time.Second),
			{GroupID: id, Kind: search.Count},
			{GroupID: id, ScrollKeepAlive: time.Minute},
		} {
			if _, err := f.service.Run(f.Context(), r); err != error(invalid) {
				f.Errorf("got %v, want the executor's error itself", err)
			}
		}
		if c := f.counters(id); c != (wlm.GroupCounters{Group: id}) {
			f.Errorf("an invalid request was counted: %+v", c)
		}
	})
}

func TestTaskOfASearch(t *testing.T) {
	bubble(t, func(f *fixture) {
		id := f.limited(1, 5)
		r := work(id, time.Second)
		r.OpaqueID = "mine"
		r.Principal = wlm.Principal{User: "ann"}
		first := f.start(f.Context(), r)

		task := f.only(search.SearchAction)
		if task.Type() != tasks.Transport || !task.Cancellable() || task.User() != "ann" || task.Description() != "work[1s]" ||
			task.Parent() != (tasks.ID{}) || !maps.Equal(task.Headers(), map[string]string{"X-Opaque-Id": "mine"}) {
			f.Errorf("task %v %v %q %q %v %v", task.Type(), task.Cancellable(), task.User(), task.Description(), task.Parent(), task.Headers())
		}
		if task.Group() != id {
			f.Errorf("a running search is of group %q, want %q", task.Group(), id)
		}
		if st := f.status(task); st.State != wlm.StateRunning || !st.Tracked {
			f.Errorf("status %+v, want running, tracked", st)
		}

		second := f.start(f.Context(), &search.Request{Kind: search.Count, GroupID: id})
		parked := f.tasks.List(tasks.Filter{Actions: []string{search.SearchAction}})[1]
		if parked.Group() != "" {
			f.Errorf("a parked search counts for group %q", parked.Group())
		}
		if st := f.status(parked); st.State != wlm.StateWaiting || st.Position != 1 || st.Tier != wlm.NodeTier {
			f.Errorf("status %+v, want waiting, first, for the node tier", st)
		}
		if len(parked.Headers()) != 0 {
			f.Errorf("headers %v", parked.Headers())
		}
		after(time.Second)
		if first.err != nil || second.err != nil || !second.done {
			f.Errorf("got %+v, %+v", first, second)
		}
	})
}

// status reads the admission ticket that hangs on a task.
func (f *fixture) status(t *tasks.Task) wlm.Status {
	f.Helper()
	ticket, ok := t.Status().(*wlm.Ticket)
	if !ok {
		f.Fatalf("status %T, want a ticket", t.Status())
	}
	st, ok := f.admission.Survey().Status(ticket)
	if !ok {
		f.Fatal("the ticket is over")
	}
	return st
}

// The permit has ended when Run returns: at limit 1 without a queue the next
// search finds it free, however the one before it ended.
func TestPermitEndsBeforeRunReturns(t *testing.T) {
	failure := errors.New("broken")
	for name, test := range map[string]struct {
		execute func() error
		err     error
		panics  any
	}{
		"success": {execute: func() error { return nil }},
		"error":   {execute: func() error { return failure }, err: failure},
		"panic":   {execute: func() error { panic("broken") }, panics: "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				id := f.limited(1, 0)
				f.engine.execute = func(context.Context, *search.Request, *tasks.Task, search.Limits) error { return test.execute() }
				for range 3 {
					panicked, err := f.runRecovered(work(id, 0))
					if err != test.err || panicked != test.panics {
						f.Errorf("got %v and panic %v, want %v and %v", err, panicked, test.err, test.panics)
					}
					if totals := f.admission.Totals(); totals.Tracked != 0 {
						f.Errorf("Run has returned and %d permits are held", totals.Tracked)
					}
				}
				if c := f.counters(id); c.Completions != 3 || c.Throttled != 0 || c.Admitted != 3 {
					f.Errorf("counters %+v, want 3 admitted and completed", c)
				}
			})
		})
	}
}

func (f *fixture) runRecovered(r *search.Request) (panicked any, err error) {
	defer func() { panicked = recover() }()
	_, err = f.service.Run(f.Context(), r)
	return nil, err
}

// A panic while others wait must hand the slot on.
func TestPanicAdmitsTheNext(t *testing.T) {
	bubble(t, func(f *fixture) {
		id := f.limited(1, 5)
		first := true
		f.engine.execute = func(ctx context.Context, r *search.Request, _ *tasks.Task, _ search.Limits) error {
			if first {
				first = false
				time.Sleep(time.Second)
				panic("broken")
			}
			return nil
		}
		go func() {
			if p, _ := f.runRecovered(work(id, 0)); p != "broken" {
				f.Errorf("the panic came out as %v", p)
			}
		}()
		synctest.Wait()
		second := f.start(f.Context(), work(id, 0))
		after(time.Second)
		if !second.done || second.err != nil {
			f.Errorf("got %+v", second)
		}
	})
}

func TestGroupOfASearch(t *testing.T) {
	bubble(t, func(f *fixture) {
		id := f.group("mine", "")
		gone := f.group("gone", "")
		if err := f.groups.Delete(f.Context(), "gone"); err != nil {
			f.Fatal(err)
		}
		for header, want := range map[string]string{
			id:               id,
			"":               groups.DefaultID,
			"nosuch":         groups.DefaultID,
			"mine":           groups.DefaultID, // the name is not the id
			gone:             groups.DefaultID,
			groups.DefaultID: groups.DefaultID,
		} {
			before := f.counters(want).Completions
			f.engine.execute = func(_ context.Context, _ *search.Request, task *tasks.Task, _ search.Limits) error {
				if task.Group() != want {
					f.Errorf("%q runs in group %q, want %q", header, task.Group(), want)
				}
				return nil
			}
			if _, err := f.service.Run(f.Context(), work(header, 0)); err != nil {
				f.Error(err)
			}
			if n := f.counters(want).Completions - before; n != 1 {
				f.Errorf("%q: %d completions in %q, want 1", header, n, want)
			}
		}
	})
}

// Completions are the tasks of searches that ran: a refused or evicted one is
// none, a failed, cancelled or nested one is.
func TestCompletions(t *testing.T) {
	bubble(t, func(f *fixture) {
		id := f.limited(1, 1)
		ctx, leave := context.WithCancel(f.Context())
		running := f.start(f.Context(), work(id, time.Second))
		evicted := f.start(ctx, work(id, time.Second))
		refused := f.start(f.Context(), work(id, time.Second))
		leave()
		synctest.Wait()
		if _, ok := errors.AsType[*wlm.RejectedError](refused.err); !ok {
			f.Errorf("got %v, want a refusal", refused.err)
		}
		if _, ok := errors.AsType[*wlm.CancelledError](evicted.err); !ok {
			f.Errorf("got %v, want an eviction", evicted.err)
		}
		if c := f.counters(id); c.Completions != 0 || c.Throttled != 1 || c.Evicted != 1 {
			f.Errorf("counters %+v, want none completed, 1 throttled, 1 evicted", c)
		}
		f.only(search.SearchAction).Cancel(tasks.UserCause())
		synctest.Wait()
		if running.err == nil {
			f.Error("a cancelled search succeeded")
		}
		if c := f.counters(id); c.Completions != 1 {
			f.Errorf("%d completions, want the cancelled one", c.Completions)
		}
	})
}

// One search of many is refused for each that does not fit, and each side of
// the books shows it.
func TestRefusalsAreCountedOnce(t *testing.T) {
	bubble(t, func(f *fixture) {
		id := f.limited(1, 0)
		slow := f.start(f.Context(), work(id, time.Minute))
		for range 5 {
			_, err := f.service.Run(f.Context(), work(id, 0))
			if r, ok := errors.AsType[*wlm.RejectedError](err); !ok || r.Limit != 1 {
				f.Errorf("got %v, want a refusal by limit 1", err)
			}
		}
		after(time.Minute)
		if c := f.counters(id); !slow.done || slow.err != nil || c.Throttled != 5 || c.Completions != 1 || c.Admitted != 1 {
			f.Errorf("slow %+v, counters %+v, want 5 throttled, 1 completed", slow, c)
		}
	})
}

func TestEviction(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(f *fixture, r *search.Request, parked *tasks.Task, leave context.CancelCauseFunc)
		kind tasks.Kind
	}{
		"by a user": {kind: tasks.ByUser, end: func(_ *fixture, _ *search.Request, parked *tasks.Task, _ context.CancelCauseFunc) {
			parked.Cancel(tasks.UserCause())
		}},
		"by a disconnect": {kind: tasks.ByDisconnect, end: func(_ *fixture, _ *search.Request, _ *tasks.Task, leave context.CancelCauseFunc) {
			leave(nil)
		}},
		"by the request's own context": {kind: tasks.ByShutdown, end: func(_ *fixture, _ *search.Request, _ *tasks.Task, leave context.CancelCauseFunc) {
			leave(tasks.ShutdownCause())
		}},
		"by its interval": {kind: tasks.ByInterval, end: func(f *fixture, _ *search.Request, _ *tasks.Task, _ context.CancelCauseFunc) {
			after(9 * time.Second)
			if n := f.admission.Totals().Waiters; n != 1 {
				f.Errorf("%d waiters before the interval is over", n)
			}
			after(time.Second)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				id := f.limited(1, 5)
				ahead := f.start(f.Context(), work(id, time.Hour))
				ctx, leave := context.WithCancelCause(f.Context())
				defer leave(nil)
				r := work(id, time.Hour)
				r.CancelAfter = new(10 * time.Second)
				evicted := f.start(ctx, r)
				parked := f.tasks.List(tasks.Filter{Actions: []string{search.SearchAction}})[1]
				test.end(f, r, parked, leave)
				synctest.Wait()

				e, ok := errors.AsType[*wlm.CancelledError](evicted.err)
				if !ok || !e.Queued {
					f.Fatalf("got %v, want an eviction from the queue", evicted.err)
				}
				if c, ok := errors.AsType[*tasks.Cause](e); !ok || c.Kind != test.kind {
					f.Errorf("cause %v, want %v", e.Cause, test.kind)
				}
				if n := f.engine.begun(); n != 1 {
					f.Errorf("%d executions, want the one ahead", n)
				}
				if c := f.counters(id); c.QueuedCurrent != 0 || c.Evicted != 1 {
					f.Errorf("counters %+v", c)
				}
				f.only(search.SearchAction).Cancel(tasks.UserCause())
				synctest.Wait()
				if !ahead.done {
					f.Error("the search ahead still runs")
				}
			})
		})
	}
}

// A search that is cancelled once it has been admitted still runs: its
// execution finds the context ended, and decides what to answer.
func TestCancelledWhileRunning(t *testing.T) {
	bubble(t, func(f *fixture) {
		id := f.limited(1, 5)
		r := work(id, time.Hour)
		r.CancelAfter = new(300 * time.Millisecond)
		o := f.start(f.Context(), r)
		after(300 * time.Millisecond)
		e, ok := errors.AsType[*tasks.CancelledError](o.err)
		if !ok || e.BeforeStart || e.Cause.Kind != tasks.ByInterval || o.took != 300*time.Millisecond {
			f.Errorf("got %v after %v, want the executor's own error after 300ms", o.err, o.took)
		}
	})
}

func TestGoneBeforeItCame(t *testing.T) {
	bubble(t, func(f *fixture) {
		ctx, leave := context.WithCancel(f.Context())
		leave()
		_, err := f.service.Run(ctx, work("", time.Hour))
		if e, ok := errors.AsType[*tasks.CancelledError](err); !ok || !e.BeforeStart || e.Cause.Kind != tasks.ByDisconnect {
			f.Errorf("got %v, want cancelled before starting", err)
		}
		r := work("", time.Hour)
		r.CancelAfter = new(time.Duration(0))
		_, err = f.service.Run(f.Context(), r)
		if e, ok := errors.AsType[*wlm.CancelledError](err); !ok || e.Queued {
			f.Errorf("got %v, want cancelled before it was admitted", err)
		}
		if n := f.engine.begun(); n != 0 {
			f.Errorf("%d executions, want none", n)
		}
	})
}

// A search run on behalf of one that holds the permit takes no second one,
// which at limit 1 it would wait for for ever.
func TestNestedSearch(t *testing.T) {
	bubble(t, func(f *fixture) {
		id := f.limited(1, 5)
		other := f.group("other", `"throttling":{"attribute":"group","node_limit":1}`)
		blocker := f.start(f.Context(), work(other, time.Minute))
		f.engine.execute = func(ctx context.Context, r *search.Request, task *tasks.Task, _ search.Limits) error {
			if r.Query.Has("leaf") {
				if task.Group() != r.GroupID {
					f.Errorf("the nested search runs for %q", task.Group())
				}
				if task.Parent() == (tasks.ID{}) {
					f.Error("the nested search has no parent")
				}
				return nil
			}
			leaf := work(id, 0)
			leaf.Query.Set("leaf", "")
			if _, err := f.service.Run(ctx, leaf); err != nil {
				f.Errorf("nested: %v", err)
			}
			if totals := f.admission.Totals(); totals.Tracked != 2 || totals.Waiters != 0 {
				f.Errorf("totals %+v, want the outer search's permit and the blocker's", totals)
			}
			// Refused in another group, it counts for none.
			leaf = work(other, 0)
			if _, err := f.service.Run(ctx, leaf); err == nil {
				f.Error("the other group's limit did not hold")
			}
			return nil
		}
		if _, err := f.service.Run(f.Context(), work(id, 0)); err != nil {
			f.Error(err)
		}
		if c := f.counters(id); c.Completions != 2 || c.Throttled != 0 || c.Queued != 0 {
			f.Errorf("counters %+v, want 2 completions: the search's and its nested one's", c)
		}
		after(time.Minute)
		if c := f.counters(other); !blocker.done || c.Completions != 1 || c.Throttled != 1 {
			f.Errorf("counters %+v, want 1 completed, 1 throttled", c)
		}
	})
}

func TestLimitsReachTheExecution(t *testing.T) {
	bubble(t, func(f *fixture) {
		id := f.group("mine", `"settings":{"search.default_search_timeout":"2s","search.max_concurrent_shard_requests":"3"}`)
		f.set("search.default_search_timeout", "7s")
		f.set("search.default_allow_partial_results", "false")
		f.engine.execute = func(_ context.Context, r *search.Request, _ *tasks.Task, l search.Limits) error {
			timeout, shards := 7*time.Second, search.DefaultMaxConcurrentShardRequests
			if r.GroupID == id {
				timeout, shards = 2*time.Second, 3
			}
			if got := l.Timeout(nil); got != timeout {
				f.Errorf("timeout %v, want %v", got, timeout)
			}
			if got := l.MaxConcurrentShardRequests(0); got != shards {
				f.Errorf("%d shards at once, want %d", got, shards)
			}
			if l.AllowPartialResults(nil) {
				f.Error("partial results are allowed")
			}
			if got := l.CancelAfter(nil); got != units.None {
				f.Errorf("cancel after %v", got)
			}
			return nil
		}
		for _, g := range []string{id, ""} {
			if _, err := f.service.Run(f.Context(), work(g, 0)); err != nil {
				f.Error(err)
			}
		}
	})
}

// When the admission stops, parked searches are answered at once and running
// ones end in their own time.
func TestStop(t *testing.T) {
	bubble(t, func(f *fixture) {
		id := f.limited(1, 5)
		running := f.start(f.Context(), work(id, time.Second))
		parked := f.start(f.Context(), work(id, time.Second))
		f.admission.Stop()
		synctest.Wait()
		late := f.start(f.Context(), work(id, time.Second))
		for name, o := range map[string]*outcome{"parked": parked, "late": late} {
			if _, ok := errors.AsType[*wlm.StoppedError](o.err); !ok {
				f.Errorf("%s: got %v, want stopped", name, o.err)
			}
		}
		after(time.Second)
		if !running.done || running.err != nil {
			f.Errorf("running: %+v", running)
		}
	})
}
