// Package server runs the real server as a process of its own, for tests that load it, look into it or kill it.
//
// The process is the test binary again: a package that uses this one calls [Main] from its TestMain.
package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wlmserver/wlmserver/internal/node"
	"github.com/wlmserver/wlmserver/test/history"
	"github.com/wlmserver/wlmserver/test/openapi"
	"github.com/wlmserver/wlmserver/wlm"
)

// childVariable marks the process that serves, and carries its job.
const childVariable = "WLMSERVER_TEST_SERVER"

// job is what the process that serves is told.
type job struct {
	Overrides []string `json:"overrides"`
	Report    string   `json:"report"` // the file that it leaves when it stops
	Plain     bool     `json:"plain"`  // without verification and history, as users run it
	Bare      bool     `json:"bare"`   // serve by net/http alone
	Forget    bool     `json:"forget"` // check the history and keep none of it

	Sweepless bool `json:"sweepless"` // without the backstop sweep

	Journal string            `json:"journal"` // file to which the history is appended as it happens
	Links   map[string]string `json:"links"`   // addresses of other nodes, and where they are reached instead
}

// Report is what the process leaves when it has stopped in order.
type Report struct {
	Events     []wlm.Event              `json:"events"`
	Tallies    map[string]history.Tally `json:"tallies"`    // by bucket
	Violations []string                 `json:"violations"` // of invariants and of the history, and what was left at the end
}

// Main runs the tests, or, in the process that a test has started, the server. It does not return.
func Main(m *testing.M) {
	Serve()
	os.Exit(m.Run())
}

