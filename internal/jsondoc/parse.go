package jsondoc

import (
	"fmt"
	"slices"
)

const (
	// MaxDepth is how deep objects and arrays may nest.
	MaxDepth = 1_000

	// MaxValues is how many values a document may have in all. A value costs about
	// a hundred bytes here and may cost two in the document, so this bounds the tree
	// to some 100 MB where the bound on a request's size alone would not.
	MaxValues = 1_000_000
)

// Parse reads b, which must be one JSON value with nothing but white space round it.
// The error is always a *SyntaxError.
func Parse(b []byte) (*Value, error) {
	p := parser{b: b}
	v, fault := p.first()
	if fault == nil {
		p.skipSpace()
		if p.pos < len(p.b) {
			fault = p.fail("bytes follow the document: " + p.here() + " where it should end")
		}
	}
	if fault != nil {
		return nil, fault
	}
	return v, nil
}

// ParseFirst reads the value at the beginning of b, after white space, and tells where
// it ends. What comes after is not looked at. The error is always a *SyntaxError.
func ParseFirst(b []byte) (v *Value, end int, err error) {
	p := parser{b: b}
	v, fault := p.first()
	if fault != nil {
		return nil, 0, fault
	}
	return v, p.pos, nil
}

// parser is a recursive descent over b, bounded by MaxDepth.
type parser struct {
	b      []byte
	pos    int
	depth  int
	values int
	path   []string // names of the members that are being read, outermost first
}

func (p *parser) first() (*Value, *SyntaxError) {
	p.skipSpace()
	return p.value()
}

// value reads the value that begins at pos.
func (p *parser) value() (*Value, *SyntaxError) {
	if p.pos >= len(p.b) {
		return nil, p.end("a value should stand here")
	}
	if p.values++; p.values > MaxValues {
		return nil, p.fail(fmt.Sprintf("more than %d values; split the document", MaxValues))
	}
	v := &Value{Offset: p.pos}
	var fault *SyntaxError
	switch c := p.b[p.pos]; {
	case c == '{':
		v.Kind = Object
		fault = p.nested(v, p.object)
	case c == '[':
		v.Kind = Array
		fault = p.nested(v, p.array)
	case c == '"':
		v.Kind = String
		v.Text, fault = p.str()
	case c == '-' || isDigit(c):
		v.Kind = Number
		v.Text, fault = p.number()
	case c == 't':
		v.Kind, v.Text = Bool, "true"
		fault = p.literal(v.Text)
	case c == 'f':
		v.Kind, v.Text = Bool, "false"
		fault = p.literal(v.Text)
	case c == 'n':
		v.Kind, v.Text = Null, "null"
		fault = p.literal(v.Text)
	default:
		fault = p.fail("a value cannot begin with " + p.here())
	}
	if fault != nil {
		return nil, fault
	}
	return v, nil
}

// nested reads an object or array, one level deeper.
func (p *parser) nested(v *Value, read func(*Value) *SyntaxError) *SyntaxError {
	if p.depth == MaxDepth {
		return p.fail(fmt.Sprintf("objects and arrays nest deeper than %d levels", MaxDepth))
	}
	p.depth++
	fault := read(v)
	p.depth--
	return fault
}

func (p *parser) object(v *Value) *SyntaxError {
	p.pos++ // {
	p.skipSpace()
	if p.take('}') {
		return nil
	}
	var names names
	for {
		if p.pos < len(p.b) && p.b[p.pos] != '"' {
			return p.fail("a key in double quotes should stand where " + p.here() + " is")
		}
		if p.pos >= len(p.b) {
			return p.endOfList(len(v.Members), "a key or } should stand here")
		}
		m := Member{Offset: p.pos}
		var fault *SyntaxError
		if m.Name, fault = p.str(); fault != nil {
			return fault
		}
		if !names.add(v.Members, m.Name) {
			fault = p.fail(fmt.Sprintf("duplicate key [%.100s]; give each key once", m.Name))
			fault.Offset, fault.DuplicateKey = m.Offset, m.Name
			return fault
		}
		p.skipSpace()
		if fault := p.expect(':', "a colon should follow the key"); fault != nil {
			return fault
		}
		p.skipSpace()
		p.path = append(p.path, m.Name)
		if m.Value, fault = p.value(); fault != nil {
			return fault
		}
		p.path = p.path[:len(p.path)-1]
		v.Members = append(v.Members, m)
		p.skipSpace()
		if p.take('}') {
			return nil
		}
		if fault := p.expect(',', "a comma or } should follow the member"); fault != nil {
			return fault
		}
		p.skipSpace()
	}
}

