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
	if err := f.searchFails("nosuch", ""); !isIndexNotFound(err, "nosuch") {
		t.Errorf("a search of a missing index: %v", err)
	}
	if got := f.endedSince(); !maps.Equal(got, map[string]int{"": 1}) {
		t.Errorf("a search of a missing index ends %v, want itself", got)
	}
	if _, ok := errors.AsType[*search.ParseError](f.searchFails("golden", `{"nosuchkey":1}`)); !ok {
		t.Error("a search with an unknown key is not refused as that")
	}
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
