package stub

import "testing"

// The values of OpenSearch's own hash, and where a real server put documents of an
// index with two shards.
func TestRoutingIsOpenSearchs(t *testing.T) {
	for text, want := range map[string]uint32{
		"hell":      0x5a0cb7c3,
		"hello":     0xd7c31989,
		"hello w":   0x22ab2984,
		"hello wo":  0xdf0ca123,
		"hello wor": 0xe7744d61,
		"The quick brown fox jumps over the lazy dog": 0xe07db09c,
		"The quick brown fox jumps over the lazy cog": 0x4e63d2ad,
	} {
		if got := murmur3(text); got != want {
			t.Errorf("murmur3(%q) = %#x, want %#x", text, got, want)
		}
	}
	for id, want := range map[string]int{"1": 0, "2": 0, "3": 0, "5": 0, "0": 1, "4": 1, "Jg3vKKIB7LZ-4g7f2SD0": 1} {
		if got := newRouter(2).shard(id); got != want {
			t.Errorf("document %q is on shard %d, want %d", id, got, want)
		}
	}
}

func TestEveryShardGetsDocuments(t *testing.T) {
	for _, shards := range []int{1, 2, 3, 5, 7, 64, 1000, 1024} {
		r := newRouter(shards)
		if got := r.places / r.share; got != shards {
			t.Errorf("%d shards share the places as if they were %d", shards, got)
		}
		if r.places > 1<<20 || r.places < shards {
			t.Errorf("%d shards have %d places", shards, r.places)
		}
		seen := make(map[int]bool)
		for i := range 50 * shards {
			s := r.shard(randomID(8) + string(rune('a'+i%26)))
			if s < 0 || s >= shards {
				t.Fatalf("shard %d of %d", s, shards)
			}
			seen[s] = true
		}
		// Fifty documents each: that one shard of a thousand has none is less likely
		// than 1 in 10^18.
		if len(seen) != shards {
			t.Errorf("%d of %d shards have documents", len(seen), shards)
		}
	}
}
