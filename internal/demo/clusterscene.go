package demo

import (
	"fmt"
	"sync"
	"time"
)

// clusterScene is the client's tally of what goes on on several nodes. Safe for concurrent use.
type clusterScene struct {
	plan  clusterPlan
	start time.Time

	mu       sync.Mutex
	act      int
	actStart time.Time
	states   []state
	dead     map[int]bool // nodes
	before   []int        // ran when the list was read before
	failure  string       // what the first search was answered that should not
}

func newClusterScene(p clusterPlan) *clusterScene {
	return &clusterScene{plan: p, start: time.Now(), states: make([]state, p.size()), dead: map[int]bool{}}
}

// begin starts an act.
func (s *clusterScene) begin(act int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.act, s.actStart = act, time.Now()
}

// killed notes that a node is about to be killed, started that it is back.
func (s *clusterScene) killed(node int) { s.alive(node, false) }

func (s *clusterScene) started(node int) { s.alive(node, true) }

func (s *clusterScene) alive(node int, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead[node] = !is
}

func (s *clusterScene) sent(search int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states[search] = sent
}

// ended notes the answer of a search. One that gets none from a node that was killed is lost.
func (s *clusterScene) ended(search int, o outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.state == failed && s.dead[s.plan.node(search)] {
		o.state = lost
	}
	s.states[search] = o.state
	if s.failure == "" {
		switch o.state {
		case failed:
			s.failure = o.failure
		case refused:
			s.failure = "429"
		case cancelled:
			s.failure = "500"
		}
	}
}

// listed notes what _tasks says. An answer that came meanwhile is newer and stands. The error is that more ran than may.
func (s *clusterScene) listed(l listing) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if both := common(s.before, l.running); len(both) > s.plan.sharedLimit {
		return fmt.Errorf("%d searches run at once: shared_limit is %d", len(both), s.plan.sharedLimit)
	}
	s.before = l.running
	for _, i := range l.running {
		s.advance(i, running)
	}
	for _, w := range l.waiters {
		s.advance(w.search, waiting)
	}
	return nil
}

func (s *clusterScene) advance(search int, to state) {
	if search < len(s.states) && !s.states[search].final() {
		s.states[search] = to
	}
}

// clusterPicture is a cluster's scene at one moment.
type clusterPicture struct {
	plan    clusterPlan
	act     int
	elapsed time.Duration
	inAct   time.Duration // of it, since the act began
	rows    []nodeRow
	count   [failed + 1]int // on all nodes
	failure string
}

// nodeRow is what a node was sent.
type nodeRow struct {
	name   string
	dead   bool
	states []state // of those sent to it in the acts until now
	count  [failed + 1]int
}

// done tells whether the act is over.
func (p clusterPicture) done() bool {
	return p.count[planned]+p.count[sent]+p.count[waiting]+p.count[running] == 0
}

func (s *clusterScene) picture() clusterPicture {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := clusterPicture{plan: s.plan, act: s.act, elapsed: time.Since(s.start), inAct: time.Since(s.actStart), failure: s.failure}
	for i, name := range s.plan.nodes {
		p.rows = append(p.rows, nodeRow{name: name, dead: s.dead[i]})
	}
	for i, st := range s.states[:s.plan.first(s.act+1)] {
		r := &p.rows[s.plan.node(i)]
		r.states = append(r.states, st)
		r.count[st]++
		p.count[st]++
	}
	return p
}
