package compat_test

import (
	"regexp"
)

// category is why two answers may differ for good.
type category string

const (
	decided    category = "differs by decision"
	later      category = "waits for resource limits and search backpressure"
	notOffered category = "not offered"
)

// known is one difference that is meant.
type known struct {
	category category
	why      string
	row      string         // what docs/differences.md says about it, word for word
	request  *regexp.Regexp // in which requests, as they print; nil: in all
	what     *regexp.Regexp // which difference, as it prints
}

// list is all that may differ, with how often each of it was met.
type list struct {
	all []known
	met []int
}

func newList() *list {
	all := knownDifferences()
	return &list{all: all, met: make([]int, len(all))}
}

// find is the place in the list of what explains a difference; -1 for nothing.
func (l *list) find(r *request, d difference) int {
	text, what := r.kind+" "+r.String(), d.String()
	for i, k := range l.all {
		if k.what.MatchString(what) && (k.request == nil || k.request.MatchString(text)) {
			return i
		}
	}
	return -1
}

// unlisted are the differences that nothing explains.
func (l *list) unlisted(r *request, all []difference) []difference {
	var rest []difference
	for _, d := range all {
		if l.find(r, d) < 0 {
			rest = append(rest, d)
		}
	}
	return rest
}

func re(s string) *regexp.Regexp { return regexp.MustCompile(`(?s)` + s) }

func knownDifferences() []known {
	return []known{
		{decided, "the queue has statistics", "more fields: see", nil, re(`(total_throttled|total_would_throttle|total_queued|total_queue_rejections|queued_current|queue_peak|queue_wait_count|total_queue_wait_millis|max_queue_wait_millis): something here, nothing there`)},
		{decided, "what counts as a completion", "`total_completions` leaves out", nil, re(`^\..*total_completions: `)},
	}
}
