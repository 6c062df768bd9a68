package search

import (
	"net/http"
	"net/url"
	"time"

	"github.com/wlmserver/wlmserver/tasks"
	"github.com/wlmserver/wlmserver/wlm"
)

// Kind says what a request asks of its executor.
type Kind uint8

const (
	// Search is a search, and the first page of a scroll.
	Search Kind = iota
	// Count asks only how many documents match.
	Count
	// ScrollPage asks for the next page of an open scroll.
	ScrollPage
)

// String returns "search", "count" or "scroll".
func (k Kind) String() string {
	switch k {
	case Search:
		return "search"
	case Count:
		return "count"
	case ScrollPage:
		return "scroll"
	}
	return "unknown"
}

// Request is one search as it came in. Method, Path, Query, Header and Body
// are kept as they were sent, so that an executor may forward them; whether
// they are valid is the executor's business, and this package never reads
// them. A request is not changed once it has been handed in.
type Request struct {
	Kind Kind

	Method string
	Path   string
	Query  url.Values
	Header http.Header
	Body   []byte

	// Indices are the names and patterns of the path; empty means all.
	Indices []string

	// GroupID is the workload group that the request names; an unknown id
	// stands for the default group. Where it is empty the group is that of the
	// search on whose behalf this one runs, or the one that a rule gives, or the
	// default group.
	GroupID string
	// Principal is who asks. It bounds what the search may take, and it owns
	// the scroll that the search opens.
	Principal wlm.Principal
	// Follower, if not nil, is told how far [Service.Run] is.
	Follower Follower
	// OpaqueID is the client's own mark, and RequestID the request's, both shown
	// in the task list.
	OpaqueID, RequestID string

	// CancelAfter is how long the search may live, its wait included: nil
	// where the request does not say, units.None where it says "no limit".
	CancelAfter *time.Duration

	// ScrollKeepAlive, when positive, opens a scroll, or prolongs the one
	// that a page belongs to.
	ScrollKeepAlive time.Duration
	// ScrollID names the scroll of a page. Of a request that opens a scroll
	// the executor finds the new scroll's id here.
	ScrollID string
}

// Follower is told of a search's task, so that who runs the search can cancel
// it without a context of its own. Both methods are called by the goroutine
// that runs the search.
type Follower interface {
	// Started is called once the task has been registered, before it waits.
	Started(*tasks.Task)
	// Ended is called when the search has ended, if Started was.
	Ended()
}

// Response is an answer as it goes out. Body is one compact JSON object.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
	// Whole says that nothing is behind this page: a scroll that begins with it
	// is not opened.
	Whole bool
}

// MultiRequest is a list of searches that were sent as one. What it says of
// the group, the principal, the client's mark and the deadline holds for every
// item; an item's own GroupID, OpaqueID and CancelAfter come before it.
type MultiRequest struct {
	Items []*Request

	// MaxConcurrent is how many items may be under way at once; 0 stands for
	// the service's default.
	MaxConcurrent int
	// CancelAfter is the deadline of each item that has none of its own,
	// measured from the item's start.
	CancelAfter *time.Duration

	GroupID   string
	Principal wlm.Principal
	OpaqueID  string
	RequestID string
}

// ItemResult is what became of one item of a multi-search: an answer or an
// error.
type ItemResult struct {
	Response *Response
	Err      error
}

// Held is the task status of a multi-search's item that has not asked for
// admission yet, because a sibling has to end first. It stands in no queue.
type Held struct {
	Reason string
}
