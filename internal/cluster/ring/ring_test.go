package ring_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/wlmserver/wlmserver/internal/cluster/ring"
)

func member(id string) ring.Member {
	return ring.Member{ID: id, Incarnation: "i-" + id, Name: "name-" + id, Transport: id + ":9300", HTTP: id + ":9200", Version: "3.7.0"}
}

func members(n int) []ring.Member {
	all := make([]ring.Member, n)
	for i := range all {
		all[i] = member(fmt.Sprintf("node-%d", i))
	}
	return all
}

func keys(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("ndvMcmZ9Qjm9MrEe1aydrQ:user-%d", i)
	}
	return all
}

func owner(t testing.TB, r *ring.Ring, key string) string {
	t.Helper()
	m, ok := r.Owner(key)
	if !ok {
		t.Fatalf("nobody owns %s", key)
	}
	return m.ID
}

// Nodes of different versions share a ring, so what a version says holds for ever.
func TestOwnersAreTheSameInEveryProcess(t *testing.T) {
	r := ring.New(1, members(5))
	for key, want := range map[string]string{
		"":                                "node-3",
		"a":                               "node-3",
		"b":                               "node-2",
		"ndvMcmZ9Qjm9MrEe1aydrQ":          "node-4",
		"ndvMcmZ9Qjm9MrEe1aydrQ:ann":      "node-2",
		"ndvMcmZ9Qjm9MrEe1aydrQ:ann2":     "node-1",
		"ndvMcmZ9Qjm9MrEe1aydrQ:東京":       "node-0",
		"x8B2mQw1R1yYl5v0aJm0zA:\x00\xff": "node-2",
	} {
		if got := owner(t, r, key); got != want {
			t.Errorf("owner of %q: %s, want %s", key, got, want)
		}
	}
}

func TestBalance(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 10} {
		r := ring.New(1, members(n))
		share := map[string]int{}
		const count = 100_000
		for _, key := range keys(count) {
			share[owner(t, r, key)]++
		}
		// With 128 points each, the standard deviation of a share is about 1/sqrt(128), 9 % of it; three of them are allowed.
		for id, got := range share {
			if off := math.Abs(float64(got)*float64(n)/count - 1); off > 3/math.Sqrt(128) {
				t.Errorf("%d members: %s owns %.1f %% more or less than its share", n, id, off*100)
			}
		}
		if len(share) != n {
			t.Errorf("%d of %d members own keys", len(share), n)
		}
	}
}

// A member that comes takes keys, and one that goes leaves its own; nobody else's move.
func TestMovement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "members")
		all := members(n + 1)
		place := rapid.IntRange(0, n).Draw(t, "the one that comes or goes")
		with, without := ring.New(2, all), ring.New(1, slices.Delete(slices.Clone(all), place, place+1))
		moved := 0
		const count = 500
		for i := range count {
			key := fmt.Sprintf("%d-%d", rapid.Uint64().Draw(t, "key"), i)
			before, _ := without.Owner(key)
			after, _ := with.Owner(key)
			if before == after {
				continue
			}
			moved++
			if after != all[place] {
				t.Fatalf("%s moved from %s to %s though %s came", key, before.ID, after.ID, all[place].ID)
			}
		}
		if moved == 0 && n < 4 {
			t.Fatalf("none of %d keys moved", count)
		}
	})
}

// Order, incarnation, name and addresses of members do not count.
func TestOwnerFollowsFromIDs(t *testing.T) {
	one := members(4)
	two := members(4)
	slices.Reverse(two)
	for i := range two {
		two[i].Incarnation, two[i].Name, two[i].Transport, two[i].Version = "later", "other", "other:1", "4.0.0"
	}
	a, b := ring.New(1, one), ring.New(2, two)
	for _, key := range keys(1000) {
		if owner(t, a, key) != owner(t, b, key) {
			t.Fatalf("%s: %s and %s", key, owner(t, a, key), owner(t, b, key))
		}
	}
}

func TestOnlyEligibleMembersOwn(t *testing.T) {
	all := members(3)
	all[1].Version = "3.6.9"
	r, bare := ring.New(1, all), ring.New(1, []ring.Member{all[0], all[2]})
	for _, key := range keys(1000) {
		if got := owner(t, r, key); got == all[1].ID || got != owner(t, bare, key) {
			t.Fatalf("%s is owned by %s", key, got)
		}
	}
	if !r.Has(all[1]) || len(r.Members()) != 3 {
		t.Error("an older member is no member")
	}
	for _, none := range []*ring.Ring{ring.New(1, nil), ring.New(1, all[1:2])} {
		if m, ok := none.Owner("a"); ok {
			t.Errorf("%s owns a key", m.ID)
		}
	}
}

func TestVersions(t *testing.T) {
	for version, want := range map[string]bool{
		"3.7.0": true, "3.7.1": true, "3.10.0": true, "4.0.0": true, "3.7.0-SNAPSHOT": true,
		"3.6.99": false, "2.19.1": false, "3.6.0": false, "": false, "3.7": false, "3.7.0.1": false, "three": false, "3.-7.0": false, "3.+7.0": false,
	} {
		if got := (ring.Member{Version: version}).Eligible(); got != want {
			t.Errorf("%q: %t, want %t", version, got, want)
		}
	}
}

func TestMembers(t *testing.T) {
	given := []ring.Member{member("b"), member("a"), member("c")}
	restarted := member("a")
	restarted.Incarnation = "later"
	r := ring.New(7, append(slices.Clone(given), restarted))
	if want := []ring.Member{restarted, given[0], given[2]}; r.Epoch() != 7 || !slices.Equal(r.Members(), want) {
		t.Errorf("epoch %d, members %v, want %v", r.Epoch(), r.Members(), want)
	}
	for _, m := range r.Members() {
		if !r.Has(m) {
			t.Errorf("%s is no member", m.ID)
		}
	}
	if r.Has(given[1]) || r.Has(member("d")) || ring.New(1, nil).Has(given[0]) {
		t.Error("an earlier incarnation, or a stranger, is a member")
	}
	if m, _ := ring.New(1, given[1:2]).Owner("k"); m != given[1] {
		t.Errorf("owner %v", m)
	}
}

func TestOwnerAllocatesNothing(t *testing.T) {
	r := ring.New(1, members(5))
	if n := testing.AllocsPerRun(100, func() { r.Owner("ndvMcmZ9Qjm9MrEe1aydrQ:ann") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkOwner(b *testing.B) {
	r := ring.New(1, members(10))
	all := keys(1024)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.Owner(all[i%len(all)])
	}
}
