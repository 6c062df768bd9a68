package stub

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/wlmserver/wlmserver/internal/units"
	"github.com/wlmserver/wlmserver/search"
)

// lastParameter returns the value of a parameter; of several the last one counts.
func lastParameter(r *search.Request, name string) (string, bool) {
	values := r.Query[name]
	if len(values) == 0 {
		return "", false
	}
	return values[len(values)-1], true
}

// parameters are those of a search that mean something here, or must at least be
// true or false, in the order in which they are read.
var parameters = []string{
	"ignore_unavailable", "allow_no_indices", "expand_wildcards", "ignore_throttled", "analyze_wildcard", "lenient", "preference", "terminate_after", "min_score",
	"size", "from", "timeout", "track_total_hits",
	"rest_total_hits_as_int", "sort", "_source", "version", "track_scores", "explain", "seq_no_primary_term", "phase_took",
	"allow_partial_search_results", "search_type", "max_concurrent_shard_requests", "batched_reduce_size",
	"pre_filter_shard_size", "ccs_minimize_roundtrips", "include_named_queries_score", "request_cache", "verbose_pipeline",
}

// flags are the parameters that say nothing when they are blank.
var flags = []string{
	"ignore_unavailable", "allow_no_indices", "ignore_throttled", "analyze_wildcard", "lenient", "rest_total_hits_as_int", "version", "track_scores",
	"explain", "seq_no_primary_term", "phase_took", "ccs_minimize_roundtrips", "include_named_queries_score", "request_cache", "verbose_pipeline",
}

const countParameters = 9 // the first of them are those of a count, too

// readParameters reads the query string of a request. Which names it may hold is
// for somebody else to check.
func (o *options) readParameters(r *search.Request) error {
	names := parameters
	if r.Kind == search.Count {
		names = parameters[:countParameters]
	}
	for _, name := range names {
		if value, ok := lastParameter(r, name); ok {
			if value != "" && strings.TrimSpace(value) == "" && slices.Contains(flags, name) {
				continue
			}
			if err := o.readParameter(name, value); err != nil {
				return saidNumber(err, name, value)
			}
		}
	}
	return nil
}

// numbers are the parameters that hold whole numbers, beside min_score.
var numbers = []string{"size", "from", "track_total_hits", "max_concurrent_shard_requests", "batched_reduce_size", "pre_filter_shard_size", "terminate_after", "min_score"}

// saidNumber completes the error of a parameter that should hold a number and holds none.
func saidNumber(err error, name, value string) error {
	invalid, ok := err.(*search.InvalidError) //nolint:errorlint // readParameter does not wrap
	if _, notNumber := strconv.ParseFloat(value, 64); ok && notNumber != nil && slices.Contains(numbers, name) {
		if value == "" {
			return &search.InvalidError{Reason: invalid.Reason, Cause: &search.ParseError{Type: "number_format_exception", Reason: "there is no number"}}
		}
		return &search.InvalidError{Reason: invalid.Reason, NoNumber: value}
	}
	return err
}

// preference says which shards to ask, and which of their copies. Of those there is only one, so that any will do. The zero value
// asks all shards, and so does none at all.
type preference struct {
	some    bool
	shards  []int // the numbers of those to ask, if some
	problem error // why it cannot be followed; where there is nothing to ask, it need not be
}

func (p *preference) asks(number int) bool {
	return p == nil || !p.some || slices.Contains(p.shards, number)
}

// CheckPreference returns a *search.InvalidError or *search.ParseError unless shards can be asked by that preference.
func CheckPreference(value string) error { return readPreference(value).problem }

func readPreference(value string) (p preference) {
	if numbers, ok := strings.CutPrefix(value, "_shards:"); ok {
		p.some = true
		numbers, value, _ = strings.Cut(numbers, "|")
		for number := range strings.SplitSeq(numbers, ",") {
			n, err := strconv.Atoi(number)
			if err != nil {
				p.problem = &search.ParseError{Type: "number_format_exception", Reason: "[" + number + "] of [preference] is not the number of a shard"}
				return p
			}
			p.shards = append(p.shards, n)
		}
	}
	kind, _, _ := strings.Cut(value, ":")
	if strings.HasPrefix(kind, "_") && !slices.Contains(preferences, kind) {
		p.problem = &search.InvalidError{Reason: fmt.Sprintf(
			"[%s] in [preference] begins with _ and is none of %v, nor [_shards:] with numbers; any other text is allowed", value, preferences)}
	}
	return p
}

