package wlm_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/wlm"
)

var errUser = errors.New("by user request")

func TestParksInOrderAndAdmitsTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		defer h.done()
		r := wlm.Request{Group: h.create("g", limits("group", 2, -1, 10))}
		all := h.startAll(6, r)
		for i, s := range all {
			if got, want := s.running(), i < 2; got != want {
				t.Errorf("search %d runs: %v, want %v", i, got, want)
			}
		}
		for i := range 4 {
			all[i].finish()
			synctest.Wait()
			if !all[i+2].running() {
				t.Errorf("the end of search %d did not admit search %d", i, i+2)
			}
		}
		all[4].finish()
		all[5].finish()
		synctest.Wait()
		c := h.counters(r.Group)
		if c.Queued != 4 || c.QueueWaits != 4 || c.QueuePeak != 4 || c.Admitted != 6 || c.Throttled != 0 {
			t.Errorf("counters %+v", c)
		}
	})
}

func TestQueueFullAndQueueOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		defer h.done()
		r := wlm.Request{Group: h.create("analytics", limits("group", 1, -1, 2))}
		all := h.startAll(5, r)
		var full *wlm.RejectedError
		for i := 3; i < 5; i++ {
			if !errors.As(all[i].failure(), &full) || full.Why != wlm.QueueFull || full.Limit != 1 || full.Size != 2 || full.Depth != 2 {
				t.Fatalf("search %d: %v", i, all[i].failure())
			}
		}
		for _, part := range []string{"Request throttled:", "[analytics]", "per-node limit of 1", "size_per_bucket is 2", "node_limit"} {
			if !strings.Contains(full.Error(), part) {
				t.Errorf("%q does not say %q", full, part)
			}
		}
		if c := h.counters(r.Group); c.Throttled != 2 || c.QueueRejections != 2 || c.Queued != 2 {
			t.Errorf("queue full: counters %+v", c)
		}
		h.update("analytics", `{"queue":{"size_per_bucket":0}}`)
		late := h.start(r)
		synctest.Wait()
		var off *wlm.RejectedError
		if !errors.As(late.failure(), &off) || off.Why != wlm.QueueOff {
			t.Fatalf("queue off: %v", late.failure())
		}
		if c := h.counters(r.Group); c.Throttled != 3 || c.QueueRejections != 2 || c.QueuedCurrent != 2 {
			t.Errorf("queue off keeps who waits and counts a throttled one: %+v", c)
		}
		finishAll(all)
	})
}

// TestRetryAfter learns from how fast the queue drains.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		defer h.done()
		r := wlm.Request{Group: h.create("g", limits("group", 1, -1, 4))}
		time.Sleep(time.Hour) // in which nobody waits
		all := h.startAll(5, r)
		var e *wlm.RejectedError
		if _, err := h.Enter(t.Context(), r); !errors.As(err, &e) || e.RetryAfter != time.Second {
			t.Errorf("nothing is known of the queue yet: %v, retry after %v", err, e.RetryAfter)
		}
		time.Sleep(10 * time.Second)
		all[0].finish()
		synctest.Wait()
		all = append(all[1:], h.start(r))
		synctest.Wait()
		if _, err := h.Enter(t.Context(), r); !errors.As(err, &e) || e.RetryAfter != 50*time.Second {
			t.Errorf("4 wait, 10 s each, and it would be the fifth: %v, retry after %v", err, e.RetryAfter)
		}
		finishAll(all)
	})
}

func TestCancelWhileParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, wlm.WithCauseName(func(err error) string { return err.Error() }))
		defer h.done()
		r := wlm.Request{Group: h.create("g", limits("group", 1, -1, 10))}
		all := h.startAll(4, r)
		start := time.Now()
		all[2].cancel(errUser)
		synctest.Wait()
		if d := time.Since(start); d != 0 {
			t.Errorf("the eviction took %v", d)
		}
		var e *wlm.CancelledError
		if !errors.As(all[2].failure(), &e) || !e.Queued || !errors.Is(e, errUser) {
			t.Errorf("got %v", all[2].failure())
		}
		all[0].finish()
		synctest.Wait()
		if !all[1].running() || !all[3].parked() {
			t.Error("the order behind a cancelled waiter is broken")
		}
		c := h.counters(r.Group)
		if c.Evicted != 1 || c.Throttled != 0 || c.QueueRejections != 0 || c.QueuedCurrent != 1 || c.QueueWaits != 1 {
			t.Errorf("counters %+v", c)
		}
		if n := h.Totals().EvictedBy["by user request"]; n != 1 {
			t.Errorf("evictions by cause: %v", h.Totals().EvictedBy)
		}
		all[1].finish()
		synctest.Wait()
		all[3].finish()
		synctest.Wait()
	})
}

