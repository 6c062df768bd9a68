package stub

import (
	"context"
	"errors"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/wlmserver/wlmserver/internal/shard"
)

// knownWait is how long a node that is asked about a copy waits to hear of it itself: whoever asks may know more of the indices.
const knownWait = 2 * time.Second

// Holder is the copies of this engine, as far as their documents are concerned.
func (e *Engine) Holder() shard.Holder { return holder{e} }

type holder struct{ *Engine }

// Write implements shard.Holder.
func (h holder) Write(ctx context.Context, r *shard.WriteRequest) (*shard.WriteResult, error) {
	ix, err := h.known(ctx, r.Copy, func(d *definition) bool {
		primary, _ := d.primary(r.Copy.Shard.Number)
		if r.Primary == 0 {
			return primary.node == h.self && primary.number == r.Copy.Number
		}
		return primary.number == r.Primary
	}, r.Copy.Number, r.Primary)
	if err != nil {
		return nil, err
	}
	if r.Primary != 0 {
		return h.writeReplica(ix, r)
	}
	w, err := h.writePrimary(ctx, ix, r)
	if h.life.Err() != nil { // it may not have reached the replicas; the next primary is asked again
		return nil, &StaleCopyError{Copy: r.Copy}
	}
	return w, err
}

// known returns the index of a copy once it is as ok wants it, which it may become soon. Numbers are those of copies that are to be
// there: one that has gone does not come back. It fails with a *StaleCopyError.
func (e *Engine) known(ctx context.Context, c shard.Copy, ok func(*definition) bool, numbers ...int64) (*index, error) {
	ctx, cancel := context.WithTimeout(ctx, knownWait)
	defer cancel()
	for {
		changed := e.changes()
		if ix := e.index(c.Shard.Index); ix != nil && ix.uuid == c.UUID && c.Shard.Number >= 0 && c.Shard.Number < ix.shards {
			d := ix.now.Load()
			gone := func(number int64) bool { return number != 0 && number <= d.last && !d.has(c.Shard.Number, number) }
			switch {
			case slices.ContainsFunc(numbers, gone):
				return nil, &StaleCopyError{Copy: c}
			case ok(d):
				return ix, nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, &StaleCopyError{Copy: c}
		}
	}
}

// writePrimary carries operations out here and then has the replicas do so. One change follows another, so that replicas see them in
// their order.
func (e *Engine) writePrimary(ctx context.Context, ix *index, r *shard.WriteRequest) (*shard.WriteResult, error) {
	number := r.Copy.Shard.Number
	turn := ix.turn(number)
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	w := &shard.WriteResult{Outcomes: make([]shard.Outcome, len(r.Operations)), Taken: 1}
	var changes []shard.Operation
	for i := range r.Operations {
		op, o := &r.Operations[i], &w.Outcomes[i]
		*o = e.apply(ix, number, r.Copy.Number, op)
		if _, stale := errors.AsType[*StaleCopyError](o.Err); stale || errors.Is(o.Err, errIndexClosed) {
			return nil, &StaleCopyError{Copy: r.Copy}
		}
		if c, ok := change(op, o); ok {
			changes = append(changes, c)
		}
		if op.Kind != shard.Get {
			o.Source = nil
		}
	}
	// A replica that comes later than this reads what was done here.
	copies := ix.now.Load().copies[number]
	if len(changes) == 0 || len(copies) < 2 {
		return w, nil
	}
	failed := e.replicate(ix, r.Copy, copies[1:], changes)
	var err error
	if len(failed) > 0 {
		err = e.giveUp(ix, r.Copy, failed)
	}
	if _, stale := errors.AsType[*StaleCopyError](err); stale {
		return nil, err
	}
	for i := range w.Outcomes {
		if o := &w.Outcomes[i]; err != nil && o.Err == nil && r.Operations[i].Kind != shard.Get {
			o.Err = err
		}
	}
	w.Taken, w.Failed = len(copies)-len(failed), len(failed)
	return w, nil
}

// change is what replicas are to do for an operation, if it has changed something.
func change(op *shard.Operation, o *shard.Outcome) (c shard.Operation, ok bool) {
	c = shard.Operation{ID: op.ID, Version: o.Version, SeqNo: o.SeqNo}
	switch {
	case o.Err != nil || op.Kind == shard.Get:
		return c, false
	case op.Kind == shard.Delete:
		c.Kind = shard.Delete
		return c, true
	case Result(o.Result) == Noop:
		return c, false
	}
	c.Kind, c.Source = shard.Index, o.Source
	return c, true
}

// replicate has the replicas carry changes out at once, whether or not anybody still waits for that. It returns the numbers of those that
// could not.
func (e *Engine) replicate(ix *index, primary shard.Copy, replicas []placed, changes []shard.Operation) (failed []int64) {
	ctx, cancel := context.WithTimeout(e.life, replicaTimeout)
	defer cancel()
	errs := make([]error, len(replicas))
	var running sync.WaitGroup
	for i, c := range replicas {
		running.Go(func() {
			_, errs[i] = e.ofNode(c.node).Write(ctx, &shard.WriteRequest{
				Copy: ix.copy(primary.Shard.Number, c.number), Primary: primary.Number, Operations: changes,
			})
		})
	}
	running.Wait()
	for i, c := range replicas {
		if errs[i] != nil {
			failed = append(failed, c.number)
		}
	}
	return failed
}

// giveUp takes copies out of the index that have missed a change: they may not be asked any more. Others are made in their place. It fails
// with a *StaleCopyError when it is the primary that has been replaced.
func (e *Engine) giveUp(ix *index, primary shard.Copy, failed []int64) error {
	ctx, cancel := context.WithTimeout(e.life, changeTimeout)
	defer cancel()
	number := primary.Shard.Number
	err := e.registry.Change(ctx, func(now *catalog) (edit, error) {
		d := now.all[ix.name]
		if d == nil || d.uuid != ix.uuid {
			return edit{}, &StaleCopyError{Copy: primary}
		}
		if p, ok := d.primary(number); !ok || p.number != primary.Number {
			return edit{}, &StaleCopyError{Copy: primary}
		}
		gone := func(c placed) bool { return slices.Contains(failed, c.number) }
		if !slices.ContainsFunc(d.copies[number], gone) {
			return edit{}, nil
		}
		next := *d
		next.layout = d.with(number, func(copies []placed) []placed { return slices.DeleteFunc(copies, gone) })
		return edit{Put: map[string]*definition{ix.name: &next}}, nil
	})
	if err == nil {
		e.awaitSettled(ctx)
	}
	return err
}

// turn returns what is held by who changes a primary.
func (ix *index) turn(number int) chan struct{} {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	s := &ix.stores[number]
	if s.turn == nil {
		s.turn = make(chan struct{}, 1)
	}
	return s.turn
}

// writeReplica does here what the primary has done. There is no limit to what it takes: the primary has kept to its own.
func (e *Engine) writeReplica(ix *index, r *shard.WriteRequest) (*shard.WriteResult, error) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	s := &ix.stores[r.Copy.Shard.Number]
	if ix.closed || s.copy != r.Copy.Number {
		return nil, &StaleCopyError{Copy: r.Copy}
	}
	for _, op := range r.Operations {
		e.stored.give(-s.apply(&document{id: op.ID, version: op.Version, seqNo: op.SeqNo, source: op.Source}, op.Kind == shard.Delete))
	}
	return &shard.WriteResult{Taken: 1}, nil
}

