package tier

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/wlm"
)

// Metadata is what the tier has to know of the cluster's metadata.
type Metadata interface {
	// Live reports whether this node's own membership surely holds at this moment.
	Live() bool
	// Revision is that of the metadata which this node acts by.
	Revision() uint64
	// Await returns when this node acts by the revision, or when ctx ends.
	Await(ctx context.Context, revision uint64) error
}

// Config is what a tier needs.
type Config struct {
	Self     ring.Member
	Lease    time.Duration // how long a silent session keeps its permits
	Metadata Metadata
	Dialer   Dialer
	Log      zerolog.Logger
}

// Tier is one node's part of the shared tier. It is safe for concurrent use.
type Tier struct {
	config    Config
	admission *wlm.Admission
	started   time.Time // what the clock of leases counts from
	owning    *owning

	life context.Context
	end  context.CancelFunc
	work sync.WaitGroup

	view atomic.Pointer[view] // changed by who has mu

	mu       sync.Mutex
	closed   bool
	endEpoch context.CancelFunc // ends what was begun for the epoch of the view
}

// view is what the tier knows of owners at a moment. It is immutable.
type view struct {
	ring     *ring.Ring
	sessions map[ring.Member]*session // that are open
}

// New makes a tier that knows no ring yet. It is meant for [wlm.WithLink], whose admission it then speaks for; [Tier.SetRing] brings it to life
// and [Tier.Close] ends it.
func New(c Config, a *wlm.Admission) *Tier {
	t := &Tier{config: c, admission: a, started: time.Now(), endEpoch: func() {}}
	t.owning = newOwning(t)
	t.life, t.end = context.WithCancel(context.Background())
	t.view.Store(&view{ring: ring.New(0, nil)})
	t.work.Go(t.tick)
	return t
}

// now reads the clock of leases: it never goes back.
func (t *Tier) now() time.Duration { return time.Since(t.started) }

// Session is the one with the bucket's owner; nil while there is none.
func (t *Tier) Session(k wlm.BucketKey) wlm.Session {
	v := t.view.Load()
	owner, ok := v.ring.Owner(k.String())
	if !ok {
		return nil
	}
	s, ok := v.sessions[owner]
	if !ok {
		return nil
	}
	return s
}

// LimitsChanged has this node grant what its buckets' limits now allow.
func (t *Tier) LimitsChanged() { t.owning.limitsChanged() }

// SetRing begins an epoch: what this node owns and holds is announced anew. Rings come in the order in which they were written, and
// one that has come already does nothing; that an epoch is smaller than the last is so when etcd's data were replaced by earlier ones. It
// does not wait for other members.
func (t *Tier) SetRing(r *ring.Ring) {
	t.mu.Lock()
	if t.closed || r.Epoch() == t.view.Load().ring.Epoch() {
		t.mu.Unlock()
		return
	}
	t.endEpoch()
	var epoch context.Context
	epoch, t.endEpoch = context.WithCancel(t.life)
	t.view.Store(&view{ring: r})
	t.owning.begin(r)
	if r.Has(t.config.Self) {
		for _, m := range r.Members() {
			if m.Eligible() {
				t.work.Go(func() { t.coordinate(epoch, m, r.Epoch()) })
			}
		}
	}
	t.mu.Unlock()
	t.admission.Renew()
}

// setSession puts a session with an owner into the view, or takes it out with nil, and has the admission go on from there. It
// reports whether the epoch is still that of the session.
func (t *Tier) setSession(owner ring.Member, epoch uint64, s *session) bool {
	t.mu.Lock()
	v := t.view.Load()
	if v.ring.Epoch() != epoch {
		t.mu.Unlock()
		return false
	}
	sessions := maps.Clone(v.sessions)
	if s == nil {
		delete(sessions, owner)
	} else {
		if sessions == nil {
			sessions = make(map[ring.Member]*session)
		}
		sessions[owner] = s
	}
	t.view.Store(&view{ring: v.ring, sessions: sessions})
	t.mu.Unlock()
	t.admission.Renew()
	return true
}

// tick does what time brings.
func (t *Tier) tick() {
	tick := time.NewTicker(tickInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			t.owning.tick()
		case <-t.life.Done():
			return
		}
	}
}

// tickInterval is how often an owner looks at its leases and at the questions that it cannot answer yet.
const tickInterval = 100 * time.Millisecond

// Close ends all sessions. Other members go on without this one once it has left the ring.
func (t *Tier) Close() {
	t.mu.Lock()
	t.closed = true
	t.end()
	t.owning.close()
	t.mu.Unlock()
	t.work.Wait()
}

// Status is how the tier stands.
type Status struct {
	Epoch    uint64
	Sessions int      // with owners, of Owners that there should be
	Owners   int      // members that may own
	Ready    bool     // what this node owns may be granted, or it is one that never owns
	Missing  []string // ids of the members that it waits for
}

// Status reads how the tier stands at this moment.
func (t *Tier) Status() Status {
	v := t.view.Load()
	s := Status{Epoch: v.ring.Epoch(), Sessions: len(v.sessions)}
	for _, m := range v.ring.Members() {
		if m.Eligible() {
			s.Owners++
		}
	}
	s.Ready, s.Missing = t.owning.status()
	return s
}
