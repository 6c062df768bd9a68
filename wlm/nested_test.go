package wlm_test

import (
	"testing"
	"testing/synctest"

	"github.com/wlmserver/wlmserver/wlm"
)

// TestNestedSearchElsewhere: a permit is good for nested searches of its own bucket, and while it is open. Any other one needs its own.
func TestNestedSearchElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		defer h.done()
		id := h.create("g", limits("username", 1, -1, 5))
		of := func(user string) wlm.Request {
			return wlm.Request{Group: id, Principal: wlm.Principal{User: user}}
		}
		ann, bob := h.start(of("ann")), h.start(of("bob"))
		synctest.Wait()
		permit := ann.permit
		under := func(r wlm.Request) wlm.Request {
			r.Under = permit
			return r
		}
		own := h.start(under(of("ann")))
		others := h.start(under(of("bob")))
		elsewhere := h.start(under(wlm.Request{Group: h.create("h", limits("username", 1, -1, 5)), Principal: wlm.Principal{User: "ann"}}))
		synctest.Wait()
		if !own.running() || own.tracked() {
			t.Error("a nested search of the bucket takes a second permit")
		}
		if !others.parked() {
			t.Error("a nested search of another user's bucket gets past its limit")
		}
		if !elsewhere.running() || !elsewhere.tracked() {
			t.Error("a nested search of another group takes no permit of that group")
		}
		ann.finish()
		next := h.start(of("ann"))
		synctest.Wait()
		after := h.start(under(of("ann")))
		synctest.Wait()
		if !next.running() || !after.parked() {
			t.Error("a search under a permit that was closed gets past the limit")
		}
		finishAll([]*search{bob, own, others, elsewhere, next, after})
	})
}
