package stub

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wlmserver/wlmserver/internal/shard"
)

const (
	// writeTimeout bounds how long a change of a document waits for its shard's primary.
	writeTimeout = 30 * time.Second
	// replicaTimeout bounds how long a primary waits for a replica before it gives that up.
	replicaTimeout = 10 * time.Second
	// tryAgain is how long a primary that does not know of it yet is left alone.
	tryAgain = 50 * time.Millisecond
)

var (
	// errIndexClosed tells a writer that its index was deleted under its hands.
	errIndexClosed = errors.New("the index has just been deleted")
	// errChanged tells an update that somebody else was faster.
	errChanged = errors.New("the document has just been changed")
	// errNotAlone tells a writer that its copy has got replicas, or is no primary here.
	errNotAlone = errors.New("there is another copy of the shard")
)

// write carries out one operation on a shard, wherever that is.
func (e *Engine) write(ix *index, number int, op *shard.Operation) (DocumentResult, error) {
	if ix.now.Load().alone(number, e.self) {
		e.settle(e.life, ix)
		o := e.apply(ix, number, 0, op)
		if !errors.Is(o.Err, errNotAlone) {
			return ix.result(op.ID, &o, &shard.WriteResult{Taken: 1}), o.Err
		}
	}
	w, err := e.send(ix, number, []shard.Operation{*op})
	if err != nil {
		return DocumentResult{}, err
	}
	return ix.result(op.ID, &w.Outcomes[0], w), w.Outcomes[0].Err
}

// ask looks at one document, wherever its shard is.
func (e *Engine) ask(ix *index, op *shard.Operation) (shard.Outcome, error) {
	w, err := e.send(ix, ix.router.shard(op.ID), []shard.Operation{*op})
	if err != nil {
		return shard.Outcome{}, err
	}
	return w.Outcomes[0], w.Outcomes[0].Err
}

// result tells the client what became of an operation that has not failed.
func (ix *index) result(id string, o *shard.Outcome, w *shard.WriteResult) DocumentResult {
	if o.Err != nil {
		return DocumentResult{}
	}
	copies := WriteShards{Total: 1 + ix.now.Load().replicas, Successful: w.Taken, Failed: w.Failed}
	if Result(o.Result) == Noop {
		copies = WriteShards{} // no shard was asked
	}
	return DocumentResult{Index: ix.name, ID: id, Version: o.Version, Result: Result(o.Result), Shards: copies, SeqNo: o.SeqNo, PrimaryTerm: 1}
}

