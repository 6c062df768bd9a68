package stub_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/internal/stub"
	"github.com/wlmserver/wlmserver/internal/units"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
	"github.com/wlmserver/wlmserver/wlm"
)

const (
	queryAction = "indices:data/read/search[phase/query]"
	fetchAction = "indices:data/read/search[phase/fetch/id]"
)

// What OpenSearch counts as completions: the search itself, one query on each
// shard, one fetch on each shard with documents of the page, but none with a single
// shard, which fetches at once.
func TestTasksOfASearch(t *testing.T) {
	f := newFixture(t)
	f.golden()
	f.index("five", 5, "")
	f.index("one", 1, "")
	f.put("one", "1", `{}`)
	for _, c := range []struct {
		path, body string
		queries    int
		fetches    int
	}{
		{"five?size=0", ``, 5, 0},
		{"five", ``, 5, 0}, // without documents
		{"one", ``, 1, 0},
		{"golden", ``, 2, 2},
		{"golden?size=0", ``, 2, 0},
		{"golden?size=2", ``, 2, 1}, // both of shard 0
		{"golden?from=3", ``, 2, 0},
		{"golden,one?size=4", ``, 3, 3},
		{"nosuch*", ``, 0, 0},
	} {
		f.endedSince()
		f.search(c.path, c.body)
		want := map[string]int{"": 1, "[phase/query]": c.queries, "[phase/fetch/id]": c.fetches}
		maps.DeleteFunc(want, func(_ string, n int) bool { return n == 0 })
		if got := f.endedSince(); !maps.Equal(got, want) {
			t.Errorf("%s ends the tasks %v, want %v", c.path, got, want)
		}
	}
	f.searchFails("nosuch", "")
	if got := f.endedSince(); !maps.Equal(got, map[string]int{"": 1}) {
		t.Errorf("a search of a missing index ends %v, want itself", got)
	}
	f.searchFails("golden", `{"nosuchkey":1}`)
	if got := f.endedSince(); len(got) != 0 {
		t.Errorf("a search that cannot be parsed ends %v, want nothing", got)
	}
}

func TestTasksWhileASearchRuns(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.golden()
		o := f.start(request("golden", `{"ext":{"stub":{"query_time":"2s","fetch_time":"3s"}}}`), search.Limits{})
		synctest.Wait()
		children := o.task.Children()
		if len(children) != 2 {
			f.Fatalf("%d tasks under the search, want 2", len(children))
		}
		for i, c := range children {
			if c.Action() != queryAction || c.Type() != "direct" || !c.Cancellable() || c.Description() != "shardId[[golden]["+itoa(i)+"]]" {
				f.Errorf("task %d is %s %s %s", i, c.Type(), c.Action(), c.Description())
			}
			if u := c.Usage(); u.Executions != 1 || u.Active != 1 {
				f.Errorf("its usage is %+v, want one execution, under way", u)
			}
		}
		if u := o.task.Usage(); u.Executions != 0 {
			f.Errorf("the search itself uses %+v, want nothing: it only waits", u)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		for i, c := range o.task.Children() {
			if c.Action() != fetchAction || c.Description() != "shardId[[golden]["+itoa(i)+"]]" {
				f.Errorf("then task %d is %s %s", i, c.Action(), c.Description())
			}
		}
		<-o.done
		if o.err != nil || o.took != 5*time.Second {
			f.Errorf("the search takes %v, %v, want 5s: shards work at once", o.took, o.err)
		}
	})
}

func TestShardsAskedAtOnce(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.index("a", 6, `"stub.query_time":"1s"`)
		for _, c := range []struct {
			path   string
			limits search.Limits
			took   time.Duration
		}{
			{"a", search.Limits{}, 2 * time.Second}, // 5 and 1
			{"a?max_concurrent_shard_requests=6", search.Limits{}, time.Second},
			{"a?max_concurrent_shard_requests=1", search.Limits{}, 6 * time.Second},
			{"a", search.Limits{Group: search.Bounds{MaxConcurrentShardRequests: new(2)}}, 3 * time.Second},
			{"a?max_concurrent_shard_requests=6", search.Limits{Override: true, Group: search.Bounds{MaxConcurrentShardRequests: new(3)}}, 2 * time.Second},
		} {
			o := f.start(request(c.path, ""), c.limits)
			<-o.done
			if o.err != nil || o.took != c.took {
				f.Errorf("%s takes %v, %v, want %v", c.path, o.took, o.err, c.took)
			}
		}
	}, func(c *stub.Config) { c.PoolSize = 10 })
}

