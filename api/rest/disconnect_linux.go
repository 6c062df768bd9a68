package rest

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// canSeeDisconnects says whether hungUp can be true on this system.
const canSeeDisconnects = true

// prober looks at one connection after the other. It is made once for all of them: many are looked at, again and again.
type prober struct {
	look   func(fd uintptr)
	events []unix.PollFd
	gone   bool
}

func newProber() *prober {
	p := &prober{events: make([]unix.PollFd, 1)}
	p.look = p.poll
	return p
}

// hungUp says whether the other end of a connection has closed it, also where bytes that it sent before are still
// unread. A connection that this process has closed counts too.
func (p *prober) hungUp(c syscall.RawConn) bool {
	return c.Control(p.look) != nil || p.gone
}

func (p *prober) poll(fd uintptr) {
	p.events[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLRDHUP}
	for {
		n, err := unix.Poll(p.events, 0)
		if err == unix.EINTR {
			continue
		}
		p.gone = n > 0 && p.events[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
		return
	}
}
