package wlm_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/sharedtier"
	"github.com/wlmserver/wlmserver/wlm"
)

// sessions is a link whose sessions the test begins and ends.
type sessions struct{ now *handSession }

type handSession struct {
	handLink
	dead   bool
	onSend func() // called once, before a message goes out
}

func (s *handSession) Send(k wlm.BucketKey, m []sharedtier.Message) {
	if f := s.onSend; f != nil {
		s.onSend = nil
		f()
	}
	s.handLink.Send(k, m)
}

func (l *sessions) Session(wlm.BucketKey) wlm.Session {
	if l.now == nil {
		return nil
	}
	return l.now
}

func (l *sessions) LimitsChanged() {}

func (s *handSession) Live() bool { return !s.dead }

// renew puts another session in place of the one there is.
func (l *sessions) renew(h *harness, s *handSession) *handSession {
	l.now = s
	h.Renew()
	synctest.Wait()
	return s
}

func sessionHarness(t *testing.T) (*harness, *sessions) {
	t.Helper()
	l := &sessions{}
	return newHarness(t, wlm.WithLink(func(*wlm.Admission) wlm.Link { return l })), l
}

// TestNoOwnerToAsk: without a session to the owner a search that may wait does so, one that may not is refused and told why, and one
// of a group that only watches runs.
func TestNoOwnerToAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, l := sessionHarness(t)
		defer h.done()
		queued := h.create("queued", limits("group", -1, 1, 1))
		off := h.create("off", limits("group", -1, 1, 0))
		watched := h.create("watched", limits("group", -1, 1, 5))
		h.update("watched", `{"resiliency_mode":"monitor"}`)

		waits := h.start(wlm.Request{Group: queued})
		synctest.Wait()
		full := h.start(wlm.Request{Group: queued})
		refused, runs := h.start(wlm.Request{Group: off}), h.start(wlm.Request{Group: watched})
		synctest.Wait()
		if !waits.parked() || full.failure() == nil || !runs.running() {
			t.Errorf("parked %v, refused with %v, runs %v", waits.parked(), full.failure(), runs.running())
		}
		if err := refused.failure(); err == nil || !strings.Contains(err.Error(), "the shared limit is unavailable") {
			t.Errorf("refused with %v", err)
		}
		if c := h.counters(queued); c.QueuedCurrent != 1 || c.Queued != 1 {
			t.Errorf("counters %+v", c)
		}

		s := l.renew(h, &handSession{})
		if sent := s.take(); len(sent) != 1 || sent[0].Kind != sharedtier.Announce || sent[0].Depth != 1 || len(sent[0].Held) != 0 {
			t.Errorf("the new session begins with %v", sent)
		}
		h.Receive(wlm.BucketKey{Group: queued, Attribute: groups.ByGroup}, s, sharedtier.Message{Kind: sharedtier.Grant, Permit: permit(1)})
		synctest.Wait()
		if !waits.running() {
			t.Error("the one that waited does not run")
		}
		finishAll([]*search{waits, full, refused, runs})
	})
}

// TestSessionBreaks: what was asked in a session that broke is asked in the next, permits are announced, and who was pending waits
// beyond the size.
func TestSessionBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, l := sessionHarness(t)
		defer h.done()
		id := h.create("g", limits("group", -1, 1, 1))
		key := wlm.BucketKey{Group: id, Attribute: groups.ByGroup}
		first := l.renew(h, &handSession{})
		all := h.startAll(1, wlm.Request{Group: id})
		h.Receive(key, first, sharedtier.Message{Kind: sharedtier.Granted, Permit: permit(1)})
		all = append(all, h.startAll(3, wlm.Request{Group: id})...) // pending, each with a question
		synctest.Wait()
		if c := h.counters(id); c.Waiters != 3 || c.QueuedCurrent != 0 {
			t.Fatalf("counters %+v", c)
		}
		if got, want := h.Check().Shared, []wlm.SharedPermit{{Bucket: key, Epoch: permit(1).Epoch, Seq: permit(1).Seq}}; !slices.Equal(got, want) {
			t.Errorf("permits of the shared tier: %v, want %v", got, want)
		}

		second := l.renew(h, &handSession{})
		want := sharedtier.Message{Kind: sharedtier.Announce, Held: []sharedtier.PermitID{permit(1)}, Depth: 3}
		if sent := second.take(); len(sent) != 1 || !reflect.DeepEqual(sent[0], want) {
			t.Errorf("announced %v, want %v", sent, want)
		}
		if c := h.counters(id); c.QueuedCurrent != 3 {
			t.Errorf("none is refused for a session that broke: %+v", c)
		}
		h.Receive(key, first, sharedtier.Message{Kind: sharedtier.Granted, Permit: permit(2)})
		second.dead = true
		h.Receive(key, second, sharedtier.Message{Kind: sharedtier.Grant, Permit: permit(3)})
		synctest.Wait()
		for i, s := range all[1:] {
			if !s.parked() {
				t.Errorf("search %d runs under a permit of a session that is over", i+1)
			}
		}

		l.renew(h, nil)
		all[0].finish() // nobody to tell
		synctest.Wait()
		third := l.renew(h, &handSession{})
		if sent := third.take(); len(sent) != 1 || len(sent[0].Held) != 0 || sent[0].Depth != 3 {
			t.Errorf("announced %v", sent)
		}
		for n := range uint64(3) {
			h.Receive(key, third, sharedtier.Message{Kind: sharedtier.Grant, Permit: permit(4 + n)})
		}
		synctest.Wait()
		finishAll(all)
		if sent := third.take(); len(sent) != 3 {
			t.Errorf("released %v", sent)
		}
	})
}

