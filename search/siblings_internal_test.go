package search

import (
	"testing"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/wlm"
)

// An item that has just been let out of the queue holds a permit, also before
// its goroutine has come to say so.
func TestAdmittedSiblingHoldsAPermit(t *testing.T) {
	p, err := groups.ParsePatch([]byte(`{"name":"limited","resiliency_mode":"enforced","resource_limits":{"cpu":0.1},
		"throttling":{"attribute":"group","node_limit":1},"queue":{"size_per_bucket":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	registry, err := groups.Open(t.Context(), new(records.Memory))
	if err != nil {
		t.Fatal(err)
	}
	g, err := registry.Create(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	a := wlm.New(wlm.WithVerification(func(violation string) { t.Error(violation) }))
	a.GroupsChanged(registry.Snapshot())

	enter := func() *wlm.Ticket {
		ticket, err := a.Enter(t.Context(), wlm.Request{Group: g.ID})
		if err != nil {
			t.Fatal(err)
		}
		return ticket
	}
	stranger, err := enter().Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := newSiblings(a)
	item := enter()
	s.parked[item] = struct{}{}
	if s.anyHolds() {
		t.Error("a parked item holds no permit")
	}
	stranger.Close()
	if !s.anyHolds() {
		t.Error("an admitted item holds a permit")
	}
	permit, err := item.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.back(item, permit)
	if len(s.parked) != 0 || !s.anyHolds() {
		t.Error("an item that runs holds its permit")
	}
	permit.Close()
	s.released(permit)
	if s.anyHolds() {
		t.Error("it has ended")
	}
}
