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
	const (
		searches  = `^(search|count|msearch|scroll) `
		evaluated = searches + `.*("(match|term|terms|range|bool|exists|ids|prefix|wildcard|query_string|simple_query_string|match_none|constant_score|match_phrase|multi_match|regexp|fuzzy|dis_max|function_score|boosting|nested|post_filter|min_score|terminate_after)":|[?&](q|min_score|terminate_after)=)`
	)
	return []known{
		{decided, "the queue has statistics", "more fields: see", nil, re(`(total_throttled|total_would_throttle|total_queued|total_queue_rejections|queued_current|queue_peak|queue_wait_count|total_queue_wait_millis|max_queue_wait_millis): something here, nothing there`)},
		{decided, "what counts as a completion", "`total_completions` leaves out", nil, re(`^\..*total_completions: `)},
		{decided, "the statistics table has help", "and takes `help`", re(`^list-stats .*help`), re(`^status: 200 here, 400 illegal_argument_exception there`)},
		{decided, "queries are not evaluated", "is not evaluated", re(evaluated), re(`^\.(responses\.)?(hits\.(hits|total|max_score)|count|terminated_early)`)},
		{decided, "parts of a search body do nothing", "is not evaluated", re(searches), re(`^\.(responses\.)?(aggregations|profile|suggest|hits\.hits\.(sort|fields|highlight|_explanation|matched_queries))\b.*: nothing here`)},
		{decided, "all indices cannot be deleted at once", "`DELETE /`", re(`^\w+ \w+ /(\?\S*)?(\n|$)`), re(`^Allow: `)},
		{decided, "only gzip", "no other compression", re(`Accept-Encoding: (\*|.*br|.*deflate)`), re(`^(Content-Encoding: |body: )`)},
		{later, "search backpressure has nothing to count", "`search_backpressure` is all zeros", nil, re(`search_backpressure\..*: "0" here`)},
		{notOffered, "shard indexing pressure", "only what exists here", nil, re(`attributes\.shard_indexing_pressure_enabled: nothing here`)},
		{notOffered, "tables that are not offered are not listed", "most tables of `_cat`", re(`^cat \w+ /_cat/?(\?|$)`), re(`^rows: `)},
		{notOffered, "columns that are not offered are not listed", "only what exists here", re(`^cat .*help`), re(`^rows?: `)},
		{notOffered, "columns of _cat/nodes that are not measured", "CPU percentages are -1", re(`^cat \w+ /_cat/nodes`), re(`^row: `)},
	}
}