func TestThePoolBoundsTheWork(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.index("a", 1, `"stub.query_time":"1s"`)
		var running []*outcome
		for range 6 {
			running = append(running, f.start(request("a", ""), search.Limits{}))
			synctest.Wait()
		}
		if s := f.engine.PoolStats(); s.Active != 2 || s.Queue != 4 || s.Threads != 2 || s.Size != 2 || s.QueueSize != 10 {
			f.Errorf("pool %+v, want 2 active and 4 waiting", s)
		}
		for i, o := range running {
			<-o.done
			if want := time.Duration(i/2+1) * time.Second; o.took != want { // first come, first served
				f.Errorf("search %d takes %v, want %v", i, o.took, want)
			}
		}
		if s := f.engine.PoolStats(); s.Active != 0 || s.Queue != 0 || s.Completed != 6 || s.Largest != 2 || s.Wait != (2*1+2*2)*time.Second {
			f.Errorf("pool %+v, want 6 completed that waited 6s together", s)
		}
	}, func(c *stub.Config) { c.PoolSize, c.QueueSize = 2, 10 })
}

func TestAFullPoolFailsShards(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.index("one", 1, "")
		f.golden()
		busy := f.start(request("one", `{"ext":{"stub":{"query_time":"5s"}}}`), search.Limits{})
		synctest.Wait()

		// One of two shards finds a place in the queue.
		partial := f.start(request("golden", ""), search.Limits{})
		synctest.Wait()
		failed := f.start(request("golden", ""), search.Limits{})
		strict := f.start(request("golden?allow_partial_search_results=false", ""), search.Limits{})
		<-failed.done
		<-strict.done
		for _, o := range []*outcome{failed, strict} {
			e, ok := errors.AsType[*search.PhaseError](o.err)
			if !ok || e.Phase != "query" || e.Reason != "all shards failed" || len(e.Failures) != 2 {
				f.Fatalf("with the queue full: %v, want a PhaseError of two shards", o.err)
			}
			for _, failure := range e.Failures {
				full, ok := errors.AsType[*search.PoolFullError](failure.Err)
				if !ok || full.Pool != "n1/search" || full.Threads != 1 || full.Active != 1 || full.Queued != 1 || full.Capacity != 1 || !strings.Contains(full.Work, "[golden]") {
					f.Errorf("failure %+v, want a PoolFullError that tells the pool's state", failure.Err)
				}
			}
			if o.took != 0 {
				f.Errorf("the refusal takes %v", o.took)
			}
		}
		<-busy.done
		<-partial.done
		// Its fetch found a free worker: by then nobody else was there.
		a := parse(f, partial.body)
		if a.Shards.Successful != 1 || a.Shards.Failed != 1 || len(a.Shards.Failures) != 1 || a.Shards.Failures[0].Reason.Type != "rejected_execution_exception" {
			f.Errorf("with room for one shard: %s", partial.body)
		}
		if s := f.engine.PoolStats(); s.Rejected != 5 {
			f.Errorf("%d rejected, want 5", s.Rejected)
		}
	}, func(c *stub.Config) { c.PoolSize, c.QueueSize = 1, 1 })
}

// A page whose documents are known and cannot be read is no page: the search fails,
// and names no shard.
func TestAFullPoolAtTheFetchFailsTheSearch(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.golden()
		f.index("one", 1, "")
		// While shard 1 is queried, others take the worker of shard 0 and fill the
		// queue. When shard 1 is done one of those follows it: there is room to
		// fetch from one shard, not from two.
		o := f.start(request("golden", `{"ext":{"stub":{"query_time":"1s","shard":1}}}`), search.Limits{})
		synctest.Wait()
		var blockers []*outcome
		for range 3 {
			blockers = append(blockers, f.start(request("one", `{"ext":{"stub":{"query_time":"9s"}}}`), search.Limits{}))
			synctest.Wait()
		}
		<-o.done
		e, ok := errors.AsType[*search.PhaseError](o.err)
		if !ok || e.Phase != "fetch" || e.Reason != "" || len(e.Failures) != 0 {
			f.Fatalf("%v, want a PhaseError of the fetch without failures", o.err)
		}
		if _, ok := e.Cause.(*search.PoolFullError); !ok {
			f.Errorf("cause %v, want a PoolFullError", e.Cause)
		}
		for _, b := range blockers {
			<-b.done
		}
	}, func(c *stub.Config) { c.PoolSize, c.QueueSize = 2, 2 })
}

