package node

import (
	"net"
	"net/http"
	"sync"
)

// freshConnections knows the connections on which nothing was ever sent. Clients open some for later; net/http takes
// them for busy for their first five seconds, and a stop need not wait for them that long.
type freshConnections struct {
	mu  sync.Mutex
	all map[net.Conn]struct{}
}

func newFreshConnections() *freshConnections {
	return &freshConnections{all: map[net.Conn]struct{}{}}
}

// changed is for [http.Server.ConnState].
func (f *freshConnections) changed(c net.Conn, s http.ConnState) {
	if s == http.StateIdle {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch s {
	case http.StateNew:
		f.all[c] = struct{}{}
	case http.StateActive, http.StateClosed, http.StateHijacked:
		delete(f.all, c)
	}
}

// close closes them all.
func (f *freshConnections) close() {
	f.mu.Lock()
	conns := make([]net.Conn, 0, len(f.all))
	for c := range f.all {
		conns = append(conns, c)
	}
	f.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
}
