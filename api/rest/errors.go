package rest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/wlmserver/wlmserver/auth"
	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/faults"
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

// describe is the one table of errors: how each type looks on the wire. What is wrapped is looked for from the outside
// in. An error that is not in the table is a mistake of the program: all that a client learns is that there was one.
func describe(err error) *failure {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if f := lookUp(e); f != nil {
			return f
		}
	}
	f := internalFailure()
	f.mistake = err
	return f
}

func lookUp(err error) *failure {
	switch e := err.(type) { //nolint:errorlint // describe unwraps
	case *failure:
		return e

	case *search.PhaseError:
		return phaseFailure(e)
	case *search.ParseError:
		f := &failure{status: http.StatusBadRequest, typ: cmp.Or(e.Type, "parsing_exception"), reason: e.Reason}
		if e.Line > 0 {
			f.extra = position(e.Line, e.Column)
		}
		if e.Cause != nil {
			f.cause = describe(e.Cause)
			f.mistake = f.cause.mistake
		}
		return f
	case *search.InvalidError:
		f := illegalArgument("%s", e.Reason)
		if e.NoNumber != "" {
			f.cause = numberFormat(e.NoNumber)
		}
		if e.Cause != nil {
			f.cause = describe(e.Cause)
			f.mistake = f.cause.mistake
		}
		return f
	case *search.ValidationError:
		return validation(e)
	case *search.IndexNotFoundError:
		kind := "index_or_alias"
		if e.Literal {
			kind = "index_expression"
		}
		return indexNotFound(e.Index, kind, e.Error())
	case *search.InvalidIndexNameError:
		return &failure{status: http.StatusBadRequest, typ: "invalid_index_name_exception", reason: e.Error(),
			extra: fields{quoted("index", e.Index), quoted("index_uuid", "_na_")}}
	case *search.PoolFullError:
		return rejected(e, 0)
	case *search.ScrollMissingError:
		return &failure{status: http.StatusNotFound, typ: "search_context_missing_exception", reason: e.Error()}
	case *search.ShardError:
		return &failure{status: cmp.Or(e.Status, http.StatusInternalServerError), typ: e.Type, reason: e.Reason, noReason: e.Reason == ""}

	case *wlm.RejectedError:
		return rejected(e, e.RetryAfter)
	case *wlm.StoppedError:
		return rejected(e, e.RetryAfter)
	case *wlm.CancelledError:
		return cancelled(e, e.Cause)
	case *tasks.CancelledError:
		return cancelled(e, e.Cause)
	case *tasks.Cause:
		return cancelled(e, e)
	case *tasks.MalformedIDError:
		f := illegalArgument("%s", e.Error())
		if e.NotANumber {
			f.cause = numberFormat(e.Value)
		}
		return f

	case *records.UnavailableError: // a client tries a 503 again, which is right here
		return &failure{status: http.StatusServiceUnavailable, typ: "cluster_manager_not_discovered_exception", reason: e.Error()}

	case *groups.InvalidError:
		f := illegalArgument("%s", e.Reason)
		f.typ = cmp.Or(e.Type, f.typ)
		if e.Line > 0 {
			f.extra = position(e.Line, e.Column)
		}
		return f
	case *groups.NotFoundError:
		return notFound(e.Error())
	case *groups.TooManyError:
		return illegalState("%s", e.Error())

	case *rules.InvalidError:
		f := illegalArgument("%s", e.Error())
		if e.Line > 0 {
			f.typ, f.extra = "parsing_exception", position(e.Line, e.Column)
		}
		return f
	case *rules.NotFoundError:
		return notFound(e.Error())
	case *rules.TooManyError:
		return rejected(e, 0)

	case *settings.UnknownError, *settings.NotDynamicError:
		return &failure{status: http.StatusBadRequest, typ: "settings_exception", reason: e.Error()}
	case *settings.InvalidError:
		f := &failure{status: http.StatusBadRequest, typ: cmp.Or(e.Type, "illegal_argument_exception"), reason: e.Error()}
		if e.NumberFormat {
			f.cause = numberFormat(e.Value)
		}
		return f
	case *settings.NothingError:
		return validation(&search.ValidationError{Problems: []string{e.Error()}})
	case *settings.ClassCastError:
		return &failure{status: http.StatusInternalServerError, typ: "class_cast_exception", reason: e.Error()}

	case *units.ParseError:
		f := illegalArgument("%s", e.Error())
		if e.NumberFormat {
			f.cause = numberFormat(e.Value)
		}
		return f
	case *jsondoc.SyntaxError:
		f := &failure{status: http.StatusBadRequest, typ: "json_parse_exception", reason: e.Error()}
		f.cause = &failure{typ: "stream_read_exception", reason: e.Error()}
		if e.UnexpectedEnd {
			f.typ, f.cause.typ = "unexpected_end_of_input_exception", "unexpected_end_of_input_exception"
		}
		return f

	case *auth.UnauthenticatedError:
		f := &failure{status: http.StatusUnauthorized, typ: "security_exception", reason: e.Error()}
		f.header = http.Header{"Www-Authenticate": {e.Challenge()}}
		return f
	case *auth.ForbiddenError:
		return forbidden("%s", e.Error())

	case *stub.IndexExistsError:
		return &failure{status: http.StatusBadRequest, typ: "resource_already_exists_exception", reason: e.Error(),
			extra: fields{quoted("index", e.Index), quoted("index_uuid", e.UUID)}}
	case *stub.IndexClosedError:
		return &failure{status: http.StatusBadRequest, typ: "index_closed_exception", reason: e.Error(),
			extra: fields{quoted("index", e.Index), quoted("index_uuid", e.UUID)}}
	case *stub.QueryShardError:
		return &failure{status: http.StatusBadRequest, typ: "query_shard_exception", reason: e.Error(),
			extra: fields{quoted("index", e.Index), quoted("index_uuid", e.UUID)}, cause: numberFormat(e.Value)}
	case *stub.PrivateSettingError:
		return &failure{status: http.StatusBadRequest, typ: "settings_exception", reason: e.Error()}
	case *stub.AliasMissingError:
		return &failure{status: http.StatusNotFound, typ: "index_not_found_exception", reason: e.Error(),
			extra: fields{quoted("index", e.Index), quoted("index_uuid", "_na_")}}
	case *stub.VersionConflictError:
		return documentFailure(http.StatusConflict, "version_conflict_engine_exception", e, e.Index, e.UUID, e.Shard)
	case *stub.DocumentMissingError:
		return documentFailure(http.StatusNotFound, "document_missing_exception", e, e.Index, e.UUID, e.Shard)
	case *stub.MalformedDocumentError:
		f := &failure{status: http.StatusBadRequest, typ: "mapper_parsing_exception", reason: e.Error()}
		switch {
		case e.Cause != nil:
			f.cause = describe(e.Cause)
		case e.CauseType == "input_coercion_exception": // is wrapped into one of its own name
			f.cause = &failure{typ: e.CauseType, reason: e.CauseReason, cause: &failure{typ: e.CauseType, reason: e.CauseReason}}
		default:
			f.cause = &failure{typ: e.CauseType, reason: e.CauseReason}
		}
		return f
	case *stub.UnavailableShardError:
		return &failure{status: http.StatusServiceUnavailable, typ: "unavailable_shards_exception", reason: e.Error()}
	case *stub.FullError:
		return breaker(e, e.Wanted, e.Limit, e.Durability())

	case *faults.InvalidError:
		return illegalArgument("%s", e.Error())

	case *breakerError:
		return breaker(e, e.wanted, e.limit, "TRANSIENT")
	}
	if errors.Is(err, context.Canceled) { // a request's context ends so when its client has gone
		return cancelled(tasks.DisconnectCause(), err)
	}
	return nil
}

