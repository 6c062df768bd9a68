// Package shard says what a coordinating search asks of a shard and what the
// shard answers, and how documents come to its copies, without saying how either
// is done or how the words travel: within the process, or between nodes.
package shard

import (
	"context"
	"time"
)

// Transport carries the two questions of a search to a shard.
//
// Both methods return at once: done is called exactly once, on any goroutine,
// possibly before the method returns, and must not block. An error says why the
// shard has no answer; a shard that ran out of time answers, with TimedOut set.
// When ctx ends, the shard stops at its next step and done is told why.
// Implementations are safe for concurrent use.
type Transport interface {
	// Query asks which documents match.
	Query(ctx context.Context, r *QueryRequest, done func(*QueryResult, error))
	// Fetch asks for the contents of documents that a query found.
	Fetch(ctx context.Context, r *FetchRequest, done func(*FetchResult, error))
	// Close tells that a reader is not needed any more, so that the shard need not
	// keep it. It returns at once and may be left out: then the shard keeps it for
	// as long as the query said. No reader is fine, too.
	Close(r Reader)
}

// ID names one shard of one index.
type ID struct {
	Index  string
	Number int
}

// Task names the task of the coordinating search, under which a shard registers
// its own.
type Task struct {
	Node   string
	Number int64

	// What the shard's task has of the search's, where that is not to be found: on another node.
	User     string
	Group    string // the workload group's id
	OpaqueID string // the client's name for the request
}

// Reader is the state of a shard that a query looked at. It is opaque to the
// coordinator, which hands it back to see the same documents again: with the
// fetch that follows, or with the next page of a scroll. A transport between
// nodes replaces it by a number that stands for it.
type Reader any

// QueryRequest asks a shard which documents match.
type QueryRequest struct {
	Shard  ID
	Parent Task
	Reader Reader // nil: the newest state
	Scroll bool   // a further page of a scroll

	Skip int // this many of the shard's matches were taken by earlier pages
	Size int // the most documents wanted, in the order of Sort
	Sort []Sort

	// Fetch makes the shard add the documents [Fetch.From, Size) to its answer
	// at once, with the work of that phase: the short way when a search has one
	// shard.
	Fetch *InlineFetch

	Matches int           // how many documents match; -1: as many as the shard holds
	Timeout time.Duration // counted from the start of the work; negative: none
	Work    Work

	// Keep is how long the reader of the answer is wanted, counted from its last use:
	// for a fetch or for the next page. 0: nothing will ask for it.
	Keep time.Duration
}

// InlineFetch is a fetch that rides on a query.
type InlineFetch struct {
	From int // documents before this one are not wanted
	Work Work
}

// FetchRequest asks a shard for the contents of documents.
type FetchRequest struct {
	Shard     ID
	Parent    Task
	Reader    Reader
	Scroll    bool
	Positions []int // as the query gave them
	Work      Work
}

// Work is what a phase costs a shard on purpose, beside what it really does.
type Work struct {
	Time         time.Duration // the phase lasts at least this long
	CPU          time.Duration // burnt within that time
	Memory       int64         // bytes held until the phase ends
	IgnoreCancel bool          // looks for neither cancellation nor timeout before its end
	Fail         string        // not empty: the phase fails for this reason, after its work
}

// Free reports whether the phase costs nothing beside what it really does.
func (w *Work) Free() bool {
	return w.Time <= 0 && w.CPU <= 0 && w.Memory <= 0 && w.Fail == ""
}

// Usage is what a phase really cost.
type Usage struct {
	CPU    time.Duration
	Memory int64 // bytes taken
}

// QueryResult is a shard's answer to a QueryRequest.
type QueryResult struct {
	Matches  int // how many documents match in all; 0 when the time was over first
	TimedOut bool

	// Count is how many documents the shard offers, from the request's Skip on and
	// at most its Size. The first of them are Hits, in the order of the Sort; the
	// others, without a Sort all of them, have no values to sort by and need no
	// list: see Position.
	Count int
	Hits  []Hit

	Node    string // the id of the node that was asked, if it is not the one that asks
	Reader  Reader
	Fetched []Document // only with an InlineFetch
	Usage   Usage
}

// Position returns the position of the i-th document that the shard offers in
// answer to q.
func (r *QueryResult) Position(q *QueryRequest, i int) int {
	if i < len(r.Hits) {
		return r.Hits[i].Position
	}
	return q.Skip + i
}

// Hit is one matching document, not yet read.
type Hit struct {
	Position int   // where the reader finds the document
	Keys     []Key // one for each Sort of the request
}

// FetchResult is a shard's answer to a FetchRequest: its documents in the order
// asked for.
type FetchResult struct {
	Documents []Document
	Usage     Usage
}

// Document is one document as it is stored. Source is not to be changed.
type Document struct {
	ID      string
	Version int64
	SeqNo   int64
	Source  []byte // one JSON object
}
