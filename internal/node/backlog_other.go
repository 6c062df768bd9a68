//go:build !linux

package node

import "net"

func acceptPending(net.Listener) []net.Conn { return nil }
