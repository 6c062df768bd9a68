package rest

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"syscall"
	"time"
)

// watchInterval is how often connections are looked at. A search is to end within two seconds of its client's leaving.
const watchInterval = 500 * time.Millisecond

// connKey is the context key of a connection's syscall.RawConn.
type connKey struct{}

// ConnContext is for http.Server: it lets the server look at the connection itself while a request is in flight. net/http
// looks too, but only until it has read a byte that belongs to the next request.
func (s *Server) ConnContext(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	sc, ok := c.(syscall.Conn)
	if !ok {
		return ctx
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return ctx
	}
	return context.WithValue(ctx, connKey{}, raw)
}

// watch looks at the connections that have a request in flight and cancels the requests whose client has gone. Its
// goroutine runs only while there are any. It is safe for concurrent use.
type watch struct {
	ended sync.WaitGroup

	mu       sync.Mutex
	inFlight map[*watched]struct{}
	running  bool
	stop     chan struct{} // closed by close
	closed   bool
}

// watched is one request in flight.
type watched struct {
	conn syscall.RawConn
	gone func() // called when the client has gone, perhaps more than once
}

func newWatch() *watch {
	return &watch{inFlight: make(map[*watched]struct{}), stop: make(chan struct{})}
}

// enter has gone called should the client at the other end of ctx's connection go before leave is called.
func (w *watch) enter(ctx context.Context, gone func()) (leave func()) {
	raw, ok := ctx.Value(connKey{}).(syscall.RawConn)
	if !ok || !canSeeDisconnects {
		return func() {}
	}
	x := &watched{conn: raw, gone: gone}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return func() {}
	}
	w.inFlight[x] = struct{}{}
	if !w.running {
		w.running = true
		w.ended.Go(w.run)
	}
	return func() {
		w.mu.Lock()
		delete(w.inFlight, x)
		w.mu.Unlock()
	}
}

// close ends the watch and waits for its goroutine.
func (w *watch) close() {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.stop)
	}
	w.mu.Unlock()
	w.ended.Wait()
}

func (w *watch) run() {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	var now []*watched // of this round; kept for the next one's
	for {
		select {
		case <-w.stop:
			return
		case <-tick.C:
		}
		var idle bool
		if now, idle = w.appendInFlight(now[:0]); idle {
			return
		}
		for _, x := range now {
			if hungUp(x.conn) {
				x.gone()
			}
		}
		clear(now)
	}
}

// appendInFlight lists the requests in flight. Without any, the watch counts as no longer running.
func (w *watch) appendInFlight(list []*watched) (_ []*watched, idle bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for x := range w.inFlight {
		list = append(list, x)
	}
	w.running = len(list) > 0
	return list, !w.running
}
