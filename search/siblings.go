package search

import (
	"errors"
	"slices"
	"sync"

	"github.com/wlmserver/wlmserver/tasks"
	"github.com/wlmserver/wlmserver/wlm"
)

// siblings are the items of one multi-search that belong to one workload
// group. They line up and ask for admission one after the other, in their
// order, so that the first in line knows which of the others hold a permit.
type siblings struct {
	admission *wlm.Admission
	freed     chan struct{} // a permit of an item has ended, perhaps long ago; the first in line looks

	mu      sync.Mutex
	line    []chan struct{} // the turns of those that have not been let through; closed for the first
	holding map[*wlm.Permit]struct{}
	parked  map[*wlm.Ticket]struct{} // that have entered, and have not come back from the wait
}

func newSiblings(a *wlm.Admission) *siblings {
	return &siblings{
		admission: a,
		freed:     make(chan struct{}, 1),
		holding:   make(map[*wlm.Permit]struct{}),
		parked:    make(map[*wlm.Ticket]struct{}),
	}
}

// lineUp gives an item the last place in line. Its turn is closed when it is
// the first.
func (s *siblings) lineUp() (turn chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn = make(chan struct{})
	s.line = append(s.line, turn)
	if len(s.line) == 1 {
		close(turn)
	}
	return turn
}

// letThrough takes an item out of the line, from wherever it stands.
func (s *siblings) letThrough(turn chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.line, turn)
	s.line = slices.Delete(s.line, i, i+1)
	if i == 0 && len(s.line) > 0 {
		close(s.line[0])
	}
}

// admit gets an item its permit. While it waits in its group's queue the next
// in line is let through.
func (s *siblings) admit(q *query, turn chan struct{}) (*wlm.Permit, error) {
	t, p, err := s.decide(q, turn)
	if err != nil || p != nil {
		return p, err
	}
	p, err = t.Wait(q.task.Context())
	s.back(t, p)
	return p, err
}

// decide takes an item to the point where it has its permit, has a ticket for
// the queue, or has failed, and lets the next in line through.
func (s *siblings) decide(q *query, turn chan struct{}) (*wlm.Ticket, *wlm.Permit, error) {
	defer s.letThrough(turn)
	held := Held{Reason: "another search of the same multi-search holds a permit of the workload group [" + q.groupName() + "]"}
	if err := q.await(turn, held); err != nil {
		return nil, nil, err
	}
	for {
		p, err := s.try(q)
		if !errors.Is(err, wlm.ErrNoPermit) {
			return nil, p, err
		}
		if !s.anyHolds() {
			break
		}
		if err := q.await(s.freed, held); err != nil {
			return nil, nil, err
		}
	}
	t, err := s.admission.Enter(q.task.Context(), q.entry())
	if err != nil {
		return nil, nil, err
	}
	q.task.SetStatus(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parked[t] = struct{}{}
	return t, nil, nil
}

// await waits for a signal while the task shows why. It fails when the search
// is cancelled first.
func (q *query) await(signal <-chan struct{}, h Held) error {
	ctx := q.task.Context()
	if ctx.Err() != nil {
		return q.cancelledBeforeStart()
	}
	select {
	case <-signal:
		return nil
	default:
	}
	q.task.SetStatus(h)
	select {
	case <-signal:
		return nil
	case <-ctx.Done():
		return q.cancelledBeforeStart()
	}
}

// cancelledBeforeStart is the error of a search whose context ended before it
// asked for admission.
func (q *query) cancelledBeforeStart() error {
	c, _ := q.task.Cancelled()
	return &tasks.CancelledError{Cause: c, BeforeStart: true}
}

// try gets a permit if one is free. It does not park.
func (s *siblings) try(q *query) (*wlm.Permit, error) {
	ctx := q.task.Context()
	t, err := s.admission.TryEnter(ctx, q.entry())
	if err != nil {
		return nil, err
	}
	p, err := t.Wait(ctx)
	if err != nil {
		return nil, err
	}
	q.task.SetStatus(t)
	s.hold(p)
	return p, nil
}

// anyHolds reports whether an item holds a permit, or has just been given one.
func (s *siblings) anyHolds() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.holding) > 0 {
		return true
	}
	survey := s.admission.Survey()
	for t := range s.parked {
		if st, ok := survey.Status(t); ok && st.State == wlm.StateRunning && st.Tracked {
			return true
		}
	}
	return false
}

// hold remembers a permit, if it counts against a limit.
func (s *siblings) hold(p *wlm.Permit) {
	if !p.Tracked() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holding[p] = struct{}{}
}

// back says how an item's wait in the queue ended; p is nil if without a
// permit.
func (s *siblings) back(t *wlm.Ticket, p *wlm.Permit) {
	if p != nil {
		s.hold(p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.parked, t)
}

// released says that an item's permit has ended.
func (s *siblings) released(p *wlm.Permit) {
	s.mu.Lock()
	delete(s.holding, p)
	s.mu.Unlock()
	select {
	case s.freed <- struct{}{}:
	default: // news is there already
	}
}
