package stub_test

import (
	"context"
	"encoding/json"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/wlmserver/wlmserver/internal/stub"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const node = "node-1"

// fixture is an engine with the tasks of its node, and what ended there.
type fixture struct {
	testing.TB
	engine *stub.Engine
	tasks  *tasks.Manager

	mu    sync.Mutex
	ended []string // actions
}

func newFixture(t testing.TB, configure ...func(*stub.Config)) *fixture {
	t.Helper()
	return newNode(t, node, configure...)
}

func newNode(t testing.TB, id string, configure ...func(*stub.Config)) *fixture {
	t.Helper()
	f := &fixture{TB: t}
	f.tasks = tasks.NewManager(id, tasks.WithOnEnd(func(t *tasks.Task) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ended = append(f.ended, t.Action())
	}))
	c := stub.Config{Node: id, NodeName: "n1", Tasks: f.tasks, PoolSize: 4, QueueSize: 1000}
	for _, set := range configure {
		set(&c)
	}
	var err error
	if f.engine, err = stub.Open(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.engine.Close()
		if n := f.tasks.Len(); n != 0 {
			t.Errorf("%d tasks were left behind", n)
		}
		if s := f.engine.PoolStats(); s.Active != 0 || s.Queue != 0 || s.Threads != 0 {
			t.Errorf("the closed pool has %+v", s)
		}
	})
	return f
}

// bubble runs a test on fake time with an engine of its own.
func bubble(t *testing.T, test func(f *fixture), configure ...func(*stub.Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newFixture(t, configure...)) })
}

// index makes an index with so many shards and no replicas; more are its other
// settings.
func (f *fixture) index(name string, shards int, more string) {
	f.Helper()
	if more != "" {
		more = "," + more
	}
	f.create(name, `{"settings":{"number_of_replicas":0,"number_of_shards":`+itoa(shards)+more+`}}`)
}

func (f *fixture) create(name, body string) {
	f.Helper()
	if err := f.engine.CreateIndex(name, []byte(body)); err != nil {
		f.Fatal(err)
	}
}

// golden makes the index that the recorded answers come from.
func (f *fixture) golden() {
	f.Helper()
	f.create("golden", `{"settings":{"number_of_shards":2,"number_of_replicas":0},
		"mappings":{"properties":{"n":{"type":"integer"},"t":{"type":"text"},"k":{"type":"keyword"}}}}`)
	f.put("golden", "1", `{"n":1,"t":"red fox","k":"a"}`)
	f.put("golden", "1", `{"n":1,"t":"red fox","k":"a"}`)
	f.put("golden", "Jg3vKKIB7LZ-4g7f2SD0", `{"n":2,"t":"red dog","k":"b"}`)
	f.put("golden", "3", `{"n":3,"t":"blue fox","k":"a"}`)
}

func (f *fixture) put(index, id, source string) stub.DocumentResult {
	f.Helper()
	r, err := f.engine.PutDocument(index, id, []byte(source), false)
	if err != nil {
		f.Fatal(err)
	}
	return r
}

// request is a search with a path such as "a,b?size=1" and a body.
func request(path, body string) *search.Request {
	names, query, _ := strings.Cut(path, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		panic(err)
	}
	r := &search.Request{Query: values, Body: []byte(body)}
	if names != "" {
		r.Indices = strings.Split(names, ",")
	}
	return r
}

// coordinator is a search as the search service would run it.
type coordinator struct {
	f    *fixture
	x    search.Execution
	task *tasks.Task
}

// prepare registers a task for a search. It must be ended.
func (f *fixture) prepare(r *search.Request) (*coordinator, error) {
	x, err := f.engine.Prepare(r)
	if err != nil {
		return nil, err
	}
	t, err := f.tasks.Register(f.context(), tasks.Spec{
		Action: search.SearchAction, Type: tasks.Transport, Description: x.Description, Cancellable: true,
	})
	if err != nil {
		f.Fatal(err)
	}
	return &coordinator{f: f, x: x, task: t}, nil
}

func (f *fixture) context() context.Context {
	switch t := f.TB.(type) {
	case *testing.T:
		return t.Context()
	case *testing.B:
		return t.Context()
	}
	return context.Background()
}

func (c *coordinator) run(l search.Limits) (string, error) {
	r, err := c.x.Execute(c.task.Context(), c.task, l)
	if err != nil {
		return "", err
	}
	return string(r.Body), nil
}

func (c *coordinator) end() {
	c.task.End()
	c.x.Close()
}

// try runs a search to its end.
func (f *fixture) try(r *search.Request) (string, error) {
	f.Helper()
	c, err := f.prepare(r)
	if err != nil {
		return "", err
	}
	defer c.end()
	return c.run(search.Limits{})
}

// search runs a search that must succeed. Its took is 0 in the answer.
func (f *fixture) search(path, body string) string {
	f.Helper()
	answer, err := f.try(request(path, body))
	if err != nil {
		f.Fatalf("search of %s with %s: %v", path, body, err)
	}
	return tookless(answer)
}

func (f *fixture) searchFails(path, body string) error {
	f.Helper()
	answer, err := f.try(request(path, body))
	if err == nil {
		f.Fatalf("search of %s with %s answers %s, want an error", path, body, answer)
	}
	return err
}

// outcome is what a search in the background came to. It may be read once done is
// closed.
type outcome struct {
	task *tasks.Task
	body string
	err  error
	took time.Duration
	done chan struct{}
}

// start runs a search in the background.
func (f *fixture) start(r *search.Request, l search.Limits) *outcome {
	f.Helper()
	c, err := f.prepare(r)
	if err != nil {
		f.Fatal(err)
	}
	o := &outcome{task: c.task, done: make(chan struct{})}
	begin := time.Now()
	go func() {
		defer close(o.done)
		defer c.end()
		o.body, o.err = c.run(l)
		o.body = tookless(o.body)
		o.took = time.Since(begin)
	}()
	return o
}

var tookPattern = regexp.MustCompile(`"took":\d+`)

func tookless(body string) string { return tookPattern.ReplaceAllString(body, `"took":0`) }

// answer is the part of a search's answer that tests look at.
type answer struct {
	ScrollID string `json:"_scroll_id"`
	Took     int64
	TimedOut bool `json:"timed_out"`
	Shards   struct {
		Total, Successful, Skipped, Failed int
		Failures                           []struct {
			Shard       int
			Index, Node string
			Reason      struct{ Type, Reason string }
		}
	} `json:"_shards"`
	Hits struct {
		Total struct {
			Value    int
			Relation string
		}
		Hits []struct {
			Index  string          `json:"_index"`
			ID     string          `json:"_id"`
			Source json.RawMessage `json:"_source"`
			Sort   []any
		}
	}
}

func parse(t testing.TB, body string) answer {
	t.Helper()
	var a answer
	if err := json.Unmarshal([]byte(body), &a); err != nil {
		t.Fatalf("the answer %q: %v", body, err)
	}
	return a
}

func (a answer) ids() []string {
	ids := []string{}
	for _, h := range a.Hits.Hits {
		ids = append(ids, h.ID)
	}
	return ids
}

// endedSince counts the tasks by action that ended since the last call.
func (f *fixture) endedSince() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := make(map[string]int)
	for _, action := range f.ended {
		n[strings.TrimPrefix(action, search.SearchAction)]++
	}
	f.ended = nil
	return n
}

func itoa(n int) string { return strconv.Itoa(n) }
