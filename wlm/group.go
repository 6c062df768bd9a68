package wlm

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/wlmserver/wlmserver/groups"
)

// shards of a group's table: enough that two cores seldom meet in one, few enough that a hundred groups stay small.
const shards = 16

// smallMap is how many buckets a shard's map may have had and still be kept when it is empty: a map never shrinks, so after a
// storm of principals it has to go whole.
const smallMap = 64

// group is what this node keeps of one workload group: its counters and its buckets.
type group struct {
	id, name string
	counters
	// lastSeq is of the waiter that parked last, in whichever bucket: so a bucket's numbers grow beyond its own life.
	lastSeq atomic.Uint64

	// whole is the bucket of all searches of the group. There is no more than this one of its kind, so it is never taken out.
	whole bucket
	// shards have the buckets of principals.
	seed   maphash.Seed
	shards [shards]shard
}

type shard struct {
	mu      sync.Mutex
	buckets map[BucketKey]*bucket
	most    int // buckets that the map has had
}

func newGroup(a *Admission, id, name string) *group {
	g := &group{id: id, name: name, seed: maphash.MakeSeed()}
	g.whole.init(a, g, BucketKey{Group: id, Attribute: groups.ByGroup})
	return g
}

func (g *group) shard(k BucketKey) *shard { return &g.shards[maphash.String(g.seed, k.Value)%shards] }

// lockBucket finds or makes a bucket and locks it. A new one has no plan yet.
func (g *group) lockBucket(k BucketKey) *bucket {
	if k.Attribute == groups.ByGroup {
		g.whole.mu.Lock()
		return &g.whole
	}
	s := g.shard(k)
	for {
		s.mu.Lock()
		b := s.buckets[k]
		if b == nil {
			b = new(bucket)
			b.init(g.whole.a, g, k)
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
func (g *group) drop(b *bucket) {
	if b == &g.whole {
		return
	}
	s := g.shard(b.key)
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

// buckets lists those that are not idle at this moment.
func (g *group) buckets() []*bucket {
	out := g.every()
	g.whole.mu.Lock()
	defer g.whole.mu.Unlock()
	if g.whole.idleLocked() {
		return out[1:]
	}
	return out
}

// every lists all buckets there are: that of the whole group first, idle or not.
func (g *group) every() []*bucket {
	out := []*bucket{&g.whole}
	for i := range g.shards {
		s := &g.shards[i]
		s.mu.Lock()
		for _, b := range s.buckets {
			out = append(out, b)
		}
		s.mu.Unlock()
	}
	return out
}
