package wlmtest_test

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/wlmtest"
)

// get asks as any client does.
func get(t *testing.T, s *wlmtest.Server, path string) (*http.Response, string, error) {
	t.Helper()
	resp, err := http.Get(s.URL + path)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

func TestFaults(t *testing.T) {
	s := wlmtest.Start(t)
	defer http.DefaultClient.CloseIdleConnections()
	s.Fault(
		wlmtest.Fault{Method: "get", Path: "/late", Delay: 50 * time.Millisecond, Status: 503, Type: "a", Reason: "b"},
		wlmtest.Fault{Path: "/_count", After: 1, Times: 1, Status: 429, Headers: map[string]string{"Retry-After": "", "X-A": "b"}},
	)
	started := time.Now()
	if resp, body, err := get(t, s, "/late"); err != nil || resp.StatusCode != 503 || !strings.Contains(body, `"type":"a","reason":"b"`) || time.Since(started) < 50*time.Millisecond {
		t.Errorf("%v %v %s", resp, err, body)
	}
	for i, want := range []int{200, 429, 200} {
		resp, body, err := get(t, s, "/_count")
		if err != nil || resp.StatusCode != want {
			t.Fatalf("%d: %v %v %s", i, resp, err, body)
		}
		if want == 429 && (resp.Header.Get("X-A") != "b" || len(resp.Header["Retry-After"]) != 0) {
			t.Errorf("%v", resp.Header)
		}
	}
	if got := s.Acted(); !slices.Equal(got, []int{1, 1}) {
		t.Errorf("acted %v", got)
	}

	for damage, check := range map[wlmtest.Damage]func(resp *http.Response, body string, err error) bool{
		wlmtest.NoAnswer:   func(_ *http.Response, _ string, err error) bool { return errors.Is(err, io.EOF) },
		wlmtest.HalfAnswer: func(_ *http.Response, _ string, err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) },
		wlmtest.Truncated:  func(_ *http.Response, body string, _ error) bool { return body == `{"persistent":{}` },
		wlmtest.NotJSON:    func(_ *http.Response, body string, _ error) bool { return strings.HasPrefix(body, "}") },
		wlmtest.HTML: func(resp *http.Response, _ string, _ error) bool {
			return strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html")
		},
		wlmtest.WrongType: func(resp *http.Response, _ string, _ error) bool {
			return strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain")
		},
	} {
		s.Fault(wlmtest.Fault{Damage: damage})
		if resp, body, err := get(t, s, "/_cluster/settings"); !check(resp, body, err) {
			t.Errorf("%s: %v %q %v", damage, resp, body, err)
		}
	}
	s.Fault()
	if resp, body, err := get(t, s, "/_cluster/settings"); err != nil || resp.StatusCode != 200 || body != `{"persistent":{},"transient":{}}` || len(s.Acted()) != 0 {
		t.Errorf("without faults: %v %q %v", resp, body, err)
	}
}

func TestRequests(t *testing.T) {
	s := wlmtest.Start(t)
	id := s.CreateGroup(`{"name":"g","resiliency_mode":"soft","resource_limits":{"cpu":0.5}}`)
	s.Fault(wlmtest.Fault{Path: "/_count", Status: 503})
	s.Do(http.MethodPost, "/_search?size=1", `{"size":2}`)
	s.Do(http.MethodGet, "/_count", "")
	all := s.Requests("*")
	if len(all) != 3 || all[0].Path != "/_wlm/workload_group" || len(s.Requests("/_search")) != 1 || len(s.Requests("/nosuch")) != 0 {
		t.Fatalf("%+v", all)
	}
	if r := all[1]; r.Number != 2 || r.Method != http.MethodPost || r.Query != "size=1" || r.Body != `{"size":2}` || r.BodyBytes != 10 || !r.Answered || r.Status != 200 ||
		r.Fault != -1 || r.Header.Get("Content-Type") != "application/json" || r.Group != "DEFAULT_WORKLOAD_GROUP" || time.Since(r.Received) > time.Minute {
		t.Errorf("%+v", r)
	}
	if r := all[2]; r.Fault != 0 || r.Status != 503 || r.Group == id {
		t.Errorf("%+v", r)
	}
}

