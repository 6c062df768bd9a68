package rest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/auth"
	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/internal/stub"
	"github.com/wlmserver/wlmserver/internal/units"
	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/rules"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/settings"
	"github.com/wlmserver/wlmserver/tasks"
	"github.com/wlmserver/wlmserver/wlm"
)

// TestErrorTable compares each error's body with the shape that was recorded from OpenSearch for its kind, reasons left out.
func TestErrorTable(t *testing.T) {
	byUser := &tasks.CancelledError{Cause: tasks.UserCause()}
	byStop := &tasks.CancelledError{Cause: tasks.ShutdownCause()}
	notAsked := &tasks.CancelledError{Cause: tasks.IntervalCause(0), BeforeStart: true}
	full := &search.PoolFullError{Pool: "n/search", Work: "query"}
	bad := &search.InvalidError{Reason: "bad"}
	shard := func(n int, err error) search.ShardFailure {
		return search.ShardFailure{Shard: n, Index: "a", Node: "n", Err: err}
	}
	phase := func(cause error, failures ...search.ShardFailure) error {
		return &search.PhaseError{Phase: "query", Reason: "r", Failures: failures, Cause: cause}
	}
	const (
		cancelledRoot = `{"root_cause":[{"type":"task_cancelled_exception","reason":R}],"type":"search_phase_execution_exception","reason":R,"phase":"query","grouped":true,`
		cancelledAll  = cancelledRoot + `"failed_shards":[{"shard":0,"index":"a","node":"n","reason":{"type":"task_cancelled_exception","reason":R}}],"caused_by":{"type":"task_cancelled_exception","reason":R}}`
		rejectedRoot  = `{"root_cause":[{"type":"rejected_execution_exception","reason":R}],"type":"search_phase_execution_exception","reason":R,"phase":"query","grouped":true,`
		rejectedShard = `"failed_shards":[{"shard":0,"index":"a","node":"n","reason":{"type":"rejected_execution_exception","reason":R}}],`
	)
	simple := func(typ string) string {
		return fmt.Sprintf(`{"root_cause":[{"type":%[1]q,"reason":R}],"type":%[1]q,"reason":R}`, typ)
	}
	withFields := func(typ, fields string) string {
		return fmt.Sprintf(`{"root_cause":[{"type":%[1]q,"reason":R,%[2]s}],"type":%[1]q,"reason":R,%[2]s}`, typ, fields)
	}
	withCause := func(typ, cause string) string {
		return fmt.Sprintf(`{"root_cause":[{"type":%[1]q,"reason":R}],"type":%[1]q,"reason":R,"caused_by":{"type":%[2]q,"reason":R}}`, typ, cause)
	}

	for _, c := range []struct {
		name   string
		err    error
		status int
		want   string
	}{
		{"cancelled on all shards", phase(nil, shard(0, byUser), shard(1, byUser)), 500, cancelledAll},
		{"cancelled, the cause named", phase(byUser, shard(0, byUser)), 500, cancelledAll},
		{"cancelled, another cause", phase(&search.ShardError{Type: "task_cancelled_exception", Reason: "x", Status: 500}, shard(0, byUser)), 500, cancelledAll},
		{"not asked any more", phase(nil, shard(0, notAsked)), 500, cancelledRoot +
			`"failed_shards":[{"shard":0,"index":"a","node":"n","reason":{"type":"transport_exception","reason":R,"caused_by":{"type":"task_cancelled_exception","reason":R}}}],"caused_by":{"type":"task_cancelled_exception","reason":R}}`},
		{"pool full", phase(nil, shard(0, full)), 429, rejectedRoot + rejectedShard +
			`"caused_by":{"type":"rejected_execution_exception","reason":R,"caused_by":{"type":"rejected_execution_exception","reason":R}}}`},
		{"pool full while fetching", phase(full), 429,
			`{"root_cause":[],"type":"search_phase_execution_exception","reason":R,"phase":"query","grouped":true,"failed_shards":[],"caused_by":{"type":"rejected_execution_exception","reason":R}}`},
		{"nothing known", phase(nil), 503,
			`{"root_cause":[],"type":"search_phase_execution_exception","reason":R,"phase":"query","grouped":true,"failed_shards":[]}`},
		{"stopped on all shards", phase(nil, shard(0, byStop)), 429, rejectedRoot + rejectedShard +
			`"caused_by":{"type":"rejected_execution_exception","reason":R,"caused_by":{"type":"rejected_execution_exception","reason":R}}}`},
		{"rejected and cancelled", phase(nil, shard(0, full), shard(1, byUser)), 500, ""},
		{"cancelled and rejected", phase(nil, shard(0, byUser), shard(1, full)), 500, ""},
		{"bad value and rejected", phase(nil, shard(0, bad), shard(1, full)), 400, ""},
		{"no scroll", phase(nil, search.ShardFailure{Shard: -1, Err: &search.ScrollMissingError{ID: "x"}}), 404,
			`{"root_cause":[{"type":"search_context_missing_exception","reason":R}],"type":"search_phase_execution_exception","reason":R,"phase":"query","grouped":true,"failed_shards":[{"shard":-1,"index":null,"reason":{"type":"search_context_missing_exception","reason":R}}],"caused_by":{"type":"search_context_missing_exception","reason":R}}`},
		{"time", phase(nil, shard(0, &search.ShardError{Type: "query_phase_execution_exception", Reason: "Time exceeded", Status: 500})), 500,
			`{"root_cause":[{"type":"query_phase_execution_exception","reason":R}],"type":"search_phase_execution_exception","reason":R,"phase":"query","grouped":true,"failed_shards":[{"shard":0,"index":"a","node":"n","reason":{"type":"query_phase_execution_exception","reason":R}}],"caused_by":{"type":"query_phase_execution_exception","reason":R}}`},
		{"no reason", &search.ShardError{Type: "time_exceeded_exception", Status: 500}, 500,
			`{"root_cause":[{"type":"time_exceeded_exception","reason":null}],"type":"time_exceeded_exception","reason":null}`},

		{"throttled", &wlm.RejectedError{Group: "g", RetryAfter: 3 * time.Second}, 429, simple("rejected_execution_exception")},
		{"stopped", &wlm.StoppedError{RetryAfter: time.Second}, 429, simple("rejected_execution_exception")},
		{"evicted", &wlm.CancelledError{Cause: tasks.UserCause(), Queued: true}, 500, simple("task_cancelled_exception")},
		{"evicted by the stop", &wlm.CancelledError{Cause: tasks.ShutdownCause(), Queued: true}, 429, simple("rejected_execution_exception")},
		{"cancelled", byUser, 500, simple("task_cancelled_exception")},
		{"cancelled by the stop", byStop, 429, simple("rejected_execution_exception")},
		{"a cause alone", tasks.DisconnectCause(), 500, simple("task_cancelled_exception")},

		{"parsing", &search.ParseError{Reason: "x", Line: 1, Column: 14}, 400, withFields("parsing_exception", `"line":1,"col":14`)},
		{"parsing, with a foreign cause", &search.ParseError{Reason: "x", Line: 1, Column: 2, Cause: &search.ShardError{Type: "named_object_not_found_exception", Reason: "y", Status: 400}}, 400,
			`{"root_cause":[{"type":"parsing_exception","reason":R,"line":1,"col":2}],"type":"parsing_exception","reason":R,"line":1,"col":2,"caused_by":{"type":"named_object_not_found_exception","reason":R}}`},
		{"another parse error", &search.ParseError{Type: "parse_exception", Reason: "x"}, 400, simple("parse_exception")},
		{"invalid", bad, 400, simple("illegal_argument_exception")},
		{"validation", &search.ValidationError{Problems: []string{"a"}}, 400, simple("action_request_validation_exception")},
		{"no index", &search.IndexNotFoundError{Index: "x"}, 404, withFields("index_not_found_exception", `"index":"x","resource.id":"x","resource.type":"index_or_alias","index_uuid":"_na_"`)},
		{"no index name", &search.InvalidIndexNameError{Index: "_x"}, 400, withFields("invalid_index_name_exception", `"index":"_x","index_uuid":"_na_"`)},

		{"group", &groups.InvalidError{Reason: "x"}, 400, simple("illegal_argument_exception")},
		{"group, no number", &groups.InvalidError{Reason: "x", Type: groups.TypeNumberFormat}, 400, simple("number_format_exception")},
		{"group, bad form", &groups.InvalidError{Reason: "x", Type: groups.TypeParsing, Line: 1, Column: 81}, 400, withFields("parsing_exception", `"line":1,"col":81`)},
		{"no group", &groups.NotFoundError{Name: "x"}, 404, simple("resource_not_found_exception")},
		{"no copy", &stub.UnavailableShardError{Index: "x", Shard: 1}, 503, simple("unavailable_shards_exception")},
		{"metadata out of reach", fmt.Errorf("storing: %w", &records.UnavailableError{Cause: errors.New("no leader")}), 503,
			simple("cluster_manager_not_discovered_exception")},
		{"too many groups", &groups.TooManyError{Max: 2}, 500, simple("illegal_state_exception")},
		{"rule", &rules.InvalidError{Problems: []string{"x", "y"}}, 400, simple("illegal_argument_exception")},
		{"rule, bad form", &rules.InvalidError{Problems: []string{"x"}, Line: 1, Column: 81}, 400, withFields("parsing_exception", `"line":1,"col":81`)},
		{"no rule", &rules.NotFoundError{ID: "x"}, 404, simple("resource_not_found_exception")},
		{"too many rules", &rules.TooManyError{Max: 10}, 429, simple("rejected_execution_exception")},

		{"no such setting", &settings.UnknownError{Scope: "persistent", Key: "x"}, 400, simple("settings_exception")},
		{"fixed setting", &settings.NotDynamicError{Scope: "transient", Key: "x"}, 400, simple("settings_exception")},
		{"bad setting", &settings.InvalidError{Key: "k", Value: "v", Type: "illegal_argument_exception"}, 400, simple("illegal_argument_exception")},
		{"setting, no number", &settings.InvalidError{Key: "k", Value: "v", NumberFormat: true}, 400, withCause("illegal_argument_exception", "number_format_exception")},
		{"setting of a wrong form", &settings.InvalidError{Key: "k", Type: "settings_exception", Reason: "x"}, 400, simple("settings_exception")},
		{"no settings", &settings.NothingError{}, 400, simple("action_request_validation_exception")},
		{"wrong kind", &settings.ClassCastError{Scope: "persistent", Found: "number"}, 500, simple("class_cast_exception")},

		{"time", &units.ParseError{Key: "k", Value: "1x"}, 400, simple("illegal_argument_exception")},
		{"fraction", &units.ParseError{Key: "k", Value: "1.5s", NumberFormat: true}, 400, withCause("illegal_argument_exception", "number_format_exception")},
		{"task id", &tasks.MalformedIDError{Value: "x"}, 400, simple("illegal_argument_exception")},
		{"task number", &tasks.MalformedIDError{Value: "x:y", NotANumber: true}, 400, withCause("illegal_argument_exception", "number_format_exception")},
		{"JSON", &jsondoc.SyntaxError{Reason: "x"}, 400, withCause("json_parse_exception", "stream_read_exception")},
		{"cut JSON", &jsondoc.SyntaxError{Reason: "x", UnexpectedEnd: true}, 400, withCause("unexpected_end_of_input_exception", "unexpected_end_of_input_exception")},

		{"nobody", &auth.UnauthenticatedError{Reason: "x"}, 401, simple("security_exception")},
		{"not you", &auth.ForbiddenError{Reason: "x"}, 403, simple("security_exception")},

		{"index exists", &stub.IndexExistsError{Index: "a", UUID: "u"}, 400, withFields("resource_already_exists_exception", `"index":"a","index_uuid":"u"`)},
		{"document exists", &stub.VersionConflictError{Index: "a", UUID: "u", Shard: 1}, 409, withFields("version_conflict_engine_exception", `"index":"a","shard":"1","index_uuid":"u"`)},
		{"no document", &stub.DocumentMissingError{Index: "a", UUID: "u"}, 404, withFields("document_missing_exception", `"index":"a","shard":"0","index_uuid":"u"`)},
		{"no JSON document", &stub.MalformedDocumentError{Reason: "x", CauseType: "not_x_content_exception", CauseReason: "y"}, 400, withCause("mapper_parsing_exception", "not_x_content_exception")},
		{"no room", &stub.FullError{What: "documents", Wanted: 2, Limit: 1}, 429, withFields("circuit_breaking_exception", `"bytes_wanted":2,"bytes_limit":1,"durability":"PERMANENT"`)},
		{"no room for bodies", &breakerError{wanted: 2, limit: 1}, 429, withFields("circuit_breaking_exception", `"bytes_wanted":2,"bytes_limit":1,"durability":"TRANSIENT"`)},

		{"wrapped", fmt.Errorf("while doing: %w", bad), 400, simple("illegal_argument_exception")},
		{"unknown", errors.New("boom"), 500, simple("exception")},
		{"unknown on a shard", phase(nil, shard(0, errors.New("boom"))), 500, ""},
		{"unknown cause", phase(errors.New("boom"), shard(0, bad)), 400, ""},
		{"a shard without a status", &search.ShardError{Type: "x", Reason: "y"}, 500, simple("x")},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := describe(c.err)
			if mistake := strings.HasPrefix(c.name, "unknown"); mistake != (f.mistake != nil) {
				t.Errorf("for the log: %v", f.mistake)
			}
			if f.status != c.status {
				t.Errorf("status %d, want %d", f.status, c.status)
			}
			body := string(f.body())
			want := fmt.Sprintf(`{"error":%s,"status":%d}`, c.want, c.status)
			if got := withoutReasons(t, body); c.want != "" && got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if strings.Contains(body, "boom") {
				t.Errorf("an unknown error shows: %s", body)
			}
		})
	}
}

