package search_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
	"github.com/wlmserver/wlmserver/wlm"
)

// open opens a scroll and returns its id.
func (f *fixture) open(r *search.Request) string {
	f.Helper()
	if _, err := f.service.Run(f.Context(), r); err != nil {
		f.Fatal(err)
	}
	id := f.lastRequest().ScrollID
	if !regexp.MustCompile(`^[A-Za-z0-9_-]{32}$`).MatchString(id) {
		f.Fatalf("scroll id %q", id)
	}
	return id
}

// lastRequest is the request that was executed last.
func (f *fixture) lastRequest() *search.Request {
	f.engine.mu.Lock()
	defer f.engine.mu.Unlock()
	return f.engine.order[len(f.engine.order)-1]
}

func scrolling(group string, keep, d time.Duration) *search.Request {
	r := work(group, d)
	r.ScrollKeepAlive = keep
	return r
}

func page(group, id string, keep time.Duration) *search.Request {
	return &search.Request{Kind: search.ScrollPage, GroupID: group, ScrollID: id, ScrollKeepAlive: keep}
}

// missing reports whether an error says that the scroll is not open, in the
// shape that a client of OpenSearch knows.
func missing(err error, id string) bool {
	p, ok := errors.AsType[*search.PhaseError](err)
	if !ok || p.Phase != "query" || len(p.Failures) != 1 || p.Failures[0].Shard != -1 || p.Failures[0].Index != "" {
		return false
	}
	m, ok := errors.AsType[*search.ScrollMissingError](p.Failures[0].Err)
	return ok && m.ID == id && p.Cause == error(m)
}

func TestScroll(t *testing.T) {
	bubble(t, func(f *fixture) {
		r := scrolling("", time.Minute, 0)
		id := f.open(r)
		if r.ScrollID != "" {
			f.Error("the caller's request was changed")
		}
		for n := 2; n < 5; n++ {
			got, err := f.service.Run(f.Context(), page("", id, time.Minute))
			if want := fmt.Sprintf(`{"page":%d,"_scroll_id":%q}`, n, id); err != nil || string(got.Body) != want {
				f.Errorf("got %v, %v, want %s", got, err, want)
			}
		}
		if n := len(f.engine.executions); n != 1 {
			f.Errorf("%d executions were prepared, want 1", n)
		}
		if n := f.service.ClearScrolls([]string{id, id, "nosuch"}); n != 1 {
			f.Errorf("cleared %d, want 1", n)
		}
		if f.engine.closed() != 1 {
			f.Errorf("closed %d times", f.engine.closed())
		}
		if _, err := f.service.Run(f.Context(), page("", id, time.Minute)); !missing(err, id) {
			f.Errorf("a cleared scroll: %v", err)
		}
		if n := f.service.ClearScrolls([]string{id}); n != 0 {
			f.Errorf("cleared %d, want none", n)
		}
	})
}

func TestScrollIDs(t *testing.T) {
	bubble(t, func(f *fixture) {
		seen := make(map[string]bool)
		for range 100 {
			id := f.open(scrolling("", time.Minute, 0))
			if seen[id] {
				f.Fatal("an id came twice")
			}
			seen[id] = true
		}
		for _, id := range []string{"", "garbage", "DXF1ZXJ5QW5kRmV0Y2gBAAAAAAAAAD4WYm9laVYtZndUQlNsdDcwakFMNjU1QQ==", "AQ", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"} {
			_, err := f.service.Run(f.Context(), page("", id, time.Minute))
			if _, ok := errors.AsType[*search.InvalidError](err); !ok {
				f.Errorf("%q: got %v, want invalid", id, err)
			}
		}
		id := "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" // could be one
		if _, err := f.service.Run(f.Context(), page("", id, time.Minute)); !missing(err, id) {
			f.Errorf("%q: got %v, want missing", id, err)
		}
		if n := f.service.ClearAllScrolls(); n != 100 || f.engine.closed() != 100 {
			f.Errorf("cleared %d, closed %d", n, f.engine.closed())
		}
	})
}

func TestTaskOfAPage(t *testing.T) {
	bubble(t, func(f *fixture) {
		id := f.open(scrolling("", time.Minute, 0))
		f.engine.execute = func(ctx context.Context, r *search.Request, task *tasks.Task, l search.Limits) error {
			if task.Action() != search.ScrollAction || task.Description() != "scrollId["+id+"], scroll[2m]" {
				f.Errorf("action %s, description %s", task.Action(), task.Description())
			}
			if l.ScrollKeepAlive != 2*time.Minute {
				f.Errorf("keep alive %v", l.ScrollKeepAlive)
			}
			return nil
		}
		if _, err := f.service.Run(f.Context(), page("", id, 2*time.Minute)); err != nil {
			f.Error(err)
		}
	})
}