// internalFailure is all that a client learns of an error that nobody foresaw. The log has the rest.
func internalFailure() *failure {
	return &failure{status: http.StatusInternalServerError, typ: "exception",
		reason: "an internal error, which the server has logged; retry, and report it should it come again"}
}

// cancelled is a task that was cancelled. When that was because the node stops, the client is to try again, as with all
// that a stopping node refuses.
func cancelled(err, why error) *failure {
	if c, ok := errors.AsType[*tasks.Cause](why); ok && c.Kind == tasks.ByShutdown {
		return rejected(err, 0)
	}
	return &failure{status: http.StatusInternalServerError, typ: "task_cancelled_exception", reason: err.Error()}
}

// rejected is a refusal after which the client should come again.
func rejected(err error, retryAfter time.Duration) *failure {
	return &failure{status: http.StatusTooManyRequests, typ: "rejected_execution_exception", reason: err.Error(), retryAfter: retryAfter}
}

func illegalArgument(format string, args ...any) *failure {
	return &failure{status: http.StatusBadRequest, typ: "illegal_argument_exception", reason: fmt.Sprintf(format, args...)}
}

func illegalState(format string, args ...any) *failure {
	return &failure{status: http.StatusInternalServerError, typ: "illegal_state_exception", reason: fmt.Sprintf(format, args...)}
}

