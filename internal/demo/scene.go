package demo

import (
	"sync"
	"time"
)

// state is how far one search has come.
type state uint8

const (
	planned   state = iota
	sent            // no news of it yet
	waiting         // _tasks lists it as waiting
	running         // _tasks lists it as running
	answered        // 200
	refused         // 429
	cancelled       // its answer says that its task was cancelled
	lost            // no answer came: its node had been killed
	failed          // anything else
)

func (s state) final() bool { return s >= answered }

// scene is the client's tally of the burst. Safe for concurrent use.
type scene struct {
	plan  plan
	start time.Time

	mu         sync.Mutex
	states     []state
	retryAfter string       // of the last refusal
	next       *waiter      // first in line, as last listed
	byHand     map[int]bool // cancelled through _tasks/_cancel
	ran        int          // of the cancelled: had been admitted
	failure    string       // what the first failed search was answered
}

// waiter is a search in the queue as _tasks shows it.
type waiter struct {
	search    int
	task      string
	position  int // 1 = next
	waiting   time.Duration
	estimated time.Duration // 0 = not known
}

func newScene(p plan) *scene {
	return &scene{plan: p, start: time.Now(), states: make([]state, p.searches), byHand: map[int]bool{}}
}

// picture is a scene at one moment.
type picture struct {
	plan       plan
	elapsed    time.Duration
	states     []state
	count      [failed + 1]int
	impatient  int // of the cancelled: gave up by cancel_after_time_interval
	byHand     int // of the cancelled: through _tasks/_cancel
	ran        int // of the cancelled: had been admitted
	retryAfter string
	next       *waiter
	failure    string
}

// admitted counts the searches that were given a permit: they run, were answered, or were cancelled while they ran.
func (p picture) admitted() int { return p.count[running] + p.count[answered] + p.ran }

func (p picture) done() bool {
	return p.count[answered]+p.count[refused]+p.count[cancelled]+p.count[failed] == p.plan.searches
}

func (s *scene) picture() picture {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := picture{plan: s.plan, elapsed: time.Since(s.start), states: append([]state(nil), s.states...),
		retryAfter: s.retryAfter, failure: s.failure, ran: s.ran}
	for i, st := range s.states {
		p.count[st]++
		if st == cancelled {
			if s.byHand[i] {
				p.byHand++
			} else {
				p.impatient++
			}
		}
	}
	if s.next != nil && s.states[s.next.search] == waiting {
		p.next = s.next
	}
	return p
}

// sent notes that the search is on its way.
func (s *scene) sent(search int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states[search] = sent
}

// ended notes the answer of a search.
func (s *scene) ended(search int, o outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states[search] = o.state
	if o.ran {
		s.ran++
	}
	if o.retryAfter != "" {
		s.retryAfter = o.retryAfter
	}
	if o.state == failed && s.failure == "" {
		s.failure = o.failure
	}
}

// listed notes what _tasks said. An answer that came meanwhile is newer and stands.
func (s *scene) listed(l listing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range l.running {
		s.advance(i, running)
	}
	s.next = nil
	for _, w := range l.waiters {
		s.advance(w.search, waiting)
		if w.position == 1 {
			s.next = &w
		}
	}
}

func (s *scene) advance(search int, to state) {
	if !s.states[search].final() {
		s.states[search] = to
	}
}

// cancelledByHand notes for which searches _tasks/_cancel was called.
func (s *scene) cancelledByHand(search int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byHand[search] = true
}
