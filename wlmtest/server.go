package wlmtest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/internal/node"
)

// Server is a running server. Its methods are safe for concurrent use; like all that can fail a test they belong on
// the goroutine of the test.
type Server struct {
	URL string // without a slash at the end, such as http://127.0.0.1:40123

	t    testing.TB
	http *http.Client
}

// Option changes how a server is started.
type Option func(*options)

type options struct {
	overrides []string
	log       io.Writer
}

// With sets one key of the configuration (see the command wlmserver config), or the start value of a cluster setting.
func With(key, value string) Option {
	return func(o *options) { o.overrides = append(o.overrides, key+"="+value) }
}

// WithLog has the server write its log to w, from several goroutines but one line at a time. Without it there is none.
func WithLog(w io.Writer) Option { return func(o *options) { o.log = w } }

// Start runs a server until the test ends; then requests that still run are cancelled and nothing is left. The test
// fails at once when the server cannot be started.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	o := options{log: io.Discard, overrides: []string{"http.port=0", "path.data=" + t.TempDir(), "stub.control=true"}}
	for _, opt := range opts {
		opt(&o)
	}
	config, err := node.Load(node.Sources{Overrides: o.overrides})
	if err != nil {
		t.Fatalf("wlmtest: %v", err)
	}
	config.Log.Output = o.log
	n, err := node.Start(t.Context(), config)
	if err != nil {
		t.Fatalf("wlmtest: %v", err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("wlmtest: the server did not stop cleanly: %v", err)
		}
	})
	return &Server{URL: n.URL(), t: t, http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
}

// Do sends one request with a JSON body ("" is none) and returns the status and the body of the answer. It fails the
// test when there is no answer.
func (s *Server) Do(method, path, body string) (status int, answer []byte) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatalf("wlmtest: %v", err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.http.Do(r)
	if err != nil {
		s.t.Fatalf("wlmtest: %v", err)
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("wlmtest: %s %s: %v", method, path, err)
	}
	return resp.StatusCode, answer
}

// Await asks GET path again and again until the answer holds the text, and returns that answer. It fails the test when that
// takes longer than ten seconds.
func (s *Server) Await(path, text string) (answer []byte) {
	s.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if _, answer = s.Do(http.MethodGet, path, ""); bytes.Contains(answer, []byte(text)) {
			return answer
		}
	}
	s.t.Fatalf("wlmtest: GET %s never held %s; last it was answered %s", path, text, answer)
	return nil
}

// CreateGroup creates a workload group from the JSON that PUT /_wlm/workload_group takes and returns its id, which
// searches name in the header workloadGroupId. It fails the test when the group is refused.
func (s *Server) CreateGroup(body string) (id string) {
	s.t.Helper()
	var group struct {
		ID string `json:"_id"`
	}
	s.must(http.MethodPut, "/_wlm/workload_group", body, &group)
	return group.ID
}

// Set changes one dynamic cluster setting; a nil value resets it. It fails the test when the change is refused.
func (s *Server) Set(key string, value any) {
	s.t.Helper()
	body, err := json.Marshal(map[string]any{"transient": map[string]any{key: value}})
	if err != nil {
		s.t.Fatalf("wlmtest: %v", err)
	}
	s.must(http.MethodPut, "/_cluster/settings", string(body), nil)
}

// must sends a request that has to be answered with 200 and reads the answer into v unless that is nil.
func (s *Server) must(method, path, body string, v any) {
	s.t.Helper()
	status, answer := s.Do(method, path, body)
	if status != http.StatusOK {
		s.t.Fatalf("wlmtest: %s %s was answered %d: %s", method, path, status, answer)
	}
	if v != nil {
		if err := json.Unmarshal(answer, v); err != nil {
			s.t.Fatalf("wlmtest: %s %s: %v in %s", method, path, err, answer)
		}
	}
}
