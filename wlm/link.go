package wlm

import (
	"hash/maphash"
	"sync"

	"github.com/wlmserver/wlmserver/internal/sharedtier"
)

// Link knows the sessions with the owners of buckets.
type Link interface {
	// Session is the session with the bucket's owner at this moment; nil when there is none. It is called under the bucket's lock
	// and must not wait. When sessions have changed, [Admission.Renew] has to be called.
	Session(k BucketKey) Session

	// LimitsChanged tells that [Admission.SharedLimit] may answer otherwise than before.
	LimitsChanged()
}

// Session carries messages to one owner of buckets. Its answers come back through [Admission.Receive].
type Session interface {
	// Send passes messages on in their order. It must not wait, neither for an answer nor for room. It is called by one goroutine
	// at a time for each bucket, and by many for different ones. A session that is over loses them.
	Send(k BucketKey, messages []sharedtier.Message)

	// Live reports whether a permit that came in the session may be used: the owner surely still holds it for us at this moment.
	Live() bool
}

// owners is the link of a node that is alone: it owns every bucket itself, in one session without an end.
type owners struct {
	a      *Admission
	seed   maphash.Seed
	shards [shards]ownerShard
}

type ownerShard struct {
	mu      sync.Mutex
	buckets map[BucketKey]*owned
	most    int // buckets that the map has had
}

// owned is one bucket's owner and what it has to say. Only one goroutine at a time delivers, so that the order is kept.
type owned struct {
	machine    sharedtier.Owner
	out        []sharedtier.Outgoing
	delivering bool
}

const self sharedtier.Member = "self"

func newOwners(a *Admission) *owners { return &owners{a: a, seed: maphash.MakeSeed()} }

// Session gives the one session that there is.
func (o *owners) Session(BucketKey) Session { return o }

// Live is true: the owner and its permits end with the process.
func (o *owners) Live() bool { return true }

func (o *owners) shard(k BucketKey) *ownerShard {
	return &o.shards[maphash.Comparable(o.seed, k)%shards]
}

// SharedLimit is how many permits of the shared tier the policy of this moment allows a bucket; 0 when it allows none, or the group is
// unknown here.
func (a *Admission) SharedLimit(k BucketKey) int {
	p, ok := a.policy.Load().groups[k.Group]
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
		w = &owned{machine: sharedtier.NewOwner()}
		if s.buckets == nil {
			s.buckets = make(map[BucketKey]*owned)
		}
		s.buckets[k] = w
		s.most = max(s.most, len(s.buckets))
	}
	w.machine.Limit = o.a.SharedLimit(k)
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
			o.a.Receive(k, o, m.Message)
		}
		s.mu.Lock()
	}
	w.delivering = false
	if w.machine.Idle() {
		delete(s.buckets, k)
		if len(s.buckets) == 0 && s.most > smallMap {
			s.buckets, s.most = nil, 0
		}
	}
	s.mu.Unlock()
}

// LimitsChanged lets every owner grant what a raised limit allows.
func (o *owners) LimitsChanged() {
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
