package search_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
	"github.com/wlmserver/wlmserver/wlm"
)

// TestStorm sends searches, multi-searches and scrolls whose clients leave,
// whose tasks are cancelled, whose executions fail and panic, while limits
// change; and then compares what the clients saw with what was counted. One
// run covers a few hours of fake time.
func TestStorm(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, func(f *fixture) {
				s := &storm{fixture: f, random: rand.New(rand.NewPCG(seed, 0))}
				s.run()
			})
		})
	}
}

type storm struct {
	*fixture
	random *rand.Rand
	id     string

	mu       sync.Mutex
	refused  uint64
	evicted  uint64
	executed uint64
}

func (s *storm) run() {
	s.id = s.limited(2, 3)
	s.engine.execute = s.execute
	var clients sync.WaitGroup
	for range 80 {
		after(time.Duration(s.random.IntN(2000)) * time.Millisecond)
		if s.random.IntN(8) == 0 {
			s.changeLimits()
		}
		act, ctx, leave := s.client()
		clients.Go(func() {
			defer leave()
			defer func() {
				if v := recover(); v != nil && v != any(stormPanic) {
					panic(v)
				}
			}()
			act(ctx)
		})
		if s.random.IntN(6) == 0 {
			s.cancelSome()
		}
	}
	clients.Wait()
	s.service.ClearAllScrolls()

	// Nothing was lost: as many as ever may run at once.
	s.update("limited", `{"throttling":{"node_limit":2},"queue":{"size_per_bucket":3}}`)
	c := s.counters(s.id)
	if c.Throttled != s.refused || c.Evicted != s.evicted || c.Completions != s.executed || c.Admitted != s.executed {
		s.Errorf("clients saw %d refused, %d evicted, %d executed; counted: %+v", s.refused, s.evicted, s.executed, c)
	}
	s.engine.execute = nil
	a, b := s.start(s.Context(), work(s.id, time.Second)), s.start(s.Context(), work(s.id, time.Second))
	if totals := s.admission.Totals(); totals.Tracked != 2 {
		s.Errorf("%d run at once, want 2", totals.Tracked)
	}
	after(time.Second)
	if !a.done || !b.done {
		s.Error("they did not end")
	}
}

// stormPanic is what the executions of a storm panic with.
const stormPanic = "struck"

func (s *storm) execute(ctx context.Context, r *search.Request, t *tasks.Task, l search.Limits) error {
	if t.Group() != s.id {
		s.Errorf("executed in group %q", t.Group())
	}
	s.mu.Lock()
	s.executed++
	s.mu.Unlock()
	err := pause(ctx, r.Query.Get("work"))
	switch r.Query.Get("end") {
	case "fail":
		return errors.New("broken")
	case "panic":
		panic(stormPanic)
	}
	return err
}

func (s *storm) request() *search.Request {
	r := work(s.id, time.Duration(s.random.IntN(4000))*time.Millisecond)
	switch s.random.IntN(10) {
	case 0:
		r.Query.Set("end", "fail")
	case 1:
		r.Query.Set("end", "panic")
	case 2:
		r.CancelAfter = new(time.Duration(s.random.IntN(4000)) * time.Millisecond)
	}
	return r
}

// client is somebody who asks for something, and perhaps leaves before the
// answer.
func (s *storm) client() (act func(context.Context), ctx context.Context, leave func()) {
	ctx, cancel := context.WithCancel(s.Context())
	leave = cancel
	if s.random.IntN(4) == 0 {
		timer := time.AfterFunc(time.Duration(s.random.IntN(5000))*time.Millisecond, cancel)
		leave = func() {
			timer.Stop()
			cancel()
		}
	}
	switch s.random.IntN(4) {
	case 0:
		m := &search.MultiRequest{MaxConcurrent: s.random.IntN(6)}
		for range s.random.IntN(9) {
			r := s.request()
			if r.Query.Get("end") == "panic" {
				r.Query.Del("end") // the client would not learn of the other items
			}
			m.Items = append(m.Items, r)
		}
		act = func(ctx context.Context) {
			results, _ := s.service.RunMulti(ctx, m)
			for _, r := range results {
				s.saw(r.Err)
			}
		}
	case 1:
		first := s.request()
		first.ScrollKeepAlive = time.Minute
		pages := s.random.IntN(4)
		act = func(ctx context.Context) {
			r, err := s.service.Run(ctx, first)
			s.saw(err)
			for ; err == nil && pages > 0; pages-- {
				var id string
				if _, scanErr := fmt.Sscanf(string(r.Body[slices.Index(r.Body, ','):]), `,"_scroll_id":%q`, &id); scanErr != nil {
					s.Error(scanErr)
					return
				}
				r, err = s.service.Run(ctx, page(s.id, id, time.Minute))
				s.saw(err)
			}
		}
	default:
		r := s.request()
		act = func(ctx context.Context) {
			_, err := s.service.Run(ctx, r)
			s.saw(err)
		}
	}
	return act, ctx, leave
}

// saw is a client's tally.
func (s *storm) saw(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := errors.AsType[*wlm.RejectedError](err); ok {
		s.refused++
	}
	if e, ok := errors.AsType[*wlm.CancelledError](err); ok && e.Queued {
		s.evicted++
	}
}

func (s *storm) changeLimits() {
	s.update("limited", fmt.Sprintf(`{"throttling":{"node_limit":%d},"queue":{"size_per_bucket":%d}}`, 1+s.random.IntN(3), s.random.IntN(5)))
}

func (s *storm) cancelSome() {
	all := s.tasks.List(tasks.Filter{})
	if len(all) > 0 {
		all[s.random.IntN(len(all))].Cancel(tasks.UserCause())
	}
	synctest.Wait()
}