// Serve runs the server in the process that a test has started, and does not return there; in any other it does nothing. It is for a
// TestMain that does more than [Main].
func Serve() {
	if j := os.Getenv(childVariable); j != "" {
		if err := serve(j); err != nil {
			fmt.Fprintln(os.Stderr, "server:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

func serve(text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	if j.Bare {
		return serveBare(j.Report)
	}
	config, err := node.Load(node.Sources{Overrides: j.Overrides})
	if err != nil {
		return err
	}
	var (
		recorder   wlm.Recorder
		admission  *wlm.Admission
		mu         sync.Mutex
		violations []string
	)
	config.Log.Output = os.Stderr
	config.Admission = []wlm.Option{
		func(a *wlm.Admission) { admission = a },
	}
	if !j.Plain {
		config.Admission = append(config.Admission, wlm.WithRecorder(&recorder), wlm.WithVerification(func(v string) {
			mu.Lock()
			defer mu.Unlock()
			violations = append(violations, v)
		}))
	}
	config.Sweepless = j.Sweepless
	if len(j.Links) > 0 {
		config.Transport.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			if link, ok := j.Links[address]; ok {
				address = link
			}
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
	}
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	record, err := newRecord(&recorder, j)
	if err != nil {
		return err
	}
	n, err := node.Start(context.Background(), config)
	if err != nil {
		return err
	}
	fmt.Println(n.URL())
	collectUntil(term)
	if err := n.Shutdown(context.Background()); err != nil {
		return err
	}
	signal.Stop(term)
	r, err := record.finish()
	if err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	if err := goleak.Find(goleak.IgnoreTopFunction("os/signal.signal_recv")); err != nil {
		violations = append(violations, "goroutines are left: "+err.Error())
	}
	r.Violations = slices.Concat(r.Violations, violations, admission.CheckQuiet())
	return leave(j.Report, r)
}

// collectUntil collects garbage and tells what is left for whoever sends SIGUSR1, and returns when the server is to stop.
func collectUntil(term <-chan os.Signal) {
	collect := make(chan os.Signal, 1)
	signal.Notify(collect, syscall.SIGUSR1)
	defer signal.Stop(collect)
	for {
		select {
		case <-term:
			return
		case <-collect:
			runtime.GC()
			runtime.GC() // what the first one has only unlinked from pools and finalizers
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			fmt.Println("left", runtime.NumGoroutine(), m.HeapAlloc)
		}
	}
}

// record takes the history from the recorder while the server runs, and checks it.
type record struct {
	recorder *wlm.Recorder
	keep     bool
	journal  *Journal // nil: none
	checker  history.Checker
	events   []wlm.Event
	err      error // of the journal
	stop     chan struct{}
	stopped  sync.WaitGroup
}

func newRecord(recorder *wlm.Recorder, j job) (*record, error) {
	r := &record{recorder: recorder, keep: !j.Forget && j.Journal == "", stop: make(chan struct{})}
	// Often enough that what lies in the recorder is little beside the server's own memory.
	pause := 50 * time.Millisecond
	if j.Journal != "" {
		var err error
		if r.journal, err = CreateJournal(j.Journal); err != nil {
			return nil, err
		}
		pause = journalPause
	}
	r.stopped.Go(func() {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			select {
			case <-r.stop:
				return
			case <-tick.C:
				r.take()
			}
		}
	})
	return r, nil
}

func (r *record) take() {
	events := r.recorder.Take()
	for _, e := range events {
		r.checker.Add(e)
	}
	if r.keep {
		r.events = append(r.events, events...)
	}
	if r.journal != nil && len(events) > 0 && r.err == nil {
		r.err = r.journal.Append(events)
	}
}

// finish checks the end of the history and reports on all of it.
func (r *record) finish() (Report, error) {
	close(r.stop)
	r.stopped.Wait()
	r.take()
	r.checker.Finish()
	out := Report{Events: r.events, Tallies: r.checker.Buckets()}
	if err := r.checker.Err(); err != nil {
		out.Violations = append(out.Violations, err.Error())
	}
	if r.journal != nil {
		r.err = errors.Join(r.err, r.journal.Close())
	}
	return out, r.err
}

func leave(file string, r Report) error {
	out, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(file, out, 0o600)
}

func serveBare(report string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		if r.URL.Path == "/park" {
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		_, _ = io.WriteString(w, `{"took":0,"timed_out":false,"hits":{"total":{"value":0,"relation":"eq"},"max_score":null,"hits":[]}}`)
	})}
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	fmt.Println("http://" + l.Addr().String())
	go func() {
		<-term
		_ = s.Close()
	}()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return leave(report, Report{})
}

// Resident is the process's resident memory in bytes.
func (p *Process) Resident() int64 {
	p.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	if err != nil {
		p.t.Skipf("resident memory cannot be read here: %v", err)
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		p.t.Fatal(err)
	}
	return resident * int64(os.Getpagesize())
}

// CPU is the processor time that the process has used, to within [CPUTick].
func (p *Process) CPU() time.Duration {
	p.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		p.t.Skipf("processor time cannot be read here: %v", err)
	}
	_, after, _ := strings.Cut(string(text), ") ") // the name before it may have blanks
	fields := strings.Fields(after)
	var user, system int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		p.t.Fatal(err)
	}
	return time.Duration(user+system) * CPUTick
}

// CPUTick is the unit in which Linux tells of processor time.
const CPUTick = 10 * time.Millisecond

// OpenFiles is how many files and connections the process has open.
func (p *Process) OpenFiles() int {
	p.t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	if err != nil {
		p.t.Skipf("open files cannot be counted here: %v", err)
	}
	return len(files)
}

// Process is a server that runs as a process of its own.
type Process struct {
	URL string
	// Client keeps as many connections as are asked for.
	Client *http.Client
	// Headers, names and values in turn, are sent with every request that does not bring its own of that name.
	Headers []string

	t      testing.TB
	cmd    *exec.Cmd
	out    *bufio.Reader
	data   string
	report string
	log    *tail
	ended  bool
}

