package rest

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// canSeeDisconnects says whether hungUp can be true on this system.
const canSeeDisconnects = true

// hungUp says whether the other end of a connection has closed it, also where bytes that it sent before are still
// unread. A connection that this process has closed counts too.
func hungUp(c syscall.RawConn) bool {
	gone := false
	err := c.Control(func(fd uintptr) {
		events := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		for {
			n, err := unix.Poll(events, 0)
			if err == unix.EINTR {
				continue
			}
			gone = n > 0 && events[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
			return
		}
	})
	return gone || err != nil
}
