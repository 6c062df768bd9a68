package search

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"maps"
	"slices"
	"sync"
	"time"
)

// scroll is an open scroll: an execution that is asked for page after page.
type scroll struct {
	id        string
	owner     string   // the user who opened it; empty for nobody known
	indices   []string // of the request that opened it
	execution Execution

	// turn holds a token while no page is worked at. Who takes it works at one.
	turn chan struct{}

	// Guarded by the lock of the scrolls that it belongs to.
	keepAlive time.Duration
	expires   time.Time // while there are no users
	users     int       // pages that wait or run
	gone      bool      // out of the table; the last user frees it
}

func newScroll(r *Request, e Execution) *scroll {
	sc := &scroll{
		id:        r.ScrollID,
		owner:     r.Principal.User,
		indices:   r.Indices,
		execution: e,
		turn:      make(chan struct{}, 1),
		keepAlive: r.ScrollKeepAlive,
	}
	sc.endTurn()
	return sc
}

// takeTurn waits until no page is worked at. It fails when ctx ends first, but
// never while the turn is there to be taken.
func (sc *scroll) takeTurn(ctx context.Context) bool {
	select {
	case <-sc.turn:
		return true
	default:
	}
	select {
	case <-sc.turn:
		return true
	case <-ctx.Done():
		return false
	}
}

// endTurn lets the next page be worked at.
func (sc *scroll) endTurn() { sc.turn <- struct{}{} }

// scrolls are the open scrolls of a service. An execution is never closed
// under the lock, and never while a page of its scroll waits or runs.
type scrolls struct {
	stop   chan struct{}
	reaper sync.WaitGroup

	mu      sync.Mutex
	open    map[string]*scroll
	opening int // first pages under way
	closed  bool
}

// openScrolls makes an empty table and starts its reaper.
func openScrolls(interval time.Duration) *scrolls {
	s := &scrolls{stop: make(chan struct{}), open: make(map[string]*scroll)}
	s.reaper.Go(func() { s.reapEvery(interval) })
	return s
}

// close ends the reaper and frees every scroll. From now on none is opened.
func (s *scrolls) close() {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	if again {
		return
	}
	close(s.stop)
	s.reaper.Wait()
	s.clear(s.ids(), anybody)
}

// reserve takes a place for a scroll whose first page begins; false if most
// places are taken. A reservation ends with add or abandon.
func (s *scrolls) reserve(most int) bool {
	return s.tryReserve(most) || s.reap() > 0 && s.tryReserve(most)
}

func (s *scrolls) tryReserve(most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open)+s.opening >= most {
		return false
	}
	s.opening++
	return true
}

// abandon gives a reservation back.
func (s *scrolls) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opening--
}

// add opens a scroll in its reserved place, its first page having ended. It
// fails, and the reservation stays, when no scroll is opened any more.
func (s *scrolls) add(sc *scroll) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.opening--
	sc.expires = time.Now().Add(sc.keepAlive)
	s.open[sc.id] = sc
	return true
}

// pin finds an open scroll and keeps it from expiring until unpin; nil if it
// is not open or not visible.
func (s *scrolls) pin(id string, visible func(owner string) bool) *scroll {
	s.mu.Lock()
	defer s.mu.Unlock()
	sc := s.open[id]
	if sc == nil || !visible(sc.owner) || sc.expired(time.Now()) {
		return nil
	}
	sc.users++
	return sc
}

// unpin ends a pin. The time until the scroll expires begins when its last
// page has ended; a positive keepAlive replaces how long that is.
func (s *scrolls) unpin(sc *scroll, keepAlive time.Duration) {
	s.mu.Lock()
	if keepAlive > 0 {
		sc.keepAlive = keepAlive
	}
	sc.users--
	sc.expires = time.Now().Add(sc.keepAlive)
	free := sc.gone && sc.users == 0
	s.mu.Unlock()
	if free {
		sc.execution.Close()
	}
}

// cleared reports whether a pinned scroll has been closed to further pages.
func (s *scrolls) cleared(sc *scroll) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sc.gone
}

// clear takes the visible ones of the scrolls out of the table, and returns
// how many of those were open.
func (s *scrolls) clear(ids []string, visible func(owner string) bool) (freed int) {
	return s.remove(ids, func(sc *scroll, now time.Time) (take, count bool) {
		take = visible(sc.owner)
		return take, take && !sc.expired(now)
	})
}

// reap takes out the scrolls that have expired, and returns how many it were.
func (s *scrolls) reap() int {
	return s.remove(s.ids(), func(sc *scroll, now time.Time) (take, count bool) {
		take = sc.expired(now)
		return take, take
	})
}

func (s *scrolls) reapEvery(interval time.Duration) {
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			s.reap()
		case <-s.stop:
			return
		}
	}
}

// remove takes the chosen scrolls out of the table, frees those without users
// and returns how many were to be counted.
func (s *scrolls) remove(ids []string, choose func(sc *scroll, now time.Time) (take, count bool)) (counted int) {
	var free []*scroll
	s.mu.Lock()
	now := time.Now()
	for _, id := range ids {
		sc := s.open[id]
		if sc == nil {
			continue
		}
		take, count := choose(sc, now)
		if count {
			counted++
		}
		if take {
			delete(s.open, id)
			sc.gone = true
			if sc.users == 0 {
				free = append(free, sc)
			}
		}
	}
	s.mu.Unlock()
	for _, sc := range free {
		sc.execution.Close()
	}
	return counted
}

func (s *scrolls) ids() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.open))
}

// expired reports whether the scroll's time is up; never while a page of it
// waits or runs. The caller holds the lock.
func (sc *scroll) expired(now time.Time) bool {
	return sc.users == 0 && !now.Before(sc.expires)
}

// A scroll's id is a version and random bytes that nobody can guess, in a form
// that needs no escaping in a URL.
const (
	scrollIDVersion = 1
	scrollIDBytes   = 24
)

func newScrollID() string {
	var b [scrollIDBytes]byte
	rand.Read(b[:]) // never fails
	b[0] = scrollIDVersion
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// validScrollID reports whether a text can be the id of a scroll at all.
func validScrollID(id string) bool {
	b, err := base64.RawURLEncoding.DecodeString(id)
	return err == nil && len(b) == scrollIDBytes && b[0] == scrollIDVersion
}