func forbidden(format string, args ...any) *failure {
	return &failure{status: http.StatusForbidden, typ: "security_exception", reason: fmt.Sprintf(format, args...)}
}

func notFound(reason string) *failure {
	return &failure{status: http.StatusNotFound, typ: "resource_not_found_exception", reason: reason}
}

func indexNotFound(index, kind, reason string) *failure {
	return &failure{status: http.StatusNotFound, typ: "index_not_found_exception", reason: reason, extra: fields{
		quoted("index", index), quoted("resource.id", index), quoted("resource.type", kind), quoted("index_uuid", "_na_"),
	}}
}

func numberFormat(value string) *failure {
	return &failure{status: http.StatusBadRequest, typ: "number_format_exception", reason: "[" + value + "] is not a number"}
}

// breaker refuses what would take more memory than there is for it.
func breaker(err error, wanted, limit int64, durability string) *failure {
	return &failure{status: http.StatusTooManyRequests, typ: "circuit_breaking_exception", reason: err.Error(),
		extra: fields{integer("bytes_wanted", wanted), integer("bytes_limit", limit), quoted("durability", durability)}}
}

// documentFailure is about one document of an index.
func documentFailure(status int, typ string, err error, index, uuid string, shard int) *failure {
	return &failure{status: status, typ: typ, reason: err.Error(),
		extra: fields{quoted("index", index), quoted("shard", strconv.Itoa(shard)), quoted("index_uuid", uuid)}}
}

func validation(e *search.ValidationError) *failure {
	return &failure{status: http.StatusBadRequest, typ: "action_request_validation_exception", reason: e.Error()}
}

// parsing is a document that is not what is needed, at an offset of it.
func parsing(document []byte, offset int, reason string) *failure {
	line, column := jsondoc.Position(document, offset)
	return &failure{status: http.StatusBadRequest, typ: "parsing_exception", reason: reason, extra: position(line, column)}
}

func position(line, column int) fields {
	return fields{integer("line", int64(line)), integer("col", int64(column))}
}

func badQuery(err error) *failure {
	reason := "the query string cannot be read: " + err.Error()
	return &failure{status: http.StatusBadRequest, typ: "bad_parameter_exception", reason: reason, cause: illegalArgument("%s", reason)}
}

func tooLongLine(n, limit int64) *failure {
	return &failure{status: http.StatusBadRequest, typ: "too_long_http_line_exception", reason: fmt.Sprintf(
		"the request line has %d bytes, more than the %d that http.max_initial_line_length allows: send long parameters in the body", n, limit)}
}

func tooLongHeader(n, limit int64) *failure {
	return &failure{status: http.StatusBadRequest, typ: "too_long_http_header_exception", reason: fmt.Sprintf(
		"the request headers have %d bytes, more than the %d that http.max_header_size allows", n, limit)}
}

// tooLarge is a body over http.max_content_length, to which OpenSearch does not say a word.
func tooLarge() *failure {
	return &failure{status: http.StatusRequestEntityTooLarge, shape: silent}
}