func TestCancelledBeforeItArrives(t *testing.T) {
	h := newHarness(t)
	defer h.done()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errUser)
	var e *wlm.CancelledError
	if _, err := h.Enter(ctx, wlm.Request{Group: h.create("g", limits("group", 1, -1, 10))}); !errors.As(err, &e) || e.Queued || !errors.Is(e, errUser) {
		t.Fatalf("got %v", err)
	}
}

// TestNoQueueTimeout parks a search for a month.
func TestNoQueueTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		defer h.done()
		r := wlm.Request{Group: h.create("g", limits("group", 1, -1, 1))}
		all := h.startAll(2, r)
		const wait = 30 * 24 * time.Hour
		time.Sleep(wait)
		if !all[1].parked() {
			t.Fatal("the waiter is gone")
		}
		all[0].finish()
		synctest.Wait()
		if !all[1].running() {
			t.Fatal("the waiter does not run")
		}
		c := h.counters(r.Group)
		if ms := uint64(wait.Milliseconds()); c.QueueWaitMillis != ms || c.MaxQueueWaitMillis != ms {
			t.Errorf("a wait of %d ms counts as %d, the longest %d", ms, c.QueueWaitMillis, c.MaxQueueWaitMillis)
		}
		all[1].finish()
		synctest.Wait()
	})
}

func TestLimitsChangeWhileParked(t *testing.T) {
	for _, c := range []struct {
		name, update       string
		running, untracked int // of 8, two of which ran before
	}{
		{"raised", `{"throttling":{"node_limit":5}}`, 5, 0},
		{"lowered", `{"throttling":{"node_limit":1}}`, 2, 0},
		{"size lowered", `{"queue":{"size_per_bucket":1}}`, 2, 0},
		{"off", unlimited, 8, 6},
		{"other attribute", `{"throttling":{"attribute":"username"}}`, 8, 6},
		{"monitor", `{"resiliency_mode":"monitor"}`, 8, 6},
		{"a shared tier more", `{"throttling":{"shared_limit":3}}`, 5, 0},
		{"the shared tier alone", `{"throttling":{"node_limit":null,"shared_limit":3}}`, 5, 0},
		{"the node tier at 0", `{"throttling":{"node_limit":0,"shared_limit":1}}`, 3, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t)
				defer h.done()
				r := wlm.Request{Group: h.create("g", limits("group", 2, -1, 10)), Principal: wlm.Principal{User: "u"}}
				all := h.startAll(8, r)
				h.update("g", c.update)
				synctest.Wait()
				if n := count(all, (*search).running); n != c.running {
					t.Errorf("%d run, want %d", n, c.running)
				}
				if n := count(all, (*search).running) - count(all, (*search).tracked); n != c.untracked {
					t.Errorf("%d run untracked, want %d", n, c.untracked)
				}
				for i, s := range all {
					if s.running() != (i < c.running) {
						t.Errorf("search %d runs: %v, out of order", i, s.running())
					}
				}
				finishAll(all)
			})
		})
	}
}

func TestModesAndDeletionReleaseAll(t *testing.T) {
	for name, release := range map[string]func(*harness){
		"group deleted": func(h *harness) { h.remove("g") },
		"monitor_only":  func(h *harness) { h.SetMode(wlm.ModeMonitorOnly) },
		"disabled":      func(h *harness) { h.SetMode(wlm.ModeDisabled) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t)
				defer h.done()
				r := wlm.Request{Group: h.create("g", limits("group", 1, 1, 10))}
				all := h.startAll(6, r)
				all[5].cancel(errUser)
				synctest.Wait()
				if n := count(all, (*search).running); n != 2 {
					t.Fatalf("%d run before", n)
				}
				release(h)
				synctest.Wait()
				if n := count(all, (*search).running); n != 5 {
					t.Errorf("%d run, want 5", n)
				}
				if all[5].failure() == nil {
					t.Error("the cancelled one runs")
				}
				if n := count(all, (*search).tracked); n != 2 {
					t.Errorf("%d are tracked, want the 2 that ran before", n)
				}
				later := h.start(r)
				synctest.Wait()
				if !later.running() || later.tracked() {
					t.Error("a later search is throttled")
				}
				finishAll(append(all, later))
			})
		})
	}
}

