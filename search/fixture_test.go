package search_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/settings"
	"github.com/wlmserver/wlmserver/tasks"
	"github.com/wlmserver/wlmserver/wlm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a service over the real admission, tasks, groups and settings,
// with an engine that only waits. The backstop sweep is off.
type fixture struct {
	*testing.T
	groups    *groups.Registry
	settings  *settings.Registry
	tasks     *tasks.Manager
	admission *wlm.Admission
	engine    *engine
	service   *search.Service
}

// bubble runs a test on fake time, and checks at its end that nothing was left
// behind.
func bubble(t *testing.T, test func(f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		test(f)
		f.finish()
	})
}

func newFixture(t *testing.T, configure func(*search.Config)) *fixture {
	t.Helper()
	f := &fixture{T: t, engine: &engine{}}
	var err error
	if f.groups, err = groups.Open(t.Context(), new(records.Memory)); err != nil {
		t.Fatal(err)
	}
	if f.settings, err = settings.Open(t.Context(), new(records.Memory), nil); err != nil {
		t.Fatal(err)
	}
	f.admission = wlm.New(wlm.WithVerification(func(violation string) { t.Error(violation) }))
	f.admission.GroupsChanged(f.groups.Snapshot())
	f.groups.OnChange(func(_, now *groups.Snapshot) { f.admission.GroupsChanged(now) })
	f.tasks = tasks.NewManager("node-1", tasks.WithOnEnd(func(t *tasks.Task) {
		if g := t.Group(); g != "" {
			f.admission.Completed(g)
		}
	}))
	c := search.Config{
		Tasks:     f.tasks,
		Admission: f.admission,
		Groups:    f.groups.Snapshot,
		Settings:  f.settings.Snapshot,
		Executor:  f.engine,
		IsAdmin:   func(p wlm.Principal) bool { return p.User == "admin" },
	}
	if configure != nil {
		configure(&c)
	}
	f.service = search.New(c)
	return f
}

// finish closes the service and checks that permits, waiters, buckets, tasks
// and executions are all gone, each execution having been closed once.
func (f *fixture) finish() {
	f.Helper()
	synctest.Wait()
	f.service.Close()
	for _, left := range f.admission.CheckQuiet() {
		f.Error(left)
	}
	if n := f.tasks.Len(); n != 0 {
		f.Errorf("%d tasks left", n)
	}
	f.engine.check(f.T)
}

// group makes a workload group and returns its id. The rest is JSON members.
func (f *fixture) group(name, rest string) string {
	f.Helper()
	if rest != "" {
		rest = "," + rest
	}
	p, err := groups.ParsePatch(fmt.Appendf(nil, `{"name":%q,"resiliency_mode":"enforced","resource_limits":{"cpu":0.01}%s}`, name, rest))
	if err != nil {
		f.Fatal(err)
	}
	g, err := f.groups.Create(f.Context(), p)
	if err != nil {
		f.Fatal(err)
	}
	return g.ID
}

// limited makes a group whose searches share a node limit and a queue.
func (f *fixture) limited(limit, queue int) string {
	f.Helper()
	rest := fmt.Sprintf(`"throttling":{"attribute":"group","node_limit":%d}`, limit)
	if queue > 0 {
		rest += fmt.Sprintf(`,"queue":{"size_per_bucket":%d}`, queue)
	}
	return f.group("limited", rest)
}

// update changes a group.
func (f *fixture) update(name, body string) {
	f.Helper()
	p, err := groups.ParsePatch([]byte(body))
	if err != nil {
		f.Fatal(err)
	}
	if _, err := f.groups.Update(f.Context(), name, p); err != nil {
		f.Fatal(err)
	}
}

// set changes a cluster setting.
func (f *fixture) set(key, value string) {
	f.Helper()
	if _, err := f.settings.Apply(f.Context(), settings.Update{Transient: []settings.Entry{{Key: key, Value: &value}}}); err != nil {
		f.Fatal(err)
	}
}

// counters reads one group.
func (f *fixture) counters(id string) wlm.GroupCounters {
	f.Helper()
	for _, c := range f.admission.Counters() {
		if c.Group == id {
			return c
		}
	}
	f.Fatalf("no counters of group %s", id)
	return wlm.GroupCounters{}
}

