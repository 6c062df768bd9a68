package stub

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/wlmserver/wlmserver/internal/shard"
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
	pool   *pool
	local  *local
	shards shard.Transport // of all
	work   budget          // memory held by running phases
	stored budget          // memory taken by documents

	mu         sync.RWMutex
	indices    map[string]*index
	shardCount int // of all indices
}

// New returns an engine without indices. It starts workers as they are needed,
// up to PoolSize.
func New(c Config) *Engine {
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
		indices: make(map[string]*index),
	}
	e.local = &local{engine: e}
	e.shards = e.local
	if c.Shards != nil {
		e.shards = c.Shards(e.local)
	}
	return e
}

// Local asks the shards of this engine, on behalf of a search anywhere.
func (e *Engine) Local() shard.Transport { return e.local }

// Close stops the workers. Work under way ends at its next step and fails, that
// with ignore_cancel too; waiting work fails at once. Close returns when all
// workers are gone.
func (e *Engine) Close() { e.pool.close() }

// PoolStats tells what the workers do and did.
func (e *Engine) PoolStats() PoolStats { return e.pool.stats() }

var _ search.Executor = (*Engine)(nil)

// CreateIndex makes an index as a create request's body says; an empty body
// leaves everything at its default. Besides errors of the body it returns
// *search.InvalidIndexNameError, *IndexExistsError, *search.ValidationError when
// there are too many shards, and *FullError.
func (e *Engine) CreateIndex(name string, body []byte) error {
	ix, err := newIndex(name, body, e.config.Defaults)
	if err != nil {
		return err
	}
	if err := checkIndexName(name); err != nil {
		return err
	}
	there, err := e.add(ix)
	if err == nil && there != ix {
		err = &IndexExistsError{Index: name, UUID: there.uuid}
	}
	return err
}

// add enters ix unless there is an index of that name, and returns the one that
// is there then.
func (e *Engine) add(ix *index) (there *index, err error) {
	if err := e.stored.take(ix.size); err != nil {
		return nil, err
	}
	e.mu.Lock()
	there = e.indices[ix.name]
	shards := e.shardCount + len(ix.stores)
	if there == nil && shards <= maxShardsInAll {
		e.indices[ix.name] = ix
		e.shardCount = shards
		there = ix
	}
	e.mu.Unlock()
	if there != ix {
		e.stored.give(ix.size)
	}
	if there == nil {
		return nil, &search.ValidationError{Problems: []string{fmt.Sprintf(
			"the index [%s] would make it [%d] shards, and the most is [%d]; delete indices, or give them fewer shards", ix.name, shards, maxShardsInAll)}}
	}
	return there, nil
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
	ix, err := newIndex(name, nil, e.config.Defaults)
	if err != nil {
		return nil, err
	}
	return e.add(ix)
}

// DeleteIndex deletes the indices of a comma list of names and patterns. A name
// that does not exist is a *search.IndexNotFoundError, and nothing is deleted; a
// pattern that finds nothing is no error.
func (e *Engine) DeleteIndex(pattern string) error { return e.DeleteIndices(pattern, Expansion{}) }

// DeleteIndices is DeleteIndex by the rules of the request.
func (e *Engine) DeleteIndices(pattern string, rules Expansion) error {
	found, err := e.resolve(selection{splitNames(pattern), rules})
	if err != nil {
		return err
	}
	e.mu.Lock()
	for _, ix := range found {
		if e.indices[ix.name] == ix {
			delete(e.indices, ix.name)
			e.shardCount -= len(ix.stores)
		}
	}
	e.mu.Unlock()
	for _, ix := range found {
		e.stored.give(ix.close())
	}
	return nil
}

// Indices describes the indices of a comma list of names and patterns; "" and
// "_all" mean all of them. A name that does not exist is a
// *search.IndexNotFoundError; a pattern that finds nothing is no error.
func (e *Engine) Indices(pattern string) ([]IndexInfo, error) { return e.Expand(pattern, Expansion{}) }

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
