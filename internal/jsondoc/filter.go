package jsondoc

import (
	"bytes"
	"slices"
	"strings"
)

// A Filter says which members of a document to keep, as OpenSearch's filter_path does. The zero value keeps all. It is
// safe for concurrent use.
type Filter struct {
	keep, drop []path
}

// path is one filter: the names that lead to a member, outermost first. A name may hold *, any characters; * alone is any
// name, and ** any number of names, at least one.
type path []string

const anyNames = "**"

// ParseFilter reads a list of paths with commas between them. A path is names with dots between them (\. is a dot in a
// name); one that begins with a minus sign takes away what it names. What is kept first and taken away then is gone.
func ParseFilter(list string) Filter {
	var f Filter
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		names, drop := strings.CutPrefix(item, "-")
		if names = strings.TrimSpace(names); names == "" {
			continue
		}
		if p := parsePath(names); drop {
			f.drop = append(f.drop, p)
		} else {
			f.keep = append(f.keep, p)
		}
	}
	return f
}

func parsePath(s string) path {
	var p path
	var name []byte
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && s[i+1] == '.':
			i++
			name = append(name, '.')
		case s[i] == '.':
			p = append(p, string(name))
			name = nil
		default:
			name = append(name, s[i])
		}
	}
	return append(p, string(name))
}

// Apply appends what the filter leaves of a document, in its order. An object or array of which nothing is left is left
// out too, but for the document itself. What it makes of something that is not valid JSON is unspecified.
func (f Filter) Apply(dst, document []byte) []byte {
	if len(f.keep) > 0 {
		document = apply(f.keep, true, document)
	}
	if len(f.drop) > 0 {
		document = apply(f.drop, false, document)
	}
	return append(dst, document...)
}

func apply(paths []path, keep bool, document []byte) []byte {
	at := make([]place, len(paths))
	for i := range paths {
		at[i] = place{path: i}
	}
	s := sieve{paths: paths, keep: keep, in: document, out: make([]byte, 0, len(document))}
	start := nextToken(document, 0)
	if start == len(document) || document[start] != '{' && document[start] != '[' {
		return document
	}
	if !s.value(start, at) {
		return append(s.out, document[start], document[start]+2) // } and ] stand two after { and [
	}
	return s.out
}

// sieve copies a document but for what paths say: it keeps only what they name, or drops just that.
type sieve struct {
	paths []path
	keep  bool
	in    []byte
	pos   int // where reading goes on; set by value
	out   []byte
}

// place is how far along its path a filter has come. There is each place once at most, so that no path of many ** takes
// more than linear time for a member.
type place struct{ path, name int }

// verdict is what the paths say about one member.
type verdict uint8

const (
	unnamed verdict = iota // no path leads to it or into it
	named                  // a path ends at it
	partly                 // a path leads into it
)

// value copies what is left of the value at pos and reports whether that is anything.
func (s *sieve) value(pos int, at []place) bool {
	opening := s.in[pos]
	if opening != '{' && opening != '[' {
		s.pos = valueEnd(s.in, pos)
		if !s.keep {
			s.out = append(s.out, s.in[pos:s.pos]...)
		}
		return !s.keep
	}
	begin := len(s.out)
	some := false
	s.pos = pos + 1
	for {
		s.pos = nextToken(s.in, s.pos)
		if s.pos >= len(s.in) || s.in[s.pos] == opening+2 {
			break
		}
		if s.in[s.pos] == ',' {
			s.pos++
			continue
		}
		before := len(s.out)
		if some {
			s.out = append(s.out, ',')
		} else {
			s.out = append(s.out, opening)
		}
		left := false
		if opening == '{' {
			left = s.member(at)
		} else {
			left = s.value(s.pos, at)
		}
		if left {
			some = true
		} else {
			s.out = s.out[:before]
		}
	}
	s.pos++
	if !some {
		s.out = s.out[:begin]
		return false
	}
	s.out = append(s.out, opening+2)
	return true
}

// member copies what is left of the member at s.pos.
func (s *sieve) member(at []place) bool {
	start := s.pos
	end := stringEnd(s.in, start)
	v, inside := s.judge(nameOf(s.in[start:end]), at)
	begin := nextToken(s.in, end)
	if begin < len(s.in) { // the colon
		begin = nextToken(s.in, begin+1)
	}
	if begin >= len(s.in) {
		s.pos = begin
		return false
	}
	if v == partly {
		s.out = append(append(s.out, s.in[start:end]...), ':')
		return s.value(begin, inside)
	}
	s.pos = valueEnd(s.in, begin)
	if (v == named) != s.keep {
		return false
	}
	s.out = append(append(s.out, s.in[start:end]...), ':')
	s.out = append(s.out, s.in[begin:s.pos]...)
	return true
}

// judge says what the paths say about a member, and where they stand inside it.
func (s *sieve) judge(name string, at []place) (verdict, []place) {
	var inside []place
	for _, a := range at {
		p := s.paths[a.path]
		want := p[a.name]
		if !glob(want, name) {
			continue
		}
		if a.name == len(p)-1 {
			return named, nil
		}
		if want == anyNames {
			inside = addPlace(inside, a)
		}
		inside = addPlace(inside, place{a.path, a.name + 1})
	}
	if inside == nil {
		return unnamed, nil
	}
	return partly, inside
}

// addPlace adds a place that may be there. Those of a path come one after the other, so that it need not look far.
func addPlace(list []place, p place) []place {
	for i := len(list) - 1; i >= 0 && list[i].path == p.path; i-- {
		if list[i] == p {
			return list
		}
	}
	return append(list, p)
}

// glob says whether a name fits a pattern in which * stands for any characters.
func glob(pattern, name string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == name
	}
	if !strings.HasPrefix(name, first) {
		return false
	}
	name = name[len(first):]
	for {
		var part string
		if part, rest, wild = strings.Cut(rest, "*"); !wild {
			return strings.HasSuffix(name, part)
		}
		_, after, found := strings.Cut(name, part)
		if !found {
			return false
		}
		name = after
	}
}

// nameOf is what a string literal says.
func nameOf(literal []byte) string {
	if !slices.Contains(literal, '\\') {
		return string(bytes.Trim(literal, `"`))
	}
	v, err := Parse(literal)
	if err != nil {
		return string(literal)
	}
	return v.Text
}

// valueEnd returns where the value that begins at i ends, always behind i.
func valueEnd(b []byte, i int) int {
	switch b[i] {
	case '"':
		return stringEnd(b, i)
	case '{', '[':
	default:
		for i++; i < len(b) && bytes.IndexByte([]byte(",:{}[]\" \t\n\r"), b[i]) < 0; i++ {
		}
		return i
	}
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = stringEnd(b, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return i
}
