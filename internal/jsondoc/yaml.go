package jsondoc

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	yamlIndent   = 2
	yamlWidth    = 80  // strings are broken behind this column
	yamlShortKey = 128 // longer keys are marked with a question mark
)

// YAML appends a JSON document as OpenSearch prints YAML: a line "---", block style but for what is empty, strings in
// double quotes and broken where they are long, keys without quotes where they need none, and a newline at the end. What
// nests deeper than [MaxIndent] levels stands in one line.
// What it prints for something that is not valid JSON is unspecified.
func YAML(dst, document []byte) []byte {
	p := yamlPrinter{in: document, out: append(dst, "---"...)}
	p.pos = nextToken(document, 0)
	p.value(-yamlIndent, false)
	return append(p.out, '\n')
}

type yamlPrinter struct {
	in  []byte
	pos int
	out []byte
}

// peek returns the next byte that is not white space, 0 at the end.
func (p *yamlPrinter) peek() byte {
	p.pos = nextToken(p.in, p.pos)
	if p.pos >= len(p.in) {
		return 0
	}
	return p.in[p.pos]
}

// value prints the value at pos, which belongs to something that stands at indent. A list as an item of a list and an
// object as one begin in the item's line.
func (p *yamlPrinter) value(indent int, item bool) {
	opening := p.peek()
	switch opening {
	case 0:
		return
	case '"':
		p.out = append(p.out, ' ')
		p.quoted(p.str(), indent+yamlIndent)
		return
	case '{', '[':
	default:
		end := valueEnd(p.in, p.pos)
		p.out = append(append(p.out, ' '), p.in[p.pos:end]...)
		p.pos = end
		return
	}
	p.pos++
	if p.peek() == opening+2 { // } and ] stand two after { and [
		p.pos++
		p.out = append(p.out, ' ', opening, opening+2)
		return
	}
	if indent >= yamlIndent*MaxIndent {
		p.flow(opening)
		return
	}
	inner := indent + yamlIndent
	if opening == '[' && !item && indent >= 0 { // the items of a list in an object stand below its key
		inner = indent
	}
	for first := true; ; first = false {
		switch p.peek() {
		case 0:
			return
		case opening + 2:
			p.pos++
			return
		case ',':
			p.pos++
			p.peek()
		}
		if first && item {
			p.out = append(p.out, ' ')
		} else {
			p.newLine(inner)
		}
		if opening == '[' {
			p.out = append(p.out, '-')
			p.value(inner, true)
		} else {
			p.member(inner)
		}
	}
}