func TestReset(t *testing.T) {
	s := wlmtest.Start(t)
	group := func() int {
		status, _ := s.Do(http.MethodGet, "/_wlm/workload_group/g", "")
		return status
	}
	s.CreateGroup(`{"name":"g","resiliency_mode":"soft","resource_limits":{"cpu":0.5}}`)
	s.Set("search.max_buckets", 9)
	s.Reset(wlmtest.Faults, wlmtest.Tasks, wlmtest.Rules, wlmtest.Indices, wlmtest.Requests, wlmtest.Settings)
	if group() != http.StatusOK || len(s.Requests("*")) != 1 {
		t.Error("more was reset than was named")
	}
	s.Reset(wlmtest.Groups)
	if group() != http.StatusNotFound {
		t.Error("the group is left")
	}
}

// TestControlMistakes: what the server refuses fails the test.
func TestControlMistakes(t *testing.T) {
	for name, mistake := range map[string]func(*wlmtest.Server){
		"a fault that does nothing": func(s *wlmtest.Server) { s.Fault(wlmtest.Fault{Path: "/_search"}) },
		"no such part":              func(s *wlmtest.Server) { s.Reset("all") },
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{TB: t}
			ended := make(chan struct{})
			go func() { // Fatal ends the goroutine
				defer close(ended)
				mistake(wlmtest.Start(r))
			}()
			<-ended
			if !strings.Contains(r.fatal, "400") {
				t.Errorf("the test went on: %s", r.fatal)
			}
		})
	}
	s := wlmtest.Start(t, wlmtest.With("stub.control", "false"))
	if status, _ := s.Do(http.MethodGet, "/_stub/faults", ""); status != http.StatusBadRequest {
		t.Error("control cannot be switched off")
	}
}

// TestFaultsOnStreams: over HTTP/2 a cut ends the stream of its request, and the others on the connection go on.
func TestFaultsOnStreams(t *testing.T) {
	s := wlmtest.Start(t)
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	ask := func(path string) (status int, body string, err error) {
		resp, err := client.Get(s.URL + path)
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		if resp.ProtoMajor != 2 {
			t.Errorf("%s", resp.Proto)
		}
		b, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b), err
	}
	s.Fault(wlmtest.Fault{Path: "/none", Damage: wlmtest.NoAnswer}, wlmtest.Fault{Path: "/_cluster/settings", Damage: wlmtest.HalfAnswer, Times: 1})
	if status, body, err := ask("/none"); err == nil {
		t.Errorf("answered %d %s", status, body)
	}
	if status, body, err := ask("/_cluster/settings"); err == nil || status != http.StatusOK || body != `{"persistent":{}`[:len(body)] {
		t.Errorf("%d %s %v", status, body, err)
	}
	if status, body, err := ask("/_cluster/settings"); err != nil || status != http.StatusOK || body != `{"persistent":{},"transient":{}}` {
		t.Errorf("%d %s %v", status, body, err)
	}
}

// TestDelayEndsWithTheServer: a server that stops does not wait for its own delays, and says that one may come again.
func TestDelayEndsWithTheServer(t *testing.T) {
	answer := make(chan *http.Response, 1)
	t.Run("a test", func(t *testing.T) {
		s := wlmtest.Start(t)
		s.Fault(wlmtest.Fault{Path: "/_search", Delay: time.Hour})
		go func() {
			resp, err := http.Get(s.URL + "/_search")
			if err != nil {
				t.Errorf("no answer: %v", err)
			} else {
				resp.Body.Close()
			}
			answer <- resp
		}()
		s.Await("/_stub/faults", `"acted":1`)
	})
	if resp := <-answer; resp != nil && (resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "") {
		t.Errorf("%s %v", resp.Status, resp.Header)
	}
	http.DefaultClient.CloseIdleConnections()
}
