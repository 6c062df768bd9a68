package load

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// target is the server as the load sees it: how connections to it are made, and the requests as they go over the wire.
type target struct {
	address  string
	dialer   func(ctx context.Context, network, address string) (net.Conn, error)
	tls      *tls.Config // nil without TLS
	run      string      // distinguishes the tasks of this load from others'
	users    int
	noBody   bool       // of answers: HEAD
	requests []template // by group, then user

	mu    sync.Mutex
	conns map[*conn]bool // that are open
	ended bool           // nothing is waited for any more
}

// template is the beginning of a request in both forms; see head.
type template struct{ plain, cancelsItself []byte }

const dialTimeout = 10 * time.Second

func newTarget(u *url.URL, o *Options, groupIDs []string, users []Weighted, run string) *target {
	t := &target{address: address(u), dialer: o.Dial, run: run, users: len(users), noBody: o.Method == "HEAD", conns: map[*conn]bool{}}
	if t.dialer == nil {
		t.dialer = (&net.Dialer{Timeout: dialTimeout, KeepAlive: -1}).DialContext
	}
	if u.Scheme == "https" {
		t.tls = tlsConfig(u, o)
	}
	for _, id := range groupIDs {
		for _, user := range users {
			path := u.EscapedPath() + o.Path
			t.requests = append(t.requests, template{
				plain:         head(u, o, path, id, user.Name),
				cancelsItself: head(u, o, withParameter(path, "cancel_after_time_interval", strconv.FormatInt(o.CancelAfter.Milliseconds(), 10)+"ms"), id, user.Name),
			})
		}
	}
	return t
}

func address(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "80"
		if u.Scheme == "https" {
			port = "443"
		}
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// tlsConfig resumes sessions, so that a connection after the first costs less.
func tlsConfig(u *url.URL, o *Options) *tls.Config {
	return &tls.Config{ServerName: u.Hostname(), InsecureSkipVerify: o.Insecure,
		NextProtos: []string{"http/1.1"}, ClientSessionCache: tls.NewLRUClientSessionCache(0)}
}

func withParameter(path, name, value string) string {
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	return path + separator + name + "=" + value
}

// head is the beginning of a request: all of its headers, but for the value of the last one, which is its X-Opaque-Id.
func head(u *url.URL, o *Options, path, group, credentials string) []byte {
	var b strings.Builder
	line := func(parts ...string) {
		for _, p := range parts {
			b.WriteString(p)
		}
		b.WriteString("\r\n")
	}
	line(o.Method, " ", path, " HTTP/1.1")
	line("Host: ", u.Host)
	line("User-Agent: wlmserver-load")
	if o.Body != "" || o.Method == "POST" || o.Method == "PUT" {
		line("Content-Length: ", strconv.Itoa(len(o.Body)))
	}
	if o.Body != "" {
		line("Content-Type: ", contentType(path))
	}
	if credentials != "" {
		line("Authorization: Basic ", base64.StdEncoding.EncodeToString([]byte(credentials)))
	}
	if group != "" {
		line("workloadGroupId: ", group)
	}
	b.WriteString("X-Opaque-Id: ")
	return []byte(b.String())
}

func contentType(path string) string {
	path, _, _ = strings.Cut(path, "?")
	if strings.HasSuffix(path, "/_msearch") || strings.HasSuffix(path, "/_bulk") {
		return "application/x-ndjson"
	}
	return "application/json"
}

// dial opens a connection that endAll closes.
func (t *target) dial(ctx context.Context) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	n, err := t.dialer(ctx, "tcp", t.address)
	if err != nil {
		return nil, err
	}
	if t.tls != nil {
		secured := tls.Client(n, t.tls)
		if err := secured.HandshakeContext(ctx); err != nil {
			n.Close()
			return nil, err
		}
		n = secured
	}
	c := newConn(n)
	c.used = time.Now()
	t.mu.Lock()
	t.conns[c] = true
	ended := t.ended
	t.mu.Unlock()
	if ended {
		t.close(c)
		return nil, net.ErrClosed
	}
	return c, nil
}

func (t *target) close(c *conn) {
	c.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.conns, c)
}

// endAll gives up what has no answer yet, and lets nothing new begin.
func (t *target) endAll() {
	t.mu.Lock()
	t.ended = true
	var open []*conn
	for c := range t.conns {
		open = append(open, c)
	}
	t.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
}

func (t *target) hasEnded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

// lossReason says in few words why a request was lost, without addresses, so that alike ones are counted together.
func lossReason(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return "cannot connect: " + cause(err)
	}
	switch {
	case errors.Is(err, errMalformed):
		return err.Error()
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection ended within the answer"
	case errors.Is(err, io.EOF):
		return "the connection ended before the answer"
	}
	return cause(err)
}

func cause(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		return "timeout"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err.Error()
	}
	return err.Error()
}
