package wlm_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/wlmserver/wlmserver/wlm"
)

// TestBucketChurn lets one principal's bucket come and go as fast as it can: whoever finds it may find it taken out a moment later,
// and whoever takes it out may find it in use again. Two buckets of one principal would let twice as many searches run.
func TestBucketChurn(t *testing.T) {
	const workers, each = 4, 30_000
	h := newHarness(t)
	defer h.done()
	r := wlm.Request{Group: h.create("g", limits("username", 1, -1, 0)), Principal: wlm.Principal{User: "u"}}
	var running atomic.Int32
	var ran atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				ticket, err := h.TryEnter(t.Context(), r)
				if errors.Is(err, wlm.ErrNoPermit) {
					continue
				}
				var permit *wlm.Permit
				if err == nil {
					permit, err = ticket.Wait(t.Context())
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n := running.Add(1); n != 1 {
					t.Errorf("%d run at once", n)
				}
				ran.Add(1)
				runtime.Gosched() // others look for the bucket meanwhile
				running.Add(-1)
				permit.Close()
			}
		})
	}
	wg.Wait()
	t.Logf("%d of %d ran", ran.Load(), workers*each)
}

// TestNothingIsLeftOfOwners: the owners of principals' buckets go with them.
func TestNothingIsLeftOfOwners(t *testing.T) {
	const storms, principals = 5, 2_000
	a := wlm.New() // verification takes its time and shows nothing of owners
	h := &harness{TB: t, Admission: a}
	h.openRegistry()
	defer h.done()
	id := h.create("g", limits("username", -1, 1, 5))
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	storm := func(number int) {
		for i := range principals {
			ticket, err := h.Enter(t.Context(), wlm.Request{Group: id, Principal: wlm.Principal{User: fmt.Sprint(number*principals + i)}})
			var permit *wlm.Permit
			if err == nil {
				permit, err = ticket.Wait(t.Context())
			}
			if err != nil || !permit.Tracked() {
				t.Fatalf("a shared permit: %v", err)
			}
			permit.Close()
		}
	}
	atOnce := func(number int) {
		var permits []*wlm.Permit
		for i := range 10 * principals {
			ticket, err := h.Enter(t.Context(), wlm.Request{Group: id, Principal: wlm.Principal{User: fmt.Sprint(number*principals + i)}})
			if err != nil {
				t.Fatal(err)
			}
			permit, err := ticket.Wait(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			permits = append(permits, permit)
		}
		for _, p := range permits {
			p.Close()
		}
	}
	storm(0)
	before := heap()
	for n := range storms {
		storm(n + 1)
	}
	atOnce(storms + 1)
	// An owner with its maps takes hundreds of bytes; the slack is for what the tests beside this one do.
	if after := heap(); after > before+256<<10 {
		t.Errorf("the heap has grown from %d to %d bytes", before, after)
	}
}
