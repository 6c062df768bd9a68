package load

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Result is what became of a load. Times are in milliseconds.
type Result struct {
	URL     string  `json:"url"`
	Method  string  `json:"method"`
	Path    string  `json:"path"`
	Loop    string  `json:"loop"` // "closed" or "open"
	Clients int     `json:"clients,omitempty"`
	Rate    float64 `json:"rate,omitempty"`
	Seed    uint64  `json:"seed"`

	Seconds      float64 `json:"seconds"` // until the last request ended
	Sent         int64   `json:"sent"`
	Unsent       int64   `json:"unsent"` // arrivals that found the most in flight
	Answered     int64   `json:"answered"`
	Completed    int64   `json:"completed"`
	Throttled    int64   `json:"throttled"`
	Refused      int64   `json:"refused"` // 429 that is no group's limit
	Evicted      int64   `json:"evicted"` // cancelled while they waited
	Cancelled    int64   `json:"cancelled"`
	Failed       int64   `json:"failed"`
	Disconnected int64   `json:"disconnected"`
	Lost         int64   `json:"lost"`
	Unanswered   int64   `json:"unanswered"` // given up at the end
	PerSecond    float64 `json:"answered_per_second"`
	InFlightPeak int64   `json:"in_flight_peak"`
	LagMax       float64 `json:"lag_max_ms"`                // how late a request of an open loop was sent
	DriverCPU    float64 `json:"driver_cpu_us_per_request"` // 0: not known
	CancelsAsked int64   `json:"cancels_asked"`
	CancelsDone  int64   `json:"cancels_done"`
	CancelsLate  int64   `json:"cancels_too_late"`

	Answers  []AnswerCount `json:"answers"`
	Losses   []LossCount   `json:"losses,omitempty"`
	Latency  Latency       `json:"latency"`          // of completed requests
	Refusals Latency       `json:"refusals_latency"` // of all 429
	Groups   []GroupResult `json:"groups"`
	Users    []UserResult  `json:"users,omitempty"`
	Fairness []Fairness    `json:"fairness,omitempty"`

	Shared       bool     `json:"shared"`
	Conservation []Check  `json:"conservation"` // empty: nothing to hold the tally against
	Notes        []string `json:"notes,omitempty"`
}

// AnswerCount counts answers of one kind.
type AnswerCount struct {
	Status int    `json:"status"`
	Type   string `json:"type,omitempty"`
	Count  int64  `json:"count"`
}

// LossCount counts requests that were lost for one reason.
type LossCount struct {
	Reason string `json:"reason"`
	Count  int64  `json:"count"`
}

// Latency is how long answers took, in milliseconds; of an open loop since they were due.
type Latency struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean_ms"`
	P50   float64 `json:"p50_ms"`
	P90   float64 `json:"p90_ms"`
	P99   float64 `json:"p99_ms"`
	P999  float64 `json:"p99_9_ms"`
	Max   float64 `json:"max_ms"`
}

// GroupResult is what became of the requests of a group.
type GroupResult struct {
	Name      string  `json:"name"`
	ID        string  `json:"id"`
	Sent      int64   `json:"sent"`
	Completed int64   `json:"completed"`
	Throttled int64   `json:"throttled"`
	Evicted   int64   `json:"evicted"`
	Latency   Latency `json:"latency"`
	Server    *Server `json:"server,omitempty"` // nil: it does not tell
}

// Server is how the server's counters of a group moved.
type Server struct {
	Throttled     int64   `json:"total_throttled"`
	WouldThrottle int64   `json:"total_would_throttle"`
	Queued        int64   `json:"total_queued"`
	Waits         int64   `json:"queue_wait_count"`
	MeanWait      float64 `json:"mean_wait_ms"`
	LongestWait   float64 `json:"max_queue_wait_ms"` // since the server's start
	Peak          int64   `json:"queue_peak"`        // since the server's start
}

// UserResult is what became of the requests of a user.
type UserResult struct {
	Name      string `json:"name"`
	Sent      int64  `json:"sent"`
	Completed int64  `json:"completed"`
	Throttled int64  `json:"throttled"`
}

// Fairness compares the completed requests of the clients of a closed loop.
type Fairness struct {
	Among   string  `json:"among"` // "all", or a group
	Clients int     `json:"clients"`
	Jain    float64 `json:"jain"` // 1: all have the same; 1/clients: one has everything
	Least   int64   `json:"least"`
	Most    int64   `json:"most"`
}

