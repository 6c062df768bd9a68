package wlm_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/sharedtier"
	"github.com/wlmserver/wlmserver/wlm"
)

// TestOwnerFarAway drives searches over an owner whose messages take their time, in sessions that break: never more shared permits
// are out than the limit allows, and once the messages have arrived nobody waits beside a free slot.
func TestOwnerFarAway(t *testing.T) {
	const rounds, steps, limit = 60, 400, 2
	s := seed(t)
	for round := range rounds {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(s, uint64(round)))
			link := newSlowLink(limit)
			h := newHarness(t, wlm.WithLink(func(a *wlm.Admission) wlm.Link { link.a = a; return link }))
			node := r.IntN(3)
			id := h.create("g", limits("username", node, limit, []int{0, 2, 6}[r.IntN(3)]))
			var all []*search
			for range steps {
				switch n := r.IntN(10); {
				case n < 3:
					all = append(all, h.start(wlm.Request{Group: id, Principal: wlm.Principal{User: fmt.Sprint("u", r.IntN(2))}}))
				case n < 8:
					link.move(r)
				case n < 9 && len(all) > 0:
					if i := r.IntN(len(all)); all[i].running() {
						all[i].finish()
						all = append(all[:i], all[i+1:]...)
					}
				case len(all) > 0:
					all[r.IntN(len(all))].cancel(errUser)
				}
				switch r.IntN(60) {
				case 0:
					link.cut()
				case 1:
					link.begin()
				}
				if r.IntN(80) == 0 {
					h.update("g", fmt.Sprintf(`{"throttling":{"node_limit":%d,"shared_limit":%d}}`, 1+r.IntN(2), []int{0, limit}[r.IntN(2)]))
				}
				synctest.Wait()
				byUser := map[string]int{}
				for _, x := range all {
					if x.running() && x.tracked() {
						byUser[x.ticket.Bucket().Value]++
					}
				}
				for u, n := range byUser {
					if n > limit+2 { // the node tier adds at most 2
						t.Fatalf("%d searches of %s run under limits of 2 and %d", n, u, limit)
					}
				}
			}
			h.update("g", fmt.Sprintf(`{"throttling":{"node_limit":1,"shared_limit":%d}}`, limit))
			link.begin()
			for {
				for link.move(r) {
					synctest.Wait()
				}
				before := len(all)
				var rest []*search
				for _, x := range all {
					switch {
					case x.running():
						x.finish()
					case x.parked():
						rest = append(rest, x)
					}
				}
				synctest.Wait()
				if all = rest; len(all) == 0 && !link.move(r) {
					break
				}
				if len(all) == before {
					t.Fatalf("%d searches are stranded", before)
				}
			}
			synctest.Wait()
			h.done()
		})
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
}

// handLink is an owner played by the test.
type handLink struct{ sent []sharedtier.Message }

func (l *handLink) Session(wlm.BucketKey) wlm.Session { return l }

func (l *handLink) LimitsChanged() {}

func (l *handLink) Live() bool { return true }

func (l *handLink) Send(_ wlm.BucketKey, m []sharedtier.Message) { l.sent = append(l.sent, m...) }

// permit is the id with the number n.
func permit(n uint64) sharedtier.PermitID { return sharedtier.PermitID{Epoch: 1, Seq: n} }

// take gives the messages sent since the last call.
func (l *handLink) take() []sharedtier.Message {
	m := l.sent
	l.sent = nil
	return m
}

// handHarness is an admission whose owner the test plays, with one search of a group under way.
func handHarness(t *testing.T, size int, mode string) (*harness, *handLink, wlm.BucketKey, *search) {
	t.Helper()
	link := &handLink{}
	h := newHarness(t, wlm.WithLink(func(*wlm.Admission) wlm.Link { return link }))
	id := h.create("g", limits("group", -1, 1, size))
	h.update("g", fmt.Sprintf(`{"resiliency_mode":%q}`, mode))
	s := h.start(wlm.Request{Group: id})
	synctest.Wait()
	return h, link, wlm.BucketKey{Group: id, Attribute: groups.ByGroup}, s
}

