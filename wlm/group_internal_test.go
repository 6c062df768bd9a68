package wlm

import (
	"testing"

	"github.com/wlmserver/wlmserver/groups"
)

// TestBucketIsUsedAgain: the memory of a bucket that was taken out is another principal's next, with nothing of the former in it.
func TestBucketIsUsedAgain(t *testing.T) {
	a := New()
	g := newGroup(a, "g", "g")
	first := g.lockBucket(groups.ByUsername, "u")
	first.node, first.interval, first.lastTry = 1, 1, 1
	first.unlock()
	if len(g.buckets()) != 1 {
		t.Fatal("a bucket with a permit was taken out")
	}
	if b := g.lockBucket(groups.ByUsername, "u"); b != first {
		t.Fatal("two buckets of one principal")
	}
	first.node = 0
	former := first.key // as tickets have it
	first.unlock()
	if len(g.buckets()) != 0 {
		t.Fatal("an idle bucket was not taken out")
	}
	second := g.lockBucket(groups.ByRole, "u")
	defer second.mu.Unlock()
	if second != first {
		t.Error("the memory of a bucket is not used again")
	}
	if want := (BucketKey{"g", groups.ByRole, "u"}); *second.key != want || second.interval != 0 || second.lastTry != 0 || second.plan != nil {
		t.Errorf("a new bucket is %+v, not that of %v", second.contents, want)
	}
	if want := (BucketKey{"g", groups.ByUsername, "u"}); *former != want {
		t.Errorf("the key of tickets has become %v, not %v as it was", *former, want)
	}
}

// TestTakenOutOnce: who has listed a bucket may come to it when it has been taken out and another one is its principal's.
func TestTakenOutOnce(t *testing.T) {
	a := New()
	g := newGroup(a, "g", "g")
	first := g.lockBucket(groups.ByUsername, "u")
	first.unlock()
	first.shard.spare = nil
	second := g.lockBucket(groups.ByUsername, "u")
	second.node = 1
	second.unlock()
	first.mu.Lock()
	first.unlock()
	if all := g.buckets(); len(all) != 1 || all[0] != second || first == second {
		t.Errorf("%d buckets are left of a principal with a permit", len(all))
	}
}
