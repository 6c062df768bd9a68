package faults

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Fault is one entry of a script. It never changes once it is in one.
type Fault struct {
	// Which requests. An empty one is all of them.
	Method string // GET, POST and so on
	Path   string // as it is sent, without the query string; * is any text, slashes too

	After int // how many of these requests go by before it acts
	Times int // how many it acts on then; 0: all of them

	// What it does, in this order.
	Delay   time.Duration // wait before anything else
	Status  int           // answer this, 400 to 599, and do not carry the request out; 0: carry it out
	Type    string        // of the error; only with a Status
	Reason  string        // of the error; only with a Status
	Headers []Header      // of the answer, whosever it is
	Damage  Damage        // to the answer, whosever it is
}

// Header is a header that an answer is to have, or not to have.
type Header struct {
	Name   string // as net/http keys it
	Value  string
	Remove bool // the answer is not to have it; Value is empty then
}

// Damage is what is broken about an answer. None is empty.
type Damage string

const (
	None       Damage = ""
	NoAnswer   Damage = "no_answer"   // the connection is cut before the first byte
	HalfAnswer Damage = "half_answer" // the connection is cut in the middle of the body; NoAnswer where there is no body
	Truncated  Damage = "truncated"   // the body is half of what it should be, and says that this is all of it
	NotJSON    Damage = "not_json"    // the body is no JSON, and says that it is
	HTML       Damage = "html"        // the body is a page, as some proxies send them
	WrongType  Damage = "wrong_type"  // the body is what it should be, and says that it is plain text
)

// Damages lists all of them but none.
func Damages() []Damage {
	return []Damage{NoAnswer, HalfAnswer, Truncated, NotJSON, HTML, WrongType}
}

// isFor says whether the fault concerns a request.
func (f *Fault) isFor(method, path string) bool {
	return (f.Method == "" || f.Method == method) && (f.Path == "" || Match(f.Path, path))
}

// acts says whether it does anything at all.
func (f *Fault) acts() bool {
	return f.Delay > 0 || f.Status != 0 || len(f.Headers) > 0 || f.Damage != None
}

// Apply sets and removes the headers that the fault has, however the answer spells them.
func (f *Fault) Apply(h http.Header) {
	for _, x := range f.Headers {
		maps.DeleteFunc(h, func(name string, _ []string) bool { return strings.EqualFold(name, x.Name) })
		if !x.Remove {
			h.Set(x.Name, x.Value)
		}
	}
}

// isFraming says whether a header is about where an answer ends or what it is in, which only the server can know.
func isFraming(name string) bool {
	return slices.Contains([]string{"Connection", "Content-Encoding", "Content-Length", "Content-Type", "Keep-Alive", "Trailer", "Transfer-Encoding", "Upgrade"}, name)
}