// A scroll expires when its time is up after the end of its last page, whether
// or not the reaper has come by.
func TestScrollExpires(t *testing.T) {
	for _, test := range []struct {
		name  string
		keeps []time.Duration // of the first page, then of each further one; 0: not said, it is the last
		idle  time.Duration   // before each further page
		alive bool            // at the last one
	}{
		{"in time", []time.Duration{time.Minute, 0}, time.Minute - 1, true},
		{"too late", []time.Duration{time.Minute, 0}, time.Minute, false},
		{"each page starts anew", []time.Duration{time.Minute, time.Minute, time.Minute, 0}, 59 * time.Second, true},
		{"prolonged", []time.Duration{time.Minute, 2 * time.Minute, 0}, time.Minute - 1, true},
		{"shortened", []time.Duration{time.Minute, time.Second, 0}, 30 * time.Second, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				id := f.open(scrolling("", test.keeps[0], 5*time.Second))
				for i, keep := range test.keeps[1:] {
					after(test.idle)
					_, err := f.service.Run(f.Context(), page("", id, keep))
					if last := i == len(test.keeps)-2; last && !test.alive {
						if !missing(err, id) {
							f.Errorf("got %v, want missing", err)
						}
					} else if err != nil {
						f.Errorf("page %d: %v", i+2, err)
					}
				}
				if !test.alive {
					if n := f.service.ClearScrolls([]string{id}); n != 0 {
						f.Errorf("an expired scroll was cleared, %d", n)
					}
				}
			})
		})
	}
}

// A page that says no keep-alive is the last one: whatever pages wait behind
// it, the scroll is freed when it has ended.
func TestLastPage(t *testing.T) {
	bubble(t, func(f *fixture) {
		id := f.open(scrolling("", time.Minute, time.Second))
		last := f.start(f.Context(), page("", id, 0))
		behind := f.start(f.Context(), page("", id, time.Minute))
		if n := f.engine.closed(); n != 0 {
			f.Errorf("closed %d before the page has ended", n)
		}
		after(time.Second)
		if want := fmt.Sprintf(`{"page":2,"_scroll_id":%q}`, id); last.err != nil || string(last.response.Body) != want {
			f.Errorf("got %v, %v, want %s", last.response, last.err, want)
		}
		if !missing(behind.err, id) || f.engine.closed() != 1 {
			f.Errorf("the page behind: %v, closed %d", behind.err, f.engine.closed())
		}
		if n := f.service.ClearScrolls([]string{id}); n != 0 {
			f.Errorf("cleared %d, want none", n)
		}
	})
}

func TestReaper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(c *search.Config) { c.ScrollReapInterval = 10 * time.Second })
		short, long := f.open(scrolling("", 5*time.Second, 0)), f.open(scrolling("", time.Hour, 0))
		after(9 * time.Second)
		if n := f.engine.closed(); n != 0 {
			f.Errorf("%d closed before the reaper came", n)
		}
		after(time.Second)
		if n := f.engine.closed(); n != 1 {
			f.Errorf("%d closed, want the short one", n)
		}
		after(time.Hour)
		if n := f.engine.closed(); n != 2 {
			f.Errorf("%d closed, want both", n)
		}
		for _, id := range []string{short, long} {
			if _, err := f.service.Run(f.Context(), page("", id, 0)); !missing(err, id) {
				f.Errorf("got %v", err)
			}
		}
		f.finish()
	})
}

// A page draws a permit and parks like any search. However long it waits and
// works, the scroll is there when it runs, and its time begins at its end.
func TestScrollIsPinnedWhileItsPageParks(t *testing.T) {
	bubble(t, func(f *fixture) {
		group := f.limited(1, 5)
		id := f.open(scrolling("", time.Minute, 2*time.Hour))
		holder := f.start(f.Context(), work(group, 3*time.Hour))
		o := f.start(f.Context(), page(group, id, time.Minute))
		if st := f.status(f.only(search.ScrollAction)); st.State != wlm.StateWaiting {
			f.Errorf("status %+v, want waiting", st)
		}
		after(3 * time.Hour)
		if st := f.status(f.only(search.ScrollAction)); !holder.done || st.State != wlm.StateRunning || !st.Tracked {
			f.Errorf("status %+v, want running", st)
		}
		after(2 * time.Hour)
		if !o.done || o.err != nil {
			f.Fatalf("got %+v", o)
		}
		if c := f.counters(group); c.QueueWaits != 1 || c.Completions != 2 {
			f.Errorf("counters %+v", c)
		}
		after(time.Minute - 1)
		if _, err := f.service.Run(f.Context(), page("", id, time.Minute)); err != nil {
			f.Errorf("just in time: %v", err)
		}
		after(time.Minute)
		if _, err := f.service.Run(f.Context(), page("", id, 0)); !missing(err, id) {
			f.Errorf("too late: %v", err)
		}
	})
}

