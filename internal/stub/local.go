package stub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
)

// The actions of a shard's tasks, as OpenSearch names them.
const (
	actionQuery            = "indices:data/read/search[phase/query]"
	actionFetch            = "indices:data/read/search[phase/fetch/id]"
	actionScrollQuery      = "indices:data/read/search[phase/query/scroll]"
	actionScrollQueryFetch = "indices:data/read/search[phase/query+fetch/scroll]"
	actionScrollFetch      = "indices:data/read/search[phase/fetch/id/scroll]"
)

// local is the shard.Transport to the shards of this engine: it registers a task
// for each phase and does the work on the pool.
type local struct {
	engine *Engine
}

var _ shard.Transport = (*local)(nil)

func (l *local) Query(ctx context.Context, r *shard.QueryRequest, done func(*shard.QueryResult, error)) {
	action := actionQuery
	switch {
	case r.Scroll && r.Fetch != nil:
		action = actionScrollQueryFetch
	case r.Scroll:
		action = actionScrollQuery
	}
	light := r.Work.Free() && len(r.Sort) == 0 && (r.Fetch == nil || r.Fetch.Work.Free())
	begin(ctx, r.Parent, &shardWork[*shard.QueryResult]{engine: l.engine, id: r.Shard, job: job{light: light}, action: action, do: l.query(r), done: done})
}

func (l *local) Fetch(ctx context.Context, r *shard.FetchRequest, done func(*shard.FetchResult, error)) {
	action := actionFetch
	if r.Scroll {
		action = actionScrollFetch
	}
	begin(ctx, r.Parent, &shardWork[*shard.FetchResult]{engine: l.engine, id: r.Shard, job: job{light: r.Work.Free()}, action: action, do: l.fetch(r), done: done})
}

// Close does nothing: a reader is memory that nobody else has.
func (l *local) Close(shard.Reader) {}

// begin has work done on the pool under a task of its own, a child of parent.
func begin[T any](ctx context.Context, parent shard.Task, w *shardWork[T]) {
	if w.task, w.err = w.engine.register(ctx, w.action, w.id, parent); w.err != nil {
		w.done(w.result, w.err)
		return
	}
	w.job.work = w
	w.engine.pool.submit(w.task.Context(), &w.job)
}

// shardWork is the work of one phase on one shard. Whatever happens to it, its
// task ends, and before done is called.
type shardWork[T any] struct {
	job    job
	engine *Engine
	task   *tasks.Task
	id     shard.ID
	action string
	do     func(*phase) (T, error)
	done   func(T, error) // is told how it went

	result T
	err    error
}

