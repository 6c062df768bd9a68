package history_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/wlm"
)

// race lets searches, cancels and changes of limits race each other in an admission, and gives the history.
func race(t *testing.T, workers, each int) []wlm.Event {
	t.Helper()
	var recorder wlm.Recorder
	a := wlm.New(wlm.WithRecorder(&recorder))
	registry, err := groups.Open(t.Context(), new(records.Memory))
	if err != nil {
		t.Fatal(err)
	}
	registry.OnChange(func(_, now *groups.Snapshot) { a.GroupsChanged(now) })
	g, err := registry.Create(t.Context(), patch(t, `{"name":"g","resiliency_mode":"enforced","resource_limits":{"cpu":0.1},
		"throttling":{"attribute":"group","node_limit":2},"queue":{"size_per_bucket":5}}`))
	if err != nil {
		t.Fatal(err)
	}
	bodies := []string{
		`{"throttling":{"node_limit":1}}`, `{"throttling":{"node_limit":3,"shared_limit":null}}`, `{"throttling":{"node_limit":null,"shared_limit":2}}`,
		`{"throttling":{"node_limit":1,"shared_limit":1}}`, `{"throttling":{"attribute":"username"}}`, `{"throttling":{"attribute":"group"}}`,
		`{"queue":{"size_per_bucket":0}}`, `{"queue":{"size_per_bucket":8}}`,
		`{"resiliency_mode":"monitor"}`, `{"resiliency_mode":"enforced"}`,
	}
	stop := make(chan struct{})
	var changes, searches sync.WaitGroup
	changes.Go(func() {
		r := rand.New(rand.NewPCG(3, 4))
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(r.IntN(500)) * time.Microsecond):
			}
			if _, err := registry.Update(t.Context(), "g", patch(t, bodies[r.IntN(len(bodies))])); err != nil {
				if _, ok := errors.AsType[*groups.InvalidError](err); !ok { // the last limit may not go while there is a queue
					t.Error(err)
				}
			}
		}
	})
	for w := range workers {
		searches.Go(func() {
			r := rand.New(rand.NewPCG(5, uint64(w)))
			for range each {
				ctx, cancel := context.WithCancel(t.Context())
				if r.IntN(3) == 0 {
					time.AfterFunc(time.Duration(r.IntN(300))*time.Microsecond, cancel)
				}
				enter := a.Enter
				if r.IntN(10) == 0 {
					enter = a.TryEnter
				}
				ticket, err := enter(ctx, wlm.Request{Group: g.ID, Principal: wlm.Principal{User: fmt.Sprint("u", r.IntN(2))}})
				if err == nil {
					var permit *wlm.Permit
					if permit, err = ticket.Wait(ctx); err == nil {
						if r.IntN(2) == 0 {
							time.Sleep(time.Duration(r.IntN(100)) * time.Microsecond)
						}
						permit.Close()
					}
				}
				cancel()
			}
		})
	}
	searches.Wait()
	close(stop)
	changes.Wait()
	return recorder.Take()
}

func patch(t *testing.T, body string) groups.Patch {
	t.Helper()
	p, err := groups.ParsePatch([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return p
}
