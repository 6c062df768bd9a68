package search

import (
	"fmt"
	"strconv"
	"strings"
)

// PhaseError is a search that failed in one of its phases, as a whole. Its
// status follows from its failures, and without any from its cause. Whoever
// looks through a chain of errors asks for it before the types that it may
// hold.
type PhaseError struct {
	Phase    string // "query", "fetch"
	Reason   string // may be empty
	Failures []ShardFailure
	Cause    error // may be nil
}

func (e *PhaseError) Error() string {
	var b strings.Builder
	b.WriteString(e.Phase)
	b.WriteString(" phase failed")
	if e.Reason != "" {
		b.WriteString(": ")
		b.WriteString(e.Reason)
	}
	switch {
	case e.Cause != nil:
		fmt.Fprintf(&b, ": %v", e.Cause)
	case len(e.Failures) > 0:
		fmt.Fprintf(&b, ": %v", e.Failures[0].Err)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *PhaseError) Unwrap() error { return e.Cause }

// ShardFailure is what went wrong on one shard. Where no shard is to be named,
// Shard is -1 and Index is empty.
type ShardFailure struct {
	Shard int
	Index string
	Node  string // the node's id; may be empty
	Err   error
}

// ParseError is a request whose text cannot be understood.
type ParseError struct {
	Type         string // empty stands for "parsing_exception"
	Reason       string
	Line, Column int   // from 1; 0 where there is none to tell
	Cause        error // may be nil
}

func (e *ParseError) Error() string {
	if e.Line == 0 {
		return e.Reason
	}
	return "[" + strconv.Itoa(e.Line) + ":" + strconv.Itoa(e.Column) + "] " + e.Reason
}

// Unwrap returns the cause.
func (e *ParseError) Unwrap() error { return e.Cause }

// InvalidError is a value that a request must not have.
type InvalidError struct {
	Reason   string
	NoNumber string // the text that should have been a number; mostly empty
	Cause    error  // may be nil
}

func (e *InvalidError) Error() string { return e.Reason }

// Unwrap returns the cause.
func (e *InvalidError) Unwrap() error { return e.Cause }

// ValidationError lists everything that is wrong with a request.
type ValidationError struct {
	Problems []string
}

// Error numbers the problems from 1.
func (e *ValidationError) Error() string {
	var b strings.Builder
	b.WriteString("Validation Failed: ")
	for i, p := range e.Problems {
		fmt.Fprintf(&b, "%d: %s;", i+1, p)
	}
	return b.String()
}

// IndexNotFoundError is a search on an index that does not exist.
type IndexNotFoundError struct {
	Index   string
	Literal bool // the request took names as they are, and no patterns
}

func (e *IndexNotFoundError) Error() string {
	return "index [" + e.Index + "] does not exist on this server"
}

// InvalidIndexNameError is a search on a name that no index can have.
type InvalidIndexNameError struct {
	Index  string
	Reason string // why, as the rest of a sentence that begins with the name
}

func (e *InvalidIndexNameError) Error() string {
	return "invalid index name [" + e.Index + "]: " + e.Reason
}

// PoolFullError is work that the search thread pool had no room for.
type PoolFullError struct {
	Pool string // "<node name>/search"
	Work string // what was refused, such as "query of shard [a][0]"

	Threads   int // workers of the pool
	Active    int // workers that were busy
	Queued    int // pieces of work that waited
	Capacity  int // pieces of work that may wait
	Completed uint64
}

func (e *PoolFullError) Error() string {
	return fmt.Sprintf("the pool [%s] has no room for the %s: pool size = %d, active threads = %d, queued tasks = %d, "+
		"queue capacity = %d, completed tasks = %d; raise thread_pool.search.queue_size or send fewer searches at once",
		e.Pool, e.Work, e.Threads, e.Active, e.Queued, e.Capacity, e.Completed)
}

// ScrollMissingError is a page of a scroll that is not open: it never was, it
// has expired, was cleared, or belongs to somebody else.
type ScrollMissingError struct {
	ID string
}

func (e *ScrollMissingError) Error() string {
	return "no open scroll has the id [" + e.ID + "]: it has expired or was cleared; start the search again"
}

// ShardError is a failure that carries its own type and status: one that was
// asked for by a test, a time limit of a shard, or too many open scrolls.
type ShardError struct {
	Type   string
	Reason string // empty is printed as null
	Status int
}

func (e *ShardError) Error() string {
	if e.Reason == "" {
		return e.Type
	}
	return e.Reason
}
