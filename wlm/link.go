package wlm

import (
	"hash/maphash"
	"sync"

	"github.com/wlmserver/wlmserver/internal/sharedtier"
)

// Link carries messages to the owners of buckets. Answers come back through [Admission.Receive].
type Link interface {
	// Send passes messages on to the bucket's owner in their order. It must not wait for an answer. It is called by one
	// goroutine at a time for each bucket, and by many for different ones.
	Send(k BucketKey, messages []sharedtier.Message)
}

// owners is the link of a node that is alone: it owns every bucket itself.
type owners struct {
	a      *Admission
	seed   maphash.Seed
	shards [shards]ownerShard
}

type ownerShard struct {
	mu      sync.Mutex
	buckets map[BucketKey]*owned
}

// owned is one bucket's owner and what it has to say. Only one goroutine at a time delivers, so that the order is kept.
type owned struct {
	machine    sharedtier.Owner
	out        []sharedtier.Outgoing
	delivering bool
}

const self sharedtier.Member = "self"

func newOwners(a *Admission) *owners { return &owners{a: a, seed: maphash.MakeSeed()} }

func (o *owners) shard(k BucketKey) *ownerShard {
	return &o.shards[maphash.Comparable(o.seed, k)%shards]
}

// limit is what the policy of this moment allows the bucket.
func (o *owners) limit(k BucketKey) int {
	p, ok := o.a.policy.Load().groups[k.Group]
	if !ok || p.plan.attribute != k.Attribute {
		return 0
	}
	return p.plan.shared
}

// Send lets the owner take in the messages, under the limit of this moment, and delivers what it answers.
func (o *owners) Send(k BucketKey, messages []sharedtier.Message) {
	s := o.shard(k)
	s.mu.Lock()
	w := s.buckets[k]
	if w == nil {
		w = new(owned)
		if s.buckets == nil {
			s.buckets = make(map[BucketKey]*owned)
		}
		s.buckets[k] = w
	}
	w.machine.Limit = o.limit(k)
	w.out = w.machine.Push(w.out)
	for _, m := range messages {
		w.out = w.machine.Receive(self, m, w.out)
	}
	o.deliver(s, k, w)
}

// deliver sends what the owner has to say and releases the shard's lock, which the caller holds.
func (o *owners) deliver(s *ownerShard, k BucketKey, w *owned) {
	if w.delivering {
		s.mu.Unlock()
		return
	}
	w.delivering = true
	for len(w.out) > 0 {
		out := w.out
		w.out = nil
		s.mu.Unlock()
		for _, m := range out {
			o.a.Receive(k, m.Message)
		}
		s.mu.Lock()
	}
	w.delivering = false
	if w.machine.Idle() {
		delete(s.buckets, k)
	}
	s.mu.Unlock()
}

// limitsChanged lets every owner grant what a raised limit allows.
func (o *owners) limitsChanged() {
	for i := range o.shards {
		s := &o.shards[i]
		s.mu.Lock()
		keys := make([]BucketKey, 0, len(s.buckets))
		for k := range s.buckets {
			keys = append(keys, k)
		}
		s.mu.Unlock()
		for _, k := range keys {
			o.Send(k, nil)
		}
	}
}
