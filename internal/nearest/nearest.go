// Package nearest finds the known name that a mistyped one most likely means.
package nearest

import (
	"iter"
	"slices"
)

// longest is how many bytes of a name are looked at: no known name is longer, and a long one must not cost time.
const longest = 128

// Name returns the candidate that takes the fewest edits (a byte put in, taken out, replaced, or swapped with its neighbour) to
// reach from name; of equals the first. It is empty when more than half of the longer of the two would have to change.
func Name(name string, candidates ...string) string {
	return Of(name, slices.Values(candidates))
}

// Of is [Name] over a sequence.
func Of(name string, candidates iter.Seq[string]) string {
	best, fewest := "", longest
	for c := range candidates {
		limit := max(len(name), len(c)) / 2
		if d := distance(name, c); d <= limit && d < fewest {
			best, fewest = c, d
		}
	}
	return best
}

// distance is the optimal string alignment distance: Levenshtein's, with a swap of neighbours as one edit.
func distance(a, b string) int {
	if len(a) > longest || len(b) > longest {
		return longest
	}
	var before []int // the row before the last one
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
