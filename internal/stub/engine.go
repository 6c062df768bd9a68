package stub

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
)

// Config is what an engine needs to know.
type Config struct {
	Node     string // the node's id, as in task ids and shard failures
	NodeName string
	Tasks    *tasks.Manager

	PoolSize  int // workers, and so phases at work at once; at least 1
	QueueSize int // phases that may wait for a worker; beyond it they are refused

	MaxDocumentBytes int64 // what all documents together may take; 0: 256 MiB
	MaxWorkBytes     int64 // what all running phases together may hold; 0: 1 GiB

	Defaults Cost // of searches on indices that say nothing

	// Shards says where the shards of a search are asked, given how those of this
	// engine are. Nil: they are all here.
	Shards func(local shard.Transport) shard.Transport

	// Cluster makes the engine one of several. Nil: it is alone.
	Cluster *Cluster

	// Nested carries out a search on behalf of another one, whose execution's
	// context it is given. Nil: a search that asks for one is refused.
	Nested func(context.Context, *search.Request) (*search.Response, error)

	// Panicked is told of a panic in the work of a shard, which fails that shard
	// and nothing else. May be nil.
	Panicked func(value any, stack []byte)
}

// maxShardsInAll bounds what a search of all indices takes before it has begun.
const maxShardsInAll = 10_000

const (
	defaultMaxWorkBytes     = 1 << 30
	defaultMaxDocumentBytes = 256 << 20
)

// Engine is the search stub: indices, documents and the searches over them. It
// implements search.Executor and is safe for concurrent use.
type Engine struct {
	config Config
	self   shard.Node
	pool   *pool
	local  *local
	shards shard.Transport // of all
	work   budget          // memory held by running phases
	stored budget          // memory taken by documents

	registry   *records.Registry[*definition, *catalog]
	life       context.Context // of what goes on without a request
	end        context.CancelCauseFunc
	running    sync.WaitGroup
	unlaid     chan struct{} // one slot: filled when indices may have to be laid out anew
	nextCopies atomic.Uint32 // turns the order in which copies are asked

	mu      sync.RWMutex
	indices map[string]*index
	changed chan struct{} // closed when the indices have changed
	closed  bool
}

// New returns an engine that is alone, without indices. It starts workers as they are needed,
// up to PoolSize.
func New(c Config) *Engine {
	if c.Cluster != nil {
		panic("stub: an engine that is one of several is made by Open")
	}
	e, err := Open(context.Background(), c)
	if err != nil {
		panic(err) // there is nothing to be read
	}
	return e
}

// Open is New for an engine that may be one of several: it has the indices that these have. It fails when they cannot be read.
func Open(ctx context.Context, c Config) (*Engine, error) {
	if c.MaxWorkBytes == 0 {
		c.MaxWorkBytes = defaultMaxWorkBytes
	}
	if c.MaxDocumentBytes == 0 {
		c.MaxDocumentBytes = defaultMaxDocumentBytes
	}
	e := &Engine{
		config:  c,
		pool:    newPool(c.NodeName+"/search", max(1, c.PoolSize), max(0, c.QueueSize)),
		work:    budget{what: whatWork, key: "node.heap_size", limit: c.MaxWorkBytes},
		stored:  budget{what: whatDocuments, key: "node.heap_size", limit: c.MaxDocumentBytes},
		self:    shard.Node{ID: c.Node},
		indices: make(map[string]*index),
		changed: make(chan struct{}),
		unlaid:  make(chan struct{}, 1),
	}
	e.local = &local{engine: e}
	e.shards = e.local
	if c.Shards != nil {
		e.shards = c.Shards(e.local)
	}
	if err := e.join(ctx); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// Local asks the shards of this engine, on behalf of a search anywhere.
func (e *Engine) Local() shard.Transport { return e.local }

// Close stops the workers. Work under way ends at its next step and fails, that
// with ignore_cancel too; waiting work fails at once. Close returns when all
// workers are gone.
func (e *Engine) Close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.end(errPoolClosed)
	e.pool.close()
	e.running.Wait()
}

// PoolStats tells what the workers do and did.
func (e *Engine) PoolStats() PoolStats { return e.pool.stats() }

var _ search.Executor = (*Engine)(nil)

