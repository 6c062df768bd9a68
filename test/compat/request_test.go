package compat_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// request is one request, for either side: ids stand in it as names between angle quotes, such as «group a».
type request struct {
	kind    string // which rule of the grammar made it
	method  string
	path    string   // as it is sent
	query   []string // name=value, as it is sent
	headers []header
	body    string
	chunked bool   // the body is sent in chunks
	zipped  bool   // the body is sent as gzip, whatever the headers say
	old     bool   // as HTTP/1.0
	learn   string // the name of the id that the answer brings
}

type header struct{ name, value string }

// contentType is the header that nearly all bodies need.
const contentType = "Content-Type"

func (r *request) set(name, value string) {
	r.drop(name)
	r.headers = append(r.headers, header{name, value})
}

func (r *request) drop(name string) {
	r.headers = slices.DeleteFunc(r.headers, func(h header) bool { return strings.EqualFold(h.name, name) })
}

// clone is a copy that can be changed.
func (r *request) clone() *request {
	c := *r
	c.query, c.headers = slices.Clone(r.query), slices.Clone(r.headers)
	return &c
}

func (r *request) target() string {
	if len(r.query) == 0 {
		return r.path
	}
	return r.path + "?" + strings.Join(r.query, "&")
}

// String is the request as an error message shows it, and what the list of known differences looks at.
func (r *request) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", r.method, r.target())
	if r.old {
		b.WriteString(" HTTP/1.0")
	}
	for _, h := range r.headers {
		fmt.Fprintf(&b, "\n%s: %s", h.name, shorten(h.value, 200))
	}
	if r.chunked {
		b.WriteString("\n(in chunks)")
	}
	if r.zipped {
		b.WriteString("\n(as gzip)")
	}
	if r.body != "" {
		b.WriteString("\n\n" + r.body)
	}
	return b.String()
}

// brings says whether the request is about documents, for which an index is made that is missing.
func (r *request) brings() bool { return slices.Contains([]string{"doc", "bulk", "update"}, r.kind) }

// harmless are paths to which one posts what changes nothing that lasts: no task outlives its request, and a scroll that only one server
// opened is not learnt, so that nothing names it later.
var harmless = regexp.MustCompile(`^((/[^/]*)?/_(search|count|msearch|validate/query)|/_tasks(/[^/]*)?/_cancel)$`)

// writes says whether the request may change what later ones are answered with.
func (r *request) writes() bool {
	switch r.method {
	case "GET", "HEAD", "OPTIONS":
		return false
	}
	return r.method != "POST" || !harmless.MatchString(r.path)
}

// parts says whether the two servers may no longer be in the same state after the request: it wrote, one of them at least carried it out
// or made an index for a document before it refused that, and the answers differ in their status, in what is not known or, about
// documents, in anything but where they are told to be.
func (r *request) parts(here, there answer, all, unlisted []difference) bool {
	refused := func(a answer) bool { return a.status >= 400 }
	freed := func(a answer) bool { return a.status == 200 || a.status == 404 } // by now, at the latest
	switch {
	case !r.writes(), refused(here) && refused(there) && !r.brings():
		return false
	case r.method == "DELETE" && strings.HasPrefix(r.path, "/_search/scroll") && freed(here) && freed(there):
		return false
	case r.kind == "doc" || r.kind == "bulk":
		return slices.ContainsFunc(all, func(d difference) bool { return d.where != "Location" })
	}
	return len(unlisted) > 0 || here.status != there.status
}

func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%s… (%d bytes)", s[:most], len(s))
}

// bytes is the request as it goes over the wire to a server that knows these ids.
func (r *request) bytes(host string, ids ids) []byte {
	body := ids.fill(r.body)
	if r.zipped {
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		_, _ = w.Write([]byte(body)) // into memory
		_ = w.Close()
		body = z.String()
	}
	version := "HTTP/1.1"
	if r.old {
		version = "HTTP/1.0"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s %s\r\nHost: %s\r\n", r.method, ids.fill(r.target()), version, host)
	for _, h := range r.headers {
		fmt.Fprintf(&b, "%s: %s\r\n", h.name, ids.fill(h.value))
	}
	switch {
	case r.chunked:
		fmt.Fprintf(&b, "Transfer-Encoding: chunked\r\n\r\n")
		if body != "" {
			fmt.Fprintf(&b, "%x\r\n%s\r\n", len(body), body)
		}
		b.WriteString("0\r\n\r\n")
	case body != "":
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	default:
		b.WriteString("\r\n")
	}
	return b.Bytes()
}

// ids are what one server calls what the requests have names for.
type ids map[string]string

var idName = regexp.MustCompile(`«[^»]*»`)

// fill puts ids in the place of their names. One that the server never gave is one that it does not know.
func (m ids) fill(s string) string {
	if !strings.Contains(s, "«") {
		return s
	}
	return idName.ReplaceAllStringFunc(s, func(name string) string {
		if id, ok := m[name]; ok {
			return id
		}
		return "neverMadeThisIdUp_0123"
	})
}

// names puts names in the place of ids, in an answer.
func (m ids) names() *strings.Replacer {
	var pairs []string
	for name, id := range m {
		pairs = append(pairs, id, name)
	}
	return strings.NewReplacer(pairs...)
}
