package settings

// nearest finds the known key that takes the fewest edits to reach from key, the first in order of
// keys among equals. A key that shares less than half with every known one has no neighbour: the
// answer is then empty. Keys much longer than any known one cost nothing.
func (c *catalogue) nearest(key string) string {
	best, found := 0, ""
	for _, d := range c.definitions {
		limit := max(len(key), len(d.Key)) / 2
		if found != "" {
			limit = min(limit, best-1)
		}
		if n, ok := distance(key, d.Key, limit); ok {
			best, found = n, d.Key
		}
	}
	return found
}

// distance is the number of bytes to insert, delete or replace to turn a into b (Levenshtein); false
// when it is above limit.
func distance(a, b string, limit int) (int, bool) {
	if max(len(a)-len(b), len(b)-len(a)) > limit {
		return 0, false
	}
	row := make([]int, len(b)+1) // distances of a's first i bytes to each beginning of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, diagonal+1)
		}
	}
	n := row[len(b)]
	return n, n <= limit
}
