package load

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestFatesFollowTheShares: each share is met, within five standard deviations of what chance allows.
func TestFatesFollowTheShares(t *testing.T) {
	p := newPlan(&Options{Seed: 7, CancelShare: 0.1, CancelAfterShare: 0.2, DisconnectShare: 0.3, GiveUp: time.Second})
	const n = 100_000
	var count [4]int
	for i := range uint64(n) {
		f, after := p.fate(i)
		count[f]++
		if again, same := p.fate(i); again != f || same != after {
			t.Fatalf("the request %d has two fates", i)
		}
		if waits := f == cancelsByTask || f == leaves; !waits && after != 0 || after < 0 || after >= time.Second {
			t.Fatalf("fate %d after %v", f, after)
		}
	}
	for f, share := range map[fate]float64{patient: 0.4, cancelsByTask: 0.1, cancelsByItself: 0.2, leaves: 0.3} {
		if off := math.Abs(float64(count[f]) - share*n); off > 5*math.Sqrt(n*share*(1-share)) {
			t.Errorf("fate %d befell %d of %d, wanted a share of %v", f, count[f], n, share)
		}
	}
}

func TestTheSeedDecides(t *testing.T) {
	a, b := newPlan(&Options{Seed: 1, CancelShare: 0.5}), newPlan(&Options{Seed: 2, CancelShare: 0.5})
	same := 0
	for i := range uint64(1000) {
		fa, _ := a.fate(i)
		if fb, _ := b.fate(i); fa == fb {
			same++
		}
	}
	if same < 420 || same > 580 { // five standard deviations about one half
		t.Errorf("two seeds agree on %d of 1000 fates", same)
	}
	all := newPlan(&Options{Seed: 1, CancelShare: 0.2, CancelAfterShare: 0.3, DisconnectShare: 0.5})
	for i := range uint64(1000) {
		if f, _ := all.fate(i); f == patient {
			t.Fatal("a request has no fate where the shares leave none out")
		}
	}
}

// TestWeights: clients get their groups and users exactly by weight, requests of an open loop about so.
func TestWeights(t *testing.T) {
	p := newPlan(&Options{Groups: []Weighted{{"a", 3}, {"b", 1}}, Users: []Weighted{{"x", 1}, {"y", 1}, {"z", 2}}})
	clients := map[identity]int{}
	for _, id := range p.identities(64) {
		clients[id]++
	}
	for id, want := range map[identity]int{{0, 0}: 12, {0, 1}: 12, {0, 2}: 24, {1, 0}: 4, {1, 1}: 4, {1, 2}: 8} {
		if clients[id] != want {
			t.Errorf("%v has %d clients, wanted %d", id, clients[id], want)
		}
	}
	const n = 40_000
	requests := map[identity]int{}
	for i := range uint64(n) {
		requests[p.identity(i)]++
	}
	for id, c := range clients {
		share := float64(c) / 64
		if off := math.Abs(float64(requests[id]) - share*n); off > 5*math.Sqrt(n*share*(1-share)) {
			t.Errorf("%v sends %d of %d requests, wanted a share of %v", id, requests[id], n, share)
		}
	}
	nobody := newPlan(&Options{})
	if id := nobody.identity(5); id != (identity{}) {
		t.Errorf("without groups and users: %v", id)
	}
}

// TestSpreadIsEven: after any number of places each weight has had its share, within one.
func TestSpreadIsEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ws []Weighted
		sum := 0.0
		for _, w := range rapid.SliceOfN(rapid.IntRange(1, 20), 1, 6).Draw(t, "weights") {
			ws = append(ws, Weighted{Weight: float64(w)})
			sum += float64(w)
		}
		s := newSpreader(ws)
		got := make([]float64, len(ws))
		for n := 1.0; n <= 100; n++ {
			got[s.next()]++
			for i, w := range ws {
				if off := got[i] - n*w.Weight/sum; len(ws) == 2 && math.Abs(off) >= 1 || math.Abs(off) >= float64(len(ws)) {
					t.Fatalf("after %v places the weight %d had %v", n, i, got[i])
				}
			}
		}
	})
}

func TestPickStaysInside(t *testing.T) {
	ws := []Weighted{{"a", 0.1}, {"b", 0.2}, {"c", 0.7}}
	for u, want := range map[float64]int{0: 0, 0.05: 0, 0.15: 1, 0.5: 2, math.Nextafter(1, 0): 2} {
		if got := pick(ws, u); got != want {
			t.Errorf("%v picks %d", u, got)
		}
	}
}

func TestSchedule(t *testing.T) {
	for _, c := range []struct {
		rate    float64
		request uint64
		want    time.Duration
	}{
		{1, 0, 0}, {1, 3, 3 * time.Second}, {0.5, 1, 2 * time.Second}, {1000, 1, time.Millisecond},
		{1_000_000, 86_400_000_000, 24 * time.Hour}, {0.000001, 1 << 62, math.MaxInt64},
	} {
		if got := (schedule{c.rate}).at(c.request); got != c.want {
			t.Errorf("at %v/s the request %d is due after %v, wanted %v", c.rate, c.request, got, c.want)
		}
	}
}

func TestFairness(t *testing.T) {
	for name, c := range map[string]struct {
		shares []int64
		want   float64
	}{
		"all alike":           {[]int64{5, 5, 5, 5}, 1},
		"one has it all":      {[]int64{8, 0, 0, 0}, 0.25},
		"half have it":        {[]int64{3, 3, 0, 0}, 0.5},
		"nobody has anything": {[]int64{0, 0}, 1},
	} {
		if got := fairness(c.shares); got != c.want {
			t.Errorf("%s: %v, wanted %v", name, got, c.want)
		}
	}
}