// withoutReasons replaces each reason that is a text, and not an empty one, by R.
func withoutReasons(t *testing.T, body string) string {
	t.Helper()
	if _, err := jsondoc.Parse([]byte(body)); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(body, `"reason":"`)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		end := 0
		for after[end] != '"' {
			if after[end] == '\\' {
				end++
			}
			end++
		}
		if end == 0 {
			t.Errorf("an empty reason in %s", body)
		}
		b.WriteString(`"reason":R`)
		body = after[end+1:]
	}
}

func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{&wlm.RejectedError{RetryAfter: 7 * time.Second}, 7},
		{&wlm.StoppedError{RetryAfter: 1500 * time.Millisecond}, 2},
		{&search.PoolFullError{}, 1},
		{&search.PhaseError{Failures: []search.ShardFailure{{Err: &search.PoolFullError{}}, {Err: &wlm.RejectedError{RetryAfter: 9 * time.Second}}}}, 9},
		{&search.PhaseError{Cause: &wlm.RejectedError{RetryAfter: 4 * time.Second}}, 4},
	} {
		f := describe(c.err)
		if f.status != http.StatusTooManyRequests || seconds(f.retryAfter) != c.want {
			t.Errorf("%v: status %d, Retry-After %d, want %d", c.err, f.status, seconds(f.retryAfter), c.want)
		}
	}
}

// Equal failures of one index are one entry; those of another index, or with other reasons, are entries of their own.
func TestShardFailuresAreGrouped(t *testing.T) {
	a, b := &search.InvalidError{Reason: "a"}, &search.InvalidError{Reason: "b"}
	f := describe(&search.PhaseError{Failures: []search.ShardFailure{
		{Shard: 0, Index: "x", Err: a}, {Shard: 1, Index: "x", Err: a}, {Shard: 2, Index: "x", Err: b}, {Shard: 0, Index: "y", Err: a},
	}})
	body := string(f.body())
	if n := strings.Count(body, `"shard":`); n != 3 {
		t.Errorf("%d entries: %s", n, body)
	}
	if len(f.roots) != 3 {
		t.Errorf("%d root causes: %s", len(f.roots), body)
	}
}
