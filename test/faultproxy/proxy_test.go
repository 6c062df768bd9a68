package faultproxy_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wlmserver/wlmserver/test/faultproxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soon bounds what should happen at once; quiet is how long nothing should happen.
const (
	soon  = 10 * time.Second
	quiet = 200 * time.Millisecond
)

// end is how a connection ended for the server, and what came over it.
type end struct {
	err   error
	heard string
}

// start returns a proxy before a server that sends back each line, and what the server hears at the end of connections.
func start(t *testing.T) (*faultproxy.Proxy, <-chan end) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ends := make(chan end, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				var heard strings.Builder
				_, err := io.Copy(c, io.TeeReader(c, &heard))
				c.Close()
				ends <- end{err, heard.String()}
			}()
		}
	}()
	p, err := faultproxy.Start(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		l.Close()
		if n := p.Connections(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
	return p, ends
}

// client is one connection through a proxy.
type client struct {
	net.Conn
	lines *bufio.Reader
}

func dial(t *testing.T, p *faultproxy.Proxy) *client {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &client{c, bufio.NewReader(c)}
}

func (c *client) say(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// hear returns the next line, or the error when there is none in time.
func (c *client) hear(t *testing.T, within time.Duration) (string, error) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	line, err := c.lines.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

func (c *client) echoes(t *testing.T, line string) {
	t.Helper()
	c.say(t, line)
	if got, err := c.hear(t, soon); got != line || err != nil {
		t.Fatalf("said %q, heard %q, %v", line, got, err)
	}
}

func TestForwards(t *testing.T) {
	p, ends := start(t)
	c := dial(t, p)
	c.echoes(t, "hello")
	c.echoes(t, strings.Repeat("x", 1<<20))
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil { // the end of one direction travels alone
		t.Fatal(err)
	}
	if _, err := c.hear(t, soon); !errors.Is(err, io.EOF) {
		t.Errorf("at the end heard %v", err)
	}
	if e := <-ends; e.err != nil {
		t.Errorf("the server hears %v", e.err)
	}
}

func TestDelay(t *testing.T) {
	p, _ := start(t)
	c := dial(t, p)
	c.echoes(t, "before")
	p.Delay(faultproxy.Up, 60*time.Millisecond)
	p.Delay(faultproxy.Down, 40*time.Millisecond)
	began := time.Now()
	c.echoes(t, "slow")
	if d := time.Since(began); d < 100*time.Millisecond {
		t.Errorf("took %v, want the delays of both ways", d)
	}
	// The delay is that of each piece: it does not make the link narrow.
	began = time.Now()
	for range 20 {
		c.say(t, "many")
	}
	for range 20 {
		if _, err := c.hear(t, soon); err != nil {
			t.Fatal(err)
		}
	}
	if d := time.Since(began); d > time.Second {
		t.Errorf("20 lines at once took %v", d)
	}
	p.Heal()
	c.echoes(t, "after")
}

func TestHalfOpen(t *testing.T) {
	for name, way := range map[string]faultproxy.Way{"up": faultproxy.Up, "down": faultproxy.Down, "both": faultproxy.Both} {
		t.Run(name, func(t *testing.T) {
			p, _ := start(t)
			c := dial(t, p)
			c.echoes(t, "before")
			p.HalfOpen(way)
			c.say(t, "held")
			if got, err := c.hear(t, quiet); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("heard %q, %v", got, err)
			}
			other := dial(t, p) // accepted, and then nothing
			other.say(t, "new")
			if got, err := other.hear(t, quiet); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("a new connection heard %q, %v", got, err)
			}
			p.Heal()
			if got, err := c.hear(t, soon); got != "held" || err != nil {
				t.Errorf("after healing heard %q, %v", got, err)
			}
			if got, err := other.hear(t, soon); got != "new" || err != nil {
				t.Errorf("after healing the new one heard %q, %v", got, err)
			}
		})
	}
}

// The end of a connection is held back like what it says.
func TestHalfOpenHidesTheEnd(t *testing.T) {
	p, ends := start(t)
	c := dial(t, p)
	c.echoes(t, "before")
	p.HalfOpen(faultproxy.Up)
	c.Close()
	select {
	case e := <-ends:
		t.Errorf("the server hears %v", e.err)
	case <-time.After(quiet):
	}
	p.Heal()
	select {
	case <-ends:
	case <-time.After(soon):
		t.Error("after healing the server does not hear of the end")
	}
}

func TestCut(t *testing.T) {
	p, ends := start(t)
	c := dial(t, p)
	c.echoes(t, "before")
	p.HalfOpen(faultproxy.Both) // a cut is noticed all the same
	p.Cut()
	if got, err := c.hear(t, soon); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the client heard %q, %v", got, err)
	}
	select {
	case <-ends:
	case <-time.After(soon):
		t.Error("the server does not hear of it")
	}
	refused(t, p)
	p.Heal()
	dial(t, p).echoes(t, "after")
}

func TestBreakLetsNewOnesIn(t *testing.T) {
	p, _ := start(t)
	c := dial(t, p)
	c.echoes(t, "before")
	p.Break()
	if _, err := c.hear(t, soon); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the client heard %v", err)
	}
	dial(t, p).echoes(t, "after")
}

// stops is a watcher that lets nothing pass from the first such text on.
type stops struct{ at string }

func (s stops) Watch(b []byte) int {
	if i := strings.Index(string(b), s.at); i >= 0 {
		return i
	}
	return len(b)
}

// Who watches says behind which byte the connection breaks: what is before it arrives, and both sides notice.
func TestWatch(t *testing.T) {
	for _, x := range []struct {
		name     string
		up, down stops
		answer   string
	}{
		{"up", stops{"lost"}, stops{"nothing"}, ""}, // an answer may be under way when it breaks
		{"down", stops{"nothing"}, stops{"lost"}, "heard"},
	} {
		t.Run(x.name, func(t *testing.T) {
			p, ends := start(t)
			before := dial(t, p)
			before.echoes(t, "before anybody watches")
			p.Watch(func() (up, down faultproxy.Watcher) { return x.up, x.down })
			before.echoes(t, "lost")
			c := dial(t, p)
			long := strings.Repeat("x", 1<<20)
			c.echoes(t, long)
			c.say(t, "heard\nlost")
			if got, err := c.hear(t, soon); x.answer != "" && (got != x.answer || err != nil) {
				t.Errorf("heard %q, %v", got, err)
			}
			if got, err := c.hear(t, soon); got != "" || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("then heard %q, %v", got, err)
			}
			select {
			case e := <-ends:
				if e.err == nil {
					t.Error("the server sees an end in order")
				}
				if x.up.at == "lost" && e.heard != long+"\nheard\n" {
					t.Errorf("the server has got %d bytes, at the end %q", len(e.heard), e.heard[max(len(e.heard)-10, 0):])
				}
			case <-time.After(soon):
				t.Error("the server does not hear of it")
			}
			dial(t, p).echoes(t, "another is let through")
			p.Watch(nil)
			dial(t, p).echoes(t, "lost")
		})
	}
}

func TestNobodyBehindIt(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	p, err := faultproxy.Start(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	refused(t, p)
}

// refused checks that a new connection breaks at once.
func refused(t *testing.T, p *faultproxy.Proxy) {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		return // so soon
	}
	defer c.Close()
	if got, err := (&client{c, bufio.NewReader(c)}).hear(t, soon); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a new connection heard %q, %v", got, err)
	}
}