// Start runs a server on a free port, with a data folder of its own; overrides are more of its configuration, key=value each.
// When the test ends it is stopped in order, and the test fails if an invariant was violated, if the history breaks a promise (see
// package history), if something is left, or if an answer that came through the client is not as openapi.yaml says (see package
// openapi: of many that are alike, some are looked at).
func Start(t testing.TB, overrides ...string) *Process {
	t.Helper()
	return start(t, t.TempDir(), job{Overrides: overrides})
}

// StartForgetful is Start for tests that run for long: the history is checked all the same, but its events are not kept.
func StartForgetful(t testing.TB, overrides ...string) *Process {
	t.Helper()
	return start(t, t.TempDir(), job{Overrides: overrides, Forget: true})
}

// StartPlain is Start without verification, history and checks of answers, for measurements.
func StartPlain(t testing.TB, overrides ...string) *Process {
	t.Helper()
	return start(t, t.TempDir(), job{Overrides: overrides, Plain: true})
}

// StartBare runs a server that consists of net/http and a handler that reads the body and answers a few bytes, or with the path
// /park does not answer before the client has gone: the scale for measurements.
func StartBare(t testing.TB) *Process {
	t.Helper()
	return start(t, t.TempDir(), job{Bare: true})
}

// Restart starts the server again on the same data after it was killed or stopped.
func (p *Process) Restart(overrides ...string) *Process {
	p.t.Helper()
	if !p.ended {
		p.t.Fatal("the server still runs")
	}
	return start(p.t, p.data, job{Overrides: overrides})
}

// Member says how a server that is a node of a cluster is started.
type Member struct {
	Data      string   // folder; one that is used again is that node's
	Overrides []string // of its configuration, key=value each
	// Journal is a file to which the history is appended as it happens, so that it outlives a kill; see [ReadJournal]. The report has no
	// events then.
	Journal string
	// Sweepless: without the backstop sweep, so that nothing is mended.
	Sweepless bool
	// Links are addresses of other nodes, and where they are reached instead.
	Links map[string]string
}

// StartMember is Start for a node of a cluster.
func StartMember(t testing.TB, m Member) *Process {
	t.Helper()
	return start(t, m.Data, job{Overrides: m.Overrides, Journal: m.Journal, Sweepless: m.Sweepless, Links: m.Links})
}

func start(t testing.TB, data string, what job) *Process {
	t.Helper()
	p := &Process{t: t, data: data, log: &tail{}}
	p.report = filepath.Join(t.TempDir(), "report.json")
	p.Client = &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 20_000,
		DialContext:         (&net.Dialer{Timeout: time.Minute}).DialContext,
		DisableCompression:  true,
	}}
	if !what.Plain && !what.Bare {
		p.watch(what.Overrides)
	}
	what.Report = p.report
	what.Overrides = append([]string{"http.port=0", "path.data=" + data, "logger.level=warn"}, what.Overrides...)
	j, err := json.Marshal(what)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), childVariable+"="+string(j))
	p.cmd.Stderr = p.log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	line, err := p.out.ReadString('\n')
	if err != nil {
		_ = p.cmd.Wait() // the log says more
		t.Fatalf("the server did not start: %v\n%s", err, p.log)
	}
	p.URL = strings.TrimSpace(line)
	t.Cleanup(func() {
		if !p.ended {
			p.Resume() // a test may have ended in the middle
			p.Stop()
		}
	})
	return p
}

// contract is openapi.yaml.
var contract = sync.OnceValues(openapi.Load)

// watch has the test fail if an answer is not as openapi.yaml says. Where faults can be scripted, that is about the script only:
// a fault may make anything of other answers.
func (p *Process) watch(overrides []string) {
	p.t.Helper()
	described, err := contract()
	if err != nil {
		p.t.Fatal(err)
	}
	below := ""
	if slices.Contains(overrides, "stub.control=true") {
		below = "/_stub/"
	}
	w := described.Watch(p.Client.Transport, below)
	p.Client.Transport = w
	p.t.Cleanup(func() {
		for _, err := range w.Wrong() {
			p.t.Error(err)
		}
	})
}

