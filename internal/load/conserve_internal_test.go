package load

import (
	"slices"
	"testing"
)

// TestConserve breaks one law at a time.
func TestConserve(t *testing.T) {
	const (
		once     = "every request ends once"
		ran      = "what completed was counted"
		throttle = "every refusal was counted once"
		waits    = "who waits is admitted or cancelled"
		full     = "a full queue refuses by the limit"
		peak     = "the peak is the most"
		left     = "nobody is left in the queue"
	)
	count := func(throttled, queued int64, c counters) counters {
		c.Throttled, c.Queued = &throttled, &queued
		return c
	}
	before := count(100, 50, counters{Completions: 1000, Waits: 40, QueueRejections: 90, QueuePeak: 9})
	after := func(change func(*counters)) counters {
		c := count(107, 62, counters{Completions: 1020, Waits: 50, QueueRejections: 95, QueuePeak: 9})
		change(&c)
		return c
	}
	fine := func(*counters) {}
	seen := func(change func(*senderTally)) senderTally {
		s := senderTally{sent: 19}
		s.ends[completed], s.ends[throttled], s.ends[evicted] = 10, 7, 2
		change(&s)
		return s
	}
	asSeen := func(*senderTally) {}

	for name, c := range map[string]struct {
		seen   func(*senderTally)
		after  func(*counters)
		shared bool
		want   []string // laws that are broken
	}{
		"all is well":               {asSeen, fine, false, nil},
		"a request has no end":      {func(s *senderTally) { s.sent++ }, fine, false, []string{once}},
		"a completion is missing":   {asSeen, func(c *counters) { c.Completions = 1009 }, false, []string{ran}},
		"a refusal is missing":      {asSeen, func(c *counters) { *c.Throttled = 106 }, false, []string{throttle}},
		"a refusal too many":        {asSeen, func(c *counters) { *c.Throttled = 108 }, false, []string{throttle}},
		"one too many, with others": {asSeen, func(c *counters) { *c.Throttled = 108 }, true, nil},
		"one too few, with others":  {asSeen, func(c *counters) { *c.Throttled = 106 }, true, []string{throttle}},
		"a waiter is lost":          {asSeen, func(c *counters) { *c.Queued = 63 }, false, []string{waits}},
		"a wait counts twice":       {asSeen, func(c *counters) { c.Waits = 51 }, false, []string{waits}},
		"somebody still waits":      {asSeen, func(c *counters) { c.QueuedCurrent = 1; *c.Queued = 63 }, false, []string{left}},
		"another still waits":       {asSeen, func(c *counters) { c.QueuedCurrent = 1; *c.Queued = 63 }, true, nil},
		"the peak is too low":       {asSeen, func(c *counters) { c.QueuedCurrent = 10; *c.Queued = 72 }, true, []string{peak}},
		"full more than throttled":  {asSeen, func(c *counters) { c.QueueRejections = 98 }, false, []string{full}},
		"the server started anew": {asSeen, func(c *counters) {
			*c = count(7, 12, counters{Completions: 20, Waits: 10, QueueRejections: 5, QueuePeak: 3})
		}, false, []string{ran, throttle, waits, full}},
		"one who left was refused": {func(s *senderTally) { s.sent++; s.ends[disconnected]++ },
			func(c *counters) { *c.Throttled = 108 }, false, nil},
		"one who left was evicted": {func(s *senderTally) { s.sent++; s.ends[lost]++ },
			func(c *counters) { *c.Queued = 63 }, false, nil},
		"one who left is no two": {func(s *senderTally) { s.sent++; s.ends[unanswered]++ },
			func(c *counters) { *c.Throttled = 109 }, false, []string{throttle}},
		"no throttling": {asSeen, func(c *counters) { c.Throttled = nil; c.Queued = nil }, false, nil},
		"no queues":     {asSeen, func(c *counters) { c.Queued = nil }, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := seen(c.seen)
			var broken []string
			for _, check := range conserve("g", &s, before, after(c.after), c.shared) {
				if !check.OK {
					broken = append(broken, check.Law)
				}
			}
			if !slices.Equal(broken, c.want) {
				t.Errorf("broken: %q, wanted %q", broken, c.want)
			}
		})
	}

	refusedOnly := senderTally{sent: 3}
	refusedOnly.ends[throttled] = 3
	for _, check := range conserve("g", &refusedOnly, counters{}, count(3, 0, counters{Completions: 1}), false) {
		if check.OK == (check.Law == ran) {
			t.Errorf("of refused ones alone one completed: %+v", check)
		}
	}
}
