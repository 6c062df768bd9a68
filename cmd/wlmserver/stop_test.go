package main

import (
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestStopAnswersParkedAndRunning(t *testing.T) {
	s := serve(t, "-E", "path.data="+t.TempDir())
	group := s.group(t)
	running := s.search(t, group, "1s", "")
	s.until(t, stateRunning, 1)
	var parked []<-chan answer
	for range 5 {
		parked = append(parked, s.search(t, group, "1s", ""))
	}
	s.until(t, stateWaiting, 5)
	dial(t, s) // a connection on which nothing is ever sent, which must not hold up the stop

	s.signal(t, syscall.SIGTERM)
	for _, p := range parked {
		a := <-p
		if a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" || !strings.Contains(a.body, `"rejected_execution_exception"`) {
			t.Errorf("a parked search was answered %d, Retry-After %q, %s (%v)", a.status, a.header.Get("Retry-After"), a.body, a.err)
		}
	}
	select {
	case a := <-running:
		t.Errorf("the running search ended before the parked ones were answered: %d %s (%v)", a.status, a.body, a.err)
	default:
	}
	if c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://")); err == nil {
		c.Close()
		t.Error("connections are still accepted")
	}
	if a := <-running; a.status != http.StatusOK {
		t.Errorf("the running search was answered %d %s (%v)", a.status, a.body, a.err)
	}
	if code := s.wait(t); code != 0 {
		t.Errorf("ended with %d", code)
	}
}

func TestStopCancelsWhatRunsTooLong(t *testing.T) {
	s := serve(t, "-E", "path.data="+t.TempDir(), "-E", "node.shutdown_timeout=200ms")
	group := s.group(t)
	running := s.search(t, group, "1h", "")
	s.until(t, stateRunning, 1)
	s.signal(t, syscall.SIGTERM)
	if a := <-running; a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" || !strings.Contains(a.body, "shutting down") {
		t.Errorf("answered %d, Retry-After %q, %s (%v)", a.status, a.header.Get("Retry-After"), a.body, a.err)
	}
	if code := s.wait(t); code != 0 {
		t.Errorf("ended with %d", code)
	}
}

// TestStopEndsTheStubborn: a search that never looks whether it was cancelled neither holds up the stop nor goes unanswered.
func TestStopEndsTheStubborn(t *testing.T) {
	s := serve(t, "-E", "path.data="+t.TempDir(), "-E", "node.shutdown_timeout=100ms")
	group := s.group(t)
	running := s.search(t, group, "1h", `,"ignore_cancel":true`)
	s.until(t, stateRunning, 1)
	s.signal(t, syscall.SIGTERM)
	if a := <-running; a.err != nil || a.status == http.StatusOK {
		t.Errorf("answered %d %s (%v)", a.status, a.body, a.err)
	}
	if code := s.wait(t); code != 0 {
		t.Errorf("ended with %d", code)
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	s := serve(t, "-E", "path.data="+t.TempDir(), "-E", "node.shutdown_timeout=1h")
	group := s.group(t)
	running := s.search(t, group, "1h", `,"ignore_cancel":true`)
	s.until(t, stateRunning, 1)
	parked := s.search(t, group, "1h", "")
	s.until(t, stateWaiting, 1)
	s.signal(t, syscall.SIGTERM)
	if a := <-parked; a.status != http.StatusTooManyRequests { // so the stop has begun
		t.Errorf("the parked search was answered %d %s (%v)", a.status, a.body, a.err)
	}
	s.signal(t, syscall.SIGTERM)
	if code := s.wait(t); code != exitFailure {
		t.Errorf("ended with %d", code)
	}
	if a := <-running; a.err == nil {
		t.Errorf("the running search was answered %d", a.status)
	}
}

func TestLimitOfOpenFiles(t *testing.T) {
	plain := program(t, "-E", "http.port=0", "-E", "path.data="+t.TempDir())
	cmd := exec.Command("sh", append([]string{"-c", `ulimit -n 48 && exec "$0" "$@"`}, plain.Args...)...)
	cmd.Env = plain.Env
	s := serveCommandLine(t, cmd)

	first := dial(t, s)
	if status := get(t, first); status != http.StatusOK {
		t.Fatalf("answered %d", status)
	}
	var others []net.Conn
	for range 60 { // the kernel takes them; the program cannot
		others = append(others, dial(t, s))
	}
	const told = "limit of open files"
	for range 1000 {
		if strings.Contains(s.logged(), told) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for range 20 { // who is in is served on
		if status := get(t, first); status != http.StatusOK {
			t.Fatalf("answered %d", status)
		}
	}
	for _, c := range others {
		c.Close()
	}
	s.ok(t, "GET", "/", "") // there is room again
	if n := strings.Count(s.logged(), told); n != 1 {
		t.Errorf("the shortage was logged %d times", n)
	}
}
