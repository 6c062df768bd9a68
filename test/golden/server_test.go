package golden_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/wlmtest"
)

// server is a fresh server of its own for one recording.
type server struct {
	t       *testing.T
	address string
	node    string // id
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string // inflated
	err    error  // there was no answer, or none that could be read
}

// patience bounds how long one answer, or what a case waits for, may take. Nothing recorded takes a tenth of it.
const patience = 30 * time.Second

func startServer(t *testing.T, threads, queue int) *server {
	t.Helper()
	s := wlmtest.Start(t, wlmtest.With("node.name", "golden-1"), wlmtest.With("cluster.name", "golden"), wlmtest.With("node.heap_size", "1gb"),
		wlmtest.With("thread_pool.search.size", fmt.Sprint(threads)), wlmtest.With("thread_pool.search.queue_size", fmt.Sprint(queue)))
	u, err := url.Parse(s.URL)
	must(t, err)
	g := &server{t: t, address: u.Host}
	var nodes struct {
		Nodes map[string]json.RawMessage `json:"nodes"`
	}
	g.must("GET", "/_nodes", "", &nodes)
	for id := range nodes.Nodes {
		g.node = id
	}
	return g
}

// send sends a request as it stands, on a connection of its own: bytes that an HTTP client would not send are recorded too.
func (s *server) send(method, path string, headers [][2]string, body *string) answer {
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		return answer{err: err}
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return answer{err: err}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", method, path, s.address)
	for _, h := range headers {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], h[1])
	}
	if body != nil {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(*body))
	}
	b.WriteString("\r\n")
	if body != nil {
		b.WriteString(*body)
	}
	sent := make(chan error, 1)
	var writer sync.WaitGroup
	writer.Go(func() { // the answer to what is too large comes before all of it has been sent
		_, err := c.Write(b.Bytes())
		sent <- err
	})
	defer writer.Wait()
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.Header.Get("Content-Encoding") == "gzip" {
		text, err = inflate(text)
	}
	return answer{resp.StatusCode, resp.Header, string(text), err}
}

func inflate(b []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// must sends a request that is not recorded and has to succeed, and decodes its answer into v unless that is nil.
func (s *server) must(method, path, body string, v any) {
	s.t.Helper()
	headers, sent := [][2]string(nil), (*string)(nil)
	if body != "" {
		headers, sent = [][2]string{{"Content-Type", "application/json"}}, &body
	}
	a := s.send(method, path, headers, sent)
	must(s.t, a.err)
	if a.status > 201 {
		s.t.Fatalf("%s %s: status %d: %s", method, path, a.status, a.body)
	}
	if v != nil {
		must(s.t, json.Unmarshal([]byte(a.body), v))
	}
}

// task is what a listing tells of a task.
type task struct {
	Number int64  `json:"id"`
	Action string `json:"action"`
	Usage  struct {
		Threads struct {
			Executions int `json:"thread_executions"`
		} `json:"thread_info"`
	} `json:"resource_stats"`
}

// begun says whether a worker has begun with a task that needs one.
func (t *task) begun() bool {
	return !strings.HasSuffix(t.Action, "[phase/query]") || t.Usage.Threads.Executions > 0
}

// tasks lists the tasks that run, the oldest first, but for those of the listing itself.
func (s *server) tasks() []task {
	s.t.Helper()
	var l struct {
		Tasks []task `json:"tasks"`
	}
	s.must("GET", "/_tasks?group_by=none&detailed", "", &l)
	l.Tasks = slices.DeleteFunc(l.Tasks, func(t task) bool { return strings.HasPrefix(t.Action, "cluster:monitor/tasks/lists") })
	slices.SortFunc(l.Tasks, func(a, b task) int { return int(a.Number - b.Number) })
	return l.Tasks
}

// await asks until it holds.
func (s *server) await(what string, holds func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("never came true: %s", what)
		}
	}
}
