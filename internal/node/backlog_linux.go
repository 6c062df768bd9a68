package node

import (
	"errors"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// acceptPending takes the connections that stand in the kernel's backlog: their clients are connected, may have sent
// requests, and would have them reset when the listener is closed.
func acceptPending(l net.Listener) []net.Conn {
	sc, ok := l.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	const most = 4096 // the backlog's usual length: no stream of new clients holds up the stop
	var pending []net.Conn
	_ = raw.Control(func(listener uintptr) {
		for len(pending) < most {
			fd, _, err := unix.Accept4(int(listener), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
			if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ECONNABORTED) {
				continue
			}
			if err != nil {
				return // EAGAIN: none is left
			}
			f := os.NewFile(uintptr(fd), "backlog")
			c, err := net.FileConn(f)
			f.Close() // c has a descriptor of its own
			if err != nil {
				return
			}
			pending = append(pending, c)
		}
	})
	return pending
}
