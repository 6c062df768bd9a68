package stub

import (
	"slices"
	"sync/atomic"

	"github.com/wlmserver/wlmserver/internal/shard"
)

// document is one version of a document. It never changes, but for dead.
type document struct {
	id      string
	version int64
	seqNo   int64
	source  []byte // one compact JSON object

	dead bool // replaced or deleted; guarded by the index's lock
}

// documentOverhead is what a document takes beside its id and source, roughly.
const documentOverhead = 128

func (d *document) size() int64 { return int64(len(d.id)+len(d.source)) + documentOverhead }

// store holds the documents of one shard. It is guarded by its index's lock.
type store struct {
	byID  map[string]*document
	order []*document // oldest first, with the dead ones among them
	dead  int
	seqNo int64 // of the next change
	size  int64
	fresh atomic.Pointer[reader] // nil when documents have changed since it was made
}

// reader is a shard's documents as they were at one moment. It never changes.
type reader struct {
	documents []*document // in the order in which they were written
	sorted    []shard.Hit // all that match, in the order of a search; nil without one
}

// put makes d the newest version of its document.
func (s *store) put(d *document) {
	if s.byID == nil {
		s.byID = make(map[string]*document)
	}
	s.remove(s.byID[d.id])
	s.byID[d.id] = d
	s.order = append(s.order, d)
	s.size += d.size()
	s.changed()
}

// delete takes d out.
func (s *store) delete(d *document) {
	delete(s.byID, d.id)
	s.remove(d)
	s.changed()
}

func (s *store) remove(d *document) {
	if d == nil {
		return
	}
	d.dead = true
	s.dead++
	s.size -= d.size()
}

// changed drops what is known of the documents, and the dead when they are the
// majority, so that they never take more than the living.
func (s *store) changed() {
	s.fresh.Store(nil)
	if s.dead > len(s.byID)+16 {
		s.bury()
	}
}

// bury takes the dead out of the order, in a new slice: readers may share the old.
func (s *store) bury() {
	living := make([]*document, 0, len(s.byID))
	for _, d := range s.order {
		if !d.dead {
			living = append(living, d)
		}
	}
	s.order, s.dead = living, 0
}

// reader returns the documents of one shard as they are now.
func (ix *index) reader(number int) *reader {
	s := &ix.stores[number]
	if r := s.fresh.Load(); r != nil {
		return r
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if s.dead > 0 {
		s.bury()
	}
	r := &reader{documents: slices.Clip(s.order)} // what is appended later lies behind its end
	s.fresh.Store(r)
	return r
}
