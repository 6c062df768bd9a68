package stub

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
)

// router says on which shard of an index a document lives: the one that
// OpenSearch would choose, so that hits come in its order. The hash is taken
// over a larger number of places than there are shards (which is what lets
// OpenSearch split an index), and each shard has an equal share of them.
type router struct {
	places int // a multiple of the number of shards
	share  int // places of one shard
}

func newRouter(shards int) router {
	const mostSplits = 10 // 2^10 = 1024, the most shards of an index
	splits := max(1, mostSplits-bits.Len(uint(shards-1)))
	return router{places: shards << splits, share: 1 << splits}
}

func (r router) shard(id string) int {
	place := int(int32(murmur3(id))) % r.places
	if place < 0 {
		place += r.places
	}
	return place / r.share
}

// murmur3 is the 32-bit MurmurHash3 with seed 0 of s in UTF-16, low byte first.
func murmur3(s string) uint32 {
	const c1, c2 = 0xcc9e2d51, 0x1b873593
	units := utf16.Encode([]rune(s))
	b := make([]byte, 0, 2*len(units)+2)
	for _, u := range units {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	length := len(b)
	var h uint32
	for ; len(b) >= 4; b = b[4:] {
		h ^= bits.RotateLeft32(binary.LittleEndian.Uint32(b)*c1, 15) * c2
		h = bits.RotateLeft32(h, 13)*5 + 0xe6546b64
	}
	if len(b) > 0 { // two bytes: the length is even
		h ^= bits.RotateLeft32(uint32(binary.LittleEndian.Uint16(b))*c1, 15) * c2
	}
	h ^= uint32(length)
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}
