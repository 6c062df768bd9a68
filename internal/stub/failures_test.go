package stub_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/internal/stub"
	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
)

// An error of a shard is the same error at another node.
func TestFailuresTravel(t *testing.T) {
	for _, c := range []struct {
		err    error
		typ    string
		status int
	}{
		{&tasks.CancelledError{Cause: tasks.UserCause()}, "task_cancelled_exception", 500},
		{&tasks.CancelledError{Cause: tasks.DisconnectCause(), BeforeStart: true}, "task_cancelled_exception", 500},
		{&tasks.CancelledError{Cause: tasks.ShutdownCause()}, "task_cancelled_exception", 429},
		{tasks.UserCause(), "task_cancelled_exception", 500},
		{&tasks.Cause{Kind: tasks.ByDuress, Reason: "too much \xff"}, "task_cancelled_exception", 500},
		{&search.PoolFullError{Pool: "a/search", Work: "w", Threads: 1, Active: 2, Queued: 3, Capacity: 4, Completed: 5}, "rejected_execution_exception", 429},
		{&search.IndexNotFoundError{Index: "logs"}, "index_not_found_exception", 404},
		{&stub.FullError{What: "documents", Wanted: 2, Limit: 1, Key: "node.heap_size"}, "circuit_breaking_exception", 429},
		{&stub.VersionConflictError{Index: "logs", UUID: "u", Shard: 1, ID: "7", Version: 3}, "version_conflict_engine_exception", 409},
		{&stub.DocumentMissingError{Index: "logs", UUID: "u", Shard: 1, ID: "7"}, "document_missing_exception", 404},
		{&stub.MalformedDocumentError{Reason: "r", CauseType: "t", CauseReason: "c"}, "mapper_parsing_exception", 400},
		{&stub.StaleCopyError{Copy: shard.Copy{Shard: shard.ID{Index: "logs", Number: 1}, UUID: "u", Number: 4}}, "shard_not_found_exception", 404},
		{&records.UnavailableError{Unknown: true, Cause: errors.New("no leader")}, "process_cluster_event_timeout_exception", 503},
		{&search.ShardError{Type: "query_phase_execution_exception", Reason: "Time exceeded", Status: 500}, "query_phase_execution_exception", 500},
		{&search.ShardError{Type: "of_a_type", Status: 418}, "of_a_type", 418},
	} {
		f := stub.Failures{}.Describe(c.err)
		if f.Type != c.typ || f.Status != c.status {
			t.Errorf("%#v: described as %s, %d", c.err, f.Type, f.Status)
		}
		got := stub.Failures{}.Restore(f)
		if want, ok := c.err.(*tasks.Cause); ok && want.Kind == tasks.ByDuress {
			// JSON has no bytes that are no UTF-8; everything else stays.
			if cause, ok := got.(*tasks.Cause); !ok || cause.Kind != want.Kind {
				t.Errorf("%#v became %#v", c.err, got)
			}
			continue
		}
		if !reflect.DeepEqual(got, c.err) {
			t.Errorf("%#v became %#v", c.err, got)
		}
	}
}

// Of what only a newer node knows there remains what a client reads.
func TestFailuresOfNewerNodes(t *testing.T) {
	for _, f := range []shard.Failure{
		{Kind: "of_tomorrow", Type: "a_type", Reason: "a reason", Status: 507, Detail: []byte("x")},
		{Kind: "pool_full", Type: "a_type", Reason: "a reason", Status: 507, Detail: []byte("no JSON")},
		{Kind: "cancelled", Type: "a_type", Reason: "a reason", Status: 507},
		{Type: "a_type", Reason: "a reason", Status: 507},
	} {
		want := search.ShardError{Type: "a_type", Reason: "a reason", Status: 507}
		if e, ok := (stub.Failures{}.Restore(f)).(*search.ShardError); !ok || *e != want {
			t.Errorf("%v became %#v", f, e)
		}
	}
	e := stub.Failures{}.Restore(shard.Failure{Kind: "cancelled", Detail: []byte(`{"kind":"of_tomorrow","reason":"r","more":1}`)})
	if c, ok := e.(*tasks.CancelledError); !ok || c.Cause.Kind != tasks.ByParent || c.Cause.Reason != "r" {
		t.Errorf("a cause of tomorrow became %#v", e)
	}
	if f := (stub.Failures{}).Describe(errors.New("oops")); f.Type != "exception" || f.Reason != "oops" || f.Status != 500 {
		t.Errorf("an error that is not known: %v", f)
	}
}
