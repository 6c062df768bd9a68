package node

import (
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

// lockedBuffer is a log that a timer writes while the test reads.
type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// take returns what was written since the last call.
func (l *lockedBuffer) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.b.Reset()
	return l.b.String()
}

// scriptedListener fails as often as it is told, then hands out connections.
type scriptedListener struct {
	failures int
	err      error
	accepts  int
}

func (l *scriptedListener) Accept() (net.Conn, error) {
	l.accepts++
	if l.failures > 0 {
		l.failures--
		return nil, l.err
	}
	c, _ := net.Pipe()
	return c, nil
}

func (l *scriptedListener) Close() error   { return nil }
func (l *scriptedListener) Addr() net.Addr { return &net.TCPAddr{} }

func shortage() error {
	return &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
}

func TestListenerWaitsOutAShortage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		inner := &scriptedListener{failures: 20, err: shortage()}
		l := newPatientListener(inner, zerolog.New(&log))
		defer l.Close()

		began := time.Now()
		if _, err := l.Accept(); err != nil {
			t.Fatal(err)
		}
		// 5, 10, ... 160 ms, then 14 times the longest pause
		if took, want := time.Since(began), 315*time.Millisecond+14*lastRetry; took != want {
			t.Errorf("20 attempts took %v, want %v", took, want)
		}
		if got := log.take(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "ulimit -n") {
			t.Errorf("want one line with the remedy, got %q", got)
		}

		// One that fails again soon belongs to the same shortage.
		time.Sleep(calmAfter - time.Second)
		inner.failures = 1
		if _, err := l.Accept(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(calmAfter - firstRetry - time.Millisecond)
		synctest.Wait()
		if got := log.take(); got != "" {
			t.Errorf("logged during the shortage: %s", got)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if got := log.take(); !strings.Contains(got, "accepted again") || !strings.Contains(got, `"attempts":21`) {
			t.Errorf("want one line that it is over, got %q", got)
		}

		// The next one is told again.
		inner.failures = 1
		if _, err := l.Accept(); err != nil {
			t.Fatal(err)
		}
		if got := log.take(); strings.Count(got, "\n") != 1 {
			t.Errorf("want one line, got %q", got)
		}
	})
}

func TestListenerClosedDuringAShortage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPatientListener(&scriptedListener{failures: 1 << 30, err: shortage()}, zerolog.Nop())
		ended := make(chan error, 1)
		go func() {
			_, err := l.Accept()
			ended <- err
		}()
		time.Sleep(time.Minute)
		l.Close()
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if err := l.Close(); err != nil {
			t.Errorf("the second Close: %v", err)
		}
	})
}

func TestListenerPassesOtherErrorsOn(t *testing.T) {
	broken := errors.New("broken")
	l := newPatientListener(&scriptedListener{failures: 1, err: broken}, zerolog.Nop())
	defer l.Close()
	if _, err := l.Accept(); err != broken {
		t.Errorf("got %v", err)
	}
}

// TestClosedListenerHandsOutWhoHasConnected: clients that are connected when a listener is closed are not reset.
func TestClosedListenerHandsOutWhoHasConnected(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux lets the backlog be emptied")
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := newPatientListener(inner, zerolog.Nop())
	for i := range 3 {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte{byte('a' + i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var got []byte
	for range 3 {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 1)
		if _, err := c.Read(b); err != nil {
			t.Error(err)
		}
		got = append(got, b...)
		c.Close()
	}
	if string(got) != "abc" {
		t.Errorf("got %q", got)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("then: %v", err)
	}
}
