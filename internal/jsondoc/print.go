package jsondoc

import "unicode/utf8"

// AppendString appends s as a JSON string. Only what JSON demands is escaped; what is
// not valid UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	dst = append(dst, '"')
	start := 0 // of what is copied as it is
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(dst, s[start:i]...)
				dst = utf8.AppendRune(dst, utf8.RuneError)
				start = i + 1
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xF])
		}
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// Pretty appends a JSON document in OpenSearch's readable form: two spaces a level,
// each member and item on its own line, a space on both sides of the colon, "{ }" and
// "[ ]" for what is empty, and a newline at the end. Strings and numbers stay as they
// are written. From [MaxIndent] levels on, lines are not indented further. What it prints for something that is not valid JSON is unspecified.
func Pretty(dst, document []byte) []byte {
	depth := 0
	for i := 0; i < len(document); i++ {
		switch c := document[i]; c {
		case ' ', '\t', '\n', '\r':
		case '{', '[':
			dst = append(dst, c)
			if next := nextToken(document, i+1); next < len(document) && document[next] == c+2 { // } and ] stand two after { and [
				dst = append(dst, ' ', c+2)
				i = next
				continue
			}
			depth++
			dst = newLine(dst, depth)
		case '}', ']':
			depth--
			dst = newLine(dst, depth)
			dst = append(dst, c)
		case ',':
			dst = append(dst, c)
			dst = newLine(dst, depth)
		case ':':
			dst = append(dst, " : "...)
		case '"':
			end := stringEnd(document, i)
			dst = append(dst, document[i:end]...)
			i = end - 1
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '\n')
}

// MaxIndent is how many levels of a document are indented. Without an end, one that nests deeply would be printed a
// thousand times as long as it is.
const MaxIndent = 64

func newLine(dst []byte, depth int) []byte {
	dst = append(dst, '\n')
	for range min(depth, MaxIndent) {
		dst = append(dst, ' ', ' ')
	}
	return dst
}

// nextToken returns where white space that may be at i ends.
func nextToken(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// stringEnd returns where the string that begins at i ends, behind its closing quote.
func stringEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}
