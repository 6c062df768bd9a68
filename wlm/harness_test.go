package wlm_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/wlm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// harness is an admission with a registry of groups in front of it, verified after each step, without the sweep unless a test starts it.
type harness struct {
	testing.TB
	*wlm.Admission
	registry *groups.Registry
}

func newHarness(t testing.TB, opts ...wlm.Option) *harness {
	t.Helper()
	h := &harness{TB: t}
	h.Admission = wlm.New(append(opts, wlm.WithVerification(func(violation string) { t.Error(violation) }))...)
	h.openRegistry()
	return h
}

// openRegistry puts an empty registry of groups in front of the admission.
func (h *harness) openRegistry() {
	h.Helper()
	registry, err := groups.Open(context.Background(), new(records.Memory))
	if err != nil {
		h.Fatal(err)
	}
	registry.OnChange(func(_, now *groups.Snapshot) { h.GroupsChanged(now) })
	h.registry = registry
}

// done checks that nothing is left. Each test calls it last.
func (h *harness) done() {
	h.Helper()
	for _, left := range h.CheckQuiet() {
		h.Error(left)
	}
}

func (h *harness) patch(body string) groups.Patch {
	h.Helper()
	p, err := groups.ParsePatch([]byte(body))
	if err != nil {
		h.Fatalf("%s: %v", body, err)
	}
	return p
}

// create makes a group and gives its id.
func (h *harness) create(name, blocks string) string {
	h.Helper()
	if blocks != "" {
		blocks = "," + blocks
	}
	g, err := h.registry.Create(context.Background(), h.patch(
		fmt.Sprintf(`{"name":%q,"resiliency_mode":"enforced","resource_limits":{"cpu":0.01}%s}`, name, blocks)))
	if err != nil {
		h.Fatal(err)
	}
	return g.ID
}

func (h *harness) update(name, body string) {
	h.Helper()
	if _, err := h.registry.Update(context.Background(), name, h.patch(body)); err != nil {
		h.Fatalf("%s: %v", body, err)
	}
}

func (h *harness) remove(name string) {
	h.Helper()
	if err := h.registry.Delete(context.Background(), name); err != nil {
		h.Fatal(err)
	}
}

func (h *harness) counters(group string) wlm.GroupCounters {
	h.Helper()
	for _, c := range h.Counters() {
		if c.Group == group {
			return c
		}
	}
	h.Fatalf("group %q is not counted", group)
	return wlm.GroupCounters{}
}

// limits is a throttling block.
func limits(attribute string, node, shared, size int) string {
	optional := func(n int) string {
		if n < 0 {
			return "null"
		}
		return strconv.Itoa(n)
	}
	return fmt.Sprintf(`"throttling":{"attribute":%q,"node_limit":%s,"shared_limit":%s},"queue":{"size_per_bucket":%d}`,
		attribute, optional(node), optional(shared), size)
}

// unlimited turns throttling off.
const unlimited = `{"throttling":null,"queue":null}`

// search is one search in a goroutine of its own.
type search struct {
	cancel context.CancelCauseFunc
	end    chan struct{}

	mu     sync.Mutex
	ticket *wlm.Ticket
	permit *wlm.Permit // while it runs
	err    error
	ended  bool
}

// start sends a search. It runs until finish is called.
func (h *harness) start(r wlm.Request) *search {
	return h.startUnder(context.Background(), r)
}

func (h *harness) startUnder(parent context.Context, r wlm.Request) *search {
	ctx, cancel := context.WithCancelCause(parent)
	return h.startWith(ctx, cancel, r)
}

// startWith sends a search with a context that cancel ends.
func (h *harness) startWith(ctx context.Context, cancel context.CancelCauseFunc, r wlm.Request) *search {
	s := &search{cancel: cancel, end: make(chan struct{})}
	go func() {
		defer cancel(nil)
		ticket, err := h.Enter(ctx, r)
		var permit *wlm.Permit
		if err == nil {
			s.mu.Lock()
			s.ticket = ticket
			s.mu.Unlock()
			permit, err = ticket.Wait(ctx)
		}
		s.mu.Lock()
		s.permit, s.err = permit, err
		s.ended = err != nil
		s.mu.Unlock()
		if err != nil {
			return
		}
		<-s.end
		permit.Close()
		s.mu.Lock()
		s.permit, s.ended = nil, true
		s.mu.Unlock()
	}()
	return s
}

func (s *search) finish() { close(s.end) }

func (s *search) running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.permit != nil
}

func (s *search) tracked() bool {
	s.mu.Lock()
	p := s.permit
	s.mu.Unlock()
	return p != nil && p.Tracked()
}

func (s *search) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *search) parked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.permit == nil && s.err == nil && !s.ended
}

// startAll sends n searches one after the other, so that they park in this order.
func (h *harness) startAll(n int, r wlm.Request) []*search {
	out := make([]*search, n)
	for i := range out {
		out[i] = h.start(r)
		synctest.Wait()
	}
	return out
}

func count(searches []*search, is func(*search) bool) (n int) {
	for _, s := range searches {
		if is(s) {
			n++
		}
	}
	return n
}

// finishAll ends what runs, and what its ends let run, until nothing is left.
func finishAll(searches []*search) {
	for {
		synctest.Wait()
		left := false
		for i, s := range searches {
			if s != nil && s.running() {
				s.finish()
				searches[i] = nil
				left = true
			}
		}
		if !left {
			return
		}
	}
}

// seed of a random test: WLM_SEED, or the time. It is printed, so that a failure can be repeated.
func seed(t testing.TB) uint64 {
	t.Helper()
	s := uint64(time.Now().UnixNano())
	if v := os.Getenv("WLM_SEED"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatalf("WLM_SEED=%s: %v", v, err)
		}
		s = n
	}
	t.Logf("WLM_SEED=%d", s)
	return s
}
