package search_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/internal/units"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
	"github.com/wlmserver/wlmserver/wlm"
)

// multiOutcome is what a call of RunMulti in the background came to.
type multiOutcome struct {
	results []search.ItemResult
	err     error
	took    time.Duration
	done    bool
}

func (f *fixture) startMulti(ctx context.Context, m *search.MultiRequest) *multiOutcome {
	o := &multiOutcome{}
	begin := time.Now()
	go func() {
		o.results, o.err = f.service.RunMulti(ctx, m)
		o.took = time.Since(begin)
		o.done = true
	}()
	synctest.Wait()
	return o
}

// multi is a multi-search of n items that take d each.
func multi(group string, n int, d time.Duration) *search.MultiRequest {
	m := &search.MultiRequest{GroupID: group}
	for range n {
		m.Items = append(m.Items, work("", d))
	}
	return m
}

// verdicts tells in a word per item what became of it.
func verdicts(results []search.ItemResult) string {
	words := make([]string, len(results))
	for i, r := range results {
		words[i] = verdict(r)
	}
	return strings.Join(words, " ")
}

func verdict(r search.ItemResult) string {
	if (r.Err == nil) == (r.Response == nil) {
		return "undecided"
	}
	if r.Err == nil {
		return "ok"
	}
	if _, ok := errors.AsType[*wlm.RejectedError](r.Err); ok {
		return "refused"
	}
	if e, ok := errors.AsType[*wlm.CancelledError](r.Err); ok && e.Queued {
		return "evicted"
	}
	if e, ok := errors.AsType[*tasks.CancelledError](r.Err); ok {
		if e.BeforeStart {
			return "unstarted"
		}
		return "cancelled"
	}
	return r.Err.Error()
}

func repeated(word string, n int) string { return strings.TrimSpace(strings.Repeat(word+" ", n)) }

// An idle group with room for two, eight items: with and without a queue all
// run, two at a time, and none counts as refused.
func TestMultiSearchDoesNotRefuseItself(t *testing.T) {
	for _, test := range []struct{ limit, queue int }{{2, 0}, {2, 10}, {1, 0}, {1, 1}, {3, 2}} {
		t.Run(fmt.Sprintf("limit %d, queue %d", test.limit, test.queue), func(t *testing.T) {
			bubble(t, func(f *fixture) {
				id := f.limited(test.limit, test.queue)
				o := f.startMulti(f.Context(), multi(id, 8, time.Second))
				after(time.Minute)
				if want := repeated("ok", 8); !o.done || o.err != nil || verdicts(o.results) != want {
					f.Fatalf("got %+v: %s", o, verdicts(o.results))
				}
				rounds := (8 + test.limit - 1) / test.limit
				if want := time.Duration(rounds) * time.Second; o.took != want {
					f.Errorf("took %v, want %v: the slots were not kept busy", o.took, want)
				}
				if f.engine.most != test.limit {
					f.Errorf("%d ran at once, want %d", f.engine.most, test.limit)
				}
				c := f.counters(id)
				if c.Admitted != 8 || c.Completions != 8 || c.Throttled != 0 || c.Queued != 0 || c.QueuePeak != 0 {
					f.Errorf("counters %+v, want 8 admitted, none refused and none queued", c)
				}
			})
		})
	}
}

func TestItemsRunInOrder(t *testing.T) {
	bubble(t, func(f *fixture) {
		m := multi(f.limited(1, 0), 9, time.Second)
		for i, r := range m.Items {
			r.Path = fmt.Sprint(i)
		}
		o := f.startMulti(f.Context(), m)
		after(time.Minute)
		if verdicts(o.results) != repeated("ok", 9) {
			f.Fatal(verdicts(o.results))
		}
		for i, r := range f.engine.order {
			if r.Path != fmt.Sprint(i) {
				f.Errorf("execution %d was of item %s", i, r.Path)
			}
		}
	})
}

