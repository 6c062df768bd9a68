package wlm

import (
	"hash/maphash"

	"github.com/wlmserver/wlmserver/groups"
)

// shards of a group's table: enough that two cores seldom meet in one, few enough that a hundred groups stay small.
const shards = 16

// smallMap is how many buckets a shard's map may have had and still be kept when it is empty: a map never shrinks, so after a
// storm of principals it has to go whole.
const smallMap = 64

// group is what this node keeps of one workload group: its counters and its buckets.
type group struct {
	a        *Admission
	id, name string
	seed     maphash.Seed // of the shards
	counters

	// whole is the bucket of all searches of the group, with its lock. There is no more than this one of its kind, so it is never
	// taken out.
	wholeMu keeper
	whole   bucket
	// shards have the buckets of principals.
	shards [shards]shard
}

// principal names a bucket within its group.
type principal struct {
	value     string
	attribute groups.Attribute
}

// shard is a part of a group's buckets of principals, with one lock for the table and what is in it.
type shard struct {
	mu      keeper
	buckets map[principal]*bucket
	most    int // buckets that the map has had
	// spare is a bucket that was taken out, to be used again: most principals send one search at a time.
	spare *bucket
}

func newGroup(a *Admission, id, name string) *group {
	g := &group{a: a, id: id, name: name, seed: maphash.MakeSeed()}
	g.whole = bucket{a: a, group: g, mu: &g.wholeMu, contents: contents{used: true, key: &BucketKey{Group: id, Attribute: groups.ByGroup}}}
	return g
}

// lockBucket finds or makes a bucket and locks it. A new one has no plan yet.
func (g *group) lockBucket(by groups.Attribute, value string) *bucket {
	if by == groups.ByGroup {
		g.wholeMu.Lock()
		return &g.whole
	}
	s := &g.shards[maphash.String(g.seed, value)%shards]
	s.mu.Lock()
	k := principal{value, by}
	if b := s.buckets[k]; b != nil {
		return b
	}
	b := s.spare
	if s.spare = nil; b == nil {
		b = &bucket{a: g.a, group: g, shard: s, mu: &s.mu}
	}
	key := b.key
	if key == nil || !key.names(by, value) { // tickets have the former one
		key = &BucketKey{Group: g.id, Attribute: by, Value: value}
	}
	b.contents = contents{used: true, key: key}
	if s.buckets == nil {
		s.buckets = make(map[principal]*bucket)
	}
	s.buckets[k] = b
	s.most = max(s.most, len(s.buckets))
	return b
}

// dropLocked takes a bucket out.
func (s *shard) dropLocked(b *bucket) {
	b.used = false
	delete(s.buckets, principal{b.key.Value, b.key.Attribute})
	if len(s.buckets) == 0 && s.most > smallMap {
		s.buckets, s.most = nil, 0
	}
	s.spare = b
}

// tracked counts the permits that are out.
func (g *group) tracked() int64 {
	g.wholeMu.Lock()
	n := g.whole.node + g.whole.shared
	g.wholeMu.Unlock()
	for i := range g.shards {
		s := &g.shards[i]
		s.mu.Lock()
		for _, b := range s.buckets {
			n += b.node + b.shared
		}
		s.mu.Unlock()
	}
	return int64(n)
}

// buckets lists those that are not idle at this moment.
func (g *group) buckets() []*bucket {
	out := g.every()
	g.wholeMu.Lock()
	defer g.wholeMu.Unlock()
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
