package stub

import (
	"context"
	"time"

	"github.com/wlmserver/wlmserver/internal/shard"
)

const (
	// pageBytes is how much of a copy is read at once to fill another.
	pageBytes = 4 << 20
	// fillAgain is how soon an attempt to fill a copy is made again after one that failed.
	fillAgain = 200 * time.Millisecond
)

// fill fills a copy from its primary, until it is done or the copy is to be here no longer.
func (e *Engine) fill(f filling) {
	for {
		changed := e.changes()
		if e.tryToFill(f) {
			return
		}
		select {
		case <-changed:
		case <-time.After(fillAgain):
		case <-e.life.Done():
			return
		}
	}
}

// tryToFill makes one attempt. It reports whether there is nothing left to do.
func (e *Engine) tryToFill(f filling) (over bool) {
	ix := f.index
	d := ix.now.Load()
	primary, ok := d.primary(f.shard)
	if c, here := d.at(f.shard, e.self); !here || c.number != f.number || c.started {
		return true
	}
	if !ok || primary.node == e.self || !e.empty(f) {
		return false
	}
	from := e.ofNode(primary.node)
	for r := (&shard.ReadRequest{Copy: ix.copy(f.shard, primary.number), For: f.number, Amount: pageBytes}); ; {
		p, err := from.Read(e.life, r)
		if err != nil || !e.takePage(f, p) {
			return false
		}
		if p.Last {
			break
		}
		r.From = p.Next
	}
	ctx, cancel := context.WithTimeout(e.life, changeTimeout)
	defer cancel()
	err := e.registry.Change(ctx, func(now *catalog) (edit, error) {
		d := now.all[ix.name]
		if d == nil || d.uuid != ix.uuid || !d.has(f.shard, f.number) {
			return edit{}, nil
		}
		if p, _ := d.primary(f.shard); p.number != primary.number {
			return edit{}, errChanged
		}
		next := *d
		next.layout = d.with(f.shard, func(copies []placed) []placed {
			for i := range copies {
				copies[i].started = copies[i].started || copies[i].number == f.number
			}
			return copies
		})
		return edit{Put: map[string]*definition{ix.name: &next}}, nil
	})
	return err == nil
}

// empty makes a copy ready to be filled. It reports whether it is here.
func (e *Engine) empty(f filling) bool {
	return e.withCopy(f, func(s *store) int64 { return -s.reset(f.number) })
}

// takePage puts documents into a copy that is being filled. What the primary has told of them meanwhile is newer.
func (e *Engine) takePage(f filling, p *shard.Page) bool {
	return e.withCopy(f, func(s *store) (growth int64) {
		for _, d := range p.Documents {
			growth += s.apply(&document{id: d.ID, version: d.Version, seqNo: d.SeqNo, source: d.Source}, false)
		}
		s.seqNo = max(s.seqNo, p.Next)
		return growth
	})
}

// withCopy changes a copy that is being filled, if it is still here. F tells how many bytes more it takes then.
func (e *Engine) withCopy(f filling, change func(*store) (growth int64)) bool {
	f.index.mu.Lock()
	defer f.index.mu.Unlock()
	s := &f.index.stores[f.shard]
	if f.index.closed || s.copy != f.number || s.started {
		return false
	}
	e.stored.give(-change(s))
	return true
}