// While an item is held its task says so, and no queue knows of it.
func TestHeldItem(t *testing.T) {
	bubble(t, func(f *fixture) {
		id := f.limited(1, 5)
		o := f.startMulti(f.Context(), multi(id, 2, time.Second))
		parent := f.only(search.MultiSearchAction)
		items := parent.Children()
		if len(items) != 2 || parent.Description() != "requests[2]" || parent.Group() != "" {
			f.Fatalf("%d children of %q, group %q", len(items), parent.Description(), parent.Group())
		}
		h, ok := items[1].Status().(search.Held)
		if !ok || !strings.Contains(h.Reason, "[limited]") {
			f.Errorf("status %#v, want held, with the group's name", items[1].Status())
		}
		if st := f.status(items[0]); st.State != wlm.StateRunning {
			f.Errorf("status of the first: %+v", st)
		}
		if c := f.counters(id); c.Waiters != 0 || items[1].Group() != "" {
			f.Errorf("a held item counts: %+v, group %q", c, items[1].Group())
		}
		after(time.Second)
		if st := f.status(items[1]); st.State != wlm.StateRunning || !st.Tracked {
			f.Errorf("status of the second, now: %+v", st)
		}
		after(time.Second)
		if verdicts(o.results) != "ok ok" {
			f.Error(verdicts(o.results))
		}
	})
}

// The slot of a sibling goes to an older waiter: the held item asks as any
// other, and without room in the queue is refused in its place.
func TestOlderWaiterTakesTheSlot(t *testing.T) {
	bubble(t, func(f *fixture) {
		id := f.limited(1, 1)
		o := f.startMulti(f.Context(), multi(id, 3, 10*time.Second))
		older := f.start(f.Context(), work(id, 15*time.Second))
		if c := f.counters(id); c.QueuedCurrent != 1 {
			f.Fatalf("counters %+v, want the older one parked", c)
		}
		after(9 * time.Second)
		if n := f.engine.begun(); n != 1 {
			f.Fatalf("%d executions, want 1", n)
		}
		// At 10 s the older one runs. The second item parks behind it, the
		// third finds the queue full.
		after(time.Second)
		if c := f.counters(id); c.QueuedCurrent != 1 || c.Throttled != 1 || c.QueueRejections != 1 {
			f.Errorf("counters %+v, want 1 parked, 1 refused", c)
		}
		after(time.Minute)
		if got := verdicts(o.results); got != "ok ok refused" || o.took != 35*time.Second {
			f.Errorf("got %s after %v", got, o.took)
		}
		if older.took != 25*time.Second || older.err != nil {
			f.Errorf("older: %+v", older)
		}
	})
}

// The same with the queue off, where the older waiter comes from the time
// before it was: the others are refused and counted.
func TestSlotGoneWithTheQueueOff(t *testing.T) {
	bubble(t, func(f *fixture) {
		id := f.limited(1, 1)
		o := f.startMulti(f.Context(), multi(id, 3, 10*time.Second))
		older := f.start(f.Context(), work(id, 15*time.Second))
		f.update("limited", `{"queue":{"size_per_bucket":0}}`)
		after(10 * time.Second)
		if !o.done || verdicts(o.results) != "ok refused refused" {
			f.Errorf("got %+v %s", o, verdicts(o.results))
		}
		if c := f.counters(id); c.Throttled != 2 || c.QueueRejections != 0 {
			f.Errorf("counters %+v, want 2 throttled", c)
		}
		after(15 * time.Second)
		if !older.done || older.err != nil {
			f.Errorf("older: %+v", older)
		}
	})
}

// No sibling runs, and the queue is off: each item is refused in its place,
// and the multi-search as a whole is not.
func TestItemsAreRefusedInTheirPlaces(t *testing.T) {
	bubble(t, func(f *fixture) {
		id := f.limited(1, 0)
		holder := f.start(f.Context(), work(id, time.Minute))
		m := multi(id, 2, time.Second)
		m.Items = append(m.Items, &search.Request{Query: work("", 0).Query, GroupID: f.group("free", "")})
		results, err := f.service.RunMulti(f.Context(), m)
		if err != nil || verdicts(results) != "refused refused ok" {
			f.Errorf("got %s, %v", verdicts(results), err)
		}
		if c := f.counters(id); c.Throttled != 2 {
			f.Errorf("counters %+v, want 2 throttled", c)
		}
		after(time.Minute)
		if !holder.done {
			f.Error("the holder still runs")
		}
	})
}

// Nothing of the multi-search runs yet: its items park like any search, as far
// as there is room.
func TestItemsPark(t *testing.T) {
	bubble(t, func(f *fixture) {
		id := f.limited(1, 2)
		holder := f.start(f.Context(), work(id, 10*time.Second))
		o := f.startMulti(f.Context(), multi(id, 4, time.Second))
		if c := f.counters(id); c.QueuedCurrent != 2 || c.Throttled != 2 {
			f.Errorf("counters %+v, want 2 parked and 2 refused", c)
		}
		after(time.Minute)
		if got := verdicts(o.results); !holder.done || got != "ok ok refused refused" || o.took != 12*time.Second {
			f.Errorf("got %s after %v", got, o.took)
		}
	})
}

