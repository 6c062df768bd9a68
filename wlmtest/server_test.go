package wlmtest_test

import (
	"bytes"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/wlmserver/wlmserver/wlmtest"
)

// TestMain shows that a server leaves nothing behind: no goroutine of it outlives its test.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestServersAreAlone(t *testing.T) {
	const group = `{"name":"a","resiliency_mode":"enforced","resource_limits":{"cpu":0.5}}`
	for i := range 3 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			s := wlmtest.Start(t)
			if id := s.CreateGroup(group); id == "" {
				t.Error("no id")
			}
			if status, body := s.Do(http.MethodGet, "/_wlm/workload_group/a", ""); status != http.StatusOK {
				t.Errorf("%d %s", status, body)
			}
		})
	}
}

// TestNothingIsLeft ends a test in the midst of running, parked and half-sent requests.
func TestNothingIsLeft(t *testing.T) {
	before := goleak.IgnoreCurrent()
	done := make(chan struct{}, 8)
	t.Run("a test", func(t *testing.T) {
		s := wlmtest.Start(t)
		s.Do(http.MethodPut, "/books", `{"settings":{"number_of_shards":1}}`)
		id := s.CreateGroup(`{"name":"a","resiliency_mode":"enforced","resource_limits":{"cpu":0.5},
			"throttling":{"attribute":"group","node_limit":2},"queue":{"size_per_bucket":10}}`)
		for range cap(done) {
			go func() {
				defer func() { done <- struct{}{} }()
				r, _ := http.NewRequest(http.MethodPost, s.URL+"/books/_search", strings.NewReader(`{"ext":{"stub":{"query_time":"1h"}}}`))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("workloadGroupId", id)
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Errorf("a search got no answer: %v", err)
					return
				}
				resp.Body.Close()
			}()
		}
		s.Await("/_wlm/stats/"+id, fmt.Sprintf(`"queued_current":%d`, cap(done)-2))
	})
	for range cap(done) {
		<-done
	}
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}

func TestWith(t *testing.T) {
	var log bytes.Buffer
	s := wlmtest.Start(t, wlmtest.With("cluster.name", "mine"), wlmtest.With("wlm.workload_group.mode", "monitor_only"), wlmtest.WithLog(&log))
	if _, body := s.Do(http.MethodGet, "/", ""); !bytes.Contains(body, []byte(`"mine"`)) {
		t.Errorf("GET / answered %s", body)
	}
	if status, body := s.Do(http.MethodPut, "/_wlm/workload_group", `{"name":"a","resiliency_mode":"soft","resource_limits":{"cpu":0.5}}`); status != http.StatusInternalServerError {
		t.Errorf("in monitor_only a group is created: %d %s", status, body)
	}
	s.Set("wlm.workload_group.mode", "enabled")
	s.CreateGroup(`{"name":"a","resiliency_mode":"soft","resource_limits":{"cpu":0.5}}`)
	s.Set("wlm.workload_group.mode", nil)
	if status, _ := s.Do(http.MethodDelete, "/_wlm/workload_group/a", ""); status != http.StatusInternalServerError {
		t.Error("the setting was not reset to its start value")
	}
	if !strings.Contains(log.String(), "started") {
		t.Errorf("logged %q", log.String())
	}
}

// TestMistakesFailTheTest: what cannot be done fails the test that asked for it.
func TestMistakesFailTheTest(t *testing.T) {
	for name, mistake := range map[string]func(*recorder){
		"unknown key": func(r *recorder) { wlmtest.Start(r, wlmtest.With("http.prt", "1")) },
		"bad group":   func(r *recorder) { wlmtest.Start(r).CreateGroup(`{}`) },
		"bad setting": func(r *recorder) { wlmtest.Start(r).Set("search.max_buckets", "x") },
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{TB: t}
			ended := make(chan struct{})
			go func() { // Fatal ends the goroutine
				defer close(ended)
				mistake(r)
			}()
			<-ended
			if r.fatal == "" {
				t.Error("the test went on")
			}
		})
	}
}

// recorder is a test that notes why it was failed instead of failing.
type recorder struct {
	testing.TB
	fatal string
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.fatal = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