// A refused or evicted page does not cost the scroll: the client may try
// again, and has its time anew for that.
func TestRefusedPage(t *testing.T) {
	bubble(t, func(f *fixture) {
		group := f.limited(1, 0)
		id := f.open(scrolling("", time.Minute, 0))
		f.start(f.Context(), work(group, 90*time.Second))
		for range 2 {
			after(40 * time.Second)
			_, err := f.service.Run(f.Context(), page(group, id, 0))
			if _, ok := errors.AsType[*wlm.RejectedError](err); !ok {
				f.Errorf("got %v, want a refusal", err)
			}
		}
		after(40 * time.Second)
		if r, err := f.service.Run(f.Context(), page(group, id, 0)); err != nil || string(r.Body) != fmt.Sprintf(`{"page":2,"_scroll_id":%q}`, id) {
			f.Errorf("got %v, %v", r, err)
		}
	})
}

// Pages of one scroll are worked at one after the other, in the order in which
// they came, whether they wait in the queue or hold permits already.
func TestPagesOfOneScroll(t *testing.T) {
	for limit := 1; limit <= 5; limit++ {
		t.Run(fmt.Sprint("limit ", limit), func(t *testing.T) {
			bubble(t, func(f *fixture) {
				group := f.limited(limit, 5)
				id := f.open(scrolling("", time.Minute, time.Second))
				var pages [4]*outcome
				for i := range pages {
					pages[i] = f.start(f.Context(), page(group, id, time.Minute))
				}
				if totals := f.admission.Totals(); totals.Tracked != int64(min(limit, 4)) || totals.Waiters != int64(4-min(limit, 4)) {
					f.Errorf("totals %+v", totals)
				}
				third := f.tasks.List(tasks.Filter{Actions: []string{search.ScrollAction}})[2]
				third.Cancel(tasks.UserCause())
				synctest.Wait()
				if c, ok := errors.AsType[*tasks.Cause](pages[2].err); !ok || c.Kind != tasks.ByUser {
					f.Errorf("the cancelled page: %v", pages[2].err)
				}
				after(time.Minute)
				for i, want := range map[int]string{0: "2", 1: "3", 3: "4"} {
					o := pages[i]
					if o.err != nil || string(o.response.Body) != fmt.Sprintf(`{"page":%s,"_scroll_id":%q}`, want, id) {
						f.Errorf("page %d: %v, %v", i, o.response, o.err)
					}
				}
				if f.engine.most != 1 {
					f.Errorf("%d ran at once", f.engine.most)
				}
			})
		})
	}
}

// A page that is cancelled while it waits for the one before it ends like a
// running search.
func TestPageCancelledBeforeItsTurn(t *testing.T) {
	bubble(t, func(f *fixture) {
		id := f.open(scrolling("", time.Minute, 0))
		f.engine.execute = func(ctx context.Context, _ *search.Request, task *tasks.Task, _ search.Limits) error {
			return pause(ctx, "1h")
		}
		f.start(f.Context(), page("", id, 0))
		waits := f.start(f.Context(), page("", id, 0))
		for _, task := range f.tasks.List(tasks.Filter{Actions: []string{search.ScrollAction}}) {
			task.Cancel(tasks.UserCause())
		}
		synctest.Wait()
		if e, ok := errors.AsType[*tasks.CancelledError](waits.err); !ok || e.BeforeStart {
			f.Errorf("got %v", waits.err)
		}
	})
}

// Pages that a client sends all at once are refused and counted beyond what
// the group allows, like any searches.
func TestFloodOfPages(t *testing.T) {
	bubble(t, func(f *fixture) {
		group := f.limited(1, 3)
		id := f.open(scrolling("", time.Minute, time.Second))
		var all [20]*outcome
		for i := range all {
			all[i] = f.start(f.Context(), page(group, id, time.Minute))
		}
		if c := f.counters(group); c.Throttled != 16 || c.QueuedCurrent != 3 {
			f.Errorf("counters %+v, want 16 refused and 3 parked", c)
		}
		after(time.Minute)
		for i, o := range all {
			if _, refused := errors.AsType[*wlm.RejectedError](o.err); refused != (i >= 4) {
				f.Errorf("page %d: %v", i, o.err)
			}
		}
	})
}