func TestFailingShards(t *testing.T) {
	f := newFixture(t)
	f.golden()
	const failure = `{"shard":0,"index":"golden","node":"node-1","reason":{"type":"query_phase_execution_exception","reason":"shard [0] failed because [fail_shards] is [1]"}}`
	want := `{"took":0,"timed_out":false,"_shards":{"total":2,"successful":1,"skipped":0,"failed":1,"failures":[` + failure + `]},"hits":{"total":{"value":1,"relation":"eq"},"max_score":1.0,"hits":[{"_index":"golden","_id":"Jg3vKKIB7LZ-4g7f2SD0","_score":1.0,"_source":{"n":2,"t":"red dog","k":"b"}}]}}`
	if got := f.search("golden", `{"ext":{"stub":{"fail_shards":1}}}`); got != want {
		t.Errorf("one shard of two fails:\n %s, want\n %s", got, want)
	}
	for _, c := range []struct {
		path, body string
		reason     string
		failures   []int
	}{
		{"golden", `{"ext":{"stub":{"fail_shards":2}}}`, "all shards failed", []int{0, 1}},
		{"golden", `{"ext":{"stub":{"fail_shards":1024}}}`, "all shards failed", []int{0, 1}},
		{"golden?allow_partial_search_results=false", `{"ext":{"stub":{"fail_shards":1}}}`, "Partial shards failure", []int{0}},
		{"golden?allow_partial_search_results=false", `{"ext":{"stub":{"fail_shards":1,"shard":1}}}`, "Partial shards failure", []int{1}},
	} {
		e, ok := errors.AsType[*search.PhaseError](f.searchFails(c.path, c.body))
		if !ok || e.Phase != "query" || e.Reason != c.reason || len(e.Failures) != len(c.failures) || e.Cause != e.Failures[0].Err {
			t.Fatalf("%s %s: %+v", c.path, c.body, e)
		}
		for i, shard := range c.failures {
			if got := e.Failures[i]; got.Shard != shard || got.Index != "golden" || got.Node != node {
				t.Errorf("%s %s: failure %+v, want one of shard %d", c.path, c.body, got, shard)
			}
			se, ok := e.Failures[i].Err.(*search.ShardError)
			if !ok || se.Status != 500 || se.Type != "query_phase_execution_exception" {
				t.Errorf("%s %s: %v", c.path, c.body, e.Failures[i].Err)
			}
		}
	}
}

func TestFailuresThatReadTheSameAreToldOnce(t *testing.T) {
	f := newFixture(t)
	f.index("a", 3, "")
	a := parse(t, f.search("a", `{"ext":{"stub":{"fail_shards":2}}}`))
	if a.Shards.Failed != 2 || len(a.Shards.Failures) != 2 { // each names its own shard
		t.Errorf("%+v", a.Shards)
	}
	bubble(t, func(f *fixture) {
		f.index("a", 3, "")
		o := f.start(request("a", `{"ext":{"stub":{"query_time":"1s"}}}`), search.Limits{})
		synctest.Wait()
		children := o.task.Children()
		for _, c := range children[:2] {
			c.Cancel(tasks.UserCause())
		}
		<-o.done
		a := parse(f, o.body)
		if a.Shards.Failed != 2 || len(a.Shards.Failures) != 1 || a.Shards.Failures[0].Shard != 0 {
			f.Errorf("two shards cancelled alike: %s", o.body)
		}
	})
}

