package stub

import (
	"context"
	"slices"
	"time"

	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/search"
)

// Cluster is what an engine that is one of several needs of the others.
type Cluster struct {
	// Indices keeps what all of them know of the indices. When others may have changed it, [Engine.Reload] takes that in.
	Indices records.Repository
	// Self is this node, among the others.
	Self shard.Node
	// Members tells who may hold copies. It answers at once, and with the newest: when it would answer otherwise than before,
	// [Engine.MembersChanged] is called.
	Members func() Members
	// Nodes finds the others.
	Nodes shard.Nodes
	// Settled returns when every member has taken in what this node has seen of the indices. What it cannot have confirmed in time is
	// no reason to fail: a member that does not answer does not search either.
	Settled func(ctx context.Context) error
}

const (
	// changeTimeout bounds a change of what all nodes know of the indices.
	changeTimeout = 30 * time.Second
	// settleTimeout bounds the wait for members to take a change in.
	settleTimeout = 5 * time.Second
	// layOutAgain is how soon an attempt to lay the indices out is made again after one that failed.
	layOutAgain = time.Second
)

type edit = records.Edit[*definition]

// join reads the indices, and takes in from then on what becomes of them.
func (e *Engine) join(ctx context.Context) error {
	e.life, e.end = context.WithCancelCause(context.Background())
	var repository records.Repository = new(records.Memory)
	if c := e.config.Cluster; c != nil {
		repository, e.self = c.Indices, c.Self
	}
	registry, err := records.Open(ctx, repository, kind(e.config.Defaults))
	if err != nil {
		return err
	}
	e.registry = registry
	e.take(&catalog{}, registry.Snapshot())
	registry.OnChange(e.take)
	if e.config.Cluster != nil {
		e.start(e.layOut)
	}
	return nil
}

// start runs f until it returns or the engine is closed, which ends its life.
func (e *Engine) start(f func()) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if !e.closed {
		e.running.Go(f)
	}
}

// Reload takes in what other nodes have changed of the indices. When it returns nil, this node acts by it.
func (e *Engine) Reload(ctx context.Context) error { return e.registry.Reload(ctx) }

// MembersChanged says that the members are others now. It does not wait for what follows of it.
func (e *Engine) MembersChanged() {
	select {
	case e.unlaid <- struct{}{}:
	default: // it will be looked at anyway
	}
}

// Copies returns the nodes that may be asked about a shard: those that hold a copy with all documents. Each call begins with another one.
func (e *Engine) Copies(id shard.ID) []shard.Node {
	ix := e.index(id.Index)
	if ix == nil || id.Number < 0 || id.Number >= ix.shards {
		return nil
	}
	copies := ix.now.Load().copies[id.Number]
	nodes := make([]shard.Node, 0, len(copies))
	first := int(e.nextCopies.Add(1) % uint32(max(1, len(copies))))
	for i := range copies {
		if c := copies[(first+i)%len(copies)]; c.started {
			nodes = append(nodes, c.node)
		}
	}
	return nodes
}

func (e *Engine) members() Members {
	if c := e.config.Cluster; c != nil {
		return c.Members()
	}
	return Members{Epoch: 1, Nodes: []shard.Node{e.self}}
}

// change makes a change of the indices, and returns when all nodes act by it, or after some time all that can. It goes on when the
// client has gone.
func (e *Engine) change(decide func(now *catalog) (edit, error)) error {
	ctx := e.life
	if e.config.Cluster != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, changeTimeout)
		defer cancel()
	}
	if err := e.registry.Change(ctx, decide); err != nil {
		return err
	}
	e.awaitSettled(ctx)
	return nil
}

// awaitSettled waits, for a while, until all members know what this node knows of the indices.
func (e *Engine) awaitSettled(ctx context.Context) (ok bool) {
	if e.config.Cluster == nil || e.config.Cluster.Settled == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	return e.config.Cluster.Settled(ctx) == nil
}

// settle waits until all members know of an index. It may have become known here before it was anywhere else.
func (e *Engine) settle(ctx context.Context, ix *index) {
	if e.config.Cluster != nil && !ix.settled.Load() && e.awaitSettled(ctx) {
		ix.settled.Store(true)
	}
}

// redefine changes what may change of indices, of all or of none.
func (e *Engine) redefine(indices []*index, f func(*dynamic) error) error {
	var reserved int64 // what is taken here is taken once more, for good, by the change
	defer func() { e.stored.give(reserved) }()
	return e.change(func(now *catalog) (edit, error) {
		var growth int64
		changes := edit{Put: make(map[string]*definition)}
		members := e.members()
		loads := loadsOf(now.all, members)
		for _, ix := range indices {
			d := now.all[ix.name]
			if d == nil || d.uuid != ix.uuid { // deleted meanwhile
				return edit{}, &search.IndexNotFoundError{Index: ix.name}
			}
			next := *d
			next.settings = slices.Clone(d.settings)
			if err := f(&next.dynamic); err != nil {
				return edit{}, err
			}
			if next.replicas != d.replicas && members.Epoch >= d.epoch && members.Epoch > 0 {
				next.layout = d.place(d.shards, next.replicas, members, loads)
			}
			changes.Put[ix.name] = &next
			growth += next.extra() - d.extra()
		}
		if err := e.stored.take(max(0, growth) - reserved); err != nil {
			return edit{}, err
		}
		reserved = max(0, growth)
		return changes, nil
	})
}

// take has this node act by what is known of the indices now.
func (e *Engine) take(before, now *catalog) {
	var freed int64
	var gone []*index
	var fill []filling
	e.mu.Lock()
	for name := range before.all {
		if ix := e.indices[name]; ix != nil && (now.all[name] == nil || now.all[name].uuid != ix.uuid) {
			delete(e.indices, name)
			gone = append(gone, ix)
		}
	}
	for name, d := range now.all {
		if before.all[name] == d {
			continue
		}
		ix := e.indices[name]
		if ix == nil {
			ix = &index{identity: d.identity, stores: make([]store, d.shards)}
			e.stored.give(-d.size)
		}
		f, copies := ix.adopt(d, e.self)
		e.indices[name] = ix
		freed, fill = freed+f, append(fill, copies...)
	}
	close(e.changed)
	e.changed = make(chan struct{})
	e.mu.Unlock()

	for _, ix := range gone {
		freed += ix.close()
	}
	e.stored.give(freed)
	for _, f := range fill {
		e.start(func() { e.fill(f) })
	}
	e.MembersChanged()
}

// changes returns a channel that is closed when the indices change the next time.
func (e *Engine) changes() <-chan struct{} {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.changed
}

// layOut lays the indices out anew whenever that has become necessary. All nodes do so, and come to the same.
func (e *Engine) layOut() {
	for {
		var again <-chan time.Time
		err := e.registry.Change(e.life, func(now *catalog) (edit, error) {
			return edit{Put: now.replaced(e.members())}, nil
		})
		if err != nil {
			timer := time.NewTimer(layOutAgain)
			defer timer.Stop()
			again = timer.C
		}
		select {
		case <-e.unlaid:
		case <-again:
		case <-e.life.Done():
			return
		}
	}
}