// TestUntrackedPermitsDoNotCount: what was released never counts against a limit that is set later.
func TestUntrackedPermitsDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		defer h.done()
		r := wlm.Request{Group: h.create("g", limits("group", 1, -1, 10))}
		all := h.startAll(4, r) // one tracked
		h.update("g", unlimited)
		h.update("g", `{`+limits("group", 2, -1, 10)+`}`)
		all = append(all, h.startAll(2, r)...)
		if !all[4].running() || !all[4].tracked() || !all[5].parked() {
			t.Error("with one tracked search and a limit of 2, one more may run")
		}
		finishAll(all)
	})
}

func TestMonitorLetsEverythingRun(t *testing.T) {
	for name, block := range map[string]string{
		"node tier":   limits("group", 1, -1, 1),
		"shared tier": limits("group", -1, 1, 1),
		"both":        limits("group", 1, 1, 1),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t)
				defer h.done()
				id := h.create("g", block)
				h.update("g", `{"resiliency_mode":"monitor"}`)
				all := h.startAll(5, wlm.Request{Group: id})
				tracked := count(all, (*search).tracked)
				c := h.counters(id)
				if n := count(all, (*search).running); n != 5 || c.WouldThrottle != uint64(5-tracked) || c.Throttled != 0 || c.Queued != 0 || tracked == 0 {
					t.Errorf("%d run, %d of them tracked, counters %+v", n, tracked, c)
				}
				finishAll(all)
			})
		})
	}
}

func TestBucketsByPrincipal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		defer h.done()
		byUser := h.create("users", limits("username", 1, -1, 1))
		byRole := h.create("roles", limits("role", 1, -1, 1))
		send := func(group, user string, roles ...string) *search {
			s := h.start(wlm.Request{Group: group, Principal: wlm.Principal{User: user, Roles: roles}})
			synctest.Wait()
			return s
		}
		var all []*search
		all = append(all, send(byUser, "ann"), send(byUser, "bob"), send(byUser, "ann"), send(byUser, "ann"))
		if !all[0].running() || !all[1].running() || !all[2].parked() {
			t.Error("each user has a bucket of their own")
		}
		var e *wlm.RejectedError
		if !errors.As(all[3].failure(), &e) || e.Attribute != groups.ByUsername || e.Value != "ann" || !strings.Contains(e.Error(), "[ann]") {
			t.Errorf("got %v", all[3].failure())
		}
		all = append(all, send(byRole, "ann", "z", "b"), send(byRole, "bob", "b", "c"))
		if !all[4].running() || !all[5].parked() {
			t.Error("of several roles the smallest names the bucket")
		}
		all = append(all, send(byUser, ""), send(byUser, "  "), send(byRole, "ann"), send(byRole, "ann", ""))
		for i, s := range all[6:] {
			if !s.running() || s.tracked() {
				t.Errorf("search %d without a principal is throttled", i)
			}
		}
		if n := h.Totals().Unattributed; n != 4 {
			t.Errorf("%d are counted as without a principal", n)
		}
		finishAll(all)
	})
}

func TestUnknownGroupsAreTheDefaultGroup(t *testing.T) {
	h := newHarness(t)
	defer h.done()
	for _, id := range []string{"", "nosuch", groups.DefaultID} {
		ticket, err := h.Enter(t.Context(), wlm.Request{Group: id})
		if err != nil {
			t.Fatal(err)
		}
		permit, err := ticket.Wait(t.Context())
		if err != nil || permit.Tracked() || permit.Bucket() != (wlm.BucketKey{}) {
			t.Errorf("%q: %v, bucket %v", id, err, permit.Bucket())
		}
		h.Completed(id)
		permit.Close()
	}
	if c := h.counters(groups.DefaultID); c.Admitted != 3 || c.Completions != 3 {
		t.Errorf("counters %+v", c)
	}
}