func TestTimeout(t *testing.T) {
	slow := `{"ext":{"stub":{"query_time":"6s"}}}`
	oneSlow := `{"ext":{"stub":{"query_time":"6s","shard":1}}}`
	const none = `{"took":0,"timed_out":true,"_shards":{"total":2,"successful":2,"skipped":0,"failed":0},"hits":{"total":{"value":0,"relation":"eq"},"max_score":null,"hits":[]}}`
	cluster := func(d time.Duration) search.Limits {
		return search.Limits{Cluster: search.Bounds{Timeout: &d}}
	}
	bubble(t, func(f *fixture) {
		f.golden()
		for _, c := range []struct {
			name, path, body string
			limits           search.Limits
			took             time.Duration
			ids              string // of the hits; "none" for the answer above
			timedOut         bool
		}{
			{"as a parameter", "golden?timeout=300ms", slow, search.Limits{}, 300 * time.Millisecond, "none", true},
			{"in the body", "golden", `{"timeout":"300ms",` + slow[1:], search.Limits{}, 300 * time.Millisecond, "none", true},
			{"of the cluster", "golden", slow, cluster(300 * time.Millisecond), 300 * time.Millisecond, "none", true},
			{"the request's before the cluster's", "golden?timeout=-1", slow, cluster(300 * time.Millisecond), 6 * time.Second, "1 3 Jg3vKKIB7LZ-4g7f2SD0", false},
			{"of one shard", "golden?timeout=300ms", oneSlow, search.Limits{}, 300 * time.Millisecond, "1 3", true},
			{"at once", "golden?timeout=0ms", slow, search.Limits{}, 0, "none", true},
			{"at once, though it costs nothing", "golden?timeout=0ms", ``, search.Limits{}, 0, "none", true},
			{"long enough", "golden?timeout=7s", slow, search.Limits{}, 6 * time.Second, "1 3 Jg3vKKIB7LZ-4g7f2SD0", false},
			{"of a query that does not look", "golden?timeout=1s", `{"ext":{"stub":{"query_time":"6s","ignore_cancel":true}}}`, search.Limits{}, 6 * time.Second, "1 3 Jg3vKKIB7LZ-4g7f2SD0", false},
			{"it does not bound the fetch", "golden?timeout=1s", `{"ext":{"stub":{"fetch_time":"6s"}}}`, search.Limits{}, 6 * time.Second, "1 3 Jg3vKKIB7LZ-4g7f2SD0", false},
		} {
			o := f.start(request(c.path, c.body), c.limits)
			<-o.done
			if o.err != nil || o.took != c.took {
				f.Errorf("%s: takes %v, %v, want %v", c.name, o.took, o.err, c.took)
				continue
			}
			a := parse(f, o.body)
			if c.ids == "none" && o.body != none || c.ids != "none" && strings.Join(a.ids(), " ") != c.ids || a.TimedOut != c.timedOut {
				f.Errorf("%s: %s", c.name, o.body)
			}
		}
	})
}

// A search of one shard fetches in the same task; its time limit is over then.
func TestTimeoutDoesNotBoundTheFetchOfASingleShard(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.index("one", 1, "")
		f.put("one", "1", `{}`)
		o := f.start(request("one?timeout=2s", `{"ext":{"stub":{"query_time":"1s","fetch_time":"6s"}}}`), search.Limits{})
		<-o.done
		if a := parse(f, o.body); o.took != 7*time.Second || a.TimedOut || len(a.Hits.Hits) != 1 {
			f.Errorf("after %v: %s", o.took, o.body)
		}
	})
}

func TestTimeoutWithoutPartialResults(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.golden()
		for body, c := range map[string]struct {
			reason string
			shards []int
		}{
			`{"ext":{"stub":{"query_time":"6s"}}}`:           {"all shards failed", []int{0, 1}},
			`{"ext":{"stub":{"query_time":"6s","shard":1}}}`: {"Partial shards failure", []int{1}},
		} {
			o := f.start(request("golden?timeout=300ms&allow_partial_search_results=false", body), search.Limits{})
			<-o.done
			e, ok := errors.AsType[*search.PhaseError](o.err)
			if !ok || e.Phase != "query" || e.Reason != c.reason || len(e.Failures) != len(c.shards) || o.took != 300*time.Millisecond {
				f.Fatalf("after %v: %+v, want %s", o.took, e, c.reason)
			}
			for i, shard := range c.shards {
				se, ok := e.Failures[i].Err.(*search.ShardError)
				if !ok || e.Failures[i].Shard != shard || se.Type != "query_phase_execution_exception" || se.Reason != "Time exceeded" || se.Status != 500 {
					f.Errorf("failure %+v of shard %d", e.Failures[i], shard)
				}
			}
		}
	})
}

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

func TestClosingEndsAllWork(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.index("one", 1, "")
		body := `{"ext":{"stub":{"query_time":"1h","ignore_cancel":true}}}`
		deaf := f.start(request("one", body), search.Limits{})
		synctest.Wait()
		waiting := f.start(request("one", body), search.Limits{})
		synctest.Wait()
		f.engine.Close()
		<-deaf.done
		<-waiting.done
		late := f.start(request("one", ""), search.Limits{})
		<-late.done
		for _, o := range []*outcome{deaf, waiting, late} {
			if e, ok := errors.AsType[*search.PhaseError](o.err); !ok || o.took != 0 || !strings.Contains(e.Cause.Error(), "shutting down") {
				f.Errorf("after %v: %v", o.took, o.err)
			}
		}
		f.engine.Close() // a second time is no harm
	}, func(c *stub.Config) { c.PoolSize = 1 })
}