// CreateIndex makes an index as a create request's body says; an empty body
// leaves everything at its default. Besides errors of the body it returns
// *search.InvalidIndexNameError, *IndexExistsError, *search.ValidationError when
// there are too many shards, and *FullError.
func (e *Engine) CreateIndex(name string, body []byte) error {
	d, rest, err := newDefinition(name, body, e.config.Defaults)
	if err != nil {
		return err
	}
	if err := checkIndexName(name); err != nil {
		return err
	}
	if ix := e.index(name); ix != nil { // and what it was to hold does not matter
		return &IndexExistsError{Index: name, UUID: ix.uuid}
	}
	if err := d.describe(rest); err != nil {
		return err
	}
	there, err := e.add(d)
	if err == nil && there.uuid != d.uuid {
		err = &IndexExistsError{Index: name, UUID: there.uuid}
	}
	return err
}

// add enters an index unless there is one of that name, and returns the one that
// is there then.
func (e *Engine) add(d *definition) (there *definition, err error) {
	// What is taken here is taken once more, for good, when the index is there.
	size := d.size + d.extra()
	if err := e.stored.take(size); err != nil {
		return nil, err
	}
	defer e.stored.give(size)
	err = e.change(func(now *catalog) (edit, error) {
		if there = now.all[d.name]; there != nil {
			return edit{}, nil
		}
		if shards := now.shards + d.shards; shards > maxShardsInAll {
			return edit{}, &search.ValidationError{Problems: []string{fmt.Sprintf(
				"the index [%s] would make it [%d] shards, and the most is [%d]; delete indices, or give them fewer shards", d.name, shards, maxShardsInAll)}}
		}
		members := e.members()
		d.layout = new(layout).place(d.shards, d.replicas, members, loadsOf(now.all, members))
		there = d
		return edit{Put: map[string]*definition{d.name: d}}, nil
	})
	return there, err
}

// index returns the index of that name, or nil.
func (e *Engine) index(name string) *index {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.indices[name]
}

// indexForWriting returns the index of that name and makes it when it is missing.
func (e *Engine) indexForWriting(name string) (*index, error) {
	if ix := e.index(name); ix != nil {
		return ix, ix.open()
	}
	if err := checkIndexName(name); err != nil {
		return nil, err
	}
	d, _, err := newDefinition(name, nil, e.config.Defaults)
	if err != nil {
		return nil, err
	}
	if _, err = e.add(d); err != nil {
		return nil, err
	}
	if ix := e.index(name); ix != nil {
		return ix, ix.open()
	}
	return nil, &search.IndexNotFoundError{Index: name, Literal: true} // deleted again
}

// DeleteIndex deletes the indices of a comma list of names and patterns. A name
// that does not exist is a *search.IndexNotFoundError, and nothing is deleted; a
// pattern that finds nothing is no error. Patterns find closed indices, too.
func (e *Engine) DeleteIndex(pattern string) error {
	return e.DeleteIndices(pattern, Expansion{Wildcards: AllIndices})
}

// DeleteIndices is DeleteIndex by the rules of the request.
func (e *Engine) DeleteIndices(pattern string, rules Expansion) error {
	found, err := e.resolve(selection{splitNames(pattern), rules})
	if err != nil {
		return err
	}
	return e.change(func(now *catalog) (edit, error) {
		var gone edit
		for _, ix := range found {
			if d := now.all[ix.name]; d != nil && d.uuid == ix.uuid {
				gone.Delete = append(gone.Delete, ix.name)
			}
		}
		return gone, nil
	})
}

// Indices describes the indices of a comma list of names and patterns; "" and
// "_all" mean all of them. A name that does not exist is a
// *search.IndexNotFoundError; a pattern that finds nothing is no error. Patterns
// find closed indices, too.
func (e *Engine) Indices(pattern string) ([]IndexInfo, error) {
	return e.Expand(pattern, Expansion{Wildcards: AllIndices})
}

// Expand is Indices by the rules of the request.
func (e *Engine) Expand(pattern string, rules Expansion) ([]IndexInfo, error) {
	found, err := e.resolve(selection{splitNames(pattern), rules})
	if err != nil {
		return nil, err
	}
	infos := make([]IndexInfo, len(found))
	for i, ix := range found {
		infos[i] = ix.info()
	}
	return infos, nil
}

func splitNames(list string) []string {
	return slices.DeleteFunc(strings.Split(list, ","), func(s string) bool { return s == "" })
}

// budget bounds how many bytes are taken for one purpose.
type budget struct {
	what, key string // as in FullError
	limit     int64
	taken     atomic.Int64
}

// take adds n bytes, or none and returns a *FullError. A negative n gives back
// and never fails.
func (b *budget) take(n int64) error {
	for {
		before := b.taken.Load()
		if n > 0 && n > b.limit-before {
			return &FullError{What: b.what, Wanted: before + n, Limit: b.limit, Key: b.key}
		}
		if b.taken.CompareAndSwap(before, before+n) {
			return nil
		}
	}
}

func (b *budget) give(n int64) { b.taken.Add(-n) }
