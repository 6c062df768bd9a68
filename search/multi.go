package search

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/tasks"
	"github.com/wlmserver/wlmserver/wlm"
)

// RunMulti carries out the searches of a multi-search, in their order and so
// many at once as it says, and returns each one's result in its place. They are
// searches of their own, each under a task of its own, whose parent is the
// multi-search's; one that fails does not concern the others. When the parent
// is cancelled, so are the items under way, and the others fail without having
// started (*tasks.CancelledError).
//
// An error refuses the multi-search as a whole: an item cannot be understood,
// or the client has gone. Only that an index does not exist, or cannot, is left
// to the item.
//
// A multi-search never refuses itself. An item that finds no permit, while
// another item holds one of the same group, waits for that one to end and tries
// again, even when the group has no queue. It stands in no queue meanwhile, and
// nothing counts it; its task says so ([Held]). A slot that a stranger gives back
// meanwhile is for those in the queue, or for who comes first. With no item left
// that holds a permit, it asks as any search does: it runs, parks, or is refused.
func (s *Service) RunMulti(ctx context.Context, m *MultiRequest) ([]ItemResult, error) {
	results := make([]ItemResult, len(m.Items))
	items := make([]*query, len(m.Items))
	defer closeAll(items)
	if err := s.prepareAll(m, items, results); err != nil {
		return nil, err
	}
	parent, err := s.config.Tasks.Register(ctx, tasks.Spec{
		Action:      MultiSearchAction,
		Type:        tasks.Transport,
		Description: func() string { return fmt.Sprintf("requests[%d]", len(m.Items)) },
		Parent:      executionOf(ctx).task,
		Headers:     taskHeaders(m.OpaqueID, m.RequestID),
		Cancellable: true,
		User:        m.Principal.User,
	})
	if err != nil {
		return nil, err
	}
	defer parent.End()
	s.runItems(parent, m.MaxConcurrent, items, results)
	return results, nil
}

// prepareAll prepares every item. One that fails on its own has its error among
// the results, and its place stays empty.
func (s *Service) prepareAll(m *MultiRequest, items []*query, results []ItemResult) error {
	for i, r := range m.Items {
		if r.Kind == ScrollPage {
			return &InvalidError{Reason: fmt.Sprintf("item %d is the page of a scroll; send it as a request of its own", i)}
		}
		q, err := s.prepare(m.item(i))
		switch {
		case err == nil:
			items[i] = q
		case ofOneItem(err):
			results[i].Err = err
		default:
			return err
		}
	}
	return nil
}

// ofOneItem tells the errors of preparing an item that leave the others alone.
func ofOneItem(err error) bool {
	if _, ok := errors.AsType[*IndexNotFoundError](err); ok {
		return true
	}
	_, ok := errors.AsType[*InvalidIndexNameError](err)
	return ok
}

func closeAll(items []*query) {
	for _, q := range items {
		if q != nil {
			q.close()
		}
	}
}

// item is an item with what it takes over from the whole.
func (m *MultiRequest) item(i int) *Request {
	r := *m.Items[i]
	r.Principal = m.Principal
	if r.GroupID == "" {
		r.GroupID = m.GroupID
	}
	if r.OpaqueID == "" {
		r.OpaqueID = m.OpaqueID
	}
	if r.RequestID == "" {
		r.RequestID = m.RequestID
	}
	if r.CancelAfter == nil {
		r.CancelAfter = m.CancelAfter
	}
	return &r
}

// runItems runs the items that were prepared and returns when all have ended.
func (s *Service) runItems(parent *tasks.Task, most int, items []*query, results []ItemResult) {
	if most <= 0 {
		most = s.config.MaxConcurrentSearches
	}
	most = min(most, len(items), groups.MaxQueued) // more could not even wait
	ctx := parent.Context()
	families := make(map[string]*siblings) // by group
	places := make(chan struct{}, most)
	panics := make(chan *itemPanic, len(items))
	var running sync.WaitGroup
	for i, q := range items {
		if q == nil {
			continue
		}
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
		}
		if err := q.start(ctx, parent); err != nil {
			// The parent is cancelled: places matter no more, for none that
			// follows will start either. Each is told why.
			results[i].Err = err
			continue
		}
		group := q.entry().Group
		family := families[group]
		if family == nil {
			family = newSiblings(s.config.Admission)
			families[group] = family
		}
		turn := family.lineUp()
		q.kin = family
		running.Go(func() {
			defer func() { <-places }()
			defer func() {
				if v := recover(); v != nil {
					panics <- &itemPanic{item: i, value: v, stack: debug.Stack()}
				}
			}()
			items[i] = nil // closed here, as soon as it can be
			defer q.close()
			defer q.task.End()
			results[i].Response, results[i].Err = q.run(func() (*wlm.Permit, error) { return family.admit(q, turn) })
		})
	}
	running.Wait()
	select {
	case p := <-panics:
		panic(p)
	default:
	}
}

// itemPanic carries a panic out of an item's goroutine, after all items have
// ended.
type itemPanic struct {
	item  int
	value any
	stack []byte
}

func (p *itemPanic) Error() string {
	return fmt.Sprintf("item %d of a multi-search: %v\n%s", p.item, p.value, p.stack)
}

func (p *itemPanic) Unwrap() error {
	err, _ := p.value.(error)
	return err
}