// TestNestedSearch: what runs on behalf of a search that holds the bucket's permit takes no second one.
func TestNestedSearch(t *testing.T) {
	h := newHarness(t)
	defer h.done()
	for _, block := range []string{limits("group", 1, -1, 0), limits("group", -1, 1, 5)} {
		id := h.create("g"+block[len(block)-2:len(block)-1], block)
		ctx, r := t.Context(), wlm.Request{Group: id}
		var open []*wlm.Permit
		for depth := range 3 {
			ticket, err := h.Enter(ctx, r)
			if err != nil {
				t.Fatalf("depth %d: %v", depth, err)
			}
			p, err := ticket.Wait(ctx)
			if err != nil {
				t.Fatalf("depth %d: %v", depth, err)
			}
			if p.Tracked() != (depth == 0) {
				t.Errorf("depth %d: tracked %v", depth, p.Tracked())
			}
			open = append(open, p)
			r.Under = p
		}
		for _, p := range open {
			p.Close()
		}
	}
}

func TestTryEnterCountsNothing(t *testing.T) {
	for name, block := range map[string]string{
		"node tier, queue off": limits("group", 1, -1, 0),
		"node tier, queue on":  limits("group", 1, -1, 5),
		"shared tier":          limits("group", -1, 1, 5),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			defer h.done()
			r := wlm.Request{Group: h.create("g", block)}
			enter := func() (*wlm.Permit, error) {
				ticket, err := h.TryEnter(t.Context(), r)
				if err != nil {
					return nil, err
				}
				return ticket.Wait(t.Context())
			}
			first, err := enter()
			if err != nil {
				t.Fatal(err)
			}
			before := h.counters(r.Group)
			if _, err := enter(); !errors.Is(err, wlm.ErrNoPermit) {
				t.Errorf("got %v", err)
			}
			if after := h.counters(r.Group); after != before {
				t.Errorf("counted: %+v, before %+v", after, before)
			}
			first.Close()
			second, err := enter()
			if err != nil {
				t.Fatal(err)
			}
			second.Close()
		})
	}
}

func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		defer h.done()
		r := wlm.Request{Group: h.create("g", limits("group", 1, 1, 10))}
		all := h.startAll(5, r)
		h.Stop()
		synctest.Wait()
		var e *wlm.StoppedError
		for i := 2; i < 5; i++ {
			if !errors.As(all[i].failure(), &e) || e.RetryAfter < time.Second {
				t.Errorf("waiter %d: %v", i, all[i].failure())
			}
		}
		for _, group := range []string{r.Group, ""} {
			if _, err := h.Enter(t.Context(), wlm.Request{Group: group}); !errors.As(err, &e) {
				t.Errorf("an arrival in %q: %v", group, err)
			}
		}
		if !all[0].running() || !all[1].running() {
			t.Error("a running search was ended")
		}
		if n := h.Totals().EvictedBy["shutdown"]; n != 3 {
			t.Errorf("%d evictions by shutdown", n)
		}
		finishAll(all)
	})
}

// TestGroupCeiling: the group's places for waiters are one pool over all buckets. When it is full the next freed place goes to the
// next arrival, whoever sends it.
func TestGroupCeiling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		defer h.done()
		id := h.create("g", limits("username", 1, -1, 50))
		send := func(i int) *search {
			return h.start(wlm.Request{Group: id, Principal: wlm.Principal{User: strings.Repeat("u", 1+i/51)}})
		}
		var all []*search
		for i := range groups.MaxQueued / 50 * 51 { // 200 users: one runs, 50 park
			all = append(all, send(i))
		}
		synctest.Wait()
		if c := h.counters(id); c.Waiters != groups.MaxQueued || c.Throttled != 0 || c.QueuePeak != groups.MaxQueued {
			t.Fatalf("counters %+v", c)
		}
		newcomer := wlm.Request{Group: id, Principal: wlm.Principal{User: "new"}}
		all = append(all, h.startAll(2, newcomer)...)
		var e *wlm.RejectedError
		if last := all[len(all)-1].failure(); !errors.As(last, &e) || e.Why != wlm.GroupFull {
			t.Fatalf("waiter %d: %v", groups.MaxQueued+1, last)
		}
		all[slices.IndexFunc(all, (*search).parked)].cancel(errUser) // one place
		synctest.Wait()
		all = append(all, h.startAll(1, newcomer)...)
		if !all[len(all)-1].parked() {
			t.Errorf("the freed place was not given: %v", all[len(all)-1].failure())
		}
		if c := h.counters(id); c.QueueRejections != 1 || c.Throttled != 1 {
			t.Errorf("counters %+v", c)
		}
		finishAll(all)
	})
}

