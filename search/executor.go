package search

import (
	"context"

	"github.com/wlmserver/wlmserver/tasks"
)

// Executor carries searches out. It is safe for concurrent use.
type Executor interface {
	// Prepare checks a request without doing its work, so that an invalid one
	// neither waits nor counts anywhere. The executor may keep r, and must
	// not change it.
	//
	// An error that is about what the request says refuses a multi-search as
	// a whole; *IndexNotFoundError and *InvalidIndexNameError concern one item
	// of it only. See RunMulti.
	Prepare(r *Request) (Execution, error)
}

// Execution is one prepared search, or one scroll.
//
// Its methods are called one at a time, but for Description, which may be
// called at any time until Close has returned, and after.
type Execution interface {
	// Execute runs the search for task t and returns when no work of it is
	// left. Of a scroll each call returns the next page. The permit of the
	// search ends with it.
	//
	// ctx ends when the task is cancelled, with a *tasks.Cause as its cause;
	// it may have ended before the call. A search that is run on behalf of
	// this one gets ctx, and so takes no second permit.
	Execute(ctx context.Context, t *tasks.Task, l Limits) (*Response, error)

	// Description says in one line what is searched, for the task list.
	Description() string

	// Close frees what the execution holds. It is called once, when no
	// further Execute will come, also when there was none.
	Close()
}
