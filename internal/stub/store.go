package stub

import (
	"cmp"
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

// store is the copy of one shard that is here, if there is one. It is guarded by its index's lock.
type store struct {
	copy    int64            // its number; 0: there is none
	started bool             // it has all documents
	deleted map[string]int64 // while it is being filled: what was deleted meanwhile, and when
	turn    chan struct{}    // held by who changes a primary that has replicas; nil until it is needed

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

// reset makes it another copy, without documents, or none. It tells how many bytes that frees.
func (s *store) reset(copy int64) (freed int64) {
	freed = s.size
	s.copy, s.started, s.deleted = copy, false, nil
	s.byID, s.order, s.dead, s.seqNo, s.size = nil, nil, 0, 0, 0
	s.fresh.Store(nil)
	return freed
}

// start says that the copy has all documents. They lie in the order in which they were written.
func (s *store) start() {
	if s.started {
		return
	}
	s.started, s.deleted = true, nil
	if len(s.order) > 0 {
		s.bury()
		slices.SortFunc(s.order, func(a, b *document) int { return cmp.Compare(a.seqNo, b.seqNo) })
	}
	s.fresh.Store(nil)
}

// apply does what a primary has done already. What has come by another way is passed over. It tells how many bytes more it takes.
func (s *store) apply(d *document, deleted bool) (growth int64) {
	s.seqNo = max(s.seqNo, d.seqNo+1)
	old := s.byID[d.id]
	if last, ok := s.deleted[d.id]; old != nil && old.seqNo >= d.seqNo || ok && last >= d.seqNo {
		return 0
	}
	before := s.size
	switch {
	case !deleted:
		s.put(d)
	case old != nil:
		s.delete(old)
	}
	if deleted && !s.started {
		if s.deleted == nil {
			s.deleted = make(map[string]int64)
		}
		s.deleted[d.id] = d.seqNo
	}
	return s.size - before
}

// reader returns the documents of the copy of a shard that is here as they are now; nil when there is none that may be asked.
func (ix *index) reader(number int) *reader {
	s := &ix.stores[number]
	if r := s.fresh.Load(); r != nil {
		return r
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if !s.started {
		return nil
	}
	if s.dead > 0 {
		s.bury()
	}
	r := &reader{documents: slices.Clip(s.order)} // what is appended later lies behind its end
	s.fresh.Store(r)
	return r
}