// TestMessagesStayInTheirSession: what piled up behind a message that was being sent when the session ended is not sent in the next.
func TestMessagesStayInTheirSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, l := sessionHarness(t)
		defer h.done()
		id := h.create("g", limits("group", -1, 2, 1))
		key := wlm.BucketKey{Group: id, Attribute: groups.ByGroup}
		first, second := l.renew(h, &handSession{}), &handSession{}
		all := h.startAll(2, wlm.Request{Group: id})
		for n := range uint64(2) {
			h.Receive(key, first, sharedtier.Message{Kind: sharedtier.Granted, Permit: permit(1 + n)})
		}
		hold := make(chan struct{})
		first.onSend = func() { <-hold }
		all[0].finish() // its release is being sent
		synctest.Wait()
		all[1].finish() // that of the other piles up
		synctest.Wait()
		l.renew(h, second)
		close(hold)
		synctest.Wait()
		if sent := second.take(); len(sent) != 0 {
			t.Errorf("the new session begins with %v, and there is nothing to say", sent)
		}
		finishAll(all)
	})
}

// TestChangeMeetsNewSession: a change of the group that reaches the bucket before the new session does brings it the session, and with
// it the announcement.
func TestChangeMeetsNewSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, l := sessionHarness(t)
		defer h.done()
		id := h.create("g", limits("group", -1, 1, 1))
		first := l.renew(h, &handSession{})
		all := h.startAll(2, wlm.Request{Group: id})
		h.Receive(wlm.BucketKey{Group: id, Attribute: groups.ByGroup}, first, sharedtier.Message{Kind: sharedtier.Granted, Permit: permit(1)})
		l.renew(h, nil)
		second := &handSession{}
		l.now = second
		h.update("g", `{"throttling":{"shared_limit":2}}`)
		sent := second.take()
		if len(sent) == 0 || sent[0].Kind != sharedtier.Announce || len(sent[0].Held) != 1 || sent[0].Depth != 1 {
			t.Errorf("the session begins with %v", sent)
		}
		l.renew(h, second)
		if sent := second.take(); len(sent) != 0 {
			t.Errorf("then comes %v", sent)
		}
		h.Receive(wlm.BucketKey{Group: id, Attribute: groups.ByGroup}, second, sharedtier.Message{Kind: sharedtier.Grant, Permit: permit(2)})
		finishAll(all)
	})
}

// TestQuestionOutlivesItsSession: a search that may not wait is asked about again in the next session, and refused when there is none.
func TestQuestionOutlivesItsSession(t *testing.T) {
	for _, again := range []bool{true, false} {
		t.Run(fmt.Sprint(again), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, l := sessionHarness(t)
				defer h.done()
				id := h.create("g", limits("group", -1, 1, 0))
				l.renew(h, &handSession{})
				left, s := h.start(wlm.Request{Group: id}), h.start(wlm.Request{Group: id})
				synctest.Wait()
				left.cancel(errUser)
				synctest.Wait()
				if !again {
					l.renew(h, nil)
					if err := s.failure(); err == nil || !strings.Contains(err.Error(), "unavailable") {
						t.Errorf("refused with %v", err)
					}
					return
				}
				next := l.renew(h, &handSession{})
				sent := next.take()
				if len(sent) != 1 || sent[0].Kind != sharedtier.Try {
					t.Fatalf("asked %v", sent)
				}
				h.Receive(wlm.BucketKey{Group: id, Attribute: groups.ByGroup}, next,
					sharedtier.Message{Kind: sharedtier.Granted, Permit: permit(1), Try: sent[0].Try})
				synctest.Wait()
				if !s.running() {
					t.Error("it does not run")
				}
				finishAll([]*search{s})
			})
		})
	}
}

// TestGrantForABucketThatIsGone: a grant that was under way when the last waiters went with their limit finds no bucket, and goes back all
// the same; also when the group is gone.
func TestGrantForABucketThatIsGone(t *testing.T) {
	for name, change := range map[string]func(h *harness){
		"without a shared limit": func(h *harness) { h.update("g", `{"throttling":{"node_limit":1,"shared_limit":null}}`) },
		"by another attribute":   func(h *harness) { h.update("g", `{"throttling":{"attribute":"role"}}`) },
		"deleted":                func(h *harness) { h.remove("g") },
		"deleted before another change": func(h *harness) {
			h.remove("g")
			h.create("other", limits("group", 1, -1, 1))
			h.remove("other")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, l := sessionHarness(t)
				defer h.done()
				id := h.create("g", limits("username", -1, 1, 5))
				session := l.renew(h, &handSession{})
				key := wlm.BucketKey{Group: id, Attribute: groups.ByUsername, Value: "u"}
				waits := h.start(wlm.Request{Group: id, Principal: wlm.Principal{User: "u"}})
				synctest.Wait()
				h.Receive(key, session, sharedtier.Message{Kind: sharedtier.Denied, Depth: 1})
				change(h)
				synctest.Wait()
				if waits.parked() {
					t.Error("it waits for nothing")
				}
				waits.finish()
				synctest.Wait()
				session.take()
				h.Receive(key, session, sharedtier.Message{Kind: sharedtier.Grant, Permit: permit(1)})
				want := []sharedtier.Message{{Kind: sharedtier.Release, Permit: permit(1)}}
				if sent := session.take(); !reflect.DeepEqual(sent, want) {
					t.Errorf("the owner is told %v, want %v", sent, want)
				}
				finishAll([]*search{waits})
			})
		})
	}
}