// Read implements shard.Holder.
func (h holder) Read(ctx context.Context, r *shard.ReadRequest) (*shard.Page, error) {
	number := r.Copy.Shard.Number
	// Once the copy is known here, it is told of every change.
	ix, err := h.known(ctx, r.Copy, func(d *definition) bool {
		p, ok := d.primary(number)
		return ok && p.node == h.self && p.number == r.Copy.Number && d.has(number, r.For)
	}, r.Copy.Number, r.For)
	if err != nil {
		return nil, err
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	s := &ix.stores[number]
	if ix.closed || s.copy != r.Copy.Number {
		return nil, &StaleCopyError{Copy: r.Copy}
	}
	return s.page(r.From, r.Amount), nil
}

// page returns the documents from a sequence number on, and ends after so many bytes.
func (s *store) page(from, bytes int64) *shard.Page {
	p := &shard.Page{Next: s.seqNo, Last: true}
	first := sort.Search(len(s.order), func(i int) bool { return s.order[i].seqNo >= from })
	for _, d := range s.order[first:] {
		if d.dead {
			continue
		}
		if bytes <= 0 {
			p.Next, p.Last = d.seqNo, false
			break
		}
		bytes -= d.size()
		p.Documents = append(p.Documents, shard.Document{ID: d.id, Version: d.version, SeqNo: d.seqNo, Source: d.source})
	}
	return p
}

// Measure implements shard.Holder.
func (h holder) Measure(_ context.Context, shards []shard.ID) ([]shard.Size, error) {
	sizes := make([]shard.Size, 0, len(shards))
	for _, id := range shards {
		ix := h.index(id.Index)
		if ix == nil || id.Number < 0 || id.Number >= ix.shards {
			continue
		}
		ix.mu.Lock()
		if s := &ix.stores[id.Number]; s.started {
			sizes = append(sizes, shard.Size{Shard: id, Documents: len(s.byID), Bytes: s.size})
		}
		ix.mu.Unlock()
	}
	return sizes, nil
}
