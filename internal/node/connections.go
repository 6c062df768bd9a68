package node

import (
	"net"
	"net/http"
	"sync"
)

// connections knows which connections are open, and on which of them nothing was ever sent: clients open some for later.
type connections struct {
	mu    sync.Mutex
	open  int
	fresh map[net.Conn]struct{}
}

func newConnections() *connections { return &connections{fresh: map[net.Conn]struct{}{}} }

// changed is for [http.Server.ConnState].
func (c *connections) changed(conn net.Conn, s http.ConnState) {
	if s == http.StateIdle {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch s {
	case http.StateNew:
		c.open++
		c.fresh[conn] = struct{}{}
	case http.StateActive:
		delete(c.fresh, conn)
	case http.StateClosed, http.StateHijacked:
		c.open--
		delete(c.fresh, conn)
	}
}

// none says whether no connection is open.
func (c *connections) none() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open == 0
}

// closeFresh closes those on which nothing was ever sent. A stop of net/http would wait five seconds for them.
func (c *connections) closeFresh() {
	c.mu.Lock()
	fresh := make([]net.Conn, 0, len(c.fresh))
	for conn := range c.fresh {
		fresh = append(fresh, conn)
	}
	c.mu.Unlock()
	for _, conn := range fresh {
		conn.Close()
	}
}
