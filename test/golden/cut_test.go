package golden_test

import (
	"fmt"
	"regexp"
	"strings"
)

// token is one token of JSON, with the colon behind it if it is a key.
var token = regexp.MustCompile(`("(?:[^"\\]|\\.)*"|[\[\]{},]|[^\s\[\]{},:"]+)(\s*:)?`)

// compareCut compares an answer with the beginning of the recorded one, which is all that there is of it: keys, structure and kinds
// of values, token by token.
func (r *replay) compareCut(theirs, ours string) []string {
	want, have := token.FindAllStringSubmatch(whole(theirs), -1), token.FindAllStringSubmatch(ours, -1)
	for i, w := range want {
		if i == len(have) {
			return []string{fmt.Sprintf("it ends where %s was recorded", w[0])}
		}
		h := have[i]
		if isKey := w[2] != ""; isKey != (h[2] != "") || kindOf(w[1]) != kindOf(h[1]) || (isKey || kindOf(w[1]) == 0) && r.ids.Replace(w[1]) != h[1] {
			return []string{fmt.Sprintf("token %d is %s, recorded %s", i, h[0], w[0])}
		}
	}
	return nil
}

// whole leaves out the last token of what was cut: it is cut too.
func whole(text string) string {
	end := 0
	for _, t := range token.FindAllStringIndex(text, -1) {
		if strings.Contains(text[end:t[0]], `"`) { // a string without an end
			return text[:end]
		}
		end = t[1]
	}
	return text[:max(0, strings.LastIndexAny(text[:end], ",:[{"))]
}

// kindOf tells what kind of value a token is, by its first character; 0 for what is none.
func kindOf(token string) byte {
	switch c := token[0]; {
	case c == '-' || c >= '0' && c <= '9':
		return '0'
	case c == '"' || c == 'n':
		return c
	case c == 't' || c == 'f':
		return 't'
	}
	return 0
}
