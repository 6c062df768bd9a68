package load

import (
	"sync"
	"time"
)

// tally is what the client saw. All its methods are safe for concurrent use.
type tally struct {
	start time.Time

	mu       sync.Mutex
	groups   []groupTally // by place in plan.groups
	users    []senderTally
	clients  []int64 // completed requests of each client of a closed loop
	answers  map[answer]int64
	losses   map[string]int64
	inFlight int64
	peak     int64
	unsent   int64         // arrivals that found the most in flight
	lag      time.Duration // the longest that a request was sent after it was due
	refusals histogram
}

// groupTally is what became of the requests of one group.
type groupTally struct {
	senderTally
	latency histogram // of completed ones
}

// senderTally counts the requests of a group or a user.
type senderTally struct {
	sent int64
	ends [ends]int64
}

// answered is how many had an answer.
func (s *senderTally) answered() int64 {
	var n int64
	for e := range ends {
		if e.answered() {
			n += s.ends[e]
		}
	}
	return n
}

// unknown is how many ended so that only the server knows what became of them.
func (s *senderTally) unknown() int64 {
	return s.ends[disconnected] + s.ends[lost] + s.ends[unanswered]
}

func (s *senderTally) add(o *senderTally) {
	s.sent += o.sent
	for i, n := range o.ends {
		s.ends[i] += n
	}
}

// answer is a kind of answer: its status, and the error type of one that failed.
type answer struct {
	status int
	kind   string
}

func newTally(groups, users, clients int) *tally {
	return &tally{groups: make([]groupTally, groups), users: make([]senderTally, users), clients: make([]int64, clients),
		answers: map[answer]int64{}, losses: map[string]int64{}}
}

// began counts a request that is on its way, as long after it was due as lag.
func (t *tally) began(id identity, lag time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.groups[id.group].sent++
	t.users[id.user].sent++
	t.inFlight++
	t.peak = max(t.peak, t.inFlight)
	t.lag = max(t.lag, lag)
}

// outcome is what became of one request.
type outcome struct {
	end     end
	answer  answer        // of one that was answered
	latency time.Duration // since it was due
	loss    string        // why it was lost
}

// ended counts the end of a request that began; client is none of a closed loop's when negative.
func (t *tally) ended(id identity, client int, o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inFlight--
	g := &t.groups[id.group]
	g.ends[o.end]++
	t.users[id.user].ends[o.end]++
	if o.end.answered() {
		t.answers[o.answer]++
	}
	switch o.end {
	case completed:
		g.latency.record(o.latency)
		if client >= 0 {
			t.clients[client]++
		}
	case throttled, refused:
		t.refusals.record(o.latency)
	case lost:
		if _, known := t.losses[o.loss]; !known && len(t.losses) >= maxLosses {
			o.loss = "other"
		}
		t.losses[o.loss]++
	}
}

// maxLosses bounds the reasons that are told apart.
const maxLosses = 20

// notSent counts an arrival for which there was no room.
func (t *tally) notSent() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unsent++
}

// Progress is where a load stands.
type Progress struct {
	Elapsed                    time.Duration
	Sent, Unsent, InFlight     int64
	Completed, Refused, Others int64 // how requests ended; Refused are all 429
	P50, P99                   time.Duration
}

func (t *tally) progress() Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	var (
		all     senderTally
		latency = &t.groups[0].latency
	)
	if len(t.groups) > 1 {
		latency = new(histogram)
	}
	for i := range t.groups {
		all.add(&t.groups[i].senderTally)
		if len(t.groups) > 1 {
			latency.add(&t.groups[i].latency)
		}
	}
	p := Progress{Elapsed: time.Since(t.start), Sent: all.sent, Unsent: t.unsent, InFlight: t.inFlight,
		Completed: all.ends[completed], Refused: all.ends[throttled] + all.ends[refused],
		P50: latency.quantile(0.5), P99: latency.quantile(0.99)}
	p.Others = p.Sent - p.InFlight - p.Completed - p.Refused
	return p
}

// fairness is Jain's index of the shares: 1 when all are alike, 1/n when one has everything. Of nothing it is 1.
func fairness(shares []int64) float64 {
	var sum, squares float64
	for _, s := range shares {
		sum += float64(s)
		squares += float64(s) * float64(s)
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(shares)) * squares)
}
