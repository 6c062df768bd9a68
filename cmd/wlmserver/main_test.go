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
	"path/filepath"
	"strings"
	"sync"
	"syscall"
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
		io.Copy(io.Discard, stdout)
		cmd.Wait()
		close(s.exited)
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
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

func TestServe(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	addressFile := filepath.Join(t.TempDir(), "address")
	args := []string{"-E", "path.data=" + folder, "-E", "http.address_file=" + addressFile}

	s := serve(t, args...)
	if b, err := os.ReadFile(addressFile); err != nil || "http://"+string(b) != s.url+"\n" {
		t.Errorf("the address file holds %q (%v), the server listens on %s", b, err, s.url)
	}
	if body := s.ok(t, "GET", "/", ""); !strings.Contains(body, `"opensearch"`) {
		t.Errorf("GET / answered %s", body)
	}
	log := s.logged()
	for _, want := range []string{"path.data", folder, strings.TrimPrefix(s.url, "http://"), "not enforced", "anonymous"} {
		if !strings.Contains(log, want) {
			t.Errorf("the start is logged without %q:\n%s", want, log)
		}
	}
	id := s.group(t)
	s.signal(t, os.Interrupt)
	if code := s.wait(t); code != 0 {
		t.Errorf("ended with %d", code)
	}
	if _, err := os.Stat(addressFile); !os.IsNotExist(err) {
		t.Errorf("the address file is still there (%v)", err)
	}

	// What was acknowledged is there again.
	s = serve(t, args...)
	if body := s.ok(t, "GET", "/_wlm/workload_group/one", ""); !strings.Contains(body, id) {
		t.Errorf("after a restart: %s", body)
	}
}

// TestAcknowledgedSurvivesKill: an answered change needs no clean stop to last.
func TestAcknowledgedSurvivesKill(t *testing.T) {
	folder := t.TempDir()
	s := serve(t, "-E", "path.data="+folder)
	id := s.group(t)
	s.signal(t, syscall.SIGKILL)
	s.wait(t)
	s = serve(t, "-E", "path.data="+folder)
	if body := s.ok(t, "GET", "/_wlm/workload_group/one", ""); !strings.Contains(body, id) {
		t.Errorf("after a kill: %s", body)
	}
}

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

func TestSecondProcessOnTheSameFolder(t *testing.T) {
	folder := t.TempDir()
	s := serve(t, "-E", "path.data="+folder)
	code, _, stderr := call(t, "", "-E", "http.port=0", "-E", "path.data="+folder)
	if code != exitFailure || !strings.Contains(stderr, "path.data") || !strings.Contains(stderr, folder) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	s.ok(t, "GET", "/", "") // the first one lives
}

func TestPortInUse(t *testing.T) {
	s := serve(t, "-E", "path.data="+t.TempDir())
	port := s.url[strings.LastIndex(s.url, ":")+1:]
	code, _, stderr := call(t, "", "-E", "http.port="+port, "-E", "path.data="+t.TempDir())
	if code != exitFailure || !strings.Contains(stderr, port) || !strings.Contains(stderr, "http.port") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestWrongCalls: wrong command lines and configurations end with 2, say what is wrong, and leave nothing behind.
func TestWrongCalls(t *testing.T) {
	file := filepath.Join(t.TempDir(), "wlmserver.yml")
	if err := os.WriteFile(file, []byte("http:\n  prt: 9200\nlogger.level: loud\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"unknown command":       {[]string{"sreve"}, []string{"sreve"}},
		"unknown flag":          {[]string{"--port", "1"}, []string{"--port"}},
		"unknown key":           {[]string{"-E", "http.prt=1"}, []string{"http.prt", "http.port"}},
		"bad value":             {[]string{"serve", "-E", "http.port=x"}, []string{"http.port", "x", "65535"}},
		"no value":              {[]string{"-E", "http.port"}, []string{"http.port", "key=value"}},
		"bad file":              {[]string{"-c", file}, []string{file, "http.prt", "logger.level", "loud"}},
		"no such file":          {[]string{"-c", file + ".none"}, []string{file + ".none"}},
		"later version":         {[]string{"-E", "http.ssl.key=k.pem"}, []string{"http.ssl.key", "not available in this version"}},
		"bad start value":       {[]string{"-E", "wlm.workload_group.mode=on"}, []string{"wlm.workload_group.mode", "on", "monitor_only"}},
		"public and anonymous":  {[]string{"-E", "http.host=0.0.0.0"}, []string{"http.host", "0.0.0.0", "auth.users_file", "auth.allow_anonymous"}},
		"users file is missing": {[]string{"-E", "auth.users_file=none.yml"}, []string{"none.yml"}},
		"flag of another":       {[]string{"version", "--fast"}, []string{"--fast"}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "data")
			cmd := program(t, c.args...)
			cmd.Env = append(cmd.Env, "WLMSERVER_PATH_DATA="+folder)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			cmd.Run()
			if code := cmd.ProcessState.ExitCode(); code != exitUsage {
				t.Errorf("ended with %d", code)
			}
			if stdout.Len() > 0 {
				t.Errorf("standard output: %s", stdout.String())
			}
			for _, w := range c.want {
				if !strings.Contains(stderr.String(), w) {
					t.Errorf("the message does not speak of %q:\n%s", w, stderr.String())
				}
			}
			if _, err := os.Stat(folder); !os.IsNotExist(err) {
				t.Errorf("the data folder was made (%v)", err)
			}
		})
	}
}

