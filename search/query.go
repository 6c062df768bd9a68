package search

import (
	"cmp"
	"context"
	"errors"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/units"
	"github.com/wlmserver/wlmserver/settings"
	"github.com/wlmserver/wlmserver/tasks"
	"github.com/wlmserver/wlmserver/wlm"
)

// query is one search on its way: prepared, then started, then run, then
// closed. It belongs to one goroutine at a time.
type query struct {
	service   *Service
	request   *Request
	execution Execution
	page      *scroll     // the scroll that it is a further page of, pinned; else nil
	kin       *siblings   // of an item of a multi-search; else nil
	under     *wlm.Permit // of the search that it is part of; else nil

	// Set by start. What follows from them is looked up when it is needed: many
	// searches wait for long.
	task     *tasks.Task
	settings *settings.Snapshot
	group    *groups.Group // nil: the default group

	opens      bool // it is the first page of a scroll
	handedOver bool // the execution belongs to a scroll now
}

// prepare checks a request and makes it ready to start. What it returns must
// be closed.
func (s *Service) prepare(r *Request) (*query, error) {
	if r.Kind == ScrollPage {
		return s.preparePage(r)
	}
	if r.ScrollKeepAlive > 0 {
		return s.prepareScroll(r)
	}
	e, err := s.config.Executor.Prepare(r)
	if err != nil {
		return nil, err
	}
	return &query{service: s, request: r, execution: e}, nil
}

// close frees the execution or, of a scroll, leaves it to the next page.
func (q *query) close() {
	switch {
	case q.page != nil:
		q.service.scrolls.unpin(q.page, q.request.ScrollKeepAlive)
	case !q.handedOver:
		q.execution.Close()
	}
}

// start registers the task, resolves the group and arms the deadline. The task
// must be ended. Without a parent it is the child of the execution that ctx
// belongs to, if there is one.
func (q *query) start(ctx context.Context, parent *tasks.Task) error {
	e := executionOf(ctx)
	q.under, parent = e.permit, cmp.Or(parent, e.task)
	t, err := q.service.config.Tasks.Register(ctx, q.spec(parent))
	if err != nil {
		return err
	}
	if parent != nil {
		// It may be refused, and then it must count for no group, not even for
		// the one that its parent runs for.
		t.SetGroup("")
	}
	q.task = t

	q.group = q.service.config.Groups().ByID(q.groupID(parent))
	q.settings = q.service.config.Settings()
	if d := q.limits().CancelAfter(q.request.CancelAfter); d != units.None {
		t.CancelAfter(d)
	}
	return nil
}

// entry is how the search asks for admission.
func (q *query) entry() wlm.Request {
	r := wlm.Request{Group: groups.DefaultID, Principal: q.request.Principal, Under: q.under}
	if q.group != nil {
		r.Group = q.group.ID
	}
	return r
}

// groupName is the name of the workload group, for people to read.
func (q *query) groupName() string {
	if q.group == nil {
		return groups.DefaultID
	}
	return q.group.Name
}

func (q *query) spec(parent *tasks.Task) tasks.Spec {
	s := tasks.Spec{
		Action:      SearchAction,
		Type:        tasks.Transport,
		Description: q.execution.Description,
		Parent:      parent,
		Headers:     taskHeaders(q.request.OpaqueID, q.request.RequestID),
		Cancellable: true,
		User:        q.request.Principal.User,
	}
	if q.page != nil {
		s.Action = ScrollAction
		s.Description = q.describePage
	}
	return s
}

// run asks for admission the way it is told, and executes.
func (q *query) run(admit func() (*wlm.Permit, error)) (*Response, error) {
	p, err := admit()
	if err != nil {
		return nil, err
	}
	return q.execute(p)
}

// admit asks for admission and waits for it, under the context that the search
// came with: the task has one of its own only when it works. While it waits,
// the task's cancellation reaches its ticket.
func (q *query) admit(ctx context.Context) (*wlm.Permit, error) {
	if c, _ := q.task.Cancelled(); c != nil {
		ctx = q.task.Context()
	}
	t, err := q.service.config.Admission.Enter(ctx, q.entry())
	if err != nil {
		return nil, q.notAdmitted(ctx, err)
	}
	q.task.SetStatus(t)
	p, err := t.Wait(ctx)
	if err != nil {
		return nil, q.notAdmitted(ctx, err)
	}
	return p, nil
}

// notAdmitted has the task cancelled when its context has ended before it had
// one of its own, and the error say so.
func (q *query) notAdmitted(ctx context.Context, err error) error {
	if c, ok := errors.AsType[*wlm.CancelledError](err); ok && ctx.Err() != nil {
		q.task.Cancel(tasks.CauseOf(context.Cause(ctx)))
		if cause, _ := q.task.Cancelled(); cause != nil {
			c.Cause = cause
		}
	}
	return err
}

// execute lets the executor work under a permit, which has ended when execute
// returns or panics. Once admitted a search does run: if it has been cancelled
// meanwhile its execution notices that like any other.
func (q *query) execute(p *wlm.Permit) (*Response, error) {
	defer q.release(p)
	q.task.SetGroup(q.entry().Group)
	ctx := context.WithValue(q.task.Context(), executionKey{}, execution{q.task, p})
	switch {
	case q.opens:
		return q.openScroll(ctx)
	case q.page != nil:
		return q.executePage(ctx)
	}
	return q.execution.Execute(ctx, q.task, q.limits())
}

func (q *query) release(p *wlm.Permit) {
	p.Close()
	if q.kin != nil {
		q.kin.released(p)
	}
}

func taskHeaders(opaqueID, requestID string) map[string]string {
	if opaqueID == "" && requestID == "" {
		return nil
	}
	h := make(map[string]string, 2)
	if opaqueID != "" {
		h[OpaqueIDHeader] = opaqueID
	}
	if requestID != "" {
		h[RequestIDHeader] = requestID
	}
	return h
}

// execution is what a context that an Execution is given says of its search.
type execution struct {
	task   *tasks.Task
	permit *wlm.Permit
}

type executionKey struct{}

// executionOf finds the execution that a context belongs to, zero if there is
// none.
func executionOf(ctx context.Context) execution {
	e, _ := ctx.Value(executionKey{}).(execution)
	return e
}
