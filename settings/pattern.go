package settings

import "strings"

// match tells whether key fits pattern, in which each "*" stands for any text, also none.
func match(pattern, key string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	if last == 0 {
		return pattern == key
	}
	key, ok := strings.CutPrefix(key, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1:last] {
		if _, key, ok = strings.Cut(key, part); !ok {
			return false
		}
	}
	return strings.HasSuffix(key, parts[last])
}
