package wlm_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/wlmserver/wlmserver/wlm"
)

// benchAdmission is an admission as a server has it: no verification, one group with the limits given.
func benchAdmission(b *testing.B, block string) (*wlm.Admission, string) {
	b.Helper()
	h := &harness{TB: b, Admission: wlm.New()}
	h.openRegistry()
	return h.Admission, h.create("g", block)
}

func pass(b *testing.B, a *wlm.Admission, r wlm.Request) {
	ctx := b.Context()
	ticket, err := a.Enter(ctx, r)
	if err != nil {
		b.Fatal(err)
	}
	p, err := ticket.Wait(ctx)
	if err != nil {
		b.Fatal(err)
	}
	p.Close()
}

// BenchmarkAdmission is the whole of a search's admission without contention: group, bucket, counters, permit, close.
func BenchmarkAdmission(b *testing.B) {
	for name, block := range map[string]string{
		"group": limits("group", 8, -1, 10), "username": limits("username", 8, -1, 10), "shared": limits("group", -1, 8, 10), "unlimited": "",
	} {
		b.Run(name, func(b *testing.B) {
			a, id := benchAdmission(b, block)
			r := wlm.Request{Group: id, Principal: wlm.Principal{User: "ann"}}
			b.ReportAllocs()
			for b.Loop() {
				pass(b, a, r)
			}
		})
	}
	b.Run("bare-handler", func(b *testing.B) { // what a request costs that does nothing: the scale for the rows above
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
		defer s.Close()
		b.ReportAllocs()
		for b.Loop() {
			res, err := s.Client().Get(s.URL)
			if err != nil {
				b.Fatal(err)
			}
			res.Body.Close()
		}
	})
}

// BenchmarkHandOver is the way from a closing permit to the oldest waiter's goroutine running: two searches take turns on one slot.
func BenchmarkHandOver(b *testing.B) {
	a, id := benchAdmission(b, limits("group", 1, -1, 10))
	r := wlm.Request{Group: id}
	enter := func() *wlm.Ticket {
		t, err := a.Enter(b.Context(), r)
		if err != nil {
			b.Fatal(err)
		}
		return t
	}
	wait := func(t *wlm.Ticket) *wlm.Permit {
		p, err := t.Wait(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		return p
	}
	holder := wait(enter())
	tickets, permits := make(chan *wlm.Ticket), make(chan *wlm.Permit)
	go func() {
		for t := range tickets {
			permits <- wait(t)
		}
		close(permits)
	}()
	b.ReportAllocs()
	for b.Loop() {
		tickets <- enter()
		holder.Close()
		holder = <-permits
	}
	close(tickets)
	<-permits
	holder.Close()
}

// BenchmarkSaturated is 64 searches that take turns on two slots, so that nearly each one parks and is granted its permit.
func BenchmarkSaturated(b *testing.B) {
	a, id := benchAdmission(b, limits("group", 2, -1, 64))
	r := wlm.Request{Group: id}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.ReportAllocs()
	b.SetParallelism(64 / runtime.GOMAXPROCS(0))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			t, err := a.Enter(ctx, r)
			if err != nil {
				b.Error(err)
				return
			}
			p, err := t.Wait(ctx)
			if err != nil {
				b.Error(err)
				return
			}
			runtime.Gosched()
			p.Close()
		}
	})
}

// BenchmarkMassCancel evicts all waiters of a bucket, each by its own context.
func BenchmarkMassCancel(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			a, id := benchAdmission(b, limits("group", 1, -1, n))
			r := wlm.Request{Group: id}
			holder, err := a.Enter(b.Context(), r)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				b.StopTimer()
				left := make(chan struct{}, n)
				cancels := make([]context.CancelFunc, n)
				for i := range n {
					ctx, cancel := context.WithCancel(b.Context())
					cancels[i] = cancel
					t, err := a.Enter(ctx, r)
					if err != nil {
						b.Fatal(err)
					}
					go func() {
						_, _ = t.Wait(ctx) // always cancelled
						left <- struct{}{}
					}()
				}
				b.StartTimer()
				for _, cancel := range cancels {
					cancel()
				}
				for range n {
					<-left
				}
			}
			p, err := holder.Wait(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			p.Close()
		})
	}
}