func TestAnIndexDeletedUnderASearch(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.golden()
		o := f.start(request("golden?max_concurrent_shard_requests=1", `{"ext":{"stub":{"query_time":"1s"}}}`), search.Limits{})
		synctest.Wait()
		if err := f.engine.DeleteIndex("golden"); err != nil {
			f.Fatal(err)
		}
		<-o.done
		a := parse(f, o.body)
		// The shard that had begun has its documents, also in the fetch.
		if o.err != nil || a.Shards.Failed != 1 || a.Shards.Failures[0].Reason.Type != "index_not_found_exception" || strings.Join(a.ids(), " ") != "1 3" {
			f.Errorf("%v, answer %s", o.err, o.body)
		}
	})
}

func TestScroll(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.golden()
		for _, sort := range []string{"", `,"sort":"n"`} {
			r := request("golden?size=1", `{"ext":{"stub":{"query_time":"1s","fetch_time":"1s"}}`+sort+`}`)
			r.ScrollKeepAlive, r.ScrollID = time.Minute, "the-scroll"
			c, err := f.prepare(r)
			if err != nil {
				f.Fatal(err)
			}
			var ids []string
			for page := range 5 {
				f.endedSince()
				start := time.Now()
				body, err := c.run(search.Limits{})
				if err != nil {
					f.Fatal(err)
				}
				if !strings.HasPrefix(tookless(body), `{"_scroll_id":"the-scroll","took":0,"timed_out":false,`) {
					f.Errorf("page %d begins %s", page, body)
				}
				a := parse(f, body)
				if a.Hits.Total.Value != 3 || a.Shards.Total != 2 {
					f.Errorf("page %d: %s", page, body)
				}
				ids = append(ids, a.ids()...)
				want := map[string]int{"[phase/query]": 2, "[phase/fetch/id]": 1}
				took := 2 * time.Second
				if page > 0 {
					want = map[string]int{"[phase/query/scroll]": 2, "[phase/fetch/id/scroll]": 1}
				}
				if page >= 3 {
					delete(want, "[phase/fetch/id/scroll]")
					took = time.Second
				}
				if got := f.endedSince(); !maps.Equal(got, want) || time.Since(start) != took {
					f.Errorf("page %d ends the tasks %v after %v, want %v after %v", page, got, time.Since(start), want, took)
				}
				// What happens to the documents meanwhile is not seen.
				f.put("golden", "later-"+itoa(page), `{"n":0}`)
				if page == 0 {
					if _, err := f.engine.DeleteDocument("golden", "3"); err != nil {
						f.Fatal(err)
					}
				}
			}
			want := "1 3 Jg3vKKIB7LZ-4g7f2SD0"
			if sort != "" {
				want = "1 Jg3vKKIB7LZ-4g7f2SD0 3"
			}
			if got := strings.Join(ids, " "); got != want {
				f.Errorf("pages of %q: %s, want %s", sort, got, want)
			}
			c.end()
			if err := f.engine.DeleteIndex("golden"); err != nil {
				f.Fatal(err)
			}
			f.golden()
		}
	})
}

// A page that fails can be asked for again.
func TestAFailedPageIsNotLost(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.golden()
		r := request("golden?size=2", "")
		r.ScrollKeepAlive, r.ScrollID = time.Minute, "s"
		x, err := f.engine.Prepare(r)
		if err != nil {
			f.Fatal(err)
		}
		page := func(cancel bool) (answer, error) {
			t, err := f.tasks.Register(f.context(), tasks.Spec{Action: search.ScrollAction, Cancellable: true})
			if err != nil {
				f.Fatal(err)
			}
			defer t.End()
			if cancel {
				t.Cancel(tasks.UserCause())
			}
			r, err := x.Execute(t.Context(), t, search.Limits{})
			if err != nil {
				return answer{}, err
			}
			return parse(f, string(r.Body)), nil
		}
		if a, err := page(false); err != nil || strings.Join(a.ids(), " ") != "1 3" {
			f.Errorf("page 1: %v, %v", a.ids(), err)
		}
		if _, err := page(true); err == nil {
			f.Error("a cancelled page is answered")
		}
		if a, err := page(false); err != nil || strings.Join(a.ids(), " ") != "Jg3vKKIB7LZ-4g7f2SD0" {
			f.Errorf("page 2: %v, %v", a.ids(), err)
		}
		x.Close()
	})
}

