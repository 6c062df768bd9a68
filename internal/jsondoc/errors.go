package jsondoc

import (
	"fmt"
	"strings"
)

// A SyntaxError says why and where a text is not an acceptable JSON document.
type SyntaxError struct {
	Offset int    // of the byte that is wrong; the length of the input where that ended too soon
	Reason string // what is wrong there

	// UnexpectedEnd is true where the input ends inside a value. OpenSearch answers
	// unexpected_end_of_input_exception then, else json_parse_exception; an end right
	// after a comma or inside true, false or null is of the second kind.
	UnexpectedEnd bool

	// DuplicateKey is the key that an object has twice.
	DuplicateKey string

	// Path holds the keys from the root to the object or value that is at fault.
	Path []string
}

// Error tells the reason, the place and the offset.
func (e *SyntaxError) Error() string {
	where := ""
	if len(e.Path) > 0 {
		where = " in [" + strings.Join(e.Path, ".") + "]"
	}
	return fmt.Sprintf("malformed JSON%s: %s; byte offset: #%d", where, e.Reason, e.Offset)
}

// Position turns an offset into line and column, both from 1, as parsing_exception
// prints them: columns count bytes, and each of \n, \r and \r\n ends a line. An offset
// outside of b counts as its nearest end.
func Position(b []byte, offset int) (line, column int) {
	offset = max(0, min(offset, len(b)))
	line, start := 1, 0
	for i, c := range b[:offset] {
		// The \r of a \r\n is passed over: the \n after it ends the line.
		if c == '\n' || c == '\r' && (i+1 >= len(b) || b[i+1] != '\n') {
			line, start = line+1, i+1
		}
	}
	return line, offset - start + 1
}
