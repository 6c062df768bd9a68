package node_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/internal/node"
	"github.com/wlmserver/wlmserver/wlm"
)

// config is that of a quiet node on a free port.
func config(t *testing.T, overrides ...string) node.Config {
	t.Helper()
	c, err := node.Load(node.Sources{Overrides: append([]string{"http.port=0", "path.data=" + t.TempDir()}, overrides...)})
	if err != nil {
		t.Fatal(err)
	}
	c.Log.Output = io.Discard
	return c
}

func start(t *testing.T, c node.Config) *node.Node {
	t.Helper()
	n, err := node.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return n
}

// ask sends one request and returns the answer; a request without an answer fails the test.
func ask(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	return askAs(t, method, url, body, "")
}

// askAs is ask for a workload group.
func askAs(t *testing.T, method, url, body, group string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("workloadGroupId", group)
	r.Close = true
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(b)
}

// untilItRuns waits until a search has a shard at work, and returns the id of the search's task.
func untilItRuns(t *testing.T, n *node.Node) (task string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		_, body := ask(t, "GET", n.URL()+"/_tasks?group_by=none&actions=*phase/query*", "")
		if _, rest, ok := strings.Cut(body, `"parent_task_id":"`); ok {
			task, _, _ = strings.Cut(rest, `"`)
			return task
		}
	}
	t.Fatal("no search ever ran")
	return ""
}

func TestConfigurationIsShown(t *testing.T) {
	n := start(t, config(t, "cluster.name=shown", "node.heap_size=64mb", "search.max_buckets=9", "thread_pool.search.size=5"))
	for path, want := range map[string][]string{
		"/": {`"shown"`},
		"/_cluster/settings?include_defaults&flat_settings": {`"cluster.name":"shown"`, `"node.heap_size":"64mb"`, `"search.max_buckets":"9"`, `"thread_pool.search.size":"5"`},
		"/_nodes": {`"` + n.Addr() + `"`},
	} {
		_, body := ask(t, "GET", n.URL()+path, "")
		for _, w := range want {
			if !strings.Contains(body, w) {
				t.Errorf("GET %s does not hold %s: %s", path, w, body)
			}
		}
	}
}

// TestModeReachesTheAdmission: a change of wlm.workload_group.mode acts on the searches that come after it.
func TestModeReachesTheAdmission(t *testing.T) {
	c := config(t)
	c.Admission = []wlm.Option{wlm.WithVerification(func(violation string) { t.Error(violation) })}
	n := start(t, c)
	ask(t, "PUT", n.URL()+"/books", `{"settings":{"number_of_shards":1}}`)
	_, group := ask(t, "PUT", n.URL()+"/_wlm/workload_group", `{"name":"a","resiliency_mode":"enforced","resource_limits":{"cpu":0.1},
		"throttling":{"attribute":"group","node_limit":1}}`)
	_, rest, _ := strings.Cut(group, `"_id":"`)
	id, _, _ := strings.Cut(rest, `"`)

	search := func(took string) int {
		status, _ := askAs(t, "POST", n.URL()+"/books/_search", fmt.Sprintf(`{"ext":{"stub":{"query_time":%q}}}`, took), id)
		return status
	}
	var wg sync.WaitGroup
	wg.Go(func() { search("1h") })
	untilItRuns(t, n)
	for _, step := range []struct {
		mode string
		want int
	}{{"enabled", 429}, {"disabled", 200}, {"monitor_only", 200}, {"enabled", 429}} {
		ask(t, "PUT", n.URL()+"/_cluster/settings", fmt.Sprintf(`{"persistent":{"wlm.workload_group.mode":%q}}`, step.mode))
		if got := search("0"); got != step.want {
			t.Errorf("mode %s: answered %d, want %d", step.mode, got, step.want)
		}
	}
	ask(t, "POST", n.URL()+"/_tasks/_cancel", "")
	wg.Wait()
	if _, body := ask(t, "GET", n.URL()+"/_wlm/stats/"+id, ""); !strings.Contains(body, `"total_throttled":2`) {
		t.Errorf("statistics: %s", body)
	}
}

// TestFailedStartLeavesNothing: what a failed start had opened is closed again; goroutines are seen by TestMain.
func TestFailedStartLeavesNothing(t *testing.T) {
	c := config(t)
	start(t, c)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	c.HTTP.Port, _ = strconv.Atoi(port)

	if _, err := node.Start(t.Context(), c); err == nil || !strings.Contains(err.Error(), c.DataPath) {
		t.Errorf("a second node on the same folder: %v", err)
	}
	c.DataPath = t.TempDir()
	c.HTTP.AddressFile = filepath.Join(t.TempDir(), "none", "address")
	if _, err := node.Start(t.Context(), c); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "http.address_file") {
		t.Errorf("with an address file that cannot be written: %v", err)
	}
	c.HTTP.AddressFile = ""
	start(t, c) // port and folder are free
}

