package shard_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/wlmserver/wlmserver/internal/shard"
)

func number(n float64) shard.Key { return shard.Key{Kind: shard.Number, Number: n} }
func text(s string) shard.Key    { return shard.Key{Kind: shard.Text, Text: s} }

func TestCompare(t *testing.T) {
	ascending := []shard.Sort{{Field: "a"}}
	descending := []shard.Sort{{Field: "a", Descending: true}}
	none := shard.Key{}
	for _, c := range []struct {
		name  string
		sorts []shard.Sort
		keys  []shard.Key // in the order expected
	}{
		{"numbers up", ascending, []shard.Key{number(-1), number(2), number(10), none}},
		{"numbers down", descending, []shard.Key{number(10), number(2), number(-1), none}},
		{"texts up", ascending, []shard.Key{text("10"), text("2"), text("b"), none}},
		{"numbers before texts", ascending, []shard.Key{number(5), text("1"), none}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := slices.Clone(c.keys)
			slices.Reverse(got)
			slices.SortStableFunc(got, func(a, b shard.Key) int {
				return shard.Compare(c.sorts, []shard.Key{a}, []shard.Key{b})
			})
			if !slices.Equal(got, c.keys) {
				t.Errorf("sorted = %v, want %v", got, c.keys)
			}
		})
	}
}

func TestCompareLooksAtTheNextCriterionOnATie(t *testing.T) {
	sorts := []shard.Sort{{Field: "a"}, {Field: "b", Descending: true}}
	if c := shard.Compare(sorts, []shard.Key{number(1), number(5)}, []shard.Key{number(1), number(3)}); c >= 0 {
		t.Errorf("Compare = %d, want negative: equal in a, greater in b, which is descending", c)
	}
}

// Sorting needs an order that is antisymmetric and transitive, whatever the keys.
func TestCompareIsAnOrder(t *testing.T) {
	key := rapid.Custom(func(t *rapid.T) shard.Key {
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			return shard.Key{}
		case 1:
			return number(rapid.Float64Range(-3, 3).Draw(t, "number"))
		default:
			return text(rapid.StringMatching(`[ab]{0,2}`).Draw(t, "text"))
		}
	})
	keys := rapid.SliceOfN(key, 2, 2)
	rapid.Check(t, func(t *rapid.T) {
		sorts := []shard.Sort{{Field: "a", Descending: rapid.Bool().Draw(t, "a descending")}, {Field: "b", Descending: rapid.Bool().Draw(t, "b descending")}}
		a, b, c := keys.Draw(t, "a"), keys.Draw(t, "b"), keys.Draw(t, "c")
		if shard.Compare(sorts, a, b) != -shard.Compare(sorts, b, a) {
			t.Fatalf("Compare is not antisymmetric for %v and %v", a, b)
		}
		if shard.Compare(sorts, a, b) <= 0 && shard.Compare(sorts, b, c) <= 0 && shard.Compare(sorts, a, c) > 0 {
			t.Fatalf("Compare is not transitive for %v, %v, %v", a, b, c)
		}
	})
}
