package sharedtier_test

import (
	"fmt"
	"testing"

	"github.com/wlmserver/wlmserver/internal/sharedtier"
)

// owner makes an owner that may grant.
func owner(limit int) sharedtier.Owner {
	o := sharedtier.NewOwner()
	o.Limit = limit
	return o
}

// permit is the id with the number n of an owner outside an epoch.
func permit(n uint64) sharedtier.PermitID { return sharedtier.PermitID{Seq: n} }

// to makes a readable list of what the owner sends.
func to(out []sharedtier.Outgoing) (list []string) {
	for _, o := range out {
		list = append(list, fmt.Sprint(o.To, " ", o.Message.Kind))
	}
	return list
}

// TestOwnerTakesTurns: members with waiters are served in turn, however long one's line is.
func TestOwnerTakesTurns(t *testing.T) {
	o := owner(1)
	o.Receive("a", sharedtier.Message{Kind: sharedtier.Acquire, Depth: 1}, nil) // permit 1
	o.Receive("a", sharedtier.Message{Kind: sharedtier.Want, Depth: 3}, nil)
	o.Receive("b", sharedtier.Message{Kind: sharedtier.Want, Depth: 2}, nil)
	holder := sharedtier.Member("a")
	var served []string
	for p := permit(1); ; p.Seq++ {
		out := o.Receive(holder, sharedtier.Message{Kind: sharedtier.Release, Permit: p}, nil)
		if len(out) == 0 {
			break
		}
		holder = out[0].To
		served = append(served, to(out)...)
	}
	if got, want := fmt.Sprint(served), "[a grant b grant a grant b grant a grant]"; got != want {
		t.Errorf("served %s, want %s", got, want)
	}
	if !o.Idle() {
		t.Errorf("%d permits are out, a has %d waiters, b %d", o.Held(), o.Depth("a"), o.Depth("b"))
	}
}

// TestOwnerForgetsWhoNeedsNothing: a member that sends a permit back unused is not served again before it asks again.
func TestOwnerForgetsWhoNeedsNothing(t *testing.T) {
	o := owner(1)
	out := o.Receive("a", sharedtier.Message{Kind: sharedtier.Want, Depth: 3}, nil)
	if fmt.Sprint(to(out)) != "[a grant]" || o.Depth("a") != 2 {
		t.Fatalf("sent %v, remembers %d waiters", out, o.Depth("a"))
	}
	out = o.Receive("a", sharedtier.Message{Kind: sharedtier.Unused, Permit: out[0].Message.Permit}, nil)
	if len(out) != 0 || !o.Idle() {
		t.Errorf("sent %v, remembers %d waiters", out, o.Depth("a"))
	}
}

// TestOwnerTakesNoPermitFromAnother: a permit comes back from the member that holds it, and once.
func TestOwnerTakesNoPermitFromAnother(t *testing.T) {
	o := owner(1)
	out := o.Receive("a", sharedtier.Message{Kind: sharedtier.Acquire, Depth: 1}, nil)
	p := out[0].Message.Permit
	for _, kind := range []sharedtier.Kind{sharedtier.Release, sharedtier.Unused} {
		if o.Receive("b", sharedtier.Message{Kind: kind, Permit: p}, nil); o.Held() != 1 {
			t.Errorf("%v: b gave back the permit of a", kind)
		}
	}
	for range 2 {
		if o.Receive("a", sharedtier.Message{Kind: sharedtier.Release, Permit: p}, nil); o.Held() != 0 {
			t.Error("a could not give back its permit")
		}
	}
}

// TestOneIsAskedForAll: who comes while the owner knows of those who wait already, waits with them and asks nothing.
func TestOneIsAskedForAll(t *testing.T) {
	c := sharedtier.Coordinator{On: true, Linked: true, Size: 2}
	outcome, fx := c.Arrive(nil)
	if outcome != sharedtier.BecomesPending || len(fx) != 1 {
		t.Fatalf("the first one: %v, %v", outcome, fx)
	}
	c.Receive(sharedtier.Message{Kind: sharedtier.Denied, Depth: 1}, false, nil)
	for _, want := range []sharedtier.Outcome{sharedtier.BecomesWaiting, sharedtier.Full} {
		if outcome, fx := c.Arrive(nil); outcome != want || len(fx) != 0 {
			t.Errorf("outcome %v, want %v, effects %v", outcome, want, fx)
		}
	}
}
