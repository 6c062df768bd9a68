package node

import (
	"bytes"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

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
		var log bytes.Buffer
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
		if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "ulimit -n") {
			t.Errorf("want one line with the remedy, got %s", log.String())
		}

		// One that fails again soon belongs to the same shortage.
		log.Reset()
		time.Sleep(calmAfter - time.Second)
		inner.failures = 1
		if _, err := l.Accept(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(calmAfter - firstRetry - time.Millisecond)
		synctest.Wait()
		if log.Len() > 0 {
			t.Errorf("logged during the shortage: %s", log.String())
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if !strings.Contains(log.String(), "accepted again") || !strings.Contains(log.String(), `"attempts":21`) {
			t.Errorf("want one line that it is over, got %q", log.String())
		}

		// The next one is told again.
		log.Reset()
		inner.failures = 1
		if _, err := l.Accept(); err != nil {
			t.Fatal(err)
		}
		if strings.Count(log.String(), "\n") != 1 {
			t.Errorf("want one line, got %q", log.String())
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
