package stub_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/internal/stub"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
)

// cancelledBy reports whether err is that of a task cancelled in that way.
func cancelledBy(err error, kind tasks.Kind) bool {
	e, ok := err.(*tasks.CancelledError)
	return ok && e.Cause.Kind == kind
}

func TestCancelledSearches(t *testing.T) {
	for _, c := range []struct {
		name, path, body string
		after, took      time.Duration
		phase, reason    string
		failures         []int // shards
	}{
		{"in the query", "golden", `{"ext":{"stub":{"query_time":"6s"}}}`, time.Second, time.Second, "query", "all shards failed", []int{0, 1}},
		{"the only shard", "one", `{"ext":{"stub":{"query_time":"6s"}}}`, time.Second, time.Second, "query", "all shards failed", []int{0}},
		{"in the fetch of the only shard", "one", `{"ext":{"stub":{"fetch_time":"6s"}}}`, time.Second, time.Second, "query", "all shards failed", []int{0}},
		{"without partial results", "golden?allow_partial_search_results=false", `{"ext":{"stub":{"query_time":"6s"}}}`, time.Second, time.Second, "query", "all shards failed", []int{0, 1}},
		{"when one shard has answered", "golden", `{"ext":{"stub":{"query_time":"6s","shard":1}}}`, time.Second, time.Second, "fetch", "", []int{1}},
		{"when one has, without partial results", "golden?allow_partial_search_results=false", `{"ext":{"stub":{"query_time":"6s","shard":1}}}`, time.Second, time.Second, "query", "Partial shards failure", []int{1}},
		{"in the fetch", "golden", `{"ext":{"stub":{"fetch_time":"6s"}}}`, time.Second, time.Second, "fetch", "", []int{0, 1}},
		{"a query that does not look", "golden", `{"ext":{"stub":{"query_time":"6s","ignore_cancel":true}}}`, time.Second, 6 * time.Second, "query", "all shards failed", []int{0, 1}},
		{"no shard is asked any more", "golden?max_concurrent_shard_requests=1", `{"ext":{"stub":{"query_time":"6s"}}}`, time.Second, time.Second, "query", "all shards failed", []int{0, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				f.golden()
				f.index("one", 1, "")
				f.put("one", "1", `{}`)
				o := f.start(request(c.path, c.body), search.Limits{})
				time.AfterFunc(c.after, func() { o.task.Cancel(tasks.UserCause()) })
				<-o.done
				if o.took != c.took {
					f.Errorf("ends after %v, want %v", o.took, c.took)
				}
				e, ok := errors.AsType[*search.PhaseError](o.err)
				if !ok || e.Phase != c.phase || e.Reason != c.reason || len(e.Failures) != len(c.failures) {
					f.Fatalf("%v %+v, want the %s phase with %q and %d failures", o.err, e, c.phase, c.reason, len(c.failures))
				}
				if !cancelledBy(e.Cause, tasks.ByUser) {
					f.Errorf("cause %v, want the cancellation", e.Cause)
				}
				for i, shard := range c.failures {
					if got := e.Failures[i]; got.Shard != shard || !cancelledBy(got.Err, tasks.ByUser) {
						f.Errorf("failure %+v, want the cancellation of shard %d", got, shard)
					}
				}
			})
		})
	}
}

func TestACancelledSearchStartsNothing(t *testing.T) {
	f := newFixture(t)
	f.golden()
	c, err := f.prepare(request("golden", ""))
	if err != nil {
		t.Fatal(err)
	}
	f.endedSince()
	c.task.Cancel(tasks.IntervalCause(0))
	_, err = c.run(search.Limits{})
	e, ok := errors.AsType[*search.PhaseError](err)
	if !ok || e.Reason != "all shards failed" || len(e.Failures) != 2 || !cancelledBy(e.Failures[1].Err, tasks.ByInterval) {
		t.Errorf("%v, want a PhaseError of two shards that were not asked", err)
	}
	c.end()
	if got := f.endedSince(); !maps.Equal(got, map[string]int{"": 1}) {
		t.Errorf("tasks %v, want the search alone", got)
	}
}

// Cancelling the task of one shard leaves the others their answer.
func TestACancelledShard(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.golden()
		o := f.start(request("golden", `{"ext":{"stub":{"query_time":"6s"}}}`), search.Limits{})
		synctest.Wait()
		o.task.Children()[0].Cancel(tasks.UserCause())
		<-o.done
		if o.err != nil {
			f.Fatal(o.err)
		}
		a := parse(f, o.body)
		if a.Shards.Failed != 1 || a.Shards.Successful != 1 || strings.Join(a.ids(), " ") != "Jg3vKKIB7LZ-4g7f2SD0" || a.Hits.Total.Value != 1 {
			f.Errorf("answer %s", o.body)
		}
		if len(a.Shards.Failures) != 1 || a.Shards.Failures[0].Shard != 0 || a.Shards.Failures[0].Node != node || a.Shards.Failures[0].Reason.Type != "task_cancelled_exception" {
			f.Errorf("failures %+v", a.Shards.Failures)
		}

		// In the fetch its documents are missing; the count stays.
		o = f.start(request("golden", `{"ext":{"stub":{"fetch_time":"6s"}}}`), search.Limits{})
		synctest.Wait()
		o.task.Children()[0].Cancel(tasks.UserCause())
		<-o.done
		a = parse(f, o.body)
		if o.err != nil || a.Shards.Failed != 1 || strings.Join(a.ids(), " ") != "Jg3vKKIB7LZ-4g7f2SD0" || a.Hits.Total.Value != 3 {
			f.Errorf("%v, answer %s", o.err, o.body)
		}
		o = f.start(request("golden?allow_partial_search_results=false", `{"ext":{"stub":{"fetch_time":"6s"}}}`), search.Limits{})
		synctest.Wait()
		o.task.Children()[0].Cancel(tasks.UserCause())
		<-o.done
		if e, ok := errors.AsType[*search.PhaseError](o.err); !ok || e.Phase != "fetch" || e.Reason != "Partial shards failure" || len(e.Failures) != 1 {
			f.Errorf("without partial results: %v", o.err)
		}
	})
}

// A waiting shard leaves the pool's queue at once, and its place is free.
func TestCancelledInThePoolsQueue(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.index("one", 1, "")
		busy := f.start(request("one", `{"ext":{"stub":{"query_time":"9s"}}}`), search.Limits{})
		synctest.Wait()
		waiting := f.start(request("one", `{"ext":{"stub":{"query_time":"9s"}}}`), search.Limits{})
		time.Sleep(time.Second)
		synctest.Wait()
		waiting.task.Cancel(tasks.UserCause())
		<-waiting.done
		e, ok := errors.AsType[*search.PhaseError](waiting.err)
		if !ok || !cancelledBy(e.Cause, tasks.ByUser) || waiting.took != time.Second {
			f.Errorf("after %v: %v", waiting.took, waiting.err)
		}
		if s := f.engine.PoolStats(); s.Queue != 0 || s.Active != 1 {
			f.Errorf("pool %+v", s)
		}
		next := f.start(request("one", ""), search.Limits{})
		<-next.done
		if next.err != nil {
			f.Errorf("the next one: %v", next.err)
		}
		<-busy.done
	}, func(c *stub.Config) { c.PoolSize, c.QueueSize = 1, 1 })
}