// flow prints the rest of an object or a list, of which the opening has been read, in one line.
func (p *yamlPrinter) flow(opening byte) {
	p.out = append(p.out, ' ', opening)
	for depth := 1; depth > 0; {
		c := p.peek()
		switch c {
		case 0:
			return
		case '"':
			p.out = append(p.out, '"')
			for _, r := range p.str() {
				p.out = appendYAMLCharacter(p.out, r)
			}
			p.out = append(p.out, '"')
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		p.pos++
		p.out = append(p.out, c)
		if c == ':' || c == ',' {
			p.out = append(p.out, ' ')
		}
	}
}

func (p *yamlPrinter) member(indent int) {
	name := p.str()
	long := utf8.RuneCountInString(name) >= yamlShortKey
	if long {
		p.out = append(p.out, "? "...)
	}
	if plainKey(name) {
		p.out = append(p.out, name...)
	} else {
		p.quoted(name, indent+yamlIndent)
	}
	if p.peek() == ':' {
		p.pos++
	}
	if long {
		p.newLine(indent)
	}
	p.out = append(p.out, ':')
	p.value(indent, long)
}

// str reads the string at pos.
func (p *yamlPrinter) str() string {
	if p.peek() != '"' {
		return ""
	}
	end := stringEnd(p.in, p.pos)
	literal := p.in[p.pos:end]
	p.pos = end
	return nameOf(literal)
}

func (p *yamlPrinter) newLine(indent int) {
	p.out = append(p.out, '\n')
	for range indent {
		p.out = append(p.out, ' ')
	}
}

// column returns how many characters the last line has, counted as Java counts them.
func (p *yamlPrinter) column() int {
	return javaLen(string(p.out[bytes.LastIndexByte(p.out, '\n')+1:]))
}

func javaLen(s string) int {
	n := 0
	for _, r := range s {
		n += max(1, utf16.RuneLen(r))
	}
	return n
}

// quoted prints a string in double quotes. It is broken at a space, or behind a character that is not plain ASCII, where
// it has passed the width; lines that go on begin at indent.
func (p *yamlPrinter) quoted(s string, indent int) {
	p.out = append(p.out, '"')
	column := p.column()
	pending := 0 // plain characters since start
	start := 0
	for i, r := range s {
		size := utf8.RuneLen(r)
		if r == utf8.RuneError {
			_, size = utf8.DecodeRuneInString(s[i:])
		}
		plain := plainInQuotes(r)
		if !plain {
			p.out = append(p.out, s[start:i]...)
			before := len(p.out)
			p.out = appendYAMLEscape(p.out, r)
			column += pending + javaLen(string(p.out[before:]))
			pending, start = 0, i+size
		}
		last := i+size == len(s)
		if i > 0 && !last && (r == ' ' || !plain) && column+pending > yamlWidth {
			if start < i {
				p.out = append(p.out, s[start:i]...)
				start = i
			}
			pending = 0
			p.out = append(p.out, '\\')
			p.newLine(indent)
			column = indent
			if s[start] == ' ' {
				p.out = append(p.out, '\\')
				column++
			}
		}
		if plain {
			pending++
		}
	}
	p.out = append(append(p.out, s[start:]...), '"')
}

// plainInQuotes says whether a character in double quotes stands for itself, and takes one column.
func plainInQuotes(r rune) bool { return r >= ' ' && r <= '~' && r != '"' && r != '\\' }

func appendYAMLCharacter(dst []byte, r rune) []byte {
	if plainInQuotes(r) {
		return append(dst, byte(r))
	}
	return appendYAMLEscape(dst, r)
}

// These are the characters that have an escape of one letter.
const (
	yamlEscaped = "\x00\a\b\t\n\v\f\r\x1b\"\\\u0085\u00a0\u2028\u2029"
	yamlLetters = `0abtnvfre"\N_LP`
)

func appendYAMLEscape(dst []byte, r rune) []byte {
	if i := strings.IndexRune(yamlEscaped, r); i >= 0 {
		return append(dst, '\\', yamlLetters[utf8.RuneCountInString(yamlEscaped[:i])])
	}
	switch {
	case r >= 0xa0 && r <= 0xfffd && r != 0xfeff, r >= 0x10000:
		return utf8.AppendRune(dst, r)
	case r <= 0xff:
		return fmt.Appendf(dst, `\x%02x`, r)
	}
	return fmt.Appendf(dst, `\u%04x`, r)
}

// plainKey says whether a key needs no quotes.
func plainKey(s string) bool {
	switch strings.ToLower(s) {
	case "", "false", "true", "null", "~", "n", "no", "y", "yes", "on", "off", "=", "<<":
		return false
	}
	if s[0] == ' ' || s[len(s)-1] == ' ' || strings.HasPrefix(s, "---") || strings.HasPrefix(s, "...") ||
		strings.HasPrefix(s, "0x") || strings.ContainsRune("#,[]{}&*!|>'\"%@`?:-", rune(s[0])) ||
		strings.Contains(s, ": ") || strings.HasSuffix(s, ":") || strings.Contains(s, " #") {
		return false
	}
	for _, r := range s {
		if r < ' ' || r > '~' && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == utf8.RuneError {
			return false
		}
	}
	return true
}