// Clearing a scroll whose page runs closes it to the pages behind, and frees
// it when the running one has ended.
func TestClearWhileAPageRuns(t *testing.T) {
	bubble(t, func(f *fixture) {
		id := f.open(scrolling("", time.Minute, time.Second))
		runs := f.start(f.Context(), page("", id, time.Minute))
		waits := [2]*outcome{f.start(f.Context(), page("", id, time.Minute)), f.start(f.Context(), page("", id, time.Minute))}
		if n := f.service.ClearAllScrolls(); n != 1 || f.engine.closed() != 0 {
			f.Errorf("cleared %d, closed %d", n, f.engine.closed())
		}
		if n := f.service.ClearAllScrolls(); n != 0 {
			f.Errorf("cleared %d again", n)
		}
		after(time.Second)
		if runs.err != nil || f.engine.closed() != 1 {
			f.Errorf("running %v, closed %d", runs.err, f.engine.closed())
		}
		for _, o := range waits {
			if !missing(o.err, id) {
				f.Errorf("waiting: %v", o.err)
			}
		}
	})
}

func TestScrollOfSomebodyElse(t *testing.T) {
	bubble(t, func(f *fixture) {
		ann, bob, admin := wlm.Principal{User: "ann"}, wlm.Principal{User: "bob"}, wlm.Principal{User: "admin"}
		by := func(p wlm.Principal, r *search.Request) *search.Request {
			r.Principal = p
			return r
		}
		id := f.open(by(ann, scrolling("", time.Minute, 0)))
		nobodys := f.open(scrolling("", time.Minute, 0))
		for _, p := range []wlm.Principal{bob, {}} {
			if _, err := f.service.Run(f.Context(), by(p, page("", id, 0))); !missing(err, id) {
				f.Errorf("%+v: got %v, want missing", p, err)
			}
			if n := f.service.ClearOwnScrolls(p, []string{id}); n != 0 {
				f.Errorf("%+v cleared %d", p, n)
			}
		}
		for _, p := range []wlm.Principal{ann, admin} {
			if _, err := f.service.Run(f.Context(), by(p, page("", id, time.Minute))); err != nil {
				f.Errorf("%+v: got %v", p, err)
			}
		}
		if n := f.service.ClearOwnScrolls(bob, nil); n != 0 {
			f.Errorf("bob cleared %d", n)
		}
		if n := f.service.ClearOwnScrolls(ann, nil); n != 1 {
			f.Errorf("ann cleared %d", n)
		}
		if n := f.service.ClearOwnScrolls(admin, []string{id, nobodys}); n != 1 {
			f.Errorf("admin cleared %d", n)
		}
	})
}

func TestTooManyScrolls(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.set("search.max_open_scroll_context", "2")
		first := f.open(scrolling("", 10*time.Second, 0))
		opening := f.start(f.Context(), scrolling("", time.Minute, 5*time.Second))
		r := scrolling("", time.Minute, 0)
		r.Indices = []string{"logs"}
		_, err := f.service.Run(f.Context(), r)
		p, ok := errors.AsType[*search.PhaseError](err)
		if !ok || len(p.Failures) != 1 || p.Phase != "query" {
			f.Fatalf("got %v", err)
		}
		want := search.ShardFailure{Shard: 0, Index: "logs", Node: "node-1", Err: p.Cause}
		if e, ok := errors.AsType[*search.ShardError](p.Cause); !ok || e.Status != http.StatusTooManyRequests ||
			e.Type != "rejected_execution_exception" || p.Failures[0] != want {
			f.Errorf("got %+v, cause %+v", p.Failures[0], p.Cause)
		}
		after(5 * time.Second)
		if opening.err != nil {
			f.Error(opening.err)
		}
		if _, err := f.service.Run(f.Context(), page("", first, 10*time.Second)); err != nil {
			f.Errorf("a further page opens nothing: %v", err)
		}
		// An expired one takes no place, though the reaper has not come yet.
		after(10 * time.Second)
		f.open(scrolling("", time.Minute, 0))
		f.service.ClearAllScrolls()
		f.open(scrolling("", time.Minute, 0))
		f.open(scrolling("", time.Minute, 0))
	})
}

