package wlm

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// shards of a group's table: enough that two cores seldom meet in one, few enough that a hundred groups stay small.
const shards = 16

// smallMap is how many buckets a shard's map may have had and still be kept when it is empty: a map never shrinks, so after a
// storm of principals it has to go whole.
const smallMap = 64

// group is what this node keeps of one workload group.
type group struct {
	id, name string
	counters
	table table
	// lastSeq is of the waiter that parked last, in whichever bucket: so a bucket's numbers grow beyond its own life.
	lastSeq atomic.Uint64
}

func newGroup(id, name string) *group {
	g := &group{id: id, name: name}
	g.table.seed = maphash.MakeSeed()
	return g
}

// table has the buckets of one group.
type table struct {
	seed   maphash.Seed
	shards [shards]shard
}

type shard struct {
	mu      sync.Mutex
	buckets map[BucketKey]*bucket
	most    int // buckets that the map has had
}

func (t *table) shard(k BucketKey) *shard {
	if k.Value == "" {
		return &t.shards[0]
	}
	return &t.shards[maphash.String(t.seed, k.Value)%shards]
}

// lock finds or makes a bucket and locks it. A bucket that it makes has no plan yet.
func (t *table) lock(a *Admission, g *group, k BucketKey) *bucket {
	s := t.shard(k)
	for {
		s.mu.Lock()
		b := s.buckets[k]
		if b == nil {
			b = &bucket{a: a, group: g, key: k}
			if s.buckets == nil {
				s.buckets = make(map[BucketKey]*bucket)
			}
			s.buckets[k] = b
			s.most = max(s.most, len(s.buckets))
		}
		s.mu.Unlock()
		b.mu.Lock()
		if !b.dead {
			return b
		}
		b.mu.Unlock() // taken out between the two locks: another one takes its place
	}
}

// drop takes a bucket out if it is still idle.
func (t *table) drop(b *bucket) {
	s := t.shard(b.key)
	s.mu.Lock()
	b.mu.Lock()
	if !b.dead && b.idleLocked() {
		b.dead = true
		delete(s.buckets, b.key)
		if len(s.buckets) == 0 && s.most > smallMap {
			s.buckets, s.most = nil, 0
		}
	}
	b.mu.Unlock()
	s.mu.Unlock()
}

// all lists the buckets of this moment.
func (t *table) all() []*bucket {
	var out []*bucket
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for _, b := range s.buckets {
			out = append(out, b)
		}
		s.mu.Unlock()
	}
	return out
}

// empty reports whether there is no bucket at this moment.
func (t *table) empty() bool {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		n := len(s.buckets)
		s.mu.Unlock()
		if n > 0 {
			return false
		}
	}
	return true
}