// Kill ends the process at once, as a crash does.
func (p *Process) Kill() {
	p.t.Helper()
	p.ended = true
	p.Client.CloseIdleConnections()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Error(err)
	}
	_ = p.cmd.Wait() // "signal: killed"
}

// Pause stops the process as it is; it does nothing, and its connections stay. Resume has it go on.
func (p *Process) Pause() { p.signal(syscall.SIGSTOP) }

// Resume has a paused process go on.
func (p *Process) Resume() { p.signal(syscall.SIGCONT) }

func (p *Process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Error(err)
	}
}

// Collect has the process collect its garbage, and gives what is left: its goroutines, without those of Go's runtime, which come and
// go, and the bytes that are in use on its heap.
func (p *Process) Collect() (goroutines int, heap int64) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		p.t.Fatal(err)
	}
	line, err := p.out.ReadString('\n')
	if err == nil {
		_, err = fmt.Sscanf(line, "left %d %d\n", &goroutines, &heap)
	}
	if err != nil {
		p.t.Fatalf("collecting garbage: %q, %v", line, err)
	}
	return goroutines, heap
}

// Terminate sends SIGTERM and returns at once. Wait has to follow.
func (p *Process) Terminate() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
}

// Wait waits for the end of a process that was told to stop, and checks what it left.
func (p *Process) Wait() Report {
	p.t.Helper()
	p.ended = true
	p.Client.CloseIdleConnections()
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the server ended with %v\n%s", err, p.log)
	}
	var r Report
	text, err := os.ReadFile(p.report)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		p.t.Error(err)
	}
	for _, v := range r.Violations {
		p.t.Error(v)
	}
	if log := p.log.String(); strings.Contains(log, "panic") {
		p.t.Errorf("the server panicked:\n%s", log)
	}
	return r
}

// Stop stops the server in order and gives its history.
func (p *Process) Stop() Report {
	p.t.Helper()
	p.Client.CloseIdleConnections()
	p.Terminate()
	return p.Wait()
}

// Log is what the server has logged, the end of it if it is long.
func (p *Process) Log() string { return p.log.String() }

// Answer is one answer of the server. Err is set when there was none.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	Err    error
}

