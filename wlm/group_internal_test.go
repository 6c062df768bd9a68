package wlm

import (
	"runtime"
	"sync"
	"testing"

	"github.com/wlmserver/wlmserver/groups"
)

func newBucket(t *testing.T) (*group, *bucket) {
	t.Helper()
	a := New(WithoutSweep())
	t.Cleanup(a.Close)
	g := newGroup(a, "g", "g")
	b := g.lockBucket(BucketKey{Group: "g", Attribute: groups.ByUsername, Value: "u"})
	b.mu.Unlock()
	return g, b
}

// TestDropLooksAgain: between a bucket's last search and the taking out of it another search may have come.
func TestDropLooksAgain(t *testing.T) {
	g, b := newBucket(t)
	b.node = 1
	if g.drop(b); b.dead || len(g.buckets()) != 1 {
		t.Error("a bucket with a permit was taken out")
	}
	b.node = 0
	if g.drop(b); !b.dead || len(g.buckets()) != 0 {
		t.Error("an idle bucket was not taken out")
	}
}

// TestTakenOutIsNotUsed: between finding a bucket and locking it, it may have been taken out.
func TestTakenOutIsNotUsed(t *testing.T) {
	g, b := newBucket(t)
	b.dead = true
	var out sync.WaitGroup
	out.Go(func() {
		for b.mu.TryLock() { // until it has been found
			b.mu.Unlock()
			runtime.Gosched()
		}
		s := g.shard(b.key)
		s.mu.Lock()
		delete(s.buckets, b.key)
		s.mu.Unlock()
	})
	got := g.lockBucket(b.key)
	out.Wait()
	got.mu.Unlock()
	if got == b {
		t.Error("a bucket that was taken out is used")
	}
}
