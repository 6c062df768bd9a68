package load_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/internal/load"
)

// network is a network within the process, so that a load and its server can live in a bubble with a clock of its own.
type network struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newNetwork() *network {
	return &network{accept: make(chan net.Conn), closed: make(chan struct{})}
}

func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.accept:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

func (n *network) Close() error {
	n.once.Do(func() { close(n.closed) })
	return nil
}

func (n *network) Addr() net.Addr { return &net.UnixAddr{Name: "network", Net: "unix"} }

func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case n.accept <- far:
		return near, nil
	case <-n.closed:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

const address = "http://server"

// bubble is a test whose time passes when everybody waits.
type bubble struct {
	*testing.T

	network *network
}

// inBubble runs a test in a bubble, with a server.
func inBubble(t *testing.T, h http.Handler, test func(bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		s := &http.Server{Handler: h}
		go func() { _ = s.Serve(n) }() // ends with Close
		defer s.Close()
		test(bubble{t, n})
	})
}

// run puts a load on the server.
func (b bubble) run(ctx context.Context, o load.Options) *load.Result {
	b.Helper()
	if o.URL == "" {
		o.URL = address
	}
	if o.Dial == nil {
		o.Dial = b.network.dial
	}
	if o.Grace == 0 {
		o.Grace = time.Minute
	}
	r, err := load.Run(ctx, o)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// searches is a server of searches and nothing else.
func searches(answer http.HandlerFunc) http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("POST /index/_search", answer)
	return m
}

// takes answers after a time, unless the client leaves before.
func takes(d time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server watches the connection from then on
		select {
		case <-time.After(d):
		case <-r.Context().Done():
		}
	}
}
