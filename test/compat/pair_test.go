package compat_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// pair is the two servers.
type pair struct {
	here, there *side
	t           *testing.T
}

func (p *pair) sides() []*side { return []*side{p.here, p.there} }

// send sends a request to both and lists how their answers differ. Ids that it brings are learnt.
func (p *pair) send(r *request) (here, there answer, all []difference) {
	var both sync.WaitGroup
	both.Go(func() { here = p.here.send(r) })
	both.Go(func() { there = p.there.send(r) })
	both.Wait()
	if r.learn != "" && here.status < 300 && there.status < 300 {
		h, t := idIn(r.learn, here), idIn(r.learn, there)
		if h != "" && t != "" {
			p.here.ids[r.learn], p.there.ids[r.learn] = h, t
		}
	}
	if r.hides() {
		p.there.send(jsonRequest("POST", "/_refresh", ""))
	}
	return here, there, compare(r, here, there, p.here.ids, p.there.ids)
}

// hides says whether the request may change documents and does not say that searches are to see it at once, as they do here. Most say
// it; one that was damaged may not.
func (r *request) hides() bool {
	return r.brings() && r.method != "GET" && r.method != "HEAD" &&
		!slices.Contains(r.query, "refresh=true") && !slices.Contains(r.query, "refresh=wait_for")
}

// idIn is the id of the kind that the name says.
func idIn(name string, a answer) string {
	t, err := parse(a.body)
	if err != nil {
		t, err = parseYAML(a.body)
	}
	switch {
	case err != nil:
		return ""
	case strings.HasPrefix(name, "«scroll"):
		return t.member("_scroll_id").String()
	case name == "«node»":
		if nodes := t.member("nodes"); nodes != nil && len(nodes.members) == 1 {
			return nodes.members[0].name
		}
		return ""
	}
	return t.member("_id").String()
}

// reset empties both servers.
func (p *pair) reset() {
	p.t.Helper()
	for _, s := range p.sides() {
		s.close()
		s.ids = ids{}
		p.must(s, "PUT", "/_cluster/settings", `{"persistent":{"*":null},"transient":{"*":null}}`)
		for _, g := range p.must(s, "GET", "/_wlm/workload_group", "").member("workload_groups").items {
			p.must(s, "DELETE", "/_wlm/workload_group/"+url.PathEscape(g.member("name").String()), "")
		}
		if a := s.send(jsonRequest("DELETE", "/_search/scroll/_all", "")); a.status != 200 && a.status != 404 {
			p.t.Fatalf("%s cannot be reset: DELETE /_search/scroll/_all: %d %s", s.name, a.status, a.body)
		}
		for _, m := range p.must(s, "GET", "/_cluster/health?level=indices", "").member("indices").members {
			p.must(s, "DELETE", "/"+url.PathEscape(m.name), "")
		}
	}
}

func (p *pair) must(s *side, method, path, body string) *tree {
	p.t.Helper()
	a := s.send(jsonRequest(method, path, body))
	t, err := parse(a.body)
	if err != nil || a.status != 200 {
		p.t.Fatalf("%s cannot be reset: %s %s: %d %s %v", s.name, method, path, a.status, a.body, a.problem)
	}
	return t
}

// failure is a request whose answers differ in what is not on the list.
type failure struct {
	before      []*request // of its sequence, that came before it
	request     *request
	differences []difference
	here, there answer
	times       int
	origin      string // where in the run it was met first
}

// signature is what failures of one kind share.
func (f *failure) signature() string {
	d := f.differences[0]
	return digits.ReplaceAllString(fmt.Sprintf("%s %s %s|%s|%s", f.request.kind, f.request.method, d.where, shorten(d.here, 60), shorten(d.there, 60)), "0")
}

