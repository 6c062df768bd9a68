// Package faultproxy stands between two processes of a test and disturbs what they say over TCP: it delays, holds back, or cuts, also where
// somebody who watches what passes wants it.
//
// One proxy is one link: give each process the address of a proxy instead of that of its peer.
package faultproxy

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Way is one direction of a link, or both.
type Way uint8

// The ways, as seen from who connects.
const (
	Up   Way = 1 << iota // to the target
	Down                 // from the target
	Both = Up | Down
)

const (
	chunk    = 32 << 10 // bytes that are forwarded at once
	capacity = 256      // chunks that are under way in one direction
)

// Watcher sees what passes one way of one connection. It is used by one goroutine.
type Watcher interface {
	// Watch is given what is to pass next, and returns how many bytes of it may. When that is fewer than all, the connection breaks behind
	// them, so that both sides notice.
	Watch(b []byte) int
}

// Proxy forwards TCP connections. It is safe for concurrent use.
type Proxy struct {
	listener net.Listener
	target   string
	ctx      context.Context
	stop     context.CancelFunc
	running  sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{} // closed and made anew when held changes
	held    Way
	cut     bool
	delay   [Both]time.Duration // by way; [0] is not used
	watch   func() (up, down Watcher)
	links   map[*link]struct{}
}

// Start returns a proxy that forwards connections from a loopback port of its own to an address. Close it.
func Start(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, target: target, changed: make(chan struct{}), links: make(map[*link]struct{})}
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.running.Go(p.accept)
	return p, nil
}

// Addr is where the proxy listens: host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Delay has everything that comes from now on be under way for so long, each way that is named.
func (p *Proxy) Delay(w Way, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, way := range []Way{Up, Down} {
		if w&way != 0 {
			p.delay[way] = d
		}
	}
}

// HalfOpen holds everything back, each way that is named, and the end of connections too. New connections are accepted. Nothing is lost:
// what is held back arrives after Heal, as with a network that is back before TCP has given up.
func (p *Proxy) HalfOpen(w Way) { p.change(func() { p.held |= w }) }

// Cut breaks all connections at once, so that both sides notice, and refuses new ones until Heal.
func (p *Proxy) Cut() {
	p.change(func() { p.cut = true })
	p.Break()
}

// Break breaks all connections at once, so that both sides notice. New ones are accepted.
func (p *Proxy) Break() {
	p.mu.Lock()
	all := make([]*link, 0, len(p.links))
	for l := range p.links {
		all = append(all, l)
	}
	p.mu.Unlock()
	for _, l := range all {
		l.reset()
	}
}

// Watch has each connection that is made from now on be watched, each way by a watcher of its own. It is asked for them at the beginning
// of the connection. Nil: none is.
func (p *Proxy) Watch(watch func() (up, down Watcher)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watch = watch
}

// Heal ends all faults. Who watches goes on watching.
func (p *Proxy) Heal() {
	p.change(func() { p.held, p.cut, p.delay = 0, false, [Both]time.Duration{} })
}

// Close breaks all connections and returns when nothing of the proxy is left.
func (p *Proxy) Close() {
	p.stop()
	p.listener.Close()
	p.Break()
	p.running.Wait()
}

// Connections is the number of connections that are forwarded now.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

func (p *Proxy) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		cut := p.cut
		p.mu.Unlock()
		if cut {
			abort(c)
			continue
		}
		p.running.Go(func() { p.forward(c) })
	}
}

// forward serves one connection to its end.
func (p *Proxy) forward(client net.Conn) {
	var d net.Dialer
	target, err := d.DialContext(p.ctx, "tcp", p.target)
	if err != nil {
		abort(client)
		return
	}
	l := &link{proxy: p, client: client, target: target, done: make(chan struct{})}
	p.mu.Lock()
	p.links[l] = struct{}{}
	late := p.cut || p.ctx.Err() != nil // since it was accepted
	watch := p.watch
	p.mu.Unlock()
	if late {
		l.reset()
	}
	var up, down Watcher = nobody{}, nobody{}
	if watch != nil {
		up, down = watch()
	}
	var ways sync.WaitGroup
	ways.Go(func() { l.pump(Up, client, target, up) })
	ways.Go(func() { l.pump(Down, target, client, down) })
	ways.Wait()
	client.Close()
	target.Close()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// link is one connection and its continuation.
type link struct {
	proxy          *Proxy
	client, target net.Conn
	once           sync.Once
	done           chan struct{} // closed by reset
}

// reset breaks both connections with what is under way.
func (l *link) reset() {
	l.once.Do(func() {
		close(l.done)
		abort(l.client)
		abort(l.target)
	})
}

// abort closes a connection so that the other side hears of it at once, whatever it has not read.
func abort(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	c.Close()
}

// nobody lets everything pass.
type nobody struct{}

func (nobody) Watch(b []byte) int { return len(b) }

type piece struct {
	bytes []byte
	due   time.Time
	err   error // why there is nothing after it
}

// pump forwards one way until its end, and the end too.
func (l *link) pump(w Way, from, to net.Conn, watcher Watcher) {
	pieces := make(chan piece, capacity)
	l.proxy.running.Go(func() {
		defer close(pieces)
		for {
			b := make([]byte, chunk)
			n, err := from.Read(b)
			select {
			case pieces <- piece{b[:n], time.Now().Add(l.proxy.delayOf(w)), err}:
			case <-l.done:
				return
			}
			if err != nil {
				return
			}
		}
	})
	for x := range pieces {
		if !l.wait(w, x.due) {
			break
		}
		n := watcher.Watch(x.bytes)
		if _, err := to.Write(x.bytes[:n]); err != nil || n < len(x.bytes) {
			l.reset()
			break
		}
		switch {
		case errors.Is(x.err, io.EOF):
			if t, ok := to.(*net.TCPConn); ok {
				_ = t.CloseWrite()
			}
		case x.err != nil:
			l.reset()
		}
	}
	for range pieces { // so that the reader does not wait
	}
}

func (p *Proxy) delayOf(w Way) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delay[w]
}

// wait waits until a time has come and the way is not held; false when the link is broken.
func (l *link) wait(w Way, due time.Time) bool {
	if d := time.Until(due); d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-l.done:
			return false
		}
	}
	for {
		l.proxy.mu.Lock()
		held, changed := l.proxy.held&w != 0, l.proxy.changed
		l.proxy.mu.Unlock()
		if !held {
			return true
		}
		select {
		case <-changed:
		case <-l.done:
			return false
		}
	}
}