// TestAnswersToATry plays every answer of an owner to a search that may not wait, also when the search has left meanwhile.
func TestAnswersToATry(t *testing.T) {
	granted := sharedtier.Message{Kind: sharedtier.Granted, Permit: permit(7), Try: 1}
	denied := sharedtier.Message{Kind: sharedtier.Denied, Try: 1}
	unavailable := sharedtier.Message{Kind: sharedtier.Unavailable, Try: 1}
	given := sharedtier.Message{Kind: sharedtier.Release, Permit: permit(7)}
	for _, c := range []struct {
		name, mode string
		before     func(*harness, *search) // the answer comes
		answer     sharedtier.Message
		runs       bool
		failure    string // a part of it
		back       bool   // the permit goes back at once
		would      uint64
	}{
		{name: "granted", answer: granted, runs: true},
		{name: "denied", answer: denied, failure: "cluster-wide limit of 1"},
		{name: "unavailable", answer: unavailable, failure: "the shared limit is unavailable"},
		{name: "cancelled, then granted", before: func(_ *harness, s *search) { s.cancel(errUser) }, answer: granted, failure: "by user request", back: true},
		{name: "cancelled, then denied", before: func(_ *harness, s *search) { s.cancel(errUser) }, answer: denied, failure: "by user request"},
		{name: "limits off, then granted", before: func(h *harness, _ *search) { h.update("g", unlimited) }, answer: granted, runs: true, back: true},
		{name: "group deleted, then denied", before: func(h *harness, _ *search) { h.remove("g") }, answer: denied, runs: true},
		{name: "stopped, then granted", before: func(h *harness, _ *search) { h.Stop() }, answer: granted, failure: "shutting down", back: true},
		{name: "monitor, granted", mode: "monitor", answer: granted, runs: true},
		{name: "monitor, denied", mode: "monitor", answer: denied, runs: true, would: 1},
		{name: "monitor, unavailable", mode: "monitor", answer: unavailable, runs: true},
		{name: "monitor, ended, then granted", mode: "monitor", before: func(_ *harness, s *search) { s.finish() }, answer: granted, back: true},
		{name: "an answer to nothing", answer: sharedtier.Message{Kind: sharedtier.Granted, Permit: permit(9), Try: 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mode := c.mode
				if mode == "" {
					mode = "enforced"
				}
				h, link, key, s := handHarness(t, 0, mode)
				defer h.done()
				if sent := link.take(); len(sent) != 1 || sent[0].Kind != sharedtier.Try || sent[0].Try != 1 {
					t.Fatalf("asked %v", sent)
				}
				if c.before != nil {
					c.before(h, s)
					synctest.Wait()
					link.take()
				}
				h.Receive(key, link, c.answer)
				synctest.Wait()
				if s.running() != c.runs {
					t.Errorf("runs: %v", s.running())
				}
				if err := s.failure(); c.failure != "" && (err == nil || !strings.Contains(err.Error(), c.failure)) {
					t.Errorf("failed with %v", err)
				}
				if sent := link.take(); c.back != (len(sent) == 1 && reflect.DeepEqual(sent[0], given)) {
					t.Errorf("then sent %v", sent)
				}
				for _, counters := range h.Counters() {
					if counters.Group == key.Group && counters.WouldThrottle != c.would {
						t.Errorf("would-be refusals: %d", counters.WouldThrottle)
					}
				}
				if c.answer.Try == 5 { // its own answer
					h.Receive(key, link, granted)
					synctest.Wait()
				}
				finishAll([]*search{s})
			})
		})
	}
}