func (f *failure) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, met %d times\n", f.origin, f.times)
	for _, r := range f.before {
		fmt.Fprintf(&b, "after %s\n", strings.ReplaceAll(r.String(), "\n", "\n      "))
	}
	fmt.Fprintf(&b, "%s\n\n", f.request)
	for _, d := range f.differences {
		fmt.Fprintf(&b, "  %s\n", d)
	}
	fmt.Fprintf(&b, "here:  %d %s %s\nthere: %d %s %s\n", f.here.status, f.here.header.Get(contentType), shorten(f.here.body, 1500),
		f.there.status, f.there.header.Get(contentType), shorten(f.there.body, 1500))
	return b.String()
}

// shrinker makes a failure smaller, as long as it stays the same failure.
type shrinker struct {
	pair  *pair
	known *list
	left  int // how often the servers may still be asked
}

// holds says whether a sequence still ends with the failure, and takes it over when it does.
func (s *shrinker) holds(f *failure, before []*request, r *request) bool {
	if s.left <= 0 {
		return false
	}
	s.left--
	s.pair.reset()
	for _, b := range before {
		s.pair.send(b)
	}
	here, there, all := s.pair.send(r)
	unlisted := s.known.unlisted(meeting(r, here, there), all)
	if len(unlisted) == 0 || unlisted[0].where != f.differences[0].where || unlisted[0].here != f.differences[0].here || unlisted[0].there != f.differences[0].there {
		return false
	}
	f.before, f.request, f.differences, f.here, f.there = before, r, unlisted, here, there
	return true
}

func (s *shrinker) shrink(f *failure) {
	if s.holds(f, nil, f.request) || s.holds(f, ground(), f.request) {
		for i := range slices.Backward(f.before) {
			s.holds(f, slices.Delete(slices.Clone(f.before), i, i+1), f.request)
		}
	} else {
		for size := len(f.before) / 2; size > 0; size /= 2 {
			for at := 0; at+size <= len(f.before); {
				if !s.holds(f, slices.Delete(slices.Clone(f.before), at, at+size), f.request) {
					at += size
				}
			}
		}
	}
	for i := range slices.Backward(f.request.query) {
		r := f.request.clone()
		r.query = slices.Delete(r.query, i, i+1)
		s.holds(f, f.before, r)
	}
	for _, h := range f.request.headers {
		r := f.request.clone()
		r.drop(h.name)
		s.holds(f, f.before, r)
	}
	for _, plainer := range []func(*request){
		func(r *request) { r.chunked = false },
		func(r *request) { r.old = false },
		func(r *request) { r.body = "" },
		func(r *request) { r.body = "{}" },
	} {
		r := f.request.clone()
		plainer(r)
		if r.String() != f.request.String() {
			s.holds(f, f.before, r)
		}
	}
	s.shrinkBody(f)
}

// shrinkBody takes members and items out of a body, from the outside in.
func (s *shrinker) shrinkBody(f *failure) {
	for depth := range 4 {
		for i := 0; ; i++ {
			t, err := parse(f.request.body)
			if err != nil || !removeAt(t, depth, &i) {
				break
			}
			r := f.request.clone()
			r.body = t.json()
			if s.holds(f, f.before, r) {
				i--
			}
		}
	}
}

// removeAt takes away what is the i-th member or item at a depth; false when there are not as many.
func removeAt(t *tree, depth int, i *int) bool {
	n := *i
	var at func(t *tree, depth int) bool
	at = func(t *tree, depth int) bool {
		if depth == 0 {
			switch size := len(t.members) + len(t.items); {
			case n >= size:
				n -= size
				return false
			case t.kind == "object":
				t.members = slices.Delete(t.members, n, n+1)
			default:
				t.items = slices.Delete(t.items, n, n+1)
			}
			return true
		}
		for _, m := range t.members {
			if at(m.value, depth-1) {
				return true
			}
		}
		for _, v := range t.items {
			if at(v, depth-1) {
				return true
			}
		}
		return false
	}
	return at(t, depth)
}
