// Package port finds ports for servers whose addresses others have to know before they listen, and after they have been started again.
package port

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports below those that systems give to outgoing connections: nobody takes one while its server is down.
const first, count = 20_000, 10_000

// Free is a port of 127.0.0.1 on which nobody listens now.
func Free() (int, error) {
	err := errors.New("no port is free")
	for range 100 {
		p := first + rand.IntN(count)
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p))); err == nil {
			return p, l.Close()
		}
	}
	return 0, err
}
