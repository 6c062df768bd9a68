package stub

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
)

// Failures knows every error that a shard, or a change of its documents, fails
// with, and the causes of cancellations: what a node tells another of them is the same error there.
type Failures struct{}

var _ shard.Failures = Failures{}

// The kinds of failures. Nodes of different versions know them by these names.
const (
	kindCancelled     = "cancelled"
	kindCause         = "cause"
	kindPoolFull      = "pool_full"
	kindIndexNotFound = "index_not_found"
	kindFull          = "full"
	kindConflict      = "version_conflict"
	kindMissing       = "document_missing"
	kindMalformed     = "malformed_document"
	kindStaleCopy     = "stale_copy"
	kindUnavailable   = "metadata_unavailable"
)

// cancellation is the detail of a *tasks.CancelledError and of a *tasks.Cause.
type cancellation struct {
	Kind        string `json:"kind"`
	Reason      string `json:"reason"`
	BeforeStart bool   `json:"before_start,omitempty"`
}

// malformed is the detail of a *MalformedDocumentError. That a document is no JSON is found out before it travels.
type malformed struct {
	Reason      string `json:"reason"`
	CauseType   string `json:"cause_type,omitempty"`
	CauseReason string `json:"cause_reason,omitempty"`
}

// unavailable is the detail of a *records.UnavailableError.
type unavailable struct {
	Unknown bool   `json:"unknown"`
	Cause   string `json:"cause"`
}

// Describe implements shard.Failures.
func (Failures) Describe(err error) shard.Failure {
	f := shard.Failure{Type: "exception", Reason: err.Error(), Status: http.StatusInternalServerError}
	if e, ok := errors.AsType[*tasks.CancelledError](err); ok {
		f.Kind, f.Type, f.Status = kindCancelled, "task_cancelled_exception", cancelledStatus(e.Cause)
		f.Detail = detail(cancellation{e.Cause.Kind.String(), e.Cause.Reason, e.BeforeStart})
	} else if e, ok := errors.AsType[*tasks.Cause](err); ok {
		f.Kind, f.Type, f.Status = kindCause, "task_cancelled_exception", cancelledStatus(e)
		f.Detail = detail(cancellation{Kind: e.Kind.String(), Reason: e.Reason})
	} else if e, ok := errors.AsType[*search.PoolFullError](err); ok {
		f.Kind, f.Type, f.Status = kindPoolFull, "rejected_execution_exception", http.StatusTooManyRequests
		f.Detail = detail(e)
	} else if e, ok := errors.AsType[*search.IndexNotFoundError](err); ok {
		f.Kind, f.Type, f.Status = kindIndexNotFound, "index_not_found_exception", http.StatusNotFound
		f.Detail = detail(e)
	} else if e, ok := errors.AsType[*FullError](err); ok {
		f.Kind, f.Type, f.Status = kindFull, "circuit_breaking_exception", http.StatusTooManyRequests
		f.Detail = detail(e)
	} else if e, ok := errors.AsType[*VersionConflictError](err); ok {
		f.Kind, f.Type, f.Status = kindConflict, "version_conflict_engine_exception", http.StatusConflict
		f.Detail = detail(e)
	} else if e, ok := errors.AsType[*DocumentMissingError](err); ok {
		f.Kind, f.Type, f.Status = kindMissing, "document_missing_exception", http.StatusNotFound
		f.Detail = detail(e)
	} else if e, ok := errors.AsType[*MalformedDocumentError](err); ok {
		f.Kind, f.Type, f.Status = kindMalformed, "mapper_parsing_exception", http.StatusBadRequest
		f.Detail = detail(malformed{e.Reason, e.CauseType, e.CauseReason})
	} else if e, ok := errors.AsType[*StaleCopyError](err); ok {
		f.Kind, f.Type, f.Status = kindStaleCopy, "shard_not_found_exception", http.StatusNotFound
		f.Detail = detail(e)
	} else if e, ok := errors.AsType[*records.UnavailableError](err); ok {
		f.Kind, f.Type, f.Status = kindUnavailable, "process_cluster_event_timeout_exception", http.StatusServiceUnavailable
		f.Detail = detail(unavailable{e.Unknown, e.Cause.Error()})
	} else if e, ok := errors.AsType[*search.ShardError](err); ok {
		f.Type, f.Reason, f.Status = e.Type, e.Reason, e.Status
	}
	return f
}

// cancelledStatus is what a client gets: what a node refuses because it stops is
// to be tried again, elsewhere.
func cancelledStatus(c *tasks.Cause) int {
	if c.Kind == tasks.ByShutdown {
		return http.StatusTooManyRequests
	}
	return http.StatusInternalServerError
}

// detail is the error itself: its fields are part of what nodes tell one another,
// so there may come more, and none may change.
func detail(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("stub: an error does not go into JSON: " + err.Error()) // strings and numbers do
	}
	return b
}

// Restore implements shard.Failures. What it does not know, or cannot read,
// becomes a *search.ShardError.
func (Failures) Restore(f shard.Failure) error {
	var c cancellation
	var err error
	switch f.Kind {
	case kindCancelled:
		if json.Unmarshal(f.Detail, &c) == nil {
			return &tasks.CancelledError{Cause: c.cause(), BeforeStart: c.BeforeStart}
		}
	case kindCause:
		if json.Unmarshal(f.Detail, &c) == nil {
			return c.cause()
		}
	case kindMalformed:
		var m malformed
		if json.Unmarshal(f.Detail, &m) == nil {
			return &MalformedDocumentError{Reason: m.Reason, CauseType: m.CauseType, CauseReason: m.CauseReason}
		}
	case kindUnavailable:
		var u unavailable
		if json.Unmarshal(f.Detail, &u) == nil {
			return &records.UnavailableError{Unknown: u.Unknown, Cause: errors.New(u.Cause)}
		}
	case kindConflict:
		err = new(VersionConflictError)
	case kindMissing:
		err = new(DocumentMissingError)
	case kindStaleCopy:
		err = new(StaleCopyError)
	case kindPoolFull:
		err = new(search.PoolFullError)
	case kindIndexNotFound:
		err = new(search.IndexNotFoundError)
	case kindFull:
		err = new(FullError)
	}
	if err != nil && json.Unmarshal(f.Detail, err) == nil {
		return err
	}
	return &search.ShardError{Type: f.Type, Reason: f.Reason, Status: f.Status}
}

func (c cancellation) cause() *tasks.Cause {
	for k := tasks.ByUser; k <= tasks.ByShutdown; k++ {
		if k.String() == c.Kind {
			return &tasks.Cause{Kind: k, Reason: c.Reason}
		}
	}
	return &tasks.Cause{Kind: tasks.ByParent, Reason: c.Reason}
}
