package stub

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/wlmserver/wlmserver/search"
)

const maxIndexNameBytes = 255

// forbiddenInNames cannot be part of an index name: each of them means something
// in a path, a pattern or a list.
const forbiddenInNames = `\/*?"<>| ,#:`

// checkIndexName returns an *search.InvalidIndexNameError unless an index can
// have that name.
func checkIndexName(name string) error {
	if why := nameFault(name); why != "" {
		return &search.InvalidIndexNameError{Index: name, Reason: why}
	}
	return nil
}

func nameFault(name string) string {
	switch {
	case name == "":
		return "must not be empty"
	case name == "." || name == "..":
		return "must not be [.] or [..]"
	case len(name) > maxIndexNameBytes:
		return "must not be longer than 255 bytes"
	case !utf8.ValidString(name):
		return "must be valid UTF-8"
	case strings.ContainsAny(name, forbiddenInNames):
		return `must not contain any of [\ / * ? " < > | space , # :]`
	case strings.ContainsFunc(name, unicode.IsControl):
		return "must not contain control characters"
	case strings.ContainsRune("_-+", rune(name[0])):
		return "must not start with [_], [-] or [+]"
	case strings.ToLower(name) != name:
		return "must be lower case"
	}
	return ""
}

// Expansion says what names and patterns of a request may come to. The zero value is what most requests mean.
type Expansion struct {
	IgnoreUnavailable bool      // leave out names that do not exist, and closed indices where those are forbidden
	ForbidNone        bool      // an error when a pattern, or all of them, finds nothing
	ForbidClosed      bool      // a closed index is an *IndexClosedError
	Wildcards         Wildcards // what patterns find
}

// Wildcards says which indices patterns find.
type Wildcards uint8

// What patterns may find. With NoIndices they are names that no index has.
const (
	OpenIndices Wildcards = iota
	ClosedIndices
	AllIndices
	NoIndices
)

func (w Wildcards) find(ix *index) bool {
	return w == AllIndices || (w == ClosedIndices) == (ix.open() != nil)
}

// Set takes over a query parameter: ignore_unavailable, allow_no_indices or expand_wildcards, and nothing for others. A value that
// does not fit is a *search.InvalidError.
func (x *Expansion) Set(name, value string) (err error) {
	switch name {
	case "ignore_unavailable":
		x.IgnoreUnavailable, err = readChoice(name, value)
	case "allow_no_indices":
		var allow bool
		allow, err = readChoice(name, value)
		x.ForbidNone = !allow
	case "expand_wildcards":
		err = x.Wildcards.read(value)
	}
	return err
}

// readChoice is readBool, which tells an error twice, as OpenSearch does here.
func readChoice(name, value string) (bool, error) {
	yes, err := readBool(name, value)
	if err != nil {
		err = &search.InvalidError{Reason: err.Error(), Cause: err}
	}
	return yes, err
}

// read reads which indices patterns find. None here is hidden.
func (w *Wildcards) read(value string) error {
	if value == "" {
		*w = NoIndices
		return nil
	}
	open, closed := false, false
	for state := range strings.SplitSeq(value, ",") {
		switch strings.TrimSpace(state) {
		case "open":
			open = true
		case "closed":
			closed = true
		case "all":
			open, closed = true, true
		case "none":
			open, closed = false, false
		case "hidden":
		default:
			return &search.InvalidError{Reason: fmt.Sprintf("the value [%s] of [expand_wildcards] must be of [open], [closed], [hidden], [none], [all]", state)}
		}
	}
	switch {
	case open && closed:
		*w = AllIndices
	case open:
		*w = OpenIndices
	case closed:
		*w = ClosedIndices
	default:
		*w = NoIndices
	}
	return nil
}

// selection says which indices a request means.
type selection struct {
	names []string // names and patterns; empty: all
	Expansion
}

// check looks at what can be said of the names without knowing the indices.
func (s selection) check() error {
	if len(s.names) == 1 && s.names[0] == "_all" {
		return nil
	}
	for _, name := range s.names {
		if err := checkReserved(name); err != nil {
			return err
		}
	}
	return nil
}

// checkReserved refuses a name, or a pattern, that is more likely a mistyped part of the API than that of an index. Any other name
// that no index can have is that of one that does not exist.
func checkReserved(name string) error {
	if strings.HasPrefix(name, "_") {
		return checkIndexName(name)
	}
	return nil
}

// isPattern reports whether a name of a request stands for whatever it finds: a
// wildcard, or something to leave out.
func isPattern(name string) bool {
	return strings.Contains(name, "*") || strings.HasPrefix(name, "-")
}

