package rest

import (
	"net"
	"net/http"
	"sync/atomic"
)

// connections counts connections of clients. It is safe for concurrent use.
type connections struct {
	open, opened atomic.Int64
}

// follow is for http.Server.ConnState. What was there before is called too; it may be nil.
func (c *connections) follow(before func(net.Conn, http.ConnState)) func(net.Conn, http.ConnState) {
	return func(conn net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			c.open.Add(1)
			c.opened.Add(1)
		case http.StateClosed, http.StateHijacked:
			c.open.Add(-1)
		}
		if before != nil {
			before(conn, state)
		}
	}
}