// TestNewestPendingIsRefused: searches whose question is under way take no waiting place; when the answer is no and there is no
// place, the newest of them is refused.
func TestNewestPendingIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, link, key, first := handHarness(t, 1, "enforced")
		defer h.done()
		all := append([]*search{first}, h.startAll(2, wlm.Request{Group: key.Group})...)
		if c := h.counters(key.Group); c.Waiters != 3 || c.QueuedCurrent != 0 || c.Queued != 0 {
			t.Errorf("pending ones are counted as waiting: %+v", c)
		}
		for _, m := range link.take() {
			h.Receive(key, link, sharedtier.Message{Kind: sharedtier.Denied, Depth: m.Depth, Generation: m.Generation})
			synctest.Wait()
		}
		if !all[0].parked() || all[1].failure() == nil || all[2].failure() == nil {
			t.Errorf("failures: %v, %v, %v", all[0].failure(), all[1].failure(), all[2].failure())
		}
		if c := h.counters(key.Group); c.Throttled != 2 || c.QueueRejections != 2 || c.Queued != 1 || c.QueuedCurrent != 1 {
			t.Errorf("counters %+v", c)
		}
		h.remove("g") // the owner is told to forget us, and what it still grants goes back
		synctest.Wait()
		h.Receive(key, link, sharedtier.Message{Kind: sharedtier.Grant, Permit: permit(3)})
		if sent := link.take(); len(sent) != 2 || sent[0].Kind != sharedtier.Want || sent[0].Depth != 0 || sent[1].Kind != sharedtier.Unused || sent[1].Permit != permit(3) {
			t.Errorf("sent %v", sent)
		}
		if n := h.Totals().Unused; n != 1 {
			t.Errorf("%d permits are counted as unused", n)
		}
		h.Receive(wlm.BucketKey{Group: "nosuch", Attribute: groups.ByGroup}, link, sharedtier.Message{Kind: sharedtier.Grant, Permit: permit(3)})
		finishAll(all)
	})
}

// TestBucketStaysWhileItsOwnerKnowsOfIt: a principal's bucket whose last waiter has gone is kept until its owner has granted what it
// remembers, for the generation of what is sent next to be another one.
func TestBucketStaysWhileItsOwnerKnowsOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := &handLink{}
		h := newHarness(t, wlm.WithLink(func(*wlm.Admission) wlm.Link { return link }))
		defer h.done()
		key := wlm.BucketKey{Group: h.create("g", limits("username", -1, 1, 5)), Attribute: groups.ByUsername, Value: "u"}
		s := h.start(wlm.Request{Group: key.Group, Principal: wlm.Principal{User: key.Value}})
		synctest.Wait()
		asked := link.take()
		h.Receive(key, link, sharedtier.Message{Kind: sharedtier.Denied, Depth: asked[0].Depth, Generation: asked[0].Generation})
		s.cancel(errUser)
		synctest.Wait()
		if n := h.Totals().Buckets; n != 1 || s.failure() == nil {
			t.Errorf("%d buckets are left, the search failed with %v", n, s.failure())
		}
		h.Receive(key, link, sharedtier.Message{Kind: sharedtier.Grant, Permit: permit(3)})
		if sent := link.take(); len(sent) != 1 || sent[0].Kind != sharedtier.Unused || sent[0].Permit != permit(3) {
			t.Errorf("then sent %v", sent)
		}
		if n := h.Totals().Buckets; n != 0 {
			t.Errorf("%d buckets are left when the owner has forgotten them", n)
		}
	})
}

func TestRecorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r wlm.Recorder
		h := newHarness(t, wlm.WithRecorder(&r), wlm.WithMode(wlm.ModeEnabled))
		defer h.done()
		id := h.create("g", limits("group", 1, -1, 5))
		all := h.startAll(3, wlm.Request{Group: id})
		all[2].cancel(errUser)
		finishAll(all)
		var got []string
		for _, e := range r.Events() {
			got = append(got, fmt.Sprint(e.Kind, " ", e.Seq))
		}
		if want := "[changed 0 admitted 0 parked 1 parked 2 evicted 2 closed 0 admitted 1 closed 1]"; fmt.Sprint(got) != want {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}
