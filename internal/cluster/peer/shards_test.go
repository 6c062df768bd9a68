package peer_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/internal/cluster/peer"
	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/internal/stub"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
	"github.com/wlmserver/wlmserver/test/faultproxy"
)

// shards is an engine and its tasks. All have the same documents.
type shards struct {
	*stub.Engine
	tasks *tasks.Manager
}

func newShards(t *testing.T, id string, change ...func(*stub.Config)) *shards {
	t.Helper()
	m := tasks.NewManager(id)
	c := stub.Config{Node: id, NodeName: "n", Tasks: m, PoolSize: 4, QueueSize: 100, MaxWorkBytes: 1 << 20}
	for _, set := range change {
		set(&c)
	}
	e := stub.New(c)
	for _, name := range []string{"two", "one"} {
		number := map[string]int{"two": 2, "one": 1}[name]
		if err := e.CreateIndex(name, fmt.Appendf(nil, `{"settings":{"number_of_shards":%d,"number_of_replicas":0}}`, number)); err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			source := fmt.Sprintf(`{"n":%d,"t":"text %c","half":%g}`, i%7, 'a'+i%5, float64(i)/2)
			if _, err := e.PutDocument(name, fmt.Sprintf("doc-\xf6-%d", i), []byte(source), false); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Cleanup(e.Close)
	return &shards{e, m}
}

// idle checks that nothing is at work, or will not be soon.
func (s *shards) idle(t *testing.T) {
	t.Helper()
	until(t, "the shards have nothing to do", func() bool { return s.tasks.Len() == 0 })
}

// at has a node answer for the shards of an engine.
func at(s *shards) peer.Handlers { return peer.Handlers{Shards: s.Local()} }

func failures(c *peer.Config) { c.Failures = stub.Failures{} }

// elsewhere has the engine of a coordinator ask the copies, wherever these are.
func elsewhere(a *node, copies ...ring.Member) func(*stub.Config) {
	return func(c *stub.Config) {
		c.Shards = func(local shard.Transport) shard.Transport {
			return peer.NewShards(a.peers, local, func(shard.ID) []ring.Member { return copies })
		}
	}
}

// run runs a search to its end.
func (s *shards) run(t *testing.T, ctx context.Context, path, body string, pages int) (answers []string, err error) {
	t.Helper()
	x, task := s.prepare(t, ctx, path, body, pages)
	defer x.Close()
	defer task.End()
	for range max(1, pages) {
		r, err := x.Execute(task.Context(), task, search.Limits{})
		if err != nil {
			return answers, err
		}
		answers = append(answers, took.ReplaceAllString(string(r.Body), `"took":0`))
	}
	return answers, nil
}

func (s *shards) prepare(t *testing.T, ctx context.Context, path, body string, pages int) (search.Execution, *tasks.Task) {
	t.Helper()
	names, query, _ := strings.Cut(path, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	r := &search.Request{Query: values, Body: []byte(body), Indices: strings.Split(names, ",")}
	if pages > 0 {
		r.ScrollKeepAlive, r.ScrollID = time.Minute, "a-scroll"
	}
	x, err := s.Prepare(r)
	if err != nil {
		t.Fatal(err)
	}
	task, err := s.tasks.Register(ctx, tasks.Spec{Action: search.SearchAction, Type: tasks.Transport, Cancellable: true})
	if err != nil {
		t.Fatal(err)
	}
	return x, task
}

var took = regexp.MustCompile(`"took":\d+`)

// A search over shards of another node answers, and fails, as one over shards that are here.
func TestRemoteShardsAnswerAsLocalOnes(t *testing.T) {
	here, there := newShards(t, "b"), newShards(t, "b") // as a failure names the node
	b := start(t, "b", at(there), failures)
	a := start(t, "a", peer.Handlers{}, failures)
	across := newShards(t, "a", elsewhere(a, b.self))
	for _, c := range []struct {
		name, path, body string
		pages            int // of a scroll
	}{
		{"two shards", "two", `{}`, 0},
		{"both indices", "two,one", `{"from":3,"size":30}`, 0},
		{"one shard", "one", `{"size":3,"from":1}`, 0},
		{"no hits wanted", "two?size=0", `{}`, 0},
		{"sorted by a number", "two", `{"sort":[{"n":"desc"},"_doc"]}`, 0},
		{"sorted by a text and a missing field", "two,one", `{"sort":["t.keyword",{"none":"asc"},{"half":"desc"}],"size":25}`, 0},
		{"made-up hits", "two", `{"size":50,"ext":{"stub":{"hits":40}}}`, 0},
		{"a scroll", "two?size=3", `{}`, 9},
		{"a sorted scroll", "two?size=3", `{"sort":"n"}`, 9},
		{"a scroll of one shard", "one?size=7", `{}`, 4},
		{"one shard fails", "two", `{"ext":{"stub":{"fail_shards":1}}}`, 0},
		{"one shard fails, and that is too much", "two?allow_partial_search_results=false", `{"ext":{"stub":{"fail_shards":1}}}`, 0},
		{"all shards fail", "two", `{"ext":{"stub":{"fail_shards":2}}}`, 0},
		{"too late", "two", `{"timeout":"5ms","ext":{"stub":{"query_time":"10s"}}}`, 0},
		{"too late, and that is too much", "two?allow_partial_search_results=false", `{"timeout":"5ms","ext":{"stub":{"query_time":"10s"}}}`, 0},
		{"too much memory", "two", `{"ext":{"stub":{"query_memory":"1gb"}}}`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			want, wantErr := here.run(t, t.Context(), c.path, c.body, c.pages)
			got, gotErr := across.run(t, t.Context(), c.path, c.body, c.pages)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("answers\n%q, want\n%q", got, want)
			}
			if !reflect.DeepEqual(gotErr, wantErr) {
				t.Errorf("fails with %#v, want %#v", gotErr, wantErr)
			}
			there.idle(t)
			until(t, "no reader is kept", func() bool { return b.server.Readers() == 0 })
		})
	}
	if here.PoolStats().Completed == 0 || there.PoolStats().Completed == 0 || across.PoolStats().Completed != 0 {
		t.Errorf("the work was done by %+v, %+v and %+v", here.PoolStats(), there.PoolStats(), across.PoolStats())
	}
}