// plainError is an error whose body is one string beside the status.
func plainError(status int, text string) *failure {
	return &failure{status: status, reason: text, shape: plain}
}

// noHandler is a path that does not exist, which OpenSearch calls a bad request.
func noHandler(r *http.Request) *failure {
	return &failure{status: http.StatusBadRequest, shape: bare,
		reason: "no handler found for uri [" + r.URL.EscapedPath() + "] and method [" + r.Method + "]"}
}

// nodeFailure is what went wrong on one node while the others may have answered.
func nodeFailure(node string, why *failure) *failure {
	return &failure{typ: "failed_node_exception", reason: "node [" + node + "] failed: " + why.reason,
		extra: fields{quoted("node_id", node)}, cause: why}
}

// phaseFailure is a search that failed as a whole. Equal failures of shards of one index are listed once. The cause is
// the error's own, unless that is only what a shard says too: then it is the first root cause.
func phaseFailure(e *search.PhaseError) *failure {
	f := &failure{typ: "search_phase_execution_exception", reason: e.Reason, roots: []*failure{}, shards: []shardFailure{}}
	type distinct struct{ index, typ, reason string }
	seen := make(map[distinct]bool)
	own := e.Cause
	for i, s := range e.Failures {
		why := describe(s.Err)
		if why.mistake != nil {
			f.mistake = why.mistake
		}
		if why.status >= http.StatusInternalServerError || i == 0 {
			f.status = why.status
		}
		f.retryAfter = max(f.retryAfter, why.retryAfter)
		if own == s.Err { //nolint:errorlint // whether it is the very same
			own = nil
		}
		if isBeforeStart(s.Err) {
			why = &failure{typ: "transport_exception", reason: "the shard was not asked any more", cause: why}
		}
		key := distinct{s.Index, why.typ, why.reason}
		if seen[key] {
			continue
		}
		seen[key] = true
		f.roots = append(f.roots, why.root())
		f.shards = append(f.shards, shardFailure{s, why})
	}
	f.extra = fields{quoted("phase", e.Phase), {"grouped", []byte("true")}}
	switch {
	case own != nil:
		f.cause = describe(own)
		f.mistake = f.cause.mistake
	case len(f.roots) > 0:
		f.cause = f.roots[0].asCause()
	}
	if len(e.Failures) == 0 {
		f.status = http.StatusServiceUnavailable
		if f.cause != nil {
			f.status, f.retryAfter = f.cause.status, f.cause.retryAfter
		}
	}
	return f
}

// isBeforeStart says whether a shard was never asked because its search had been cancelled.
func isBeforeStart(err error) bool {
	c, ok := errors.AsType[*tasks.CancelledError](err)
	return ok && c.BeforeStart
}

// fail answers with an error.
func (c *call) fail(err error) { c.writeFailure(c.explain(err)) }

// explain looks an error up for an answer, and logs what should not have happened.
func (c *call) explain(err error) *failure {
	f := c.describe(err)
	if c.trace {
		f.traced()
	}
	return f
}

// describe looks an error up, and logs what should not have happened.
func (c *call) describe(err error) *failure {
	f := describe(err)
	if f.mistake != nil {
		c.s.cfg.Log.Error().EmbedObject(c).Err(f.mistake).Msg("a request failed for a reason that has no place in the API")
	}
	return f
}

// writeFailure sends an error. Every 429 tells when to come again.
func (c *call) writeFailure(f *failure) {
	if f.shape == silent {
		c.sign()
		delete(c.Header(), versionHeader)
		c.put(f.status, "", nil)
		return
	}
	maps.Copy(c.Header(), f.header)
	if f.status == http.StatusTooManyRequests {
		c.Header()["Retry-After"] = []string{strconv.Itoa(seconds(f.retryAfter))}
	}
	body, mediaType := c.layOut(f.body())
	c.send(f.status, mediaType, body)
}

// seconds rounds up to whole seconds, at least one.
func seconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }
