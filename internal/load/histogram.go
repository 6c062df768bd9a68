package load

import (
	"math"
	"math/bits"
	"time"
)

// Values are kept in microseconds: exact below 2*subBuckets of them, above in subBuckets parts of each power of two, which
// is off by less than 1 %.
const (
	subBits    = 7
	subBuckets = 1 << subBits
	maxBits    = 33 // 2^33 µs are more than two hours
	buckets    = (maxBits - subBits + 1) * subBuckets
)

// histogram counts durations in fixed memory, about 27 KB. The zero value is empty. It is not safe for concurrent use.
type histogram struct {
	counts   [buckets]int64
	total    int64
	sum, max time.Duration
}

func (h *histogram) record(d time.Duration) {
	d = max(d, 0)
	h.counts[bucketOf(d)]++
	h.total++
	h.sum += d
	h.max = max(h.max, d)
}

// quantile returns a duration that the share q, in (0, 1], of the recorded ones did not exceed: never less than the true one,
// and at most the greatest. It is 0 when nothing was recorded.
func (h *histogram) quantile(q float64) time.Duration {
	rank := max(int64(math.Ceil(q*float64(h.total))), 1)
	var seen int64
	for i, n := range h.counts {
		if seen += n; seen >= rank {
			return min(upperEdge(i), h.max)
		}
	}
	return h.max
}

func (h *histogram) mean() time.Duration {
	if h.total == 0 {
		return 0
	}
	return h.sum / time.Duration(h.total)
}

// add counts all that o counted.
func (h *histogram) add(o *histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.total += o.total
	h.sum += o.sum
	h.max = max(h.max, o.max)
}

func bucketOf(d time.Duration) int {
	v := uint64(d / time.Microsecond)
	shift := max(bits.Len64(v)-subBits-1, 0)
	return min(shift*subBuckets+int(v>>shift), buckets-1)
}

// upperEdge is the longest duration that falls into the bucket.
func upperEdge(bucket int) time.Duration {
	if bucket == buckets-1 {
		return math.MaxInt64
	}
	shift := max(bucket/subBuckets-1, 0)
	next := uint64(bucket-shift*subBuckets+1) << shift
	return time.Duration(next)*time.Microsecond - 1
}
