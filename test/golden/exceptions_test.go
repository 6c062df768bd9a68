package golden_test

import "fmt"

// category says what kind of exception a case is.
type category int

const (
	decided category = iota // answered otherwise on purpose
	limits                  // resource limits and search backpressure: not there yet
	absent                  // an API that a server for workload management does not offer
	categories
)

func (c category) String() string {
	return [...]string{"differs by decision", "waits for limits", "not offered"}[c]
}

// mostExceptions is how many there may be of each category.
var mostExceptions = [categories]int{decided: 30, limits: 45, absent: 35}

// exception is why a case does not pass.
type exception struct {
	category category
	why      string
}

// exceptionKey names a case by its recording and its place there.
func exceptionKey(recording string, i int) string { return fmt.Sprintf("%s/%d", recording, i) }

// exceptions are all cases that do not pass. docs/differences.md tells the same to users.
var exceptions = gather(
	reasons{decided, "01-root-and-http-layer", map[int]string{33: "a broken escape in the path is answered by Go's HTTP server: 400"}},
	reasons{decided, "03-cluster-settings", map[int]string{2: "the settings of rules are listed too, and the mode starts as enabled"}},
	reasons{decided, "04-cluster-health-nodes-cat", map[int]string{48: "there are no plugins to list"}},
	reasons{decided, "05-documents-and-search", map[int]string{
		19: "documents do not change the mapping, so that sorting goes by what they hold",
		27: "a search that was cancelled before it was admitted has no phases",
		51: onePerScroll, 53: onePerScroll,
	}},
	reasons{decided, "06-tasks", map[int]string{
		27: "what the coordinator does itself is not measured",
		35: "a method that a path does not have is 405",
	}},
	reasons{decided, "08-search-limits", map[int]string{21: noScorers, 24: noScorers}},
	reasons{decided, "11-wlm-groups-valid", map[int]string{26: requiredPart, 27: requiredPart, 28: requiredPart, 31: requiredPart}},
	reasons{decided, "12-wlm-settings-block", map[int]string{20: "a null removes a setting: there is none to print"}},
	reasons{decided, "13-wlm-groups-invalid", map[int]string{
		0: requiredPart, 19: requiredPart, 20: requiredPart, 30: requiredPart, 40: requiredPart,
		16: "refused like every other unknown field",
		41: trailing, 42: trailing,
		61: "there are rules here",
	}},
	reasons{decided, "14-wlm-stats", map[int]string{35: "there are columns that only help tells of"}},
	reasons{decided, "17-wlm-settings-effect", map[int]string{1: groupCancels, 5: groupCancels}},
	reasons{decided, "23-extras", map[int]string{2: requiredPart}},

	waiting("08-search-limits", 32),
	waiting("16-wlm-enforcement", 1, 2, 3, 4, 5, 6, 7, 9, 11, 13, 15, 16, 17, 18, 21, 24, 27, 28, 29, 34, 38, 39, 41, 42),
	waiting("18-search-backpressure", 2, 3, 6),
	waiting("21-wlm-memory-and-duress", 0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 12, 13, 14, 15),

	reasons{absent, "01-root-and-http-layer", map[int]string{8: "CBOR", 17: deleteAll, 21: deleteAll, 23: deleteAll}},
	reasons{absent, "03-cluster-settings", map[int]string{3: "settings of the parts of an engine that are not here"}},
	reasons{absent, "04-cluster-health-nodes-cat", map[int]string{
		10: "information about the parts of an engine that are not here",
		11: onePool, 22: onePool, 46: onePool,
		24: admissionControl,
		25: "statistics of the resources that nodes tell one another",
		26: "statistics of the parts of an engine that are not here", 27: "statistics of an engine's searches",
		28: "tables about the parts of an engine that are not here",
	}},
	reasons{absent, "05-documents-and-search", map[int]string{
		10: evaluation, 11: "aggregations", 12: evaluation, 13: evaluation,
		52: pointInTime, 56: pointInTime, 57: pointInTime, 58: pointInTime, 59: pointInTime,
		62: "statistics of an engine's searches",
	}},
	reasons{absent, "14-wlm-stats", map[int]string{39: "lists of indices and shards in pages"}},
	reasons{absent, "17-wlm-settings-effect", map[int]string{11: "aggregations"}},
	reasons{absent, "19-rejections", map[int]string{
		0: breakers, 1: breakers, 2: breakers, 6: breakers,
		7: admissionControl, 8: admissionControl, 9: admissionControl, 10: admissionControl,
		31: "aggregations",
	}},
)

// Reasons that several cases share.
const (
	requiredPart     = "what is missing in a request, or of the wrong kind, is the request's fault: 400"
	trailing         = "what follows the document is most often a mistake"
	groupCancels     = "the group's cancel_after_time_interval acts"
	onePerScroll     = "a scroll is one context here, not one for each shard"
	noScorers        = "the stub has no scorers that a time limit could strike"
	evaluation       = "queries that are evaluated: a search of the stub matches every document"
	pointInTime      = "points in time: a scroll does the same for one client"
	deleteAll        = "DELETE / would delete every index"
	onePool          = "thread pools other than that of searches"
	admissionControl = "admission control by the load of the processors"
	breakers         = "circuit breakers that are set while the server runs: memory is bounded by the configuration"
)

// reasons are exceptions of one category in one recording, by place.
type reasons struct {
	category  category
	recording string
	why       map[int]string
}

// waiting are cases that resource limits or search backpressure decide.
func waiting(recording string, cases ...int) reasons {
	r := reasons{limits, recording, map[int]string{}}
	for _, i := range cases {
		r.why[i] = "resource limits and search backpressure do not act yet"
	}
	return r
}

func gather(all ...reasons) map[string]exception {
	m := map[string]exception{}
	for _, r := range all {
		for i, why := range r.why {
			m[exceptionKey(r.recording, i)] = exception{r.category, why}
		}
	}
	return m
}