// send has the primary of a shard carry operations out, and waits for one as long as there is none. What a primary was asked that does
// not answer any more is asked again of the next; it may have been done already.
func (e *Engine) send(ix *index, number int, ops []shard.Operation) (*shard.WriteResult, error) {
	ctx, cancel := context.WithTimeoutCause(e.life, writeTimeout, &UnavailableShardError{Index: ix.name, Shard: number})
	defer cancel()
	e.settle(ctx, ix)
	var failed int64 // the primary that cannot be asked
	for {
		changed := e.changes()
		if e.index(ix.name) != ix {
			return nil, errIndexClosed
		}
		again := (<-chan time.Time)(nil)
		if p, ok := ix.now.Load().primary(number); ok && p.number != failed {
			w, err := e.ofNode(p.node).Write(ctx, &shard.WriteRequest{Copy: ix.copy(number, p.number), Operations: ops})
			switch _, stale := errors.AsType[*StaleCopyError](err); {
			case err == nil && len(w.Outcomes) == len(ops):
				return w, nil
			case stale:
				again = time.After(tryAgain)
			default:
				failed = p.number
			}
		}
		select {
		case <-changed:
		case <-again:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// ofNode returns a node, which may be this one.
func (e *Engine) ofNode(n shard.Node) shard.Holder {
	if n == e.self {
		return e.Holder()
	}
	return e.config.Cluster.Nodes.Holder(n)
}

func (ix *index) copy(number int, copy int64) shard.Copy {
	return shard.Copy{Shard: shard.ID{Index: ix.name, Number: number}, UUID: ix.uuid, Number: copy}
}

// apply carries one operation out on a primary copy that is here, and there alone. Copy is its number; 0: it is the only one. Besides
// those of documents its errors are errIndexClosed, and when the copy is another one by now errNotAlone, or a *StaleCopyError.
func (e *Engine) apply(ix *index, number int, copy int64, op *shard.Operation) shard.Outcome {
	if op.Condition >= shard.Unknown {
		return shard.Outcome{Err: fmt.Errorf("this node does not know the condition of an operation on a document")}
	}
	switch op.Kind {
	case shard.Index, shard.Create:
		return e.put(ix, number, copy, &document{id: op.ID, source: op.Source}, op, nil)
	case shard.Update:
		return e.update(ix, number, copy, op)
	case shard.Delete:
		o, freed := ix.delete(number, copy, op, e.self)
		e.stored.give(freed)
		return o
	case shard.Get:
		return ix.get(number, copy, op.ID, e.self)
	}
	return shard.Outcome{Err: fmt.Errorf("this node does not know the operation %d on a document", op.Kind)}
}

func (e *Engine) update(ix *index, number int, copy int64, op *shard.Operation) shard.Outcome {
	u, err := parseUpdate(op.Source)
	if err != nil {
		return shard.Outcome{Err: err}
	}
	for {
		old, _ := ix.document(op.ID)
		source, err := u.apply(ix, op.ID, old)
		if err != nil {
			return shard.Outcome{Err: err}
		}
		if err := ix.conflict(number, op, old); err != nil {
			return shard.Outcome{Err: err}
		}
		if !u.always && old != nil && string(source) == string(old.source) {
			return shard.Outcome{Result: string(Noop), Version: old.version, SeqNo: old.seqNo}
		}
		stored, err := ix.acceptable(op.ID, source)
		if err != nil {
			return shard.Outcome{Err: err}
		}
		o := e.put(ix, number, copy, &document{id: op.ID, source: stored}, op, old)
		if !errors.Is(o.Err, errChanged) {
			return o
		}
	}
}

// writableLocked checks that the copy that is here can carry an operation out.
func (ix *index) writableLocked(number int, copy int64, self shard.Node) error {
	d := ix.now.Load()
	switch p, ok := d.primary(number); {
	case ix.closed:
		return errIndexClosed
	case copy == 0 && !d.alone(number, self):
		return errNotAlone
	case !ok || p.node != self || copy != 0 && p.number != copy:
		return &StaleCopyError{Copy: ix.copy(number, copy)}
	}
	return nil
}

// put makes d the newest version of its document, if that is as op has it. An update is made of the version before, and fails with
// errChanged when that is not the one that is there.
func (e *Engine) put(ix *index, number int, copy int64, d *document, op *shard.Operation, before *document) shard.Outcome {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if err := ix.writableLocked(number, copy, e.self); err != nil {
		return shard.Outcome{Err: err}
	}
	s := &ix.stores[number]
	old := s.byID[d.id]
	if op.Kind == shard.Update && old != before {
		return shard.Outcome{Err: errChanged}
	}
	if err := ix.conflict(number, op, old); err != nil {
		return shard.Outcome{Err: err}
	}
	result, growth := Created, d.size()
	d.version, d.seqNo = 1, s.seqNo
	if old != nil {
		result = Updated
		growth -= old.size()
		d.version = old.version + 1
	}
	if op.Condition.Versions() {
		d.version = op.Expected
	}
	if err := e.stored.take(growth); err != nil {
		return shard.Outcome{Err: err}
	}
	s.seqNo++
	s.put(d)
	return shard.Outcome{Result: string(result), Version: d.version, SeqNo: d.seqNo, Source: d.source}
}

// delete takes a document out and tells how many bytes that frees.
func (ix *index) delete(number int, copy int64, op *shard.Operation, self shard.Node) (o shard.Outcome, freed int64) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if err := ix.writableLocked(number, copy, self); err != nil {
		return shard.Outcome{Err: err}, 0
	}
	s := &ix.stores[number]
	old := s.byID[op.ID]
	if err := ix.conflict(number, op, old); err != nil {
		return shard.Outcome{Err: err}, 0
	}
	o = shard.Outcome{Result: string(NotFound), Version: 1, SeqNo: s.seqNo}
	s.seqNo++
	if old != nil {
		s.delete(old)
		o.Result, o.Version, freed = string(Deleted), old.version+1, old.size()
	}
	if op.Condition.Versions() {
		o.Version = op.Expected
	}
	return o, freed
}

func (ix *index) get(number int, copy int64, id string, self shard.Node) shard.Outcome {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if err := ix.writableLocked(number, copy, self); err != nil {
		return shard.Outcome{Err: err}
	}
	d := ix.stores[number].byID[id]
	if d == nil {
		return shard.Outcome{}
	}
	return shard.Outcome{Result: "found", Version: d.version, SeqNo: d.seqNo, Source: d.source}
}

// document returns a document, nil if there is none; here tells whether that is known here.
func (ix *index) document(id string) (d *document, here bool) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	s := &ix.stores[ix.router.shard(id)]
	return s.byID[id], s.started
}