func TestKeepAliveTooLong(t *testing.T) {
	bubble(t, func(f *fixture) {
		id := f.open(scrolling("", 24*time.Hour, 0))
		for _, r := range []*search.Request{scrolling("", 24*time.Hour+1, 0), page("", id, 99*time.Hour)} {
			r.Indices = []string{"logs-*"}
			_, err := f.service.Run(f.Context(), r)
			p, ok := errors.AsType[*search.PhaseError](err)
			if !ok || p.Phase != "query" || len(p.Failures) != 1 || p.Failures[0] != (search.ShardFailure{Shard: -1, Err: p.Cause}) {
				f.Fatalf("got %v", err)
			}
			if _, ok := errors.AsType[*search.InvalidError](p.Cause); !ok {
				f.Errorf("cause %v", p.Cause)
			}
		}
		if n := f.engine.begun(); n != 1 {
			f.Errorf("%d executions, want 1", n)
		}
		f.set("search.max_keep_alive", "-1")
		f.open(scrolling("", 1000*time.Hour, 0))
	})
}

// A scroll whose first page fails is not opened, and its place is free again.
func TestFirstPageFails(t *testing.T) {
	failure := errors.New("broken")
	for name, execute := range map[string]func() error{
		"error": func() error { return failure },
		"panic": func() error { panic(failure) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				f.set("search.max_open_scroll_context", "1")
				f.engine.execute = func(context.Context, *search.Request, *tasks.Task, search.Limits) error { return execute() }
				for range 2 {
					if p, err := f.runRecovered(scrolling("", time.Minute, 0)); err != failure && p != any(failure) {
						f.Errorf("got %v, panic %v", err, p)
					}
					id := f.lastRequest().ScrollID
					if _, err := f.service.Run(f.Context(), page("", id, 0)); !missing(err, id) {
						f.Errorf("got %v", err)
					}
				}
				f.engine.execute = nil
				f.open(scrolling("", time.Minute, 0))
			})
		})
	}
}

// An error of a further page leaves the scroll as it was, even if it would have
// been the last page.
func TestPageFails(t *testing.T) {
	bubble(t, func(f *fixture) {
		id := f.open(scrolling("", time.Minute, 0))
		for _, fail := range []func() error{
			func() error { return errors.New("broken") },
			func() error { panic("broken") },
		} {
			f.engine.execute = func(context.Context, *search.Request, *tasks.Task, search.Limits) error { return fail() }
			if p, err := f.runRecovered(page("", id, 0)); err == nil && p == nil {
				f.Error("no failure")
			}
			f.engine.execute = nil
			if _, err := f.service.Run(f.Context(), page("", id, time.Minute)); err != nil {
				f.Error(err)
			}
		}
	})
}

func TestCloseFreesScrolls(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.open(scrolling("", time.Minute, time.Second))
		id := f.open(scrolling("", time.Minute, time.Second))
		runs := f.start(f.Context(), page("", id, 0))
		opening := f.start(f.Context(), scrolling("", time.Minute, time.Second))
		f.service.Close()
		if n := f.engine.closed(); n != 1 {
			f.Errorf("%d closed, want the idle one", n)
		}
		after(time.Second)
		if n := f.engine.closed(); n != 3 || runs.err != nil || opening.err != nil {
			f.Errorf("%d closed, %v, %v", n, runs.err, opening.err)
		}
		f.service.Close() // a second time changes nothing
	})
}

// A request for a scroll that is not 2xx, as a gateway may get it, opens none.
func TestRefusedByTheServerBehind(t *testing.T) {
	bubble(t, func(f *fixture) {
		s := search.New(search.Config{
			Tasks: f.tasks, Admission: f.admission, Groups: f.groups.Snapshot, Settings: f.settings.Snapshot,
			Executor: refusing{f.engine},
		})
		defer s.Close()
		r, err := s.Run(f.Context(), &search.Request{ScrollKeepAlive: time.Minute, Query: url.Values{}})
		if err != nil || r.Status != http.StatusBadRequest {
			f.Errorf("got %v, %v", r, err)
		}
		if n := s.ClearAllScrolls(); n != 0 {
			f.Errorf("%d scrolls are open", n)
		}
	})
}

// refusing answers every search with a status, not with an error.
type refusing struct{ *engine }

func (e refusing) Prepare(r *search.Request) (search.Execution, error) {
	x, err := e.engine.Prepare(r)
	return refused{x}, err
}

type refused struct{ search.Execution }

func (refused) Execute(context.Context, *tasks.Task, search.Limits) (*search.Response, error) {
	return &search.Response{Status: http.StatusBadRequest}, nil
}