func TestPublicAddress(t *testing.T) {
	for _, host := range []string{"0.0.0.0", "::"} {
		c := config(t)
		c.HTTP.Host = host
		if _, err := node.Start(t.Context(), c); err == nil {
			t.Fatalf("everyone on %s", host)
		} else if _, ok := errors.AsType[*node.PublicAddressError](err); !ok {
			t.Errorf("%s: %v", host, err)
		}
		c.AllowAnonymous = true
		n := start(t, c)
		if status, _ := ask(t, "GET", n.URL()+"/", ""); status != http.StatusOK {
			t.Errorf("%s: answered %d", host, status)
		}
	}
	for _, host := range []string{"127.0.0.1", "localhost", "127.8.9.10"} {
		c := config(t)
		c.HTTP.Host = host
		n := start(t, c)
		if status, _ := ask(t, "GET", n.URL()+"/", ""); status != http.StatusOK {
			t.Errorf("%s: answered %d", host, status)
		}
	}
}

func TestAddressFile(t *testing.T) {
	c := config(t)
	folder := t.TempDir()
	c.HTTP.AddressFile = filepath.Join(folder, "address")
	if err := os.WriteFile(c.HTTP.AddressFile, []byte("of an earlier run"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := start(t, c)
	if b, err := os.ReadFile(c.HTTP.AddressFile); err != nil || string(b) != n.Addr()+"\n" {
		t.Errorf("holds %q, want %s (%v)", b, n.Addr(), err)
	}
	if err := os.WriteFile(c.HTTP.AddressFile, []byte("of another server"), 0o600); err != nil {
		t.Fatal(err)
	}
	n.Close()
	if files, _ := os.ReadDir(folder); len(files) != 1 {
		t.Errorf("left in the folder: %v; the file of another server must stay, and no other", files)
	}
}

// TestEndIsOne: however often and from wherever a node is stopped, it stops once and all wait for that.
func TestEndIsOne(t *testing.T) {
	c := config(t)
	n := start(t, c)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			var err error
			if i%2 == 0 {
				err = n.Close()
			} else {
				err = n.Shutdown(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
			select {
			case <-n.Done():
			default:
				t.Error("returned before the end")
			}
		})
	}
	wg.Wait()
	if err := n.Err(); err != nil {
		t.Errorf("Err after a stop: %v", err)
	}
	start(t, c) // the folder is free
}

// TestShutdownKeepsToItsContext: a caller in a hurry has running searches cancelled at once, whatever the configuration says.
func TestShutdownKeepsToItsContext(t *testing.T) {
	n := start(t, config(t, "node.shutdown_timeout=1h"))
	ask(t, "PUT", n.URL()+"/books", `{"settings":{"number_of_shards":1}}`)
	answered := make(chan int, 1)
	go func() {
		status, _ := ask(t, "POST", n.URL()+"/books/_search", `{"ext":{"stub":{"query_time":"1h"}}}`)
		answered <- status
	}()
	untilItRuns(t, n)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := n.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if status := <-answered; status == http.StatusOK {
		t.Error("the search was answered with 200")
	}
}

// TestWaitForATaskEnds: a request that only waits, with no task of its own to cancel, does not outlast the node.
func TestWaitForATaskEnds(t *testing.T) {
	n := start(t, config(t, "node.shutdown_timeout=100ms"))
	ask(t, "PUT", n.URL()+"/books", `{"settings":{"number_of_shards":1}}`)
	var wg sync.WaitGroup
	wg.Go(func() {
		ask(t, "POST", n.URL()+"/books/_search", `{"ext":{"stub":{"query_time":"1h","ignore_cancel":true}}}`)
	})
	task := untilItRuns(t, n)
	wg.Go(func() { ask(t, "GET", n.URL()+"/_tasks/"+task+"?wait_for_completion&timeout=1h", "") })
	for deadline := time.Now().Add(10 * time.Second); ; {
		if _, body := ask(t, "GET", n.URL()+"/_tasks", ""); strings.Contains(body, "cluster:monitor/task/get") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing waits for the task")
		}
	}
	began := time.Now()
	if err := n.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	wg.Wait() // both are answered: ask fails the test otherwise
	// The timeout of 100 ms, two seconds for what heeds its cancellation, and little more; not the hour.
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("took %v", took)
	}
}

// TestLogOfHTTP: what net/http says about connections goes into the node's log.
func TestLogOfHTTP(t *testing.T) {
	var log safeBuffer
	c := config(t)
	c.Log.Output = &log
	c.Log.Format = "json"
	n := start(t, c)
	conn, err := net.Dial("tcp", n.Addr())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	conn.Close()
	n.Close()
	for line := range strings.Lines(log.String()) {
		if !strings.HasPrefix(line, "{") || !strings.HasSuffix(line, "}\n") {
			t.Errorf("not JSON: %q", line)
		}
	}
	for _, want := range []string{`"address":"` + n.Addr(), `"path.data":"` + c.DataPath, `"anonymous":true`, "not enforced yet", `"stopped"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not hold %s:\n%s", want, log.String())
		}
	}
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
