package stub

// nearest returns the candidate that a mistyped word most likely means, or ""
// when none is near: at most a third of the word's letters may differ.
func nearest(word string, candidates []string) string {
	best, bestDistance := "", len(word)/3+1
	for _, c := range candidates {
		if d := distance(word, c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance is how many letters have to be put in, taken out, replaced or swapped
// with their neighbour to make b of a.
func distance(a, b string) int {
	if len(a) > 64 { // no name is as long; do not let a long one cost time
		return len(a)
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// didYouMean is the end of a message about an unknown word: a hint, or nothing.
func didYouMean(word string, candidates []string) string {
	if n := nearest(word, candidates); n != "" {
		return " did you mean [" + n + "]?"
	}
	return ""
}
