package auth

// nearest is the known name that takes the fewest letters changed, added or removed to become name.
func nearest(name string, known ...string) string {
	best, least := "", -1
	for _, k := range known {
		if d := distance(name, k); least < 0 || d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is the edit distance of two texts, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := corner
			if a[i] != b[j] {
				d++
			}
			corner = row[j+1]
			row[j+1] = min(d, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
