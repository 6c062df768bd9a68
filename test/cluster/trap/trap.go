package trap

import (
	"bytes"
	"errors"
	"sync"

	"github.com/wlmserver/wlmserver/test/faultproxy"
)

// Message is one message of a call, as it is about to arrive.
type Message struct {
	Way    faultproxy.Way // Up from the client, Down from the server
	Method string         // the call's: /package.Service/Method
	Body   []byte         // as it is encoded; whoever is asked may not keep it
	// Beside is how many messages are lost with it that were sent before it: those that the same frame completes.
	Beside int
}

// Trap is of one link, over all its connections. The zero value lets everything pass. It is safe for concurrent use.
type Trap struct {
	mu   sync.Mutex
	pick func(Message) bool // nil: none
	lost chan Message
	err  error
}

// Set has the first message for which pick is true be lost, and only that one: its connection breaks with what is sent after it, and those
// that are made then are left alone. What it gives tells which it was. The messages of one way of a call come in their order, and pick is
// asked about one at a time. What was set before counts no more.
func (t *Trap) Set(pick func(Message) bool) (lost <-chan Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pick, t.lost = pick, make(chan Message, 1)
	return t.lost
}

// Clear has no message be lost.
func (t *Trap) Clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pick = nil
}

// Err tells of what was no gRPC as the package reads it: it has passed, and so has what came after it the same way.
func (t *Trap) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// Watch is for [faultproxy.Proxy.Watch].
func (t *Trap) Watch() (up, down faultproxy.Watcher) {
	c := &connection{trap: t, calls: make(map[uint32]*call)}
	return newWay(c, faultproxy.Up), newWay(c, faultproxy.Down)
}

// takes reports whether a message is the one to be lost.
func (t *Trap) takes(m Message) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pick == nil || !t.pick(m) {
		return false
	}
	t.pick = nil
	m.Body = bytes.Clone(m.Body)
	t.lost <- m
	return true
}

func (t *Trap) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = errors.Join(t.err, err)
}