// An item that came out of the queue counts as a sibling that holds a permit.
func TestItemOutOfTheQueueIsASibling(t *testing.T) {
	bubble(t, func(f *fixture) {
		id := f.limited(1, 1)
		holder := f.start(f.Context(), work(id, 10*time.Second))
		m := multi(id, 3, 5*time.Second)
		m.MaxConcurrent = 1
		o := f.startMulti(f.Context(), m)
		after(11 * time.Second) // the first one runs, out of the queue
		filler := f.start(f.Context(), work(id, time.Second))
		after(time.Minute)
		if got := verdicts(o.results); !holder.done || !filler.done || got != "ok ok ok" {
			f.Errorf("got %s", got)
		}

		// The same with all under way at once: the second is held by the first.
		f.update("limited", `{"queue":{"size_per_bucket":1}}`)
		holder = f.start(f.Context(), work(id, 10*time.Second))
		m = multi(id, 1, 5*time.Second)
		m.Items = append(m.Items, work(f.group("free", ""), 12*time.Second), work("", 5*time.Second))
		m.MaxConcurrent = 2
		before := f.counters(id).Throttled
		o = f.startMulti(f.Context(), m)
		after(12 * time.Second) // the first runs since 10 s; the third starts now that the second is done
		if h, ok := f.lastTask().Status().(search.Held); !ok {
			f.Errorf("status %#v, want held", h)
		}
		after(time.Minute)
		if got := verdicts(o.results); got != "ok ok ok" || f.counters(id).Throttled != before || !holder.done {
			f.Errorf("got %s, counters %+v", got, f.counters(id))
		}
	})
}

// A sibling that counts against no limit, because it began before there was
// one, is none to wait for.
func TestSiblingWithoutAPermit(t *testing.T) {
	bubble(t, func(f *fixture) {
		id := f.group("limited", "")
		m := multi(id, 3, 10*time.Second)
		m.Items[1] = work("", 2*time.Second)
		m.MaxConcurrent = 2
		o := f.startMulti(f.Context(), m)
		after(time.Second)
		f.update("limited", `{"throttling":{"attribute":"group","node_limit":1},"queue":{"size_per_bucket":1}}`)
		holder := f.start(f.Context(), work(id, 5*time.Second))
		after(time.Second)
		if st := f.status(f.lastTask()); st.State != wlm.StateWaiting || st.Position != 1 {
			f.Errorf("status of the third: %+v, want waiting", st)
		}
		after(time.Minute)
		if got := verdicts(o.results); got != "ok ok ok" || o.took != 16*time.Second || holder.took != 5*time.Second {
			f.Errorf("got %s after %v, holder %+v", got, o.took, holder)
		}
	})
}

func (f *fixture) lastTask() *tasks.Task {
	all := f.tasks.List(tasks.Filter{})
	return all[len(all)-1]
}

// A cancelled parent takes its items along: those running and parked end, the
// held and those that had not been started never do anything.
func TestCancelledMultiSearch(t *testing.T) {
	for name, cancel := range map[string]func(f *fixture, leave context.CancelFunc){
		"by its task":    func(f *fixture, _ context.CancelFunc) { f.only(search.MultiSearchAction).Cancel(tasks.UserCause()) },
		"by its client":  func(_ *fixture, leave context.CancelFunc) { leave() },
		"at the running": func(f *fixture, leave context.CancelFunc) { after(0); leave() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				id := f.limited(1, 10)
				m := multi(id, 5, time.Hour)
				m.MaxConcurrent = 3
				ctx, leave := context.WithCancel(f.Context())
				defer leave()
				o := f.startMulti(ctx, m)
				cancel(f, leave)
				synctest.Wait()
				if want := "cancelled unstarted unstarted unstarted unstarted"; !o.done || o.err != nil || verdicts(o.results) != want {
					f.Errorf("got %+v: %s", o, verdicts(o.results))
				}
				if n := f.engine.begun(); n != 1 {
					f.Errorf("%d executions, want 1", n)
				}
				if c := f.counters(id); c.QueuedCurrent != 0 || c.Completions != 1 {
					f.Errorf("counters %+v", c)
				}
			})
		})
	}
}

