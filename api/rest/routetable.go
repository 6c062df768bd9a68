package rest

import (
	"cmp"
	"slices"
	"strings"
)

// pathParam is a part of the path that a pattern names, as it was sent.
type pathParam struct{ name, value string }

const (
	maxPathParts  = 5 // between slashes
	maxPathParams = 2 // of them that a pattern names
)

// routeTable finds the route of a path. It is not changed once it has been made. To look one up takes next to no stack: a search that waits
// keeps what its goroutine has grown to before.
type routeTable struct {
	routes   map[routeKey]*mounted
	fixed    map[string]bool // patterns without parameters: they hide those with
	patterns map[pathShape][]*mounted
}

// routeKey is a method and the pattern of a path.
type routeKey struct{ method, pattern string }

// pathShape is what a path and a pattern with parameters that it matches have in common.
type pathShape struct {
	method string
	parts  int
}

// mounted is a route in the table, by some of its methods.
type mounted struct {
	route
	known []string // the query parameters that it takes
	parts []string // of the pattern, between slashes
}

func newTable(routes []route) *routeTable {
	t := &routeTable{routes: make(map[routeKey]*mounted), fixed: make(map[string]bool), patterns: make(map[pathShape][]*mounted)}
	for _, rt := range routes {
		m := &mounted{route: rt, known: strings.Fields(rt.params + " " + everywhere), parts: strings.Split(rt.pattern[1:], "/")}
		if len(m.parts) > maxPathParts || strings.Count(rt.pattern, "{") > maxPathParams {
			panic("rest: maxPathParts or maxPathParams is too small for " + rt.pattern)
		}
		fixed := !slices.ContainsFunc(m.parts, isParam)
		if fixed {
			t.fixed[rt.pattern] = true
		}
		for method := range strings.FieldsSeq(rt.methods) {
			t.routes[routeKey{method, rt.pattern}] = m
			if s := (pathShape{method, len(m.parts)}); !fixed {
				t.patterns[s] = append(t.patterns[s], m)
			}
		}
	}
	for _, alike := range t.patterns {
		slices.SortFunc(alike, func(a, b *mounted) int { return slices.CompareFunc(a.parts, b.parts, fixedFirst) })
	}
	return t
}

func isParam(part string) bool { return strings.HasPrefix(part, "{") }

// fixedFirst orders the parts of patterns: where two match, the one that is fixed for longer wins.
func fixedFirst(a, b string) int {
	switch {
	case isParam(a) && isParam(b):
		return 0
	case isParam(a):
		return 1
	case isParam(b):
		return -1
	}
	return cmp.Compare(a, b)
}

// find looks for the route that a path has for a method, and takes the parameters out of the path; nil if there is none. A path that
// is in the table as it stands is never taken for one with parameters, and a parameter is never empty.
func (t *routeTable) find(method, path string, params *[maxPathParams]pathParam) *mounted {
	if t.fixed[path] {
		return t.routes[routeKey{method, path}]
	}
	var parts [maxPathParts]string
	n := 0
	for rest, more := strings.CutPrefix(path, "/"); more; n++ {
		if n == len(parts) {
			return nil
		}
		parts[n], rest, more = strings.Cut(rest, "/")
	}
	for _, m := range t.patterns[pathShape{method, n}] {
		if m.match(parts[:n]) {
			m.take(parts[:n], params)
			return m
		}
	}
	return nil
}

// match reports whether a path of as many parts as the pattern matches it.
func (m *mounted) match(sent []string) bool {
	for i, part := range m.parts {
		if isParam(part) {
			if sent[i] == "" {
				return false
			}
		} else if sent[i] != part {
			return false
		}
	}
	return true
}

// take takes the parameters out of a path that matches.
func (m *mounted) take(sent []string, params *[maxPathParams]pathParam) {
	n := 0
	for i, part := range m.parts {
		if isParam(part) {
			params[n] = pathParam{part[1 : len(part)-1], sent[i]}
			n++
		}
	}
}