func TestPublicAddressWithLeave(t *testing.T) {
	s := serve(t, "-E", "path.data="+t.TempDir(), "-E", "http.host=0.0.0.0", "-E", "auth.allow_anonymous=true")
	s.ok(t, "GET", "/", "")
}

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
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp.StatusCode
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

func TestVersion(t *testing.T) {
	code, stdout, _ := call(t, "", "version")
	if code != 0 || !strings.HasPrefix(stdout, "wlmserver ") || !strings.Contains(stdout, "OpenSearch 3.7.0") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
}

func TestHelp(t *testing.T) {
	code, stdout, _ := call(t, "", "--help")
	for _, want := range []string{"serve", "demo", "config", "version", "hash-password"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("--help does not speak of %s:\n%s", want, stdout)
		}
	}
	if code != 0 {
		t.Errorf("ended with %d", code)
	}
}

func TestConfigListsTheKeys(t *testing.T) {
	code, stdout, _ := call(t, "", "config")
	for _, want := range []string{"http.port", "9200", "wlm.workload_group.mode", "WLMSERVER_HTTP_PORT"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("config does not list %s:\n%s", want, stdout)
		}
	}
	if code != 0 {
		t.Errorf("ended with %d", code)
	}
}

// TestHashPassword signs in with what was printed.
func TestHashPassword(t *testing.T) {
	code, hash, stderr := call(t, "correct horse\n", "hash-password")
	if code != 0 {
		t.Fatalf("ended with %d: %s", code, stderr)
	}
	users := filepath.Join(t.TempDir(), "users.yml")
	if err := os.WriteFile(users, fmt.Appendf(nil, "alice:\n  hash: %q\n  roles: [admin]\n", strings.TrimSpace(hash)), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, "-E", "path.data="+t.TempDir(), "-E", "auth.users_file="+users)
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth("alice", "correct horse")
	if a := request(t.Context(), "GET", s.url+"/_wlm/workload_group", "", r.Header); a.status != http.StatusOK {
		t.Errorf("answered %d %s", a.status, a.body)
	}
	if a := request(t.Context(), "GET", s.url+"/_wlm/workload_group", "", nil); a.status != http.StatusUnauthorized {
		t.Errorf("without a user: answered %d %s", a.status, a.body)
	}
	if strings.Contains(s.logged(), "everyone is anonymous") {
		t.Error("the log says that everyone is anonymous")
	}

	if code, _, _ := call(t, "", "hash-password"); code != exitUsage {
		t.Errorf("without a password: ended with %d", code)
	}
}

func TestDemo(t *testing.T) {
	code, stdout, stderr := call(t, "", "demo", "--fast")
	if code != 0 {
		t.Errorf("ended with %d: %s", code, stderr)
	}
	for _, want := range []string{"running", "total_queued", "curl"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("does not show %s:\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "\x1b") {
		t.Error("escape sequences without a terminal")
	}
}