// Conserved reports whether the client and the server counted the same, as far as that could be compared.
func (r *Result) Conserved() bool { return allHold(r.Conservation) }

func millis(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}

func latencyOf(h *histogram) Latency {
	return Latency{h.total, millis(h.mean()), millis(h.quantile(0.5)), millis(h.quantile(0.9)), millis(h.quantile(0.99)),
		millis(h.quantile(0.999)), millis(h.max)}
}

// summary fills in what the tally knows. It is called when no request is under way any more.
func (t *tally) summary(r *Result, groups []group, users []Weighted, clients []identity) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var (
		all     senderTally
		latency histogram
	)
	for i, g := range groups {
		of := &t.groups[i]
		all.add(&of.senderTally)
		latency.add(&of.latency)
		r.Groups = append(r.Groups, GroupResult{Name: g.name, ID: g.id, Sent: of.sent, Completed: of.ends[completed],
			Throttled: of.ends[throttled], Evicted: of.ends[evicted], Latency: latencyOf(&of.latency)})
	}
	if len(users) > 1 {
		for i, u := range users {
			of := &t.users[i]
			r.Users = append(r.Users, UserResult{userName(u.Name), of.sent, of.ends[completed], of.ends[throttled]})
		}
	}
	r.Sent, r.Unsent, r.Answered = all.sent, t.unsent, all.answered()
	r.Completed, r.Throttled, r.Refused = all.ends[completed], all.ends[throttled], all.ends[refused]
	r.Evicted, r.Cancelled, r.Failed = all.ends[evicted], all.ends[cancelled], all.ends[failed]
	r.Disconnected, r.Lost, r.Unanswered = all.ends[disconnected], all.ends[lost], all.ends[unanswered]
	r.InFlightPeak, r.LagMax = t.peak, millis(t.lag)
	r.Latency, r.Refusals = latencyOf(&latency), latencyOf(&t.refusals)
	for a, n := range t.answers {
		r.Answers = append(r.Answers, AnswerCount{a.status, a.kind, n})
	}
	slices.SortFunc(r.Answers, func(a, b AnswerCount) int {
		return cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.Type, b.Type))
	})
	for _, reason := range slices.Sorted(maps.Keys(t.losses)) {
		r.Losses = append(r.Losses, LossCount{reason, t.losses[reason]})
	}
	r.Fairness = t.fairnessLocked(groups, clients)
}

// fairnessLocked compares all clients of a closed loop, and those of each group when there are several.
func (t *tally) fairnessLocked(groups []group, clients []identity) []Fairness {
	if len(clients) < 2 {
		return nil
	}
	all := []Fairness{compare("all", t.clients)}
	if len(groups) == 1 {
		return all
	}
	for g := range groups {
		var shares []int64
		for i, id := range clients {
			if id.group == g {
				shares = append(shares, t.clients[i])
			}
		}
		if len(shares) > 1 {
			all = append(all, compare(groups[g].name, shares))
		}
	}
	return all
}

func compare(among string, shares []int64) Fairness {
	return Fairness{among, len(shares), fairness(shares), slices.Min(shares), slices.Max(shares)}
}

// moved fills in how the server's counters of a group moved.
func (g *GroupResult) moved(before, after counters) {
	s := &Server{
		Throttled:     value(after.Throttled) - value(before.Throttled),
		WouldThrottle: after.WouldThrottle - before.WouldThrottle,
		Queued:        value(after.Queued) - value(before.Queued),
		Waits:         after.Waits - before.Waits,
		LongestWait:   float64(after.MaxWaitMillis),
		Peak:          after.QueuePeak,
	}
	if s.Waits > 0 {
		s.MeanWait = float64(after.WaitMillis-before.WaitMillis) / float64(s.Waits)
	}
	g.Server = s
}

// Err says what is wrong with the load as a whole: nothing was answered, or client and server counted differently. It is
// nil when others share the groups and so may have been counted too, and when nothing is wrong.
func (r *Result) Err() error {
	if r.Answered == 0 && r.Lost > 0 {
		return fmt.Errorf("no request was answered: %s", r.Losses[0].Reason)
	}
	for _, c := range r.Conservation {
		if !c.OK && !r.Shared {
			return fmt.Errorf("client and server counted differently, of the group %s: %s (%s); if others use it too, say --shared", c.Group, c.Law, c.Told)
		}
	}
	return nil
}
