package node

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"
)

// patientListener accepts connections and waits out a lack of file descriptors or buffers: connections that are open
// are served on, those to come wait in the kernel's backlog until one closes. It says once that the limit is reached and
// once that it is over, and in between tries at growing distances, so that it neither spins nor floods the log.
type patientListener struct {
	net.Listener
	log    zerolog.Logger
	closed chan struct{}
	over   *time.Timer // fires when no attempt has failed for calmAfter

	mu      sync.Mutex
	ended   bool
	pending []net.Conn // connected before the end and not yet accepted
	since   time.Time  // when the first attempt of this shortage failed; zero while there is none
	failed  int        // attempts that failed during it
}

const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = 200 * time.Millisecond

	// calmAfter is how long nothing may fail before a shortage counts as over. While clients queue, one that leaves lets one
	// in and the next fails again: that is still the same shortage.
	calmAfter = 5 * time.Second
)

func newPatientListener(l net.Listener, log zerolog.Logger) *patientListener {
	p := &patientListener{Listener: l, log: log, closed: make(chan struct{})}
	p.over = time.AfterFunc(time.Hour, p.calm)
	p.over.Stop()
	return p
}

// Accept returns the next connection; an error only once the listener is broken, or closed and all that had connected
// before are accepted.
func (p *patientListener) Accept() (net.Conn, error) {
	pause := firstRetry
	for {
		c, err := p.Listener.Accept()
		if err == nil {
			return c, nil
		}
		if !isShortage(err) {
			return p.last(err)
		}
		p.short(err)
		select {
		case <-p.closed:
			return p.last(net.ErrClosed)
		case <-time.After(pause):
			pause = min(pause*2, lastRetry)
		}
	}
}

// Close ends listening. Clients that have connected are still handed out by Accept. It may be called more than once.
func (p *patientListener) Close() error {
	p.mu.Lock()
	first := !p.ended
	p.ended = true
	p.mu.Unlock()
	if !first {
		return nil
	}
	pending := acceptPending(p.Listener)
	err := p.Listener.Close()
	p.mu.Lock()
	p.pending = pending
	p.mu.Unlock()
	close(p.closed)
	p.over.Stop()
	return err
}

// last returns a connection that was pending when the listener was closed, or the error when none is left.
func (p *patientListener) last(err error) (net.Conn, error) {
	if errors.Is(err, net.ErrClosed) {
		<-p.closed
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.pending) == 0 {
		return nil, err
	}
	c := p.pending[0]
	p.pending = p.pending[1:]
	return c, nil
}

// short notes one attempt that failed.
func (p *patientListener) short(err error) {
	p.mu.Lock()
	first := p.failed == 0
	if first {
		p.since = time.Now()
	}
	p.failed++
	if !p.ended {
		p.over.Reset(calmAfter)
	}
	p.mu.Unlock()
	if first {
		p.log.Error().Err(err).Msg("no new connection can be accepted: the limit of open files is reached; " +
			"open connections are served on, new ones wait. Raise the limit (ulimit -n, LimitNOFILE) or close idle clients")
	}
}

// calm ends a shortage.
func (p *patientListener) calm() {
	p.mu.Lock()
	since, failed := p.since, p.failed
	p.since, p.failed = time.Time{}, 0
	p.mu.Unlock()
	if failed > 0 {
		p.log.Info().Int("attempts", failed).Dur("lasted_ms", time.Since(since)-calmAfter).Msg("new connections are accepted again")
	}
}

func isShortage(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