// resolve returns the indices of a selection without duplicates: those named in
// the order of the names, those found by a pattern in alphabetical order. Behind a
// pattern, a name that starts with "-" takes away from what came before it.
func (e *Engine) resolve(s selection) ([]*index, error) {
	if s.Wildcards != NoIndices { // else any name may be one that no index has
		if err := s.check(); err != nil {
			return nil, err
		}
	}
	if len(s.names) == 1 && !isPattern(s.names[0]) && s.names[0] != "_all" {
		if ix := e.index(s.names[0]); ix != nil {
			return s.permitted([]*index{ix})
		}
	}
	find := e.expand
	if s.Wildcards == NoIndices {
		find = e.lookUp
	}
	found, err := find(s)
	if err == nil {
		found, err = s.permitted(found)
	}
	if err == nil && s.ForbidNone && len(found) == 0 {
		err = &search.IndexNotFoundError{Index: strings.Join(s.orAll(), ","), Literal: true}
	}
	return found, err
}

// orAll are the names and patterns, or the pattern that stands for none.
func (s selection) orAll() []string {
	if len(s.names) == 0 {
		return []string{"*"}
	}
	return s.names
}

// expand finds the indices of names and patterns.
func (e *Engine) expand(s selection) ([]*index, error) {
	f := finding{all: e.all(), found: make(map[*index]bool)}
	patterns := false
	for _, name := range s.orAll() {
		if name == "_all" {
			name = "*"
		}
		if leave, ok := strings.CutPrefix(name, "-"); ok && patterns {
			if !strings.Contains(leave, "*") && !s.IgnoreUnavailable && !f.exists(leave) {
				return nil, &search.IndexNotFoundError{Index: leave}
			}
			f.remove(leave)
			continue
		}
		if !strings.Contains(name, "*") {
			if !f.add(name) && !s.IgnoreUnavailable {
				return nil, &search.IndexNotFoundError{Index: name}
			}
			continue
		}
		patterns = true
		if !f.addMatching(name, s.Wildcards) && s.ForbidNone {
			return nil, &search.IndexNotFoundError{Index: name}
		}
	}
	return f.order, nil
}

// lookUp finds the indices of names, whatever is in them. A single one that does not exist is nothing, as a pattern would be.
func (e *Engine) lookUp(s selection) ([]*index, error) {
	names := s.orAll()
	missing := !s.IgnoreUnavailable
	if len(names) == 1 {
		missing = s.ForbidNone
	}
	f := finding{all: e.all(), found: make(map[*index]bool)}
	for _, name := range names {
		if !f.add(name) && missing {
			return nil, &search.IndexNotFoundError{Index: name, Literal: true}
		}
	}
	return f.order, nil
}

// permitted leaves out closed indices where they are forbidden, or tells of the first.
func (s selection) permitted(found []*index) ([]*index, error) {
	if !s.ForbidClosed || !slices.ContainsFunc(found, func(ix *index) bool { return ix.open() != nil }) {
		return found, nil
	}
	var open []*index
	for _, ix := range found {
		err := ix.open()
		switch {
		case err == nil:
			open = append(open, ix)
		case s.IgnoreUnavailable:
		case s.Wildcards == ClosedIndices:
			return nil, &search.InvalidError{Reason: "index [" + ix.name + "] is closed, and so not for this request: leave [closed] out of [expand_wildcards]"}
		default:
			return nil, err
		}
	}
	return open, nil
}

// all returns the indices in alphabetical order.
func (e *Engine) all() []*index {
	e.mu.RLock()
	all := make([]*index, 0, len(e.indices))
	for _, ix := range e.indices {
		all = append(all, ix)
	}
	e.mu.RUnlock()
	slices.SortFunc(all, func(a, b *index) int { return strings.Compare(a.name, b.name) })
	return all
}

// finding gathers the indices of a selection.
type finding struct {
	all   []*index // in alphabetical order
	found map[*index]bool
	order []*index // as they were found
}

// at is where the index of a name is among all, if there is one.
func (f *finding) at(name string) (int, bool) {
	return slices.BinarySearchFunc(f.all, name, func(ix *index, name string) int { return strings.Compare(ix.name, name) })
}

func (f *finding) exists(name string) bool {
	_, ok := f.at(name)
	return ok
}

// add adds the index of a name and reports whether there is one.
func (f *finding) add(name string) bool {
	i, ok := f.at(name)
	if ok {
		f.enter(f.all[i])
	}
	return ok
}

// addMatching adds the indices of a pattern, of those that patterns find, and reports whether it matches any at all.
func (f *finding) addMatching(pattern string, which Wildcards) bool {
	any := false
	for _, ix := range f.all {
		if matches(pattern, ix.name) {
			if which.find(ix) {
				f.enter(ix)
			}
			any = true
		}
	}
	return any
}

func (f *finding) enter(ix *index) {
	if !f.found[ix] {
		f.found[ix] = true
		f.order = append(f.order, ix)
	}
}

func (f *finding) remove(pattern string) {
	f.order = slices.DeleteFunc(f.order, func(ix *index) bool {
		gone := matches(pattern, ix.name)
		if gone {
			delete(f.found, ix)
		}
		return gone
	})
}

// matches reports whether name fits pattern, in which "*" stands for any text.
// It takes len(pattern)×len(name) steps at worst.
func matches(pattern, name string) bool {
	star, resume := -1, 0
	p, n := 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, resume = p, n
			p++
		case p < len(pattern) && pattern[p] == name[n]:
			p++
			n++
		case star >= 0:
			resume++
			p, n = star+1, resume
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