func TestShardsThatCannotAnswer(t *testing.T) {
	full, without := newShards(t, "b", func(c *stub.Config) { c.PoolSize, c.QueueSize = 1, 0 }), newShards(t, "c")
	if err := without.DeleteIndex("two"); err != nil {
		t.Fatal(err)
	}
	a, b, c := start(t, "a", peer.Handlers{}, failures), start(t, "b", at(full), failures), start(t, "c", at(without), failures)
	gone := ring.Member{ID: "d", Incarnation: "1", Name: "node-d", Transport: "127.0.0.1:1"}
	good := newShards(t, "e")
	e := start(t, "e", at(good), failures)
	stopping := newShards(t, "f")
	stopping.Close()
	f := start(t, "f", at(stopping), failures)

	// The only worker of b is busy until the test ends.
	busy, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	full.Local().Query(busy, &shard.QueryRequest{Shard: shard.ID{Index: "one"}, Timeout: -1, Work: shard.Work{Time: time.Hour}}, func(_ *shard.QueryResult, err error) { done <- err })
	defer func() {
		stop()
		if err := <-done; err == nil {
			t.Error("an hour is over")
		}
	}()

	for name, x := range map[string]struct {
		copies []ring.Member
		want   func(error) bool
	}{
		"no copy":          {nil, isShardError("no_shard_available_action_exception", 503)},
		"a full pool":      {[]ring.Member{b.self}, isType[*search.PoolFullError]},
		"no such index":    {[]ring.Member{c.self}, isType[*search.IndexNotFoundError]},
		"nobody there":     {[]ring.Member{gone}, isShardError("node_not_connected_exception", 503)},
		"no shards there":  {[]ring.Member{a.self}, isType[*search.IndexNotFoundError]},
		"the last of many": {[]ring.Member{gone, b.self, c.self}, isType[*search.IndexNotFoundError]},
		"a leaving node":   {[]ring.Member{f.self}, isType[*tasks.CancelledError]},
		"one of many can":  {[]ring.Member{gone, b.self, c.self, f.self, e.self}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			across := newShards(t, "a", elsewhere(a, x.copies...))
			if name == "no shards there" {
				across = newShards(t, "a", func(c *stub.Config) {
					c.Shards = func(shard.Transport) shard.Transport {
						return peer.NewShards(a.peers, without.Local(), func(shard.ID) []ring.Member { return x.copies })
					}
				})
			}
			answers, err := across.run(t, t.Context(), "two", `{}`, 0)
			switch {
			case x.want == nil && err != nil:
				t.Errorf("fails with %v", err)
			case x.want == nil && !strings.Contains(answers[0], `"successful":2`):
				t.Errorf("answers %s", answers)
			case x.want != nil:
				p, ok := errors.AsType[*search.PhaseError](err)
				if !ok || len(p.Failures) != 2 || !x.want(p.Failures[0].Err) || !x.want(p.Failures[1].Err) {
					t.Errorf("fails with %#v of %+v", err, p)
				}
			}
		})
	}
}

func isType[E error](err error) bool {
	_, ok := err.(E) //nolint:errorlint // an error of a shard is not wrapped
	return ok
}

func isShardError(typ string, status int) func(error) bool {
	return func(err error) bool {
		e, ok := err.(*search.ShardError)
		return ok && e.Type == typ && e.Status == status && e.Reason != ""
	}
}

