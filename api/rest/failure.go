package rest

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/search"
)

// failure is an error as it looks on the wire. As an error it says its reason.
type failure struct {
	status     int
	typ        string // OpenSearch's name of the exception
	reason     string
	noReason   bool           // the reason is null
	extra      fields         // further members behind the reason
	shards     []shardFailure // printed behind them; nil for no such member
	cause      *failure
	trace      bool       // tell how it came about
	roots      []*failure // the root causes; nil: found by following the causes
	shape      shape
	header     http.Header   // further headers; may be nil
	retryAfter time.Duration // when a client may come again; 0: not known
	mistake    error         // what was not foreseen, for the log; nil for nearly all
	forwarded  []byte        // the whole body, where another node has printed it
}

func (f *failure) Error() string { return f.reason }

// shape is which of OpenSearch's forms of errors the body has.
type shape uint8

const (
	structured shape = iota // {"error":{"root_cause":…},"status":…}
	plain                   // {"error":"…","status":…}
	bare                    // {"error":"…"}
	silent                  // nothing at all
)

// fields are members of a JSON object, their values encoded.
type fields []field

type field struct {
	name  string
	value []byte
}

func quoted(name, value string) field        { return field{name, jsondoc.AppendString(nil, value)} }
func integer(name string, value int64) field { return field{name, strconv.AppendInt(nil, value, 10)} }

// body is the whole body of the answer.
func (f *failure) body() []byte {
	if f.forwarded != nil {
		return f.forwarded
	}
	b := []byte(`{"error":`)
	if f.shape == structured {
		b = f.appendObject(b)
	} else {
		b = jsondoc.AppendString(b, f.reason)
	}
	if f.shape != bare {
		b = strconv.AppendInt(append(b, `,"status":`...), int64(f.status), 10)
	}
	return append(b, '}')
}

// appendObject prints the error with its root causes.
func (f *failure) appendObject(b []byte) []byte {
	roots := f.roots
	if roots == nil {
		roots = []*failure{f.root()}
	}
	b = append(b, `{"root_cause":[`...)
	for i, r := range roots {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(r.appendMembers(append(b, '{'), false), '}')
	}
	b = append(b, `],`...)
	return append(f.appendMembers(b, true), '}')
}

// appendMembers prints type, reason and what follows them, with the causes or without.
func (f *failure) appendMembers(b []byte, causes bool) []byte {
	b = jsondoc.AppendString(append(b, `"type":`...), f.typ)
	b = append(b, `,"reason":`...)
	if f.noReason {
		b = append(b, "null"...)
	} else {
		b = jsondoc.AppendString(b, f.reason)
	}
	for _, x := range f.extra {
		b = append(jsondoc.AppendString(append(b, ','), x.name), ':')
		b = append(b, x.value...)
	}
	if f.shards != nil {
		b = append(b, `,"failed_shards":[`...)
		for i, s := range f.shards {
			if i > 0 {
				b = append(b, ',')
			}
			b = s.append(b)
		}
		b = append(b, ']')
	}
	if causes && f.cause != nil {
		b = append(b, `,"caused_by":{`...)
		b = append(f.cause.appendMembers(b, true), '}')
	}
	if f.trace {
		b = jsondoc.AppendString(append(b, `,"stack_trace":`...), f.stackTrace())
	}
	return b
}

// stackTrace is the error and what caused it, a line each. There is no more to tell: errors carry no stack here.
func (f *failure) stackTrace() string {
	var b strings.Builder
	for e := f; e != nil; e = e.cause {
		if e != f {
			b.WriteString("\nCaused by: ")
		}
		b.WriteString(e.typ + ": " + e.reason)
	}
	return b.String()
}

// traced has the error, its causes and all that is listed with it tell how they came about.
func (f *failure) traced() {
	for e := f; e != nil && !e.trace; e = e.cause {
		e.trace = true
		for _, r := range e.roots {
			r.traced()
		}
		for _, s := range e.shards {
			s.why.traced()
		}
	}
}

// shardFailure is what happened to a shard of a search.
type shardFailure struct {
	search.ShardFailure
	why *failure
}

func (s shardFailure) append(b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"shard":`...), int64(s.Shard), 10)
	b = append(b, `,"index":`...)
	if s.Index == "" {
		b = append(b, "null"...)
	} else {
		b = jsondoc.AppendString(b, s.Index)
	}
	if s.Node != "" {
		b = jsondoc.AppendString(append(b, `,"node":`...), s.Node)
	}
	b = append(b, `,"reason":{`...)
	b = s.why.appendMembers(b, true)
	return append(b, '}', '}')
}

// MarshalJSON prints the error as it stands in a list of several, without root causes.
func (f *failure) MarshalJSON() ([]byte, error) {
	return append(f.appendMembers([]byte{'{'}, true), '}'), nil
}

// root follows the causes as long as they are OpenSearch's own exceptions, or those of its parser of objects.
func (f *failure) root() *failure {
	const parser = "x_content_parse_exception"
	for f.cause != nil && (!f.cause.foreign() && (!f.foreign() || f.typ == parser) || f.typ == parser && f.cause.typ == parser) {
		f = f.cause
	}
	return f
}

// asCause is how a root cause looks where OpenSearch puts it as a cause: there it wraps what is not an exception of its
// own into one, which shows twice.
func (f *failure) asCause() *failure {
	if !f.foreign() {
		return f
	}
	wrapped := *f
	wrapped.cause = f
	return &wrapped
}

// foreign says whether the exception is none of OpenSearch's own, but of Java's or of a library's. Those are not looked
// into for root causes.
func (f *failure) foreign() bool {
	switch f.typ {
	case "illegal_argument_exception", "illegal_state_exception", "number_format_exception", "null_pointer_exception",
		"class_cast_exception", "unsupported_operation_exception", "rejected_execution_exception",
		"action_request_validation_exception", "time_exceeded_exception", "e_o_f_exception",
		"json_parse_exception", "unexpected_end_of_input_exception", "stream_read_exception", "input_coercion_exception",
		"named_object_not_found_exception", "x_content_parse_exception", "not_x_content_exception":
		return true
	}
	return false
}
