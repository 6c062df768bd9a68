package wlm_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/internal/sharedtier"
	"github.com/wlmserver/wlmserver/wlm"
)

// TestManyGoroutines lets searches, cancels and every kind of change race each other. Each search must be answered once, nothing may
// be left, and the counters must equal what the searches saw.
func TestManyGoroutines(t *testing.T) {
	const workers, each = 48, 250
	s := seed(t)
	h := newHarness(t)
	ids := []*atomic.Pointer[string]{new(atomic.Pointer[string]), new(atomic.Pointer[string])}
	for i, id := range ids {
		id.Store(new(h.create(fmt.Sprint(i), limits("group", 2, 1, 20))))
	}
	stop := make(chan struct{})
	var changes, searches sync.WaitGroup
	changes.Go(func() {
		r := rand.New(rand.NewPCG(s, 0))
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(r.IntN(500)) * time.Microsecond):
			}
			i := r.IntN(len(ids))
			name := fmt.Sprint(i)
			switch r.IntN(8) {
			case 0:
				h.update(name, unlimited)
			case 1:
				h.update(name, fmt.Sprintf(`{"resiliency_mode":%q}`, []string{"monitor", "enforced"}[r.IntN(2)]))
			case 2:
				h.remove(name)
				ids[i].Store(new(h.create(name, limits("username", 1, 1, 5))))
			case 3:
				h.SetMode([]wlm.Mode{wlm.ModeDisabled, wlm.ModeEnabled, wlm.ModeEnabled}[r.IntN(3)])
			default:
				node := r.IntN(4)
				h.update(name, "{"+limits(attributes[r.IntN(3)], node, r.IntN(3)+1, []int{0, 3, 50}[r.IntN(3)])+"}")
			}
		}
	})
	var admitted, refused, cancelled atomic.Int64
	for w := range workers {
		searches.Go(func() {
			r := rand.New(rand.NewPCG(s, uint64(w)+1))
			for range each {
				ctx, cancel := context.WithCancelCause(t.Context())
				if r.IntN(3) == 0 {
					time.AfterFunc(time.Duration(r.IntN(300))*time.Microsecond, func() { cancel(errUser) })
				}
				enter := h.Enter
				if r.IntN(10) == 0 {
					enter = h.TryEnter
				}
				user := fmt.Sprint("u", r.IntN(4))
				ticket, err := enter(ctx, wlm.Request{Group: *ids[r.IntN(2)].Load(), Principal: wlm.Principal{User: user, Roles: []string{user}}})
				var permit *wlm.Permit
				if err == nil {
					permit, err = ticket.Wait(ctx)
				}
				var re *wlm.RejectedError
				var ce *wlm.CancelledError
				switch {
				case err == nil:
					admitted.Add(1)
					if r.IntN(2) == 0 {
						time.Sleep(time.Duration(r.IntN(100)) * time.Microsecond)
					}
					permit.Close()
				case errors.As(err, &re), errors.Is(err, wlm.ErrNoPermit):
					refused.Add(1)
				case errors.As(err, &ce) && errors.Is(err, errUser):
					cancelled.Add(1)
				default:
					t.Errorf("a search ended with %v", err)
				}
				cancel(nil)
			}
		})
	}
	searches.Wait()
	close(stop)
	changes.Wait()
	if n := admitted.Load() + refused.Load() + cancelled.Load(); n != workers*each {
		t.Errorf("%d searches were answered, %d were sent", n, workers*each)
	}
	t.Logf("%d admitted, %d refused, %d cancelled", admitted.Load(), refused.Load(), cancelled.Load())
	h.done()
}

// TestP8EndAgainstCancelAtTheHead ends the running search and cancels the first waiter at the same instant: the second waiter must be
// admitted each time, whoever wins.
func TestP8EndAgainstCancelAtTheHead(t *testing.T) {
	h := newHarness(t)
	r := wlm.Request{Group: h.create("g", limits("group", 1, -1, 10))}
	var won int
	for range 1000 {
		running, err := h.Enter(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		first, err := running.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		b, err := h.Enter(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		c, err := h.Enter(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		begin := make(chan struct{})
		wg.Go(func() { <-begin; first.Close() })
		wg.Go(func() { <-begin; cancel(errUser) })
		wg.Go(func() {
			p, err := b.Wait(ctx)
			if err == nil {
				won++ // read after wg.Wait
				p.Close()
			}
		})
		admitted := make(chan *wlm.Permit, 1)
		wg.Go(func() {
			if p, err := c.Wait(t.Context()); err == nil {
				admitted <- p
			}
		})
		close(begin)
		select {
		case p := <-admitted:
			p.Close()
		case <-time.After(10 * time.Second): // a lost wake-up would last for ever: the sweep is off
			t.Fatal("the second waiter was not admitted")
		}
		wg.Wait()
		cancel(nil)
	}
	t.Logf("the grant won %d of 1000", won)
	h.done()
}

// slowLink is an owner far away: messages wait until the test moves them, in order, one at a time. Its session may break, which
// loses what is under way, and another may begin.
type slowLink struct {
	a      *wlm.Admission
	mu     sync.Mutex
	last   uint64       // session that began last
	now    *slowSession // nil: there is none
	tenure *sharedtier.Tenure[wlm.BucketKey]
	limit  int
	// up and down are what is under way by bucket.
	up, down map[wlm.BucketKey][]sharedtier.Message
}

type slowSession struct {
	l      *slowLink
	number uint64
}

const farAway sharedtier.Member = "n"

func newSlowLink(limit int) *slowLink {
	l := &slowLink{limit: limit, tenure: sharedtier.NewTenure[wlm.BucketKey](1, []sharedtier.Member{farAway}, 0, 0)}
	l.begin()
	return l
}

func (l *slowLink) Session(wlm.BucketKey) wlm.Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now == nil {
		return nil
	}
	return l.now
}

func (l *slowLink) LimitsChanged() {}

func (s *slowSession) Live() bool { return true }

func (s *slowSession) Send(k wlm.BucketKey, messages []sharedtier.Message) {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	if s == s.l.now {
		s.l.up[k] = append(s.l.up[k], messages...)
	}
}

// cut ends the session.
func (l *slowLink) cut() {
	l.mu.Lock()
	l.now, l.up, l.down = nil, nil, nil
	l.tenure.Broken(farAway, l.last)
	l.mu.Unlock()
	l.a.Renew()
}

// begin begins a session in place of the one there is. Its announcements arrive at once.
func (l *slowLink) begin() {
	l.mu.Lock()
	l.last++
	l.now = &slowSession{l, l.last}
	l.up, l.down = map[wlm.BucketKey][]sharedtier.Message{}, map[wlm.BucketKey][]sharedtier.Message{}
	l.tenure.Open(farAway, l.last, 0)
	l.mu.Unlock()
	if l.a != nil {
		l.a.Renew()
	}
	l.mu.Lock()
	for k, up := range l.up {
		if up[0].Kind == sharedtier.Announce {
			l.hearLocked(k)
		}
	}
	l.postLocked(l.tenure.Receive(farAway, l.last, wlm.BucketKey{}, sharedtier.Message{Kind: sharedtier.Done}, 0, 0, nil))
	l.mu.Unlock()
}

// hearLocked has the owner hear the bucket's next message.
func (l *slowLink) hearLocked(k wlm.BucketKey) {
	m := l.up[k][0]
	l.up[k] = l.up[k][1:]
	l.postLocked(l.tenure.Receive(farAway, l.last, k, m, l.limit, 0, nil))
}

func (l *slowLink) postLocked(posts []sharedtier.Post[wlm.BucketKey]) {
	for _, p := range posts {
		l.down[p.Bucket] = append(l.down[p.Bucket], p.Message)
	}
}

// move carries one message, if there is one, and reports whether there was.
func (l *slowLink) move(r *rand.Rand) bool {
	l.mu.Lock()
	var ups, downs []wlm.BucketKey
	for k, m := range l.up {
		if len(m) > 0 {
			ups = append(ups, k)
		}
	}
	for k, m := range l.down {
		if len(m) > 0 {
			downs = append(downs, k)
		}
	}
	if len(ups)+len(downs) == 0 {
		l.mu.Unlock()
		return false
	}
	if n := r.IntN(len(ups) + len(downs)); n < len(ups) {
		l.hearLocked(ups[n])
		l.mu.Unlock()
	} else {
		k := downs[n-len(ups)]
		m, from := l.down[k][0], l.now
		l.down[k] = l.down[k][1:]
		l.mu.Unlock()
		l.a.Receive(k, from, m)
	}
	return true
}