var preferences = []string{"_local", "_only_local", "_primary", "_primary_first", "_replica", "_replica_first", "_only_nodes", "_prefer_nodes"}

func (o *options) readParameter(name, value string) (err error) {
	switch name {
	case "ignore_unavailable", "allow_no_indices", "expand_wildcards":
		err = o.selection.Set(name, value)
	case "preference":
		p := readPreference(value)
		o.preference = &p
	case "terminate_after":
		_, err = readCount(name, value)
	case "min_score":
		if _, bad := strconv.ParseFloat(value, 64); bad != nil {
			err = &search.InvalidError{Reason: fmt.Sprintf("the value [%s] of [min_score] must be a number", value)}
		}
	case "sort":
		o.sort, err = readSortParameter(value)
	case "_source":
		o.hideSource = value == "false" // anything else names fields, and all are shown
	case "rest_total_hits_as_int":
		o.totalAsInt, err = readBool(name, value)
	case "phase_took":
		o.phaseTook, err = readBool(name, value)
	case "allow_partial_search_results":
		var partial bool
		partial, err = readBool(name, value)
		o.partial = &partial
	case "ignore_throttled":
		_, err = readChoice(name, value)
	case "analyze_wildcard", "lenient", "ccs_minimize_roundtrips", "include_named_queries_score", "request_cache", "verbose_pipeline":
		_, err = readBool(name, value)
	case "search_type":
		err = o.readSearchType(value)
	case "max_concurrent_shard_requests":
		o.concurrent, err = wholeNumber(name, value, 1, math.MaxInt32)
	case "batched_reduce_size":
		_, err = wholeNumber(name, value, 2, math.MaxInt32)
	case "pre_filter_shard_size":
		_, err = wholeNumber(name, value, 1, math.MaxInt32)
	default: // a key of the body, too
		err = o.readPlain(name, value)
	}
	return err
}

func readBool(name, value string) (bool, error) {
	switch value {
	case "true", "":
		return true, nil
	case "false":
		return false, nil
	}
	return false, &search.InvalidError{Reason: fmt.Sprintf("the value [%s] of [%s] must be [true] or [false]", value, name)}
}

func readCount(name, value string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(value))
	switch {
	case err != nil:
		return 0, &search.InvalidError{Reason: fmt.Sprintf("the value [%s] of [%s] must be a whole number", value, name)}
	case n < 0:
		return 0, &search.InvalidError{Reason: fmt.Sprintf("[%s] must not be negative, it is [%d]", name, n)}
	}
	return min(n, math.MaxInt32), nil // so that sums stay numbers
}

func (o *options) readTimeout(value string) error {
	d, err := units.ParseTime("timeout", value)
	if err != nil {
		return err
	}
	o.timeout = &d
	return nil
}

func (o *options) readTrackTotal(value string) error {
	o.trackTotalSaid = true
	switch value {
	case "true":
		o.trackTotal = math.MaxInt
		return nil
	case "false":
		o.trackTotal = -1
		return nil
	}
	n, err := wholeNumber("track_total_hits", value, -1, math.MaxInt32)
	if err != nil {
		return err
	}
	o.trackTotal = n
	if n == math.MaxInt32 {
		o.trackTotal = math.MaxInt
	}
	return nil
}

func (o *options) readSearchType(value string) error {
	switch strings.ToLower(value) {
	case "query_then_fetch":
	case "dfs_query_then_fetch":
		o.dfs = true
	default:
		return &search.InvalidError{Reason: fmt.Sprintf("no search type [%s]; known are [query_then_fetch] and [dfs_query_then_fetch]", value)}
	}
	return nil
}