// TestNothingIsLeftOfPrincipals: storms of distinct principals leave nothing behind, neither buckets nor memory.
func TestNothingIsLeftOfPrincipals(t *testing.T) {
	const storms, principals = 10, 10_000
	a := wlm.New() // verification would keep nothing either, but takes its time
	h := &harness{TB: t, Admission: a}
	h.openRegistry()
	defer h.done()
	id := h.create("g", limits("username", 1, 1, 5))
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for storm := range storms {
		permits := make([]*wlm.Permit, principals)
		for i := range permits {
			ticket, err := h.Enter(t.Context(), wlm.Request{Group: id, Principal: wlm.Principal{User: fmt.Sprint(storm*principals + i)}})
			if err == nil {
				permits[i], err = ticket.Wait(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if n := h.Totals().Buckets; n != principals {
			t.Fatalf("%d principals have %d buckets", principals, n)
		}
		for _, p := range permits {
			p.Close()
		}
		if n := h.Totals().Buckets; n != 0 {
			t.Fatalf("%d buckets are left", n)
		}
	}
	// What may stay is a small map in each of a few shards, and what the tests beside this one do.
	if after := heap(); after > before+256<<10 {
		t.Errorf("the heap has grown from %d to %d bytes", before, after)
	}
}

func TestSecondCloseIsReported(t *testing.T) {
	var reports []string
	a := wlm.New(wlm.WithVerification(func(v string) { reports = append(reports, v) }))
	ticket, err := a.Enter(t.Context(), wlm.Request{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := ticket.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	p.Close()
	if len(reports) != 1 || !strings.HasPrefix(reports[0], "I9") || a.Totals().Untracked != 0 {
		t.Errorf("reports %q, totals %+v", reports, a.Totals())
	}
}

func TestSurvey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		defer h.done()
		r := wlm.Request{Group: h.create("g", limits("group", 1, -1, 10))}
		all := h.startAll(4, r)
		time.Sleep(2 * time.Second)
		all[0].finish()
		synctest.Wait()
		time.Sleep(time.Second)
		survey := h.Survey()
		for i, want := range []wlm.Status{
			{State: wlm.StateRunning, Bucket: r.Group + ":group", Tracked: true},
			{State: wlm.StateWaiting, Tier: wlm.NodeTier, Bucket: r.Group + ":group", Position: 1, Waiting: 3 * time.Second, Estimated: 2 * time.Second, HasEstimate: true},
			{State: wlm.StateWaiting, Tier: wlm.NodeTier, Bucket: r.Group + ":group", Position: 2, Waiting: 3 * time.Second, Estimated: 4 * time.Second, HasEstimate: true},
		} {
			if got, ok := survey.Status(all[i+1].ticket); !ok || got != want {
				t.Errorf("search %d: %+v, want %+v", i+1, got, want)
			}
		}
		if _, ok := survey.Status(all[0].ticket); ok {
			t.Error("an ended search has a status")
		}
		finishAll(all[1:])
	})
}

// TestSweepFindsNothing runs the sweep beside parked searches.
func TestSweepFindsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		defer h.done()
		go h.Sweep(t.Context())
		all := h.startAll(3, wlm.Request{Group: h.create("g", limits("group", 1, -1, 10))})
		time.Sleep(time.Minute)
		all[1].cancel(errUser)
		time.Sleep(time.Minute)
		if n := h.Totals().Recovered; n != 0 {
			t.Errorf("the sweep recovered %d", n)
		}
		finishAll(all)
	})
}

// TestSweepMends: what nothing may ever need. A waiter whose goroutine never came is evicted, and counted as recovered.
func TestSweepMends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		go h.Sweep(t.Context())
		r := wlm.Request{Group: h.create("g", limits("group", 1, -1, 10))}
		holder := h.startAll(1, r)
		ctx, cancel := context.WithCancelCause(t.Context())
		forgotten, err := h.Enter(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		cancel(errUser)
		time.Sleep(20 * time.Second)
		if c := h.counters(r.Group); c.Waiters != 1 {
			t.Errorf("the sweep does not leave it to the waiter's own goroutine: %+v", c)
		}
		time.Sleep(20 * time.Second)
		if c := h.counters(r.Group); c.Waiters != 0 || c.Evicted != 1 || h.Totals().Recovered != 1 {
			t.Errorf("counters %+v, totals %+v", c, h.Totals())
		}
		if _, err := forgotten.Wait(ctx); !errors.Is(err, errUser) {
			t.Errorf("it ended with %v", err)
		}
		finishAll(holder)
	})
}
