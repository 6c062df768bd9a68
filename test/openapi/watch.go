package openapi

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

const (
	// allOf is how many answers of one kind are checked before it is enough to look at some.
	allOf = 200
	// oneIn is which part of the further ones is checked: a client under load must not be slowed by its own checks.
	oneIn = 64
	// mostTold bounds how many mistakes are kept.
	mostTold = 10
)

// Watch checks the answers that pass through it, those that were read to their end. It is safe for concurrent use.
//
// Of each kind of answer, a method of a path with a status, the first 200 are checked, and then every 64th.
type Watch struct {
	contract *Contract
	below    string
	next     http.RoundTripper

	mu     sync.Mutex
	passed map[kind]int
	wrong  []error
}

// kind is what answers have in common that are alike.
type kind struct {
	route  *route
	method string
	status int
}

// Watch puts a watch on what is sent through next to paths that begin with below.
func (c *Contract) Watch(next http.RoundTripper, below string) *Watch {
	return &Watch{contract: c, below: below, next: next, passed: make(map[kind]int)}
}

// Wrong is what was found so far, at most ten mistakes.
func (w *Watch) Wrong() []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.wrong)
}

// CloseIdleConnections closes those of the transport that is watched.
func (w *Watch) CloseIdleConnections() {
	if c, ok := w.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip sends a request on.
func (w *Watch) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(r)
	if err == nil && strings.HasPrefix(r.URL.Path, w.below) && w.wants(kind{w.contract.find(r.Method, r.URL), r.Method, resp.StatusCode}) {
		resp.Body = &watchedBody{ReadCloser: resp.Body, end: func(body []byte) { w.check(r, resp, body) }}
	}
	return resp, err
}

func (w *Watch) wants(k kind) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.passed[k]
	w.passed[k] = n + 1
	return n < allOf || n%oneIn == 0
}

func (w *Watch) check(r *http.Request, resp *http.Response, body []byte) {
	x := Exchange{Method: r.Method, URL: r.URL, Status: resp.StatusCode, Header: resp.Header, Body: body}
	err := w.contract.Check(x)
	if err == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.wrong) < mostTold && !slices.ContainsFunc(w.wrong, func(e error) bool { return e.Error() == err.Error() }) {
		w.wrong = append(w.wrong, err)
	}
}

// watchedBody keeps what is read of a body, and tells it at its end.
type watchedBody struct {
	io.ReadCloser
	buf bytes.Buffer
	end func([]byte) // nil once called
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.buf.Write(p[:n])
	if errors.Is(err, io.EOF) && b.end != nil {
		b.end(b.buf.Bytes())
		b.end = nil
	}
	return n, err
}
