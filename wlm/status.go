package wlm

import "time"

// Status tells where a search stands.
type Status struct {
	State       string        // "waiting" or "running"
	Tier        Tier          // waiting: the allowance that it waits for
	Bucket      string        // the bucket's name; empty when no limit holds for the search
	Position    int           // waiting: its place in line, 1 is next
	Waiting     time.Duration // waiting: for how long
	Estimated   time.Duration // waiting: how long it may still take, if HasEstimate
	HasEstimate bool          // the queue has moved lately enough to tell
	Tracked     bool          // running: it counts against a limit
}

// States of a search.
const (
	StateWaiting = "waiting"
	StateRunning = "running"
)

// Survey reads the status of many searches at about the same time, with one walk through each queue. It is for one listing and
// not safe for concurrent use.
type Survey struct {
	now   time.Duration
	lines map[BucketKey]map[*Ticket]int
}

// Survey begins a listing.
func (a *Admission) Survey() *Survey {
	return &Survey{now: a.now(), lines: make(map[BucketKey]map[*Ticket]int)}
}

// Status tells where the search stands. It reports false for one that is neither parked nor running.
func (s *Survey) Status(t *Ticket) (Status, bool) {
	b := t.bucket
	b.mu.Lock()
	st := Status{Bucket: t.Bucket().String()}
	switch t.state {
	case pending, waiting, trying:
		st.State = StateWaiting
		st.Tier, _ = b.plan.tier()
		if t.state != trying {
			st.Waiting = max(s.now-t.wait.parked, 0)
		}
	case admitted, free:
		st.State, st.Tracked = StateRunning, t.kind != untrackedPermit
		b.mu.Unlock()
		return st, !t.closed.Load()
	default:
		b.mu.Unlock()
		return Status{}, false
	}
	interval := b.interval
	line, walked := s.lines[*b.key]
	if !walked {
		line = make(map[*Ticket]int, b.queue.n)
		for w := range b.queue.all() {
			line[w] = len(line) + 1
		}
		s.lines[*b.key] = line
	}
	b.mu.Unlock()
	if st.Position = line[t]; st.Position == 0 {
		st.Position = len(line) + 1 // it parked after the walk
	}
	if interval > 0 {
		st.Estimated, st.HasEstimate = interval*time.Duration(st.Position), true
	}
	return st, true
}