func (w *shardWork[T]) run() {
	defer func() {
		if p := recover(); p != nil {
			w.err = w.engine.panicked(p)
		}
	}()
	if !w.job.light {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	p := phase{task: w.task, budget: &w.engine.work, quit: w.engine.pool.quit}
	p.begin(w.job.light)
	defer p.end()
	w.result, w.err = w.do(&p)
}

func (w *shardWork[T]) finish() {
	w.task.End()
	w.done(w.result, w.err)
}

func (w *shardWork[T]) drop(why error) {
	w.err = why
	if w.task.Context().Err() != nil {
		w.err = taskCancelled(w.task)
	}
	w.finish()
}

func (w *shardWork[T]) what() string { return w.action + " of shard " + describeShard(w.id) }

// register starts the task of a phase. A parent that is gone has been answered
// for already. One on another node is only named: when it is cancelled, the
// transport ends ctx.
func (e *Engine) register(ctx context.Context, action string, id shard.ID, parent shard.Task) (*tasks.Task, error) {
	spec := tasks.Spec{
		Action:      action,
		Type:        tasks.Direct,
		Description: func() string { return "shardId[" + describeShard(id) + "]" },
		Cancellable: true,
	}
	coordinator := tasks.ID{Node: parent.Node, Number: parent.Number}
	switch parent.Node {
	case e.config.Tasks.Node():
		spec.Parent = e.config.Tasks.Task(coordinator)
	case "": // nobody's
	default:
		spec.Type, spec.ParentID, spec.User = tasks.Transport, coordinator, parent.User
		if parent.OpaqueID != "" {
			spec.Headers = map[string]string{search.OpaqueIDHeader: parent.OpaqueID}
		}
	}
	t, err := e.config.Tasks.Register(ctx, spec)
	if err == nil && spec.Parent == nil {
		t.SetGroup(parent.Group)
	}
	return t, err
}

func describeShard(id shard.ID) string { return "[" + id.Index + "][" + strconv.Itoa(id.Number) + "]" }

// panicked turns what a panic left into the failure of one shard.
func (e *Engine) panicked(value any) error {
	if e.config.Panicked != nil {
		e.config.Panicked(value, debug.Stack())
	}
	return &search.ShardError{
		Type:   "runtime_exception",
		Reason: fmt.Sprintf("the work of the shard panicked: %v", value),
		Status: http.StatusInternalServerError,
	}
}

// query returns the work of a query phase.
func (l *local) query(r *shard.QueryRequest) func(*phase) (*shard.QueryResult, error) {
	return func(p *phase) (*shard.QueryResult, error) {
		from, err := l.engine.reader(r.Reader, r.Shard)
		if err != nil {
			return nil, err
		}
		if r.Timeout >= 0 {
			p.deadline = time.Now().Add(r.Timeout)
		}
		result := &shard.QueryResult{Reader: from}
		err = p.do(&r.Work)
		if err == nil {
			err = p.match(r, from, result)
		}
		if errors.Is(err, errTimeIsOver) {
			result.TimedOut, err = true, nil
		}
		p.deadline = time.Time{} // it bounds the query alone
		if err == nil && r.Fetch != nil && r.Fetch.From < result.Count {
			if err = p.do(&r.Fetch.Work); err == nil {
				result.Fetched = fetchInline(r, from, result)
			}
		}
		if err != nil {
			return nil, err
		}
		result.Usage = p.end()
		return result, nil
	}
}

// reader returns what a request reads: what an earlier one read, or the newest
// state.
func (e *Engine) reader(given shard.Reader, id shard.ID) (*reader, error) {
	if r, ok := given.(*reader); ok {
		return r, nil
	}
	if ix := e.index(id.Index); ix != nil && id.Number < len(ix.stores) {
		if r := ix.reader(id.Number); r != nil {
			return r, nil
		}
	}
	return nil, &search.IndexNotFoundError{Index: id.Index} // deleted since the search began, or elsewhere by now
}

// match finds the documents that match: all of them, or as many as were ordered.
func (p *phase) match(r *shard.QueryRequest, from *reader, result *shard.QueryResult) error {
	matches := r.Matches
	if matches < 0 {
		matches = len(from.documents)
	}
	count := max(0, min(matches-r.Skip, r.Size))
	if len(r.Sort) > 0 && count > 0 {
		sorted, err := p.sorted(r.Sort, from, matches)
		if err != nil {
			return err
		}
		result.Reader = sorted
		result.Hits = sorted.hits(r.Skip, count)
	}
	result.Matches, result.Count = matches, count
	return nil
}

// fetchInline reads the documents that a query found.
func fetchInline(r *shard.QueryRequest, from *reader, found *shard.QueryResult) []shard.Document {
	documents := make([]shard.Document, 0, found.Count-r.Fetch.From)
	for i := r.Fetch.From; i < found.Count; i++ {
		documents = append(documents, from.document(found.Position(r, i), r.Shard))
	}
	return documents
}

// fetch returns the work of a fetch phase.
func (l *local) fetch(r *shard.FetchRequest) func(*phase) (*shard.FetchResult, error) {
	return func(p *phase) (*shard.FetchResult, error) {
		from, err := l.engine.reader(r.Reader, r.Shard)
		if err != nil {
			return nil, err
		}
		if err := p.do(&r.Work); err != nil {
			return nil, err
		}
		documents := make([]shard.Document, len(r.Positions))
		for i, position := range r.Positions {
			documents[i] = from.document(position, r.Shard)
		}
		return &shard.FetchResult{Documents: documents, Usage: p.end()}, nil
	}
}

// document returns the document at a position; behind the last one they are made
// up.
func (r *reader) document(position int, id shard.ID) shard.Document {
	if position < len(r.documents) {
		d := r.documents[position]
		return shard.Document{ID: d.id, Version: d.version, SeqNo: d.seqNo, Source: d.source}
	}
	return shard.Document{
		ID:      "stub-" + strconv.Itoa(id.Number) + "-" + strconv.Itoa(position),
		Version: 1,
		SeqNo:   int64(position),
		Source:  []byte("{}"),
	}
}
