package stub

import "github.com/wlmserver/wlmserver/internal/nearest"

// didYouMean is the end of a message about an unknown word: a hint, or nothing.
func didYouMean(word string, candidates []string) string {
	if n := nearest.Name(word, candidates...); n != "" {
		return " did you mean [" + n + "]?"
	}
	return ""
}
