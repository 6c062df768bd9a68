package node

import "math"

// nearest returns the known name with the fewest letters to change, insert or remove from name; of equals the first.
func nearest(name string, known []string) string {
	best, distance := "", math.MaxInt
	for _, k := range known {
		if d := editDistance(name, k); d < distance {
			best, distance = k, d
		}
	}
	return best
}

// editDistance is the Levenshtein distance in bytes, by rows of its table.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			row[j+1] = min(substitute, above+1, row[j]+1)
			diagonal = above
		}
	}
	return row[len(b)]
}