func (p *parser) array(v *Value) *SyntaxError {
	p.pos++ // [
	p.skipSpace()
	if p.take(']') {
		return nil
	}
	for {
		if p.pos >= len(p.b) {
			return p.endOfList(len(v.Items), "a value or ] should stand here")
		}
		item, fault := p.value()
		if fault != nil {
			return fault
		}
		v.Items = append(v.Items, item)
		p.skipSpace()
		if p.take(']') {
			return nil
		}
		if fault := p.expect(',', "a comma or ] should follow the item"); fault != nil {
			return fault
		}
		p.skipSpace()
	}
}

// names finds keys that come twice: by looking through the members while they are few,
// else by a set, so that large objects do not take quadratic time.
type names struct {
	set map[string]struct{}
}

const fewMembers = 16

// add reports whether name is new beside members, the ones before it.
func (n *names) add(members []Member, name string) bool {
	if len(members) < fewMembers {
		return !slices.ContainsFunc(members, func(m Member) bool { return m.Name == name })
	}
	if n.set == nil {
		n.set = make(map[string]struct{}, 2*len(members))
		for _, m := range members {
			n.set[m.Name] = struct{}{}
		}
	}
	if _, twice := n.set[name]; twice {
		return false
	}
	n.set[name] = struct{}{}
	return true
}

func (p *parser) literal(word string) *SyntaxError {
	for i := range len(word) {
		if p.pos+i >= len(p.b) || p.b[p.pos+i] != word[i] {
			return p.fail("only true, false and null may stand without quotes")
		}
	}
	p.pos += len(word)
	return nil
}

// number reads a number and returns it as written.
func (p *parser) number() (string, *SyntaxError) {
	start := p.pos
	p.take('-')
	if !p.take('0') {
		if fault := p.digits("a minus sign"); fault != nil {
			return "", fault
		}
	}
	if p.take('.') {
		if fault := p.digits("a decimal point"); fault != nil {
			return "", fault
		}
	}
	if p.take('e') || p.take('E') {
		if !p.take('+') {
			p.take('-')
		}
		if fault := p.digits("an exponent's sign"); fault != nil {
			return "", fault
		}
	}
	return string(p.b[start:p.pos]), nil
}

// digits reads one digit or more.
func (p *parser) digits(after string) *SyntaxError {
	start := p.pos
	for p.pos < len(p.b) && isDigit(p.b[p.pos]) {
		p.pos++
	}
	if p.pos > start {
		return nil
	}
	if p.pos >= len(p.b) {
		return p.end("a digit should follow " + after)
	}
	return p.fail("a digit should follow " + after + " where " + p.here() + " is")
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func (p *parser) skipSpace() {
	for p.pos < len(p.b) {
		switch p.b[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// take steps over c if it is next.
func (p *parser) take(c byte) bool {
	if p.pos < len(p.b) && p.b[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

// expect steps over c or fails with reason.
func (p *parser) expect(c byte, reason string) *SyntaxError {
	if p.take(c) {
		return nil
	}
	if p.pos >= len(p.b) {
		return p.end(reason)
	}
	return p.fail(reason + " where " + p.here() + " is")
}

// here names the byte at pos.
func (p *parser) here() string {
	return fmt.Sprintf("%q", p.b[p.pos:p.pos+1])
}

func (p *parser) fail(reason string) *SyntaxError {
	return &SyntaxError{Offset: p.pos, Reason: reason, Path: slices.Clone(p.path)}
}

// end fails because the input ends at pos.
func (p *parser) end(reason string) *SyntaxError {
	e := p.fail("the input ends too soon: " + reason)
	e.UnexpectedEnd = true
	return e
}

// endOfList fails because the input ends at pos, inside an object or array, after
// the opening bracket (before is 0) or after a comma.
func (p *parser) endOfList(before int, reason string) *SyntaxError {
	e := p.end(reason)
	e.UnexpectedEnd = before == 0
	return e
}