// The items of a multi-search that runs one at a time: the first is parked, it
// is evicted at once and no other one starts.
func TestCancelledWhileItsFirstItemIsParked(t *testing.T) {
	for name, byClient := range map[string]bool{"by its task": false, "by its client": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				id := f.limited(1, 10)
				holder := f.start(f.Context(), work(id, time.Hour))
				m := multi(id, 5, time.Second)
				m.MaxConcurrent = 1
				ctx, leave := context.WithCancel(f.Context())
				defer leave()
				o := f.startMulti(ctx, m)
				if n := len(f.only(search.MultiSearchAction).Children()); n != 1 {
					f.Errorf("%d items under way, want 1", n)
				}
				if byClient {
					leave()
				} else {
					f.only(search.MultiSearchAction).Cancel(tasks.UserCause())
				}
				synctest.Wait()
				if want := "evicted unstarted unstarted unstarted unstarted"; !o.done || o.err != nil || o.took != 0 || verdicts(o.results) != want {
					f.Errorf("got %+v: %s", o, verdicts(o.results))
				}
				if c := f.counters(id); c.QueuedCurrent != 0 || c.Evicted != 1 || c.Queued != 1 {
					f.Errorf("counters %+v", c)
				}
				after(time.Hour)
				if !holder.done || f.engine.begun() != 1 {
					f.Errorf("%d executions, want the holder's", f.engine.begun())
				}
			})
		})
	}
}

// One item is cancelled while it is held, wherever it stands in line; the
// others go on.
func TestCancelledHeldItem(t *testing.T) {
	for victim := 1; victim < 4; victim++ {
		bubble(t, func(f *fixture) {
			id := f.limited(1, 0)
			o := f.startMulti(f.Context(), multi(id, 4, time.Second))
			f.only(search.MultiSearchAction).Children()[victim].Cancel(tasks.UserCause())
			after(time.Minute)
			want := []string{"ok", "ok", "ok", "ok"}
			want[victim] = "unstarted"
			if got := verdicts(o.results); got != strings.Join(want, " ") || o.took != 3*time.Second {
				f.Errorf("victim %d: got %s after %v", victim, got, o.took)
			}
		})
	}
}

