package load

import "fmt"

// Check is one law that the client's tally and the server's counters of a group must obey together.
type Check struct {
	Group string `json:"group"`
	Law   string `json:"law"`
	OK    bool   `json:"ok"`
	Told  string `json:"told"` // the figures on both sides
}

// conserve holds what the client saw of a group against how the server's counters moved meanwhile. With others at work in
// the group, the counters may have moved by more.
//
// A request whose end the client does not know (it left, the connection broke) may be any of what the server counts, so
// such requests widen what is right.
func conserve(name string, t *senderTally, before, after counters, shared bool) []Check {
	var checks []Check
	add := func(ok bool, law, format string, figures ...any) {
		checks = append(checks, Check{Group: name, Law: law, OK: ok, Told: fmt.Sprintf(format, figures...)})
	}
	unknown := t.unknown()
	within := func(grown, seen int64) bool { return grown >= seen && (shared || grown <= seen+unknown) }
	unclear := ""
	if unknown > 0 {
		unclear = fmt.Sprintf(" (%d without an answer may be among them)", unknown)
	}

	var ended int64
	for _, n := range t.ends {
		ended += n
	}
	add(ended == t.sent, "every request ends once", "sent %d, ended %d", t.sent, ended)

	completions := after.Completions - before.Completions
	ran := t.ends[completed] + t.ends[cancelled] + t.ends[failed] + t.ends[refused] + unknown
	add(completions >= t.ends[completed] && (shared || ran > 0 || completions == 0),
		"what completed was counted", "completed %d, total_completions +%d with the shards' tasks", t.ends[completed], completions)

	if after.Throttled == nil {
		return checks
	}
	refusals := *after.Throttled - value(before.Throttled)
	add(within(refusals, t.ends[throttled]), "every refusal was counted once", "429 of a limit %d%s, total_throttled +%d", t.ends[throttled], unclear, refusals)

	if after.Queued == nil {
		return checks
	}
	queued := *after.Queued - value(before.Queued)
	waits := after.Waits - before.Waits
	waiting := after.QueuedCurrent - before.QueuedCurrent
	evictions := queued - waits - waiting
	add(within(evictions, t.ends[evicted]), "who waits is admitted or cancelled", "cancelled in the queue %d%s, total_queued +%d - queue_wait_count +%d - queued_current %+d = %d evicted",
		t.ends[evicted], unclear, queued, waits, waiting, evictions)

	full := after.QueueRejections - before.QueueRejections
	add(full >= 0 && full <= refusals, "a full queue refuses by the limit", "total_queue_rejections +%d, total_throttled +%d", full, refusals)
	add(after.QueuedCurrent <= after.QueuePeak, "the peak is the most", "queued_current %d, queue_peak %d", after.QueuedCurrent, after.QueuePeak)
	add(shared && after.QueuedCurrent >= 0 || after.QueuedCurrent == 0, "nobody is left in the queue", "queued_current %d", after.QueuedCurrent)
	return checks
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func allHold(checks []Check) bool {
	for _, c := range checks {
		if !c.OK {
			return false
		}
	}
	return true
}
