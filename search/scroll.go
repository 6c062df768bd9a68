package search

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/wlmserver/wlmserver/internal/units"
	"github.com/wlmserver/wlmserver/settings"
	"github.com/wlmserver/wlmserver/tasks"
	"github.com/wlmserver/wlmserver/wlm"
)

// prepareScroll prepares the first page of a new scroll.
func (s *Service) prepareScroll(r *Request) (*query, error) {
	first := *r
	first.ScrollID = newScrollID()
	e, err := s.config.Executor.Prepare(&first)
	if err != nil {
		return nil, err
	}
	if err := s.checkKeepAlive(&first); err != nil {
		e.Close()
		return nil, err
	}
	return &query{service: s, request: &first, execution: e, opens: true}, nil
}

// CheckScrollID returns an *InvalidError for what was never the id of a scroll.
func CheckScrollID(id string) error {
	if validScrollID(id) {
		return nil
	}
	e := &InvalidError{Reason: fmt.Sprintf("[%s] is not the id of a scroll; send back the _scroll_id of the page before, unchanged", id)}
	if _, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(id, "=")); err == nil {
		e.Cause = &ParseError{Type: "e_o_f_exception", Reason: "what such an id holds does not end where the text ends"}
	}
	return e
}

// preparePage finds the scroll of a further page and pins it, so that it
// cannot expire before the page has ended.
func (s *Service) preparePage(r *Request) (*query, error) {
	if err := CheckScrollID(r.ScrollID); err != nil {
		return nil, err
	}
	if err := s.checkKeepAlive(r); err != nil {
		return nil, err
	}
	sc := s.scrolls.pin(r.ScrollID, s.visibleTo(r.Principal))
	if sc == nil {
		return nil, scrollMissing(r.ScrollID)
	}
	return &query{service: s, request: r, execution: sc.execution, page: sc}, nil
}

// openScroll executes the first page. The scroll is open, and its id valid,
// once the page has succeeded.
func (q *query) openScroll(ctx context.Context) (*Response, error) {
	open := q.service.scrolls
	most := q.service.config.Settings().Int(settings.MaxOpenScrolls)
	if !open.reserve(most) {
		return nil, q.service.scrollFailure(q.request, &ShardError{
			Type:   "rejected_execution_exception",
			Status: http.StatusTooManyRequests,
			Reason: fmt.Sprintf("%d scrolls are open on this node, the most that may be; clear those that are read to their end, or raise %s", most, settings.MaxOpenScrolls),
		})
	}
	defer func() {
		if !q.handedOver {
			open.abandon()
		}
	}()
	r, err := q.execution.Execute(ctx, q.task, q.limits())
	if err == nil && r.Status < http.StatusMultipleChoices && !r.Whole {
		q.handedOver = open.add(newScroll(q.request, q.execution))
	}
	return r, err
}

// executePage executes a further page, once no other page of the scroll is
// being worked at. It has its permit then: so pages that a client sends all at
// once are bounded, and counted, like any searches, instead of piling up before
// the queue.
//
// A page that does not say for how long to keep the scroll is its last: once
// that page has succeeded, the scroll is closed.
func (q *query) executePage(ctx context.Context) (*Response, error) {
	if !q.page.takeTurn(ctx) {
		c, _ := q.task.Cancelled()
		return nil, &tasks.CancelledError{Cause: c}
	}
	defer q.page.endTurn()
	if q.service.scrolls.cleared(q.page) {
		return nil, scrollMissing(q.page.id)
	}
	r, err := q.execution.Execute(ctx, q.task, q.limits())
	if err == nil && r.Status < http.StatusMultipleChoices && q.request.ScrollKeepAlive <= 0 {
		q.service.scrolls.clear([]string{q.page.id}, anybody)
	}
	return r, err
}

func (q *query) describePage() string {
	var b strings.Builder
	b.WriteString("scrollId[" + q.page.id + "]")
	if d := q.request.ScrollKeepAlive; d > 0 {
		b.WriteString(", scroll[" + units.FormatTime(d) + "]")
	}
	return b.String()
}

// ClearScrolls frees the scrolls that are open under the ids, whoever opened
// them, and returns how many those were. One whose page is under way is closed
// to further pages at once and freed when that page ends.
func (s *Service) ClearScrolls(ids []string) (freed int) {
	return s.scrolls.clear(ids, anybody)
}

// ClearAllScrolls frees every open scroll as ClearScrolls does, and returns
// how many those were.
func (s *Service) ClearAllScrolls() int {
	return s.scrolls.clear(s.scrolls.ids(), anybody)
}

// ClearOwnScrolls is ClearScrolls, or with no ids at all ClearAllScrolls, for
// somebody who may only see their own scrolls.
func (s *Service) ClearOwnScrolls(p wlm.Principal, ids []string) (freed int) {
	if len(ids) == 0 {
		ids = s.scrolls.ids()
	}
	return s.scrolls.clear(ids, s.visibleTo(p))
}

func anybody(string) bool { return true }

// visibleTo says whose scrolls somebody sees, given their owners.
func (s *Service) visibleTo(p wlm.Principal) func(owner string) bool {
	if s.config.IsAdmin(p) {
		return anybody
	}
	return func(owner string) bool { return owner == p.User }
}

// checkKeepAlive refuses to keep a scroll for longer than the cluster allows.
func (s *Service) checkKeepAlive(r *Request) error {
	most := s.config.Settings().Duration(settings.MaxScrollKeepAlive)
	if most == units.None || r.ScrollKeepAlive <= most {
		return nil
	}
	return s.scrollFailure(r, &InvalidError{Reason: fmt.Sprintf(
		"the scroll is to be kept for [%s], longer than [%s], the most that may be; ask for less, or raise %s",
		units.FormatTime(r.ScrollKeepAlive), units.FormatTime(most), settings.MaxScrollKeepAlive)})
}

// scrollFailure is the error of a scroll that every shard refuses to open.
func (s *Service) scrollFailure(r *Request, cause error) error {
	f := ShardFailure{Shard: -1, Err: cause}
	if len(r.Indices) == 1 && r.Indices[0] != "_all" && !strings.Contains(r.Indices[0], "*") {
		f = ShardFailure{Shard: 0, Index: r.Indices[0], Node: s.config.Tasks.Node(), Err: cause}
	}
	return &PhaseError{Phase: "query", Reason: "all shards failed", Failures: []ShardFailure{f}, Cause: cause}
}

// scrollMissing is the error of a page whose scroll is not open.
func scrollMissing(id string) error {
	e := &ScrollMissingError{ID: id}
	return &PhaseError{
		Phase:    "query",
		Reason:   "all shards failed",
		Failures: []ShardFailure{{Shard: -1, Err: e}},
		Cause:    e,
	}
}
