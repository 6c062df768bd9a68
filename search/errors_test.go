package search_test

import (
	"errors"
	"testing"

	"github.com/wlmserver/wlmserver/search"
)

func TestErrorTexts(t *testing.T) {
	cause := errors.New("the cause")
	for want, err := range map[string]error{
		"query phase failed: all shards failed: the cause": &search.PhaseError{Phase: "query", Reason: "all shards failed", Cause: cause},
		"fetch phase failed: the cause":                    &search.PhaseError{Phase: "fetch", Failures: []search.ShardFailure{{Err: cause}, {Err: errors.New("another")}}},
		"fetch phase failed":                               &search.PhaseError{Phase: "fetch"},
		"[3:7] unknown key [x]":                            &search.ParseError{Reason: "unknown key [x]", Line: 3, Column: 7},
		"unknown key [x]":                                  &search.ParseError{Reason: "unknown key [x]"},
		"no":                                               &search.InvalidError{Reason: "no"},
		"Validation Failed: 1: a is missing;2: b is wrong;": &search.ValidationError{Problems: []string{"a is missing", "b is wrong"}},
		"index [x] does not exist on this server":           &search.IndexNotFoundError{Index: "x"},
		"invalid index name [X]: must be lower case":        &search.InvalidIndexNameError{Index: "X", Reason: "must be lower case"},
		"the pool [n/search] has no room for the query of shard [a][0]: pool size = 2, active threads = 1, queued tasks = 4, " +
			"queue capacity = 3, completed tasks = 5; raise thread_pool.search.queue_size or send fewer searches at once": &search.PoolFullError{
			Pool: "n/search", Work: "query of shard [a][0]", Threads: 2, Active: 1, Queued: 4, Capacity: 3, Completed: 5},
		"no open scroll has the id [x]: it has expired or was cleared; start the search again": &search.ScrollMissingError{ID: "x"},
		"Time exceeded":           &search.ShardError{Type: "query_phase_execution_exception", Reason: "Time exceeded", Status: 500},
		"time_exceeded_exception": &search.ShardError{Type: "time_exceeded_exception", Status: 500},
	} {
		if got := err.Error(); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
	for _, err := range []error{&search.PhaseError{Cause: cause}, &search.ParseError{Cause: cause}} {
		if !errors.Is(err, cause) {
			t.Errorf("%T hides its cause", err)
		}
	}
}