// only is the one task of an action.
func (f *fixture) only(action string) *tasks.Task {
	f.Helper()
	found := f.tasks.List(tasks.Filter{Actions: []string{action}})
	if len(found) != 1 {
		f.Fatalf("%d tasks of %s, want 1", len(found), action)
	}
	return found[0]
}

// outcome is what a call of Run in the background came to.
type outcome struct {
	response *search.Response
	err      error
	took     time.Duration
	done     bool
}

// start calls Run in the background. The outcome may be read after
// synctest.Wait.
func (f *fixture) start(ctx context.Context, r *search.Request) *outcome {
	o := &outcome{}
	begin := time.Now()
	go func() {
		o.response, o.err = f.service.Run(ctx, r)
		o.took = time.Since(begin)
		o.done = true
	}()
	synctest.Wait()
	return o
}

// after lets time pass, and everything that happens in it.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// work is a search that takes d.
func work(group string, d time.Duration) *search.Request {
	return &search.Request{GroupID: group, Query: url.Values{"work": {d.String()}}}
}

// engine is an executor whose searches take the time that they name, and end
// early when they are cancelled.
type engine struct {
	refuse func(*search.Request) error // by Prepare; nil: nothing
	// execute stands in for the wait; nil: it does not.
	execute func(ctx context.Context, r *search.Request, t *tasks.Task, l search.Limits) error

	mu         sync.Mutex
	executions []*execution
	running    int
	most       int               // that have run at once
	order      []*search.Request // as they began
}

type execution struct {
	engine  *engine
	request *search.Request

	// Guarded by the engine's lock.
	executing bool
	pages     int
	closed    int
}

func (e *engine) Prepare(r *search.Request) (search.Execution, error) {
	if e.refuse != nil {
		if err := e.refuse(r); err != nil {
			return nil, err
		}
	}
	x := &execution{engine: e, request: r}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.executions = append(e.executions, x)
	return x, nil
}

func (x *execution) Description() string { return "work[" + x.request.Query.Get("work") + "]" }

func (x *execution) Execute(ctx context.Context, t *tasks.Task, l search.Limits) (*search.Response, error) {
	page, err := x.begin()
	if err != nil {
		return nil, err
	}
	defer x.end()
	if x.engine.execute != nil {
		if err := x.engine.execute(ctx, x.request, t, l); err != nil {
			return nil, err
		}
	} else if err := pause(ctx, x.request.Query.Get("work")); err != nil {
		return nil, err
	}
	return &search.Response{Status: http.StatusOK, Body: fmt.Appendf(nil, `{"page":%d,"_scroll_id":%q}`, page, x.request.ScrollID)}, nil
}

func (x *execution) begin() (page int, err error) {
	e := x.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if x.closed > 0 || x.executing {
		return 0, fmt.Errorf("executed when closed %d times, executing %v", x.closed, x.executing)
	}
	x.executing = true
	x.pages++
	e.running++
	e.most = max(e.most, e.running)
	e.order = append(e.order, x.request)
	return x.pages, nil
}

func (x *execution) end() {
	e := x.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	x.executing = false
	e.running--
}

func (x *execution) Close() {
	e := x.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if x.executing {
		panic("closed while executing")
	}
	x.closed++
}

// closed counts the executions that have been closed.
func (e *engine) closed() (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.executions {
		n += x.closed
	}
	return n
}

func (e *engine) begun() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.order)
}

func (e *engine) check(t *testing.T) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.executions {
		if x.closed != 1 {
			t.Errorf("%s was closed %d times", x.Description(), x.closed)
		}
	}
}

// pause waits as long as a search works, or until it is cancelled.
func pause(ctx context.Context, work string) error {
	d, err := time.ParseDuration(work)
	if err != nil {
		return nil // no work
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return &tasks.CancelledError{Cause: causeOf(ctx)}
	}
}

func causeOf(ctx context.Context) *tasks.Cause {
	c, _ := errors.AsType[*tasks.Cause](context.Cause(ctx))
	return c
}
