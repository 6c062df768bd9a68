package load

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestBuckets: every duration lies in a bucket whose upper edge is at least it and less than 1 % (or 1 µs) above.
func TestBuckets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, int64(2*time.Hour)).Draw(t, "d"))
		b := bucketOf(d)
		edge := upperEdge(b)
		if edge < d || edge-d > max(d/100, time.Microsecond) {
			t.Fatalf("%v is in bucket %d, which ends at %v", d, b, edge)
		}
		if b > 0 && upperEdge(b-1) >= d {
			t.Fatalf("%v is in bucket %d, and fits the one before", d, b)
		}
	})
	if b := bucketOf(math.MaxInt64); b != buckets-1 {
		t.Errorf("the longest duration is in bucket %d of %d", b, buckets)
	}
}

// TestQuantiles compares with sorted values.
func TestQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, int64(time.Hour)), 1, 200).Draw(t, "values")
		var all, a, b histogram
		for i, v := range values {
			if i%3 == 0 {
				a.record(time.Duration(v))
			} else {
				b.record(time.Duration(v))
			}
		}
		all.add(&a)
		all.add(&b)
		slices.Sort(values)
		for _, q := range []float64{0.001, 0.5, 0.9, 0.99, 0.999, 1} {
			exact := time.Duration(values[max(int(math.Ceil(q*float64(len(values)))), 1)-1])
			if got := all.quantile(q); got < exact || got-exact > max(exact/100, time.Microsecond) {
				t.Fatalf("the quantile %v is %v, exactly %v", q, got, exact)
			}
		}
		if all.max != time.Duration(values[len(values)-1]) || all.total != int64(len(values)) {
			t.Fatalf("max %v of %d", all.max, all.total)
		}
	})
}

func TestEmptyHistogram(t *testing.T) {
	var h histogram
	if h.quantile(0.5) != 0 || h.mean() != 0 || h.max != 0 {
		t.Error("something is in it")
	}
}

func TestHistogramIsCheap(t *testing.T) {
	var h histogram
	if n := testing.AllocsPerRun(100, func() { h.record(time.Second) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
