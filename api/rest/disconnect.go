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
	inFlight []*watched // in no order
	running  bool
	stop     chan struct{} // closed by close
	closed   bool
}

// watched is one request in flight. The zero value is watched by nobody.
type watched struct {
	conn    syscall.RawConn
	request leaver
	place   int // in the list, counted from 1; 0: not there. Guarded by the watch's lock
}

// leaver is told when its client has gone, perhaps more than once, and perhaps when it is no longer watched.
type leaver interface{ clientGone() }

func newWatch() *watch { return &watch{stop: make(chan struct{})} }

// enter has r told should the client at the other end of ctx's connection go before x leaves.
func (w *watch) enter(ctx context.Context, x *watched, r leaver) {
	raw, ok := ctx.Value(connKey{}).(syscall.RawConn)
	if !ok || !canSeeDisconnects {
		return
	}
	x.conn, x.request = raw, r
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.inFlight = append(w.inFlight, x)
	x.place = len(w.inFlight)
	if !w.running {
		w.running = true
		w.ended.Go(w.run)
	}
}

// leave ends the watch of x, if it was begun.
func (w *watch) leave(x *watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if x.place == 0 {
		return
	}
	last := len(w.inFlight) - 1
	moved := w.inFlight[last]
	w.inFlight[x.place-1], moved.place = moved, x.place
	w.inFlight[last] = nil
	w.inFlight = w.inFlight[:last]
	x.place = 0
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
	look := newProber()
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
			if look.hungUp(x.conn) {
				x.request.clientGone()
			}
		}
		clear(now)
	}
}

// appendInFlight lists the requests in flight. Without any, the watch counts as no longer running.
func (w *watch) appendInFlight(list []*watched) (_ []*watched, idle bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = len(w.inFlight) > 0
	return append(list, w.inFlight...), !w.running
}