// A failure that a shard answers with is its answer: other copies are not asked to fail as well.
func TestAnAnswerIsAnAnswer(t *testing.T) {
	first, second := newShards(t, "b"), newShards(t, "c")
	a, b, c := start(t, "a", peer.Handlers{}, failures), start(t, "b", at(first), failures), start(t, "c", at(second), failures)
	across := newShards(t, "a", elsewhere(a, b.self, c.self))
	if _, err := across.run(t, t.Context(), "two", `{"ext":{"stub":{"fail_shards":2}}}`, 0); err == nil {
		t.Error("does not fail")
	}
	if f, s := first.PoolStats().Completed, second.PoolStats().Completed; f != 2 || s != 0 {
		t.Errorf("the first copy did %d pieces of work and the second %d", f, s)
	}
}

// The copy that is here is asked first.
func TestLocalCopyFirst(t *testing.T) {
	there := newShards(t, "b")
	b := start(t, "b", at(there), failures)
	a := start(t, "a", peer.Handlers{}, failures)
	across := newShards(t, "a", elsewhere(a, b.self, a.self))
	if _, err := across.run(t, t.Context(), "two?size=2", `{}`, 3); err != nil {
		t.Fatal(err)
	}
	if h, n := across.PoolStats().Completed, there.PoolStats().Completed; h == 0 || n != 0 {
		t.Errorf("%d pieces of work here, %d there", h, n)
	}
}

// A node that is lost in the middle of a query leaves it to another copy, and stops working for it.
func TestALostNodeMeansAnotherCopy(t *testing.T) {
	slow, good := newShards(t, "b", func(c *stub.Config) { c.Defaults.QueryTime = time.Hour }), newShards(t, "c")
	a, b, c := start(t, "a", peer.Handlers{}, failures), start(t, "b", at(slow), failures), start(t, "c", at(good), failures)
	p, err := faultproxy.Start(b.self.Transport)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	lossy := b.self
	lossy.Transport = p.Addr()
	across := peer.NewShards(a.peers, nil, func(shard.ID) []ring.Member { return []ring.Member{lossy, c.self} })
	type outcome struct {
		result *shard.QueryResult
		err    error
	}
	done := make(chan outcome, 1)
	across.Query(t.Context(), &shard.QueryRequest{
		Shard: shard.ID{Index: "two", Number: 1}, Size: 100, Matches: -1, Timeout: -1, Work: shard.Work{Time: 50 * time.Millisecond},
	}, func(r *shard.QueryResult, err error) { done <- outcome{r, err} })
	until(t, "the first copy works", func() bool { return slow.tasks.Len() == 1 })
	p.Break()
	if o := within(t, soon, "the other copy answers", done); o.err != nil || o.result.Count == 0 {
		t.Errorf("%+v, %v", o.result, o.err)
	}
	slow.idle(t)
}

// A cancelled search hears from its shards how they ended, and nothing works for it any more then.
func TestCancellationTravels(t *testing.T) {
	there := newShards(t, "b")
	b := start(t, "b", at(there), failures)
	a := start(t, "a", peer.Handlers{}, failures)
	across := newShards(t, "a", elsewhere(a, b.self))
	for name, c := range map[string]struct {
		body  string
		cause *tasks.Cause
		least time.Duration
	}{
		"by a user":     {`{"ext":{"stub":{"query_time":"1h"}}}`, tasks.UserCause(), 0},
		"by a stop":     {`{"ext":{"stub":{"query_time":"1h"}}}`, tasks.ShutdownCause(), 0},
		"in the fetch":  {`{"ext":{"stub":{"fetch_time":"1h"}}}`, tasks.UserCause(), 0},
		"does not look": {`{"ext":{"stub":{"query_time":"300ms","ignore_cancel":true}}}`, tasks.UserCause(), 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			x, task := across.prepare(t, t.Context(), "two", c.body, 0)
			defer x.Close()
			defer task.End()
			began := time.Now()
			done := make(chan error, 1)
			go func() { _, err := x.Execute(task.Context(), task, search.Limits{}); done <- err }()
			defer task.Cancel(c.cause)
			if name == "in the fetch" {
				until(t, "a shard fetches", func() bool { return b.server.Readers() == 2 && there.PoolStats().Active > 0 })
			} else {
				until(t, "both shards work", func() bool { return there.PoolStats().Active == 2 })
			}
			task.Cancel(c.cause)
			err := within(t, soon, "the search ends", done)
			if d := time.Since(began); d < c.least {
				t.Errorf("ends after %v, while its shards are at work until %v", d, c.least)
			}
			if n := there.PoolStats().Active; n != 0 {
				t.Errorf("%d shards still work", n)
			}
			p, ok := errors.AsType[*search.PhaseError](err)
			if !ok || len(p.Failures) == 0 {
				t.Fatalf("ends with %#v", err)
			}
			for _, f := range p.Failures {
				if e, ok := errors.AsType[*tasks.CancelledError](f.Err); !ok || *e.Cause != *c.cause {
					t.Errorf("a shard ends with %#v", f.Err)
				}
			}
		})
	}
}