func TestMaxConcurrent(t *testing.T) {
	for _, test := range []struct{ items, asked, want int }{
		{25, 0, 10},
		{25, 3, 3},
		{25, 25, 25},
		{3, 0, 3},
		{0, 0, 0},
	} {
		bubble(t, func(f *fixture) {
			m := multi(f.group("free", ""), test.items, time.Second)
			m.MaxConcurrent = test.asked
			results, err := f.service.RunMulti(f.Context(), m)
			if err != nil || verdicts(results) != repeated("ok", test.items) || f.engine.most != test.want {
				f.Errorf("%+v: %d at once, %v, %s", test, f.engine.most, err, verdicts(results))
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(c *search.Config) { c.MaxConcurrentSearches = 2 })
		if _, err := f.service.RunMulti(f.Context(), multi("", 5, time.Second)); err != nil || f.engine.most != 2 {
			f.Errorf("%d at once, %v, want 2 by the configuration", f.engine.most, err)
		}
		f.finish()
	})
}

// What the whole says holds for every item that says nothing itself; who asks
// is for the whole to say.
func TestItemsInherit(t *testing.T) {
	bubble(t, func(f *fixture) {
		ours, theirs := f.group("ours", ""), f.group("theirs", "")
		m := &search.MultiRequest{
			Items: []*search.Request{
				work("", time.Hour),
				{GroupID: theirs, OpaqueID: "item", CancelAfter: new(time.Second), Principal: wlm.Principal{User: "eve"}, Query: work("", time.Hour).Query},
			},
			GroupID: ours, OpaqueID: "whole", CancelAfter: new(2 * time.Second), Principal: wlm.Principal{User: "ann"},
		}
		o := f.startMulti(f.Context(), m)
		parent := f.only(search.MultiSearchAction)
		if parent.User() != "ann" || parent.Headers()[search.OpaqueIDHeader] != "whole" {
			f.Errorf("parent: user %q, headers %v", parent.User(), parent.Headers())
		}
		items := parent.Children()
		for i, want := range []struct{ group, opaque string }{{ours, "whole"}, {theirs, "item"}} {
			if got := items[i]; got.Group() != want.group || got.Headers()[search.OpaqueIDHeader] != want.opaque || got.User() != "ann" {
				f.Errorf("item %d: group %q, headers %v, user %q", i, got.Group(), got.Headers(), got.User())
			}
		}
		if m.Items[0].GroupID != "" || m.Items[1].Principal.User != "eve" {
			f.Error("the caller's items were changed")
		}
		after(time.Second)
		if items[1].Context().Err() == nil || items[0].Context().Err() != nil {
			f.Error("after 1s only the second item is to be cancelled")
		}
		after(time.Second)
		if got := verdicts(o.results); got != "cancelled cancelled" {
			f.Error(got)
		}
	})
}

// An item's deadline begins with the item.
func TestDeadlineOfALaterItem(t *testing.T) {
	bubble(t, func(f *fixture) {
		m := multi("", 3, 2*time.Second)
		m.MaxConcurrent = 1
		m.CancelAfter = new(3 * time.Second)
		if results, err := f.service.RunMulti(f.Context(), m); err != nil || verdicts(results) != "ok ok ok" {
			f.Errorf("got %s, %v", verdicts(results), err)
		}
		m.CancelAfter = new(units.None)
		if results, err := f.service.RunMulti(f.Context(), m); err != nil || verdicts(results) != "ok ok ok" {
			f.Errorf("got %s, %v", verdicts(results), err)
		}
	})
}

func TestItemsThatCannotBePrepared(t *testing.T) {
	for _, test := range []struct {
		name  string
		err   error
		whole bool
	}{
		{"no such index", &search.IndexNotFoundError{Index: "x"}, false},
		{"no such index, wrapped", fmt.Errorf("prepare: %w", &search.IndexNotFoundError{Index: "x"}), false},
		{"no index name", &search.InvalidIndexNameError{Index: "_X"}, false},
		{"no search", &search.ParseError{Reason: "no"}, true},
		{"no value", &search.InvalidError{Reason: "no"}, true},
		{"anything else", errors.New("no"), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				m := multi("", 3, time.Second)
				f.engine.refuse = func(r *search.Request) error {
					if r.Method == "BAD" {
						return test.err
					}
					return nil
				}
				m.Items[1].Method = "BAD"
				results, err := f.service.RunMulti(f.Context(), m)
				if test.whole {
					if err != test.err || results != nil || f.engine.begun() != 0 {
						f.Errorf("got %v, %v and %d executions, want the error alone", err, results, f.engine.begun())
					}
					return
				}
				if err != nil || results[1].Err != test.err || verdict(results[0]) != "ok" || verdict(results[2]) != "ok" {
					f.Errorf("got %v, %s", err, verdicts(results))
				}
			})
		})
	}
	bubble(t, func(f *fixture) {
		m := multi("", 2, time.Second)
		m.Items[1].Kind = search.ScrollPage
		_, err := f.service.RunMulti(f.Context(), m)
		if _, ok := errors.AsType[*search.InvalidError](err); !ok {
			f.Errorf("a page as an item: %v", err)
		}
	})
}

// A panic of an item comes out of RunMulti, once all have ended and given
// their permits back.
func TestPanicOfAnItem(t *testing.T) {
	bubble(t, func(f *fixture) {
		id := f.limited(1, 0)
		broken := errors.New("broken")
		ran := 0
		f.engine.execute = func(context.Context, *search.Request, *tasks.Task, search.Limits) error {
			if ran++; ran == 2 {
				panic(broken)
			}
			return nil
		}
		func() {
			defer func() {
				v := recover()
				if err, ok := v.(error); !ok || !errors.Is(err, broken) || !strings.Contains(err.Error(), "item 1 ") {
					f.Errorf("recovered %v", v)
				}
			}()
			_, err := f.service.RunMulti(f.Context(), multi(id, 4, 0))
			f.Errorf("returned %v", err)
		}()
		if ran != 4 {
			f.Errorf("%d items ran, want 4", ran)
		}
	})
}

// A multi-search run on behalf of a search shares its permit.
func TestNestedMultiSearch(t *testing.T) {
	bubble(t, func(f *fixture) {
		id := f.limited(1, 0)
		f.engine.execute = func(ctx context.Context, r *search.Request, _ *tasks.Task, _ search.Limits) error {
			if r.Query.Has("outer") {
				results, err := f.service.RunMulti(ctx, multi(id, 3, 0))
				if err != nil || verdicts(results) != "ok ok ok" {
					f.Errorf("nested: %s, %v", verdicts(results), err)
				}
			}
			return nil
		}
		outer := work(id, 0)
		outer.Query.Set("outer", "")
		if _, err := f.service.Run(f.Context(), outer); err != nil {
			f.Error(err)
		}
	})
}
