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
	IgnoreUnavailable bool // leave out names that do not exist
	ForbidNone        bool // an error when a pattern, or all of them, finds nothing
	Literal           bool // patterns find nothing
}

// Set takes over a query parameter: ignore_unavailable, allow_no_indices or expand_wildcards, and nothing for others. A value that
// does not fit is a *search.InvalidError.
func (x *Expansion) Set(name, value string) (err error) {
	switch name {
	case "ignore_unavailable":
		x.IgnoreUnavailable, err = readBool(name, value)
	case "allow_no_indices":
		var allow bool
		allow, err = readBool(name, value)
		x.ForbidNone = !allow
	case "expand_wildcards":
		err = x.readWildcards(value)
	}
	return err
}

// readWildcards reads which indices patterns find. All here are open, and none is hidden.
func (x *Expansion) readWildcards(value string) error {
	x.Literal = value != ""
	if value == "" {
		return nil
	}
	for state := range strings.SplitSeq(value, ",") {
		switch strings.TrimSpace(state) {
		case "open", "all":
			x.Literal = false
		case "none":
			x.Literal = true
		case "closed", "hidden":
		default:
			return &search.InvalidError{Reason: fmt.Sprintf("the value [%s] of [expand_wildcards] must be of [open], [closed], [hidden], [none], [all]", state)}
		}
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
	for _, name := range s.names {
		if name == "_all" || isPattern(name) {
			continue
		}
		if err := checkReserved(name); err != nil {
			return err
		}
	}
	return nil
}

// checkReserved refuses a name that is more likely a mistyped part of the API than that of an index. Any other name that no index
// can have is that of one that does not exist.
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
	if err := s.check(); err != nil {
		return nil, err
	}
	if len(s.names) == 1 && !isPattern(s.names[0]) && s.names[0] != "_all" {
		if ix := e.index(s.names[0]); ix != nil {
			return []*index{ix}, nil
		}
	}
	names := s.names
	if len(names) == 0 {
		names = []string{"*"}
	}
	f := finding{all: e.all(), found: make(map[*index]bool)}
	patterns := false
	for _, name := range names {
		if name == "_all" {
			name = "*"
		}
		if leave, ok := strings.CutPrefix(name, "-"); ok && patterns {
			f.remove(leave)
			continue
		}
		if !strings.Contains(name, "*") {
			if !f.add(name) && !s.IgnoreUnavailable {
				return nil, s.notFound(name)
			}
			continue
		}
		patterns = true
		if (s.Literal || !f.addMatching(name)) && s.ForbidNone {
			return nil, s.notFound(name)
		}
	}
	if s.ForbidNone && len(f.order) == 0 {
		return nil, s.notFound(strings.Join(names, ","))
	}
	return f.order, nil
}

// notFound is the error of a name that finds nothing.
func (s selection) notFound(name string) error {
	return &search.IndexNotFoundError{Index: name, Literal: s.Literal}
}

// searchable is resolve for searches. Patterns find no closed index; to name one is an
// *IndexClosedError.
func (e *Engine) searchable(s selection) ([]*index, error) {
	found, err := e.resolve(s)
	if err != nil || !slices.ContainsFunc(found, func(ix *index) bool { return ix.open() != nil }) {
		return found, err
	}
	var open []*index
	for _, ix := range found {
		err := ix.open()
		switch {
		case err == nil:
			open = append(open, ix)
		case slices.Contains(s.names, ix.name) && !s.IgnoreUnavailable:
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

// add adds the index of a name and reports whether there is one.
func (f *finding) add(name string) bool {
	i, ok := slices.BinarySearchFunc(f.all, name, func(ix *index, name string) int { return strings.Compare(ix.name, name) })
	if ok {
		f.enter(f.all[i])
	}
	return ok
}

// addMatching adds the indices of a pattern and reports whether there are any.
func (f *finding) addMatching(pattern string) bool {
	any := false
	for _, ix := range f.all {
		if matches(pattern, ix.name) {
			f.enter(ix)
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