// What a caller has no time for any more ends at the shard too, even if the caller cannot say so.
func TestDeadlinesTravel(t *testing.T) {
	there := newShards(t, "b")
	b := start(t, "b", at(there), failures)
	p, err := faultproxy.Start(b.self.Transport)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	to := b.self
	to.Transport = p.Addr()
	a := start(t, "a", peer.Handlers{}, failures)
	across := peer.NewShards(a.peers, nil, func(shard.ID) []ring.Member { return []ring.Member{to} })
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	done := make(chan error, 1)
	across.Query(ctx, &shard.QueryRequest{Shard: shard.ID{Index: "one"}, Timeout: -1, Work: shard.Work{Time: time.Hour}},
		func(_ *shard.QueryResult, err error) { done <- err })
	until(t, "the shard works", func() bool { return there.tasks.Len() == 1 })
	p.HalfOpen(faultproxy.Both)
	there.idle(t)
	if ctx.Err() == nil {
		t.Error("the shard gave up before its time")
	}
	p.Heal()
	if err := within(t, soon, "the caller hears", done); err == nil {
		t.Error("no error")
	}
}

// A shard that is not heard from after a cancel is given up.
func TestADeafNodeIsGivenUp(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes the 5 s that a node has to say that it has heard")
	}
	t.Parallel()
	there := newShards(t, "b")
	b := start(t, "b", at(there), failures)
	p, err := faultproxy.Start(b.self.Transport)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	to := b.self
	to.Transport = p.Addr()
	a := start(t, "a", peer.Handlers{}, failures)
	across := peer.NewShards(a.peers, nil, func(shard.ID) []ring.Member { return []ring.Member{to} })
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	across.Query(ctx, &shard.QueryRequest{Shard: shard.ID{Index: "one"}, Timeout: -1, Work: shard.Work{Time: time.Hour}},
		func(_ *shard.QueryResult, err error) { done <- err })
	until(t, "the shard works", func() bool { return there.tasks.Len() == 1 })
	p.HalfOpen(faultproxy.Both)
	cause := tasks.UserCause()
	cancel(cause)
	if err := within(t, soon, "the caller gives up", done); !errors.Is(err, cause) {
		t.Errorf("it hears %#v", err)
	}
	p.Heal()
	there.idle(t)
}

// What a caller has left behind ends with it.
func TestReadersEndWithTheirCaller(t *testing.T) {
	there := newShards(t, "b")
	b := start(t, "b", at(there), failures)
	a := start(t, "a", peer.Handlers{}, failures)
	across := newShards(t, "a", elsewhere(a, b.self))
	x, task := across.prepare(t, t.Context(), "two?size=2", `{}`, 1)
	defer x.Close()
	defer task.End()
	if _, err := x.Execute(task.Context(), task, search.Limits{}); err != nil {
		t.Fatal(err)
	}
	b.server.Update([]ring.Member{a.self, b.self})
	if n := b.server.Readers(); n != 2 {
		t.Fatalf("%d readers are kept for an open scroll of two shards", n)
	}
	b.server.Update([]ring.Member{b.self})
	if n := b.server.Readers(); n != 0 {
		t.Errorf("%d readers are kept for a node that left", n)
	}
	_, err := x.Execute(task.Context(), task, search.Limits{})
	p, ok := errors.AsType[*search.PhaseError](err)
	if !ok || len(p.Failures) != 2 || !isShardError("search_context_missing_exception", 404)(p.Failures[0].Err) {
		t.Errorf("a page of a scroll whose readers are gone: %v", err)
	}
}

func TestClosedPeersFailShards(t *testing.T) {
	there := newShards(t, "b")
	b := start(t, "b", at(there), failures)
	a := start(t, "a", peer.Handlers{}, failures)
	across := newShards(t, "a", elsewhere(a, b.self))
	done := make(chan error, 1)
	go func() {
		_, err := across.run(t, t.Context(), "two", `{"ext":{"stub":{"query_time":"1h"}}}`, 0)
		done <- err
	}()
	until(t, "the shards work", func() bool { return there.tasks.Len() == 2 })
	a.peers.Close()
	if err := within(t, soon, "the search ends", done); err == nil {
		t.Error("no error")
	}
	if _, err := across.run(t, t.Context(), "two", `{}`, 0); err == nil {
		t.Error("a search after it: no error")
	}
	there.idle(t)
}
