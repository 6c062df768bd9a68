package jsondoc

import (
	"unicode/utf16"
	"unicode/utf8"
)

// str reads the string that begins at pos.
func (p *parser) str() (string, *SyntaxError) {
	p.pos++ // "
	start := p.pos
	var unescaped []byte // what comes before start, once there was an escape
	for p.pos < len(p.b) {
		switch c := p.b[p.pos]; {
		case c == '"':
			text := p.b[start:p.pos]
			p.pos++
			if unescaped != nil {
				text = append(unescaped, text...)
			}
			return string(text), nil
		case c == '\\':
			unescaped = append(unescaped, p.b[start:p.pos]...)
			r, fault := p.escape()
			if fault != nil {
				return "", fault
			}
			unescaped = utf8.AppendRune(unescaped, r)
			start = p.pos
		case c < ' ':
			return "", p.fail("control character " + p.here() + " in a string; write it as an escape")
		case c < utf8.RuneSelf:
			p.pos++
		default:
			r, size := utf8.DecodeRune(p.b[p.pos:])
			if r == utf8.RuneError && size == 1 {
				return "", p.fail("invalid UTF-8: " + p.here())
			}
			p.pos += size
		}
	}
	return "", p.end("a double quote should close the string")
}

// escape reads the escape sequence whose backslash is at pos.
func (p *parser) escape() (rune, *SyntaxError) {
	p.pos++ // \
	if p.pos >= len(p.b) {
		return 0, p.end("a backslash begins an escape")
	}
	c := p.b[p.pos]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		p.pos++
		return p.unicodeEscape()
	default:
		return 0, p.fail("unknown escape " + p.here() + " after a backslash")
	}
	p.pos++
	return rune(c), nil
}

// unicodeEscape reads the four digits after \u, and a second escape with them where
// the two are halves of one character.
func (p *parser) unicodeEscape() (rune, *SyntaxError) {
	r, fault := p.hex4()
	if fault != nil || !utf16.IsSurrogate(r) {
		return r, fault
	}
	if p.pos+1 < len(p.b) && p.b[p.pos] == '\\' && p.b[p.pos+1] == 'u' {
		after := p.pos
		p.pos += 2
		low, fault := p.hex4()
		if fault != nil {
			return 0, fault
		}
		if whole := utf16.DecodeRune(r, low); whole != utf8.RuneError {
			return whole, nil
		}
		p.pos = after // the second one stands for itself
	}
	return utf8.RuneError, nil
}

func (p *parser) hex4() (rune, *SyntaxError) {
	var r rune
	for range 4 {
		if p.pos >= len(p.b) {
			return 0, p.end("four hexadecimal digits should follow \\u")
		}
		c := p.b[p.pos]
		switch {
		case isDigit(c):
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, p.fail("four hexadecimal digits should follow \\u where " + p.here() + " is")
		}
		r = r<<4 | rune(c)
		p.pos++
	}
	return r, nil
}