func TestScrollOfOneShard(t *testing.T) {
	f := newFixture(t)
	f.index("one", 1, "")
	f.put("one", "1", `{}`)
	f.put("one", "2", `{}`)
	r := request("one?size=1", "")
	r.ScrollKeepAlive, r.ScrollID = time.Minute, "s"
	c, err := f.prepare(r)
	if err != nil {
		t.Fatal(err)
	}
	defer c.end()
	for page, want := range []string{"1", "2", ""} {
		f.endedSince()
		body, err := c.run(search.Limits{})
		if err != nil || strings.Join(parse(t, body).ids(), " ") != want {
			t.Errorf("page %d: %s, %v, want %s", page, body, err, want)
		}
		action := "[phase/query]"
		if page > 0 {
			action = "[phase/query+fetch/scroll]"
		}
		if got := f.endedSince(); !maps.Equal(got, map[string]int{action: 1}) {
			t.Errorf("page %d ends the tasks %v, want one %s", page, got, action)
		}
	}
}

func TestRefusedScrolls(t *testing.T) {
	f := newFixture(t)
	for path, text := range map[string]string{
		"?size=0":                 "1: [size]",
		"?from=1":                 "1: [from]",
		"?track_total_hits=false": "1: [track_total_hits]",
		"?request_cache=true":     "1: [request_cache]",
		"?size=0&from=1":          "2: [from]",
	} {
		r := request(path, "")
		r.ScrollKeepAlive = time.Minute
		_, err := f.engine.Prepare(r)
		if _, ok := errors.AsType[*search.ValidationError](err); !ok || !strings.Contains(err.Error(), text) {
			t.Errorf("scroll with %s: %v, want a ValidationError with %q", path, err, text)
		}
	}
	if _, err := f.engine.Prepare(&search.Request{Kind: search.ScrollPage}); err == nil {
		t.Error("the page of a scroll can be prepared")
	}
	f.index("a", 1, "")
	r := request("a?size=10001", "")
	r.ScrollKeepAlive = time.Minute
	if _, err := f.try(r); err == nil || !strings.Contains(err.Error(), "[10001]") {
		t.Errorf("pages of 10,001 hits: %v", err)
	}
}

// A nested search runs first, for the same principal and group, in the context of
// the search that it is for; what it fails with, that fails with.
func TestNestedSearch(t *testing.T) {
	var nested *search.Request
	type key struct{}
	f := newFixture(t, func(c *stub.Config) {
		c.Nested = func(ctx context.Context, r *search.Request) (*search.Response, error) {
			if ctx.Value(key{}) != "outer" {
				t.Error("the nested search does not run in the context of the outer one")
			}
			nested = r
			if r.Indices[0] == "bad" {
				return nil, &search.IndexNotFoundError{Index: "bad"}
			}
			return &search.Response{}, nil
		}
	})
	f.golden()
	run := func(body string) error {
		r := request("golden", body)
		r.GroupID, r.Principal, r.OpaqueID = "g", wlm.Principal{User: "u"}, "o"
		c, err := f.prepare(r)
		if err != nil {
			t.Fatal(err)
		}
		defer c.end()
		_, err = c.x.Execute(context.WithValue(c.task.Context(), key{}, "outer"), c.task, search.Limits{})
		return err
	}
	if err := run(`{"ext":{"stub":{"nested":"x,y*"}}}`); err != nil {
		t.Fatal(err)
	}
	if n := nested; n.Path != "/x,y*/_search" || len(n.Indices) != 2 || n.GroupID != "g" || n.Principal.User != "u" || n.OpaqueID != "o" || len(n.Body) != 0 {
		t.Errorf("the nested search is %+v", n)
	}
	if err := run(`{"ext":{"stub":{"nested":"bad"}}}`); !isIndexNotFound(err, "bad") {
		t.Errorf("when the nested search fails: %v", err)
	}
}

func TestLimitsOfNobody(t *testing.T) {
	if (search.Limits{}).Timeout(nil) != units.None {
		t.Error("the zero Limits bound the time: the tests here rely on them not to")
	}
}