// Send sends one request. The headers are names and values in turn.
func (p *Process) Send(ctx context.Context, method, path, body string, headers ...string) Answer {
	r, err := http.NewRequestWithContext(ctx, method, p.URL+path, strings.NewReader(body))
	if err != nil {
		return Answer{Err: err}
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range [][]string{p.Headers, headers} {
		for i := 0; i+1 < len(h); i += 2 {
			r.Header.Set(h[i], h[i+1])
		}
	}
	res, err := p.Client.Do(r)
	if err != nil {
		return Answer{Err: err}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return Answer{Status: res.StatusCode, Header: res.Header, Body: text, Err: err}
}

// Must sends one request that has to be answered with 200, and decodes the answer into v unless that is nil.
func (p *Process) Must(method, path, body string, v any) {
	p.t.Helper()
	a := p.Send(p.t.Context(), method, path, body)
	if a.Err == nil && a.Status != http.StatusOK {
		a.Err = fmt.Errorf("status %d: %s", a.Status, a.Body)
	}
	if a.Err == nil && v != nil {
		a.Err = json.Unmarshal(a.Body, v)
	}
	if a.Err != nil {
		p.t.Fatalf("%s %s %s: %v\n%s", method, path, body, a.Err, p.log)
	}
}

// CreateIndex makes an index of one shard whose searches cost what cost says (settings of index.stub, as JSON members).
func (p *Process) CreateIndex(name, cost string) {
	p.t.Helper()
	if cost != "" {
		cost = "," + cost
	}
	p.Must(http.MethodPut, "/"+name, `{"settings":{"number_of_shards":1,"number_of_replicas":0`+cost+`}}`, nil)
}

// CreateGroup makes a group whose limits and queue are given as JSON members, and gives its id.
func (p *Process) CreateGroup(name, blocks string) string {
	p.t.Helper()
	var g struct {
		ID string `json:"_id"`
	}
	p.Must(http.MethodPut, "/_wlm/workload_group",
		fmt.Sprintf(`{"name":%q,"resiliency_mode":"enforced","resource_limits":{"cpu":0.01},%s}`, name, blocks), &g)
	return g.ID
}

// UpdateGroup changes a group.
func (p *Process) UpdateGroup(name, body string) {
	p.t.Helper()
	p.Must(http.MethodPut, "/_wlm/workload_group/"+name, body, nil)
}

// GroupStats is what _wlm/stats tells of one group.
type GroupStats struct {
	Completions     int `json:"total_completions"`
	Throttled       int `json:"total_throttled"`
	WouldThrottle   int `json:"total_would_throttle"`
	Queued          int `json:"total_queued"`
	QueueRejections int `json:"total_queue_rejections"`
	QueuedCurrent   int `json:"queued_current"`
	QueuePeak       int `json:"queue_peak"`
	QueueWaits      int `json:"queue_wait_count"`
}

// Stats reads the statistics of a group.
func (p *Process) Stats(id string) GroupStats {
	p.t.Helper()
	var all map[string]json.RawMessage
	p.Must(http.MethodGet, "/_wlm/stats/"+id, "", &all)
	for key, text := range all {
		var n struct {
			Groups map[string]GroupStats `json:"workload_groups"`
		}
		if key == "_nodes" || key == "cluster_name" {
			continue
		}
		if err := json.Unmarshal(text, &n); err != nil {
			p.t.Fatal(err)
		}
		if s, ok := n.Groups[id]; ok {
			return s
		}
	}
	p.t.Fatalf("no statistics of %s", id)
	return GroupStats{}
}

// Task is what _tasks tells of one task.
type Task struct {
	ID        string
	Number    int64  `json:"id"`
	Node      string `json:"node"`
	Action    string `json:"action"`
	Cancelled bool   `json:"cancelled"`
	Parent    string `json:"parent_task_id"`
	CancelMS  int64  `json:"cancellation_time_millis"`
	Headers   map[string]string
	Status    struct {
		State    string `json:"state"`
		Position int    `json:"position"`
		Tracked  *bool  `json:"tracked"`
	} `json:"status"`
}

// Tasks lists the tasks of an action (with wildcards), with their status.
func (p *Process) Tasks(action string) []Task {
	p.t.Helper()
	var l struct {
		Tasks []Task `json:"tasks"`
	}
	p.Must(http.MethodGet, "/_tasks?detailed&group_by=none&actions="+action, "", &l)
	for i := range l.Tasks {
		l.Tasks[i].ID = fmt.Sprintf("%s:%d", l.Tasks[i].Node, l.Tasks[i].Number)
	}
	return l.Tasks
}

// Await asks until ok holds. It fails the test when that takes longer than a minute, far longer than anything that is awaited.
func (p *Process) Await(what string, ok func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("never: %s\n%s", what, p.log)
		}
	}
}

// AwaitQueued waits until so many searches of the group are parked.
func (p *Process) AwaitQueued(id string, n int) {
	p.t.Helper()
	p.Await(fmt.Sprintf("%d parked", n), func() bool { return p.Stats(id).QueuedCurrent == n })
}

// ErrorType is the type of an answer that is an error; empty when it is none.
func (a Answer) ErrorType() string {
	var e struct {
		Error struct {
			Type string `json:"type"`
		} `json:"error"`
	}
	if json.Unmarshal(a.Body, &e) != nil {
		return ""
	}
	return e.Error.Type
}

// tail keeps the end of what is written to it. It is safe for concurrent use.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 64 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if len(t.text) > tailBytes {
		t.text = append([]byte(nil), t.text[len(t.text)-tailBytes:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
