package rest

import (
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/wlmserver/wlmserver/internal/faults"
	"github.com/wlmserver/wlmserver/wlm"
)

const (
	// maxLogged is how many requests are kept, maxLoggedBytes what they take together, roughly. The oldest go first.
	maxLogged      = 1000
	maxLoggedBytes = 16 << 20
	// maxLoggedBody is how much of a body is kept.
	maxLoggedBody = 64 << 10
	// loggedOverhead is what a request takes beside its texts, roughly.
	loggedOverhead = 512
)

// requestLog keeps the last requests. It is safe for concurrent use.
type requestLog struct {
	mu       sync.Mutex
	received int              // since it was cleared
	kept     []*loggedRequest // oldest first
	bytes    int              // of those
}

// loggedRequest is a request as it came in, and what became of it: that is guarded by the log's lock.
type loggedRequest struct {
	number      int // from 1
	received    time.Time
	method      string
	path, query string
	headers     http.Header

	answered  bool
	status    int // 0 where the connection was cut instead
	body      []byte
	bodyBytes int // of the whole body
	group     string
	principal wlm.Principal
	fault     int // its place in the script; -1 for none

	size int // bytes, roughly; 0 once it is no longer kept
}

// begin enters a request.
func (l *requestLog) begin(c *call) *loggedRequest {
	x := &loggedRequest{received: time.Now(), method: c.r.Method, path: c.path, query: c.r.URL.RawQuery, headers: withoutSecrets(c.r.Header), fault: -1}
	x.size = loggedOverhead + len(x.path) + len(x.query)
	for name, values := range x.headers {
		for _, v := range values {
			x.size += len(name) + len(v)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.received++
	x.number = l.received
	l.kept = append(l.kept, x)
	l.bytes += x.size
	l.trimLocked()
	return x
}

// end tells what a request was answered with; status 0 is nothing at all.
func (l *requestLog) end(c *call, status int) {
	body := c.body[:min(len(c.body), maxLoggedBody)]
	for len(body) > 0 && len(body) < len(c.body) && !utf8.RuneStart(c.body[len(body)]) {
		body = body[:len(body)-1] // no half characters
	}
	body = append([]byte(nil), body...)
	group := c.groupID()
	if t := c.task; t != nil && t.Group() != "" {
		group = t.Group()
	}
	x := c.control.logged
	l.mu.Lock()
	defer l.mu.Unlock()
	x.answered, x.status, x.group, x.principal, x.fault = true, status, group, c.principal(), c.control.place
	x.bodyBytes = len(c.body)
	if x.size == 0 {
		return
	}
	x.body = body
	x.size += len(body)
	l.bytes += len(body)
	l.trimLocked()
}

// trimLocked lets the oldest go until the rest is within the bounds.
func (l *requestLog) trimLocked() {
	n := 0
	for ; len(l.kept)-n > maxLogged || l.bytes > maxLoggedBytes; n++ {
		x := l.kept[n]
		l.bytes -= x.size
		x.size = 0
		l.kept[n] = nil
	}
	l.kept = l.kept[n:]
}

// clear forgets all requests. Those that have not been answered yet are not entered again.
func (l *requestLog) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.kept {
		x.size = 0
	}
	l.received, l.kept, l.bytes = 0, nil, 0
}

type requestsDTO struct {
	Received int          `json:"received"` // since the last reset, those too that are no longer kept
	Dropped  int          `json:"dropped"`  // those
	Requests []requestDTO `json:"requests"`
}

type requestDTO struct {
	Number    int           `json:"number"`
	Received  int64         `json:"received_millis"` // since 1970
	Method    string        `json:"method"`
	Path      string        `json:"path"`
	Query     string        `json:"query,omitempty"`
	Headers   http.Header   `json:"headers"`
	Body      string        `json:"body,omitempty"`
	BodyBytes int           `json:"body_bytes,omitempty"`
	Answered  bool          `json:"answered"`
	Status    int           `json:"status,omitempty"`
	Group     string        `json:"group,omitempty"`
	Principal *principalDTO `json:"principal,omitempty"`
	Fault     *int          `json:"fault,omitempty"`
}

type principalDTO struct {
	User  string   `json:"user"`
	Roles []string `json:"roles,omitempty"`
}

// list shows the last requests whose path fits a pattern ("" for all), oldest first.
func (l *requestLog) list(path string, limit int) requestsDTO {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := requestsDTO{Received: l.received, Dropped: l.received - len(l.kept)}
	from := len(l.kept)
	for n := 0; from > 0 && n < limit; {
		from--
		if path == "" || faults.Match(path, l.kept[from].path) {
			n++
		}
	}
	d.Requests = make([]requestDTO, 0, len(l.kept)-from)
	for _, x := range l.kept[from:] {
		if path == "" || faults.Match(path, x.path) {
			d.Requests = append(d.Requests, x.dto())
		}
	}
	return d
}

func (x *loggedRequest) dto() requestDTO {
	d := requestDTO{Number: x.number, Received: x.received.UnixMilli(), Method: x.method, Path: x.path, Query: x.query, Headers: x.headers,
		Body: string(x.body), BodyBytes: x.bodyBytes, Answered: x.answered, Status: x.status, Group: x.group}
	if x.principal.User != "" {
		d.Principal = &principalDTO{x.principal.User, x.principal.Roles}
	}
	if x.fault >= 0 {
		d.Fault = new(x.fault)
	}
	return d
}

// withoutSecrets copies headers; of those that prove who somebody is only the scheme is left.
func withoutSecrets(h http.Header) http.Header {
	h = h.Clone()
	for _, name := range [...]string{"Authorization", "Proxy-Authorization", "Cookie"} {
		for i, v := range h[name] {
			scheme, _, found := strings.Cut(v, " ")
			if !found || name == "Cookie" {
				scheme = ""
			}
			h[name][i] = strings.TrimSpace(scheme + " …")
		}
	}
	return h
}
