package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// asProgram has the test binary be the program itself, so that the tests run the real thing as a process of its own.
const asProgram = "RUN_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// program returns the command that runs the program with these arguments and no environment but what is needed.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = []string{asProgram + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "GOCOVERDIR=" + t.TempDir(),
		"GORACE=atexit_sleep_ms=0"}
	return cmd
}

// call runs the program to its end.
func call(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := program(t, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// server is the program while it serves.
type server struct {
	url    string
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended

	mu  sync.Mutex
	log strings.Builder
}

// Write takes what the program writes to standard error.
func (s *server) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

func (s *server) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// serve starts the program on a free port and returns when it says that it listens.
func serve(t *testing.T, args ...string) *server {
	t.Helper()
	return serveCommandLine(t, program(t, append([]string{"-E", "http.port=0"}, args...)...))
}

func serveCommandLine(t *testing.T, cmd *exec.Cmd) *server {
	t.Helper()
	s := &server{cmd: cmd, exited: make(chan struct{})}
	cmd.Stderr = s
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, readErr := bufio.NewReader(stdout).ReadString('\n')
	go func() {
		_, _ = io.Copy(io.Discard, stdout)
		_ = cmd.Wait() // the exit code tells
		close(s.exited)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // most have ended by then
		<-s.exited
		if t.Failed() {
			t.Logf("the program's log:\n%s", s.logged())
		}
	})
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		t.Fatalf("standard output began %q (%v)\n%s", line, readErr, s.logged())
	}
	s.url = url
	return s
}

func (s *server) signal(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// wait returns the exit code; the test fails when the program has not ended in time.
func (s *server) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-s.exited:
		return s.cmd.ProcessState.ExitCode()
	case <-time.After(20 * time.Second): // far above every timeout that the tests configure
		t.Fatal("the program does not end")
		return -1
	}
}

// answer is what a client got.
type answer struct {
	status int
	body   string
	header http.Header
	err    error
}

func request(ctx context.Context, method, url, body string, header http.Header) answer {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	if header != nil {
		r.Header = header.Clone()
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, string(b), resp.Header, err}
}

// ok sends a request that must be answered with 200.
func (s *server) ok(t *testing.T, method, path, body string) string {
	t.Helper()
	a := request(t.Context(), method, s.url+path, body, nil)
	if a.err != nil || a.status != http.StatusOK {
		t.Fatalf("%s %s: %d %s %v", method, path, a.status, a.body, a.err)
	}
	return a.body
}

// group creates a group of one search at a time and ten waiting, and an index.
func (s *server) group(t *testing.T) (id string) {
	t.Helper()
	s.ok(t, "PUT", "/books", `{"settings":{"number_of_shards":1}}`)
	body := s.ok(t, "PUT", "/_wlm/workload_group", `{"name":"one","resiliency_mode":"enforced","resource_limits":{"cpu":0.1},
		"throttling":{"attribute":"group","node_limit":1},"queue":{"size_per_bucket":10}}`)
	_, rest, _ := strings.Cut(body, `"_id":"`)
	id, _, _ = strings.Cut(rest, `"`)
	return id
}

// search starts a search of that length in the group and sends its answer.
func (s *server) search(t *testing.T, group, took, more string) <-chan answer {
	t.Helper()
	answers := make(chan answer, 1)
	body := fmt.Sprintf(`{"query":{"match_all":{}},"ext":{"stub":{"query_time":%q%s}}}`, took, more)
	ctx := t.Context()
	go func() {
		answers <- request(ctx, "POST", s.url+"/books/_search", body, http.Header{"Workloadgroupid": {group}})
	}()
	return answers
}

// until asks again and again until the tasks of searches hold the text so many times.
func (s *server) until(t *testing.T, text string, times int) {
	t.Helper()
	var body string
	for range 1000 {
		body = s.ok(t, "GET", "/_tasks?detailed&group_by=none&actions=indices:data/read/search", "")
		if strings.Count(body, text) == times {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("never %d times %q in %s", times, text, body)
}

const (
	stateRunning = `"state":"running"`
	stateWaiting = `"state":"waiting"`
)

// dial opens a connection to the server.
func dial(t *testing.T, s *server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// get sends one request over an open connection and reads the answer.
func get(t *testing.T, c net.Conn) int {
	t.Helper()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}
