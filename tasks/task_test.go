package tasks_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/tasks"
)

func TestTaskTellsWhatItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := tasks.NewManager("n")
		type key struct{}
		ctx := context.WithValue(context.Background(), key{}, "v")
		task := start(t, m, ctx, tasks.Spec{
			Action: search, Type: tasks.Transport, Cancellable: true, User: "ann",
			Description: func() string { return "indices[a]" },
			Headers:     map[string]string{"X-Opaque-Id": "7"},
		})
		if task.ID() != (tasks.ID{Node: "n", Number: 1}) || task.Parent().IsSet() || task.Action() != search || task.Type() != "transport" ||
			task.Description() != "indices[a]" || task.Headers()["X-Opaque-Id"] != "7" || task.User() != "ann" || !task.Cancellable() {
			t.Errorf("%+v", task)
		}
		if !task.Start().Equal(time.Now()) {
			t.Errorf("started at %v, now is %v", task.Start(), time.Now())
		}
		if got := task.Context().Value(key{}); got != "v" {
			t.Errorf("value of the context: %v", got)
		}
		time.Sleep(time.Second)
		if task.Running() != time.Second {
			t.Errorf("running for %v", task.Running())
		}
		task.End()
		time.Sleep(time.Second)
		if task.Running() != time.Second {
			t.Errorf("an ended task has run for %v, want what it had at its end", task.Running())
		}
		if plain := start(t, m, ctx, tasks.Spec{}); plain.Description() != "" || plain.Cancellable() || plain.Context() != ctx {
			t.Errorf("a plain task: %+v", plain)
		}
	})
}

func TestChildInheritsWhatIsNotSaid(t *testing.T) {
	m := tasks.NewManager("n")
	parent := start(t, m, t.Context(), tasks.Spec{User: "ann", Headers: map[string]string{"X-Opaque-Id": "7"}})
	before := start(t, m, t.Context(), tasks.Spec{Parent: parent})
	parent.SetGroup("g")
	child := start(t, m, t.Context(), tasks.Spec{Parent: parent})
	other := start(t, m, t.Context(), tasks.Spec{Parent: parent, User: "bob", Headers: map[string]string{}})

	if child.Parent() != parent.ID() || child.User() != "ann" || child.Headers()["X-Opaque-Id"] != "7" || child.Group() != "g" {
		t.Errorf("child: parent %v, user %q, headers %v, group %q", child.Parent(), child.User(), child.Headers(), child.Group())
	}
	if before.Group() != "" {
		t.Errorf("a child from before its parent got a group: group %q, want none", before.Group())
	}
	if other.User() != "bob" || len(other.Headers()) != 0 {
		t.Errorf("what is said wins: user %q, headers %v", other.User(), other.Headers())
	}
	if got, want := numbers(parent.Children()), []int64{2, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("children %v, want %v", got, want)
	}
}

// TestParentOnAnotherNode: it is named, found by, and nothing else.
func TestParentOnAnotherNode(t *testing.T) {
	m := tasks.NewManager("a")
	far := tasks.ID{Node: "b", Number: 1}
	here := start(t, m, t.Context(), tasks.Spec{Cancellable: true})
	child := start(t, m, t.Context(), tasks.Spec{ParentID: far, Cancellable: true})
	start(t, m, t.Context(), tasks.Spec{Parent: here, ParentID: far})
	if child.Parent() != far {
		t.Errorf("the parent is %v, want %v", child.Parent(), far)
	}
	if got, want := numbers(m.List(tasks.Filter{Parent: far})), []int64{2}; !slices.Equal(got, want) {
		t.Errorf("its children are %v, want %v: a parent here stands above one elsewhere", got, want)
	}
	here.Cancel(tasks.UserCause()) // has the same number
	if cause, _ := child.Cancelled(); cause != nil {
		t.Errorf("cancelled with a stranger: %v", cause)
	}
	child.End()
	if got := m.List(tasks.Filter{Parent: far}); len(got) != 0 {
		t.Errorf("there are still %v", numbers(got))
	}
}

func TestStatus(t *testing.T) {
	task := start(t, tasks.NewManager("n"), t.Context(), tasks.Spec{})
	if task.Status() != nil {
		t.Errorf("status before any was set: %v", task.Status())
	}
	task.SetStatus("waiting")
	task.SetStatus(7) // of another type: allowed
	if task.Status() != 7 {
		t.Errorf("status %v", task.Status())
	}
}

func TestEndTakesTheTaskOut(t *testing.T) {
	ended := []int64{}
	var m *tasks.Manager
	m = tasks.NewManager("n", tasks.WithOnEnd(func(task *tasks.Task) {
		if m.Task(task.ID()) != nil {
			t.Errorf("%v is still listed when its end is told", task.ID())
		}
		select {
		case <-task.Ended():
			t.Errorf("%v: Ended is closed before its end has been told", task.ID())
		default:
		}
		ended = append(ended, task.ID().Number)
	}))
	parent := start(t, m, t.Context(), tasks.Spec{})
	kids := []*tasks.Task{}
	for range 4 {
		kids = append(kids, start(t, m, t.Context(), tasks.Spec{Parent: parent}))
	}
	asked := kids[1].Ended()
	for _, i := range []int{1, 3, 0} { // the middle one, the youngest, the oldest
		kids[i].End()
		kids[i].End()
	}
	if got := numbers(parent.Children()); !slices.Equal(got, []int64{4}) {
		t.Errorf("children left: %v", got)
	}
	if got := numbers(m.List(tasks.Filter{})); !slices.Equal(got, []int64{1, 4}) || m.Len() != 2 {
		t.Errorf("listed %v, Len %d", got, m.Len())
	}
	if want := []int64{3, 5, 2}; !slices.Equal(ended, want) {
		t.Errorf("ends told: %v, want %v", ended, want)
	}
	<-asked
	<-kids[3].Ended() // asked for when it was over
}

func TestOrphansStay(t *testing.T) {
	m := tasks.NewManager("n")
	parent := cancellable(t, m, nil)
	child := cancellable(t, m, parent)
	parent.End()

	late := cancellable(t, m, parent)
	if got := numbers(m.List(tasks.Filter{Parent: parent.ID()})); !slices.Equal(got, []int64{2, 3}) {
		t.Errorf("orphans listed: %v", got)
	}
	if parent.Cancel(tasks.UserCause()) || child.Context().Err() != nil {
		t.Error("a parent that has ended was cancelled")
	}
	if !child.Cancel(tasks.UserCause()) {
		t.Error("an orphan could not be cancelled")
	}
	child.End()
	late.End()
	if m.Len() != 0 || len(parent.Children()) != 0 {
		t.Errorf("left: %d tasks, %d children", m.Len(), len(parent.Children()))
	}
}

func TestEndByDeferSurvivesAPanic(t *testing.T) {
	m := tasks.NewManager("n")
	func() {
		defer func() { _ = recover() }()
		defer start(t, m, t.Context(), tasks.Spec{}).End()
		panic("handler")
	}()
	if m.Len() != 0 {
		t.Error("the task is still there")
	}
}

func TestEndedIsClosedWhenTheHookPanics(t *testing.T) {
	m := tasks.NewManager("n", tasks.WithOnEnd(func(*tasks.Task) { panic("hook") }))
	task := start(t, m, t.Context(), tasks.Spec{})
	func() {
		defer func() { _ = recover() }()
		task.End()
	}()
	<-task.Ended()
}

func TestList(t *testing.T) {
	m := tasks.NewManager("id1", tasks.WithNames("golden-1", "127.0.0.1:9301"))
	top := start(t, m, t.Context(), tasks.Spec{Action: search, Cancellable: true, User: "ann"})
	start(t, m, t.Context(), tasks.Spec{Action: query, Parent: top, Cancellable: true, User: "bob"})
	start(t, m, t.Context(), tasks.Spec{Action: "cluster:monitor/tasks/lists", User: "bob"})

	for name, c := range map[string]struct {
		f    tasks.Filter
		want []int64
	}{
		"all":                      {tasks.Filter{}, []int64{1, 2, 3}},
		"action":                   {tasks.Filter{Actions: []string{search}}, []int64{1}},
		"action, wildcards":        {tasks.Filter{Actions: []string{"*search*"}}, []int64{1, 2}},
		"two actions":              {tasks.Filter{Actions: []string{"cluster:*", "*query]"}}, []int64{2, 3}},
		"a minus is not special":   {tasks.Filter{Actions: []string{"*search*", "-*search[phase*"}}, []int64{1, 2}},
		"action of none":           {tasks.Filter{Actions: []string{"search"}}, nil},
		"parent":                   {tasks.Filter{Parent: top.ID()}, []int64{2}},
		"parent of another node":   {tasks.Filter{Parent: tasks.ID{Node: "id2", Number: 1}}, nil},
		"parent that is no parent": {tasks.Filter{Parent: tasks.ID{Node: "id1", Number: 3}}, nil},
		"parent not set":           {tasks.Filter{Parent: tasks.ID{Node: "id1", Number: -1}}, []int64{1, 2, 3}},
		"user":                     {tasks.Filter{User: "bob"}, []int64{2, 3}},
		"cancellable":              {tasks.Filter{Cancellable: true}, []int64{1, 2}},
		"user and action":          {tasks.Filter{User: "bob", Actions: []string{"*search*"}}, []int64{2}},
		"node id":                  {tasks.Filter{Nodes: []string{"id1"}}, []int64{1, 2, 3}},
		"node name":                {tasks.Filter{Nodes: []string{"nosuch", "golden-1"}}, []int64{1, 2, 3}},
		"node address, wildcard":   {tasks.Filter{Nodes: []string{"127.0.*"}}, []int64{1, 2, 3}},
		"_local":                   {tasks.Filter{Nodes: []string{"_local"}}, []int64{1, 2, 3}},
		"_all":                     {tasks.Filter{Nodes: []string{"_all"}}, []int64{1, 2, 3}},
		"node of none":             {tasks.Filter{Nodes: []string{"nosuch", "golden"}}, nil},
	} {
		if got := numbers(m.List(c.f)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestActionPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, action string
		want            bool
	}{
		{"*", "abc", true}, {"**", "abc", true}, {"a*", "abc", true}, {"*c", "abc", true}, {"a*c", "abc", true},
		{"a*b*c", "abc", true}, {"abc*", "abc", true}, {"*abc*", "abc", true}, {"a*a", "aba", true}, {"a*ba*a", "aababa", true},
		{"", "abc", false}, {"a", "abc", false}, {"b*", "abc", false}, {"*b", "abc", false}, {"abc*c", "abc", false},
		{"a*a", "ab", false}, {"aa*aa", "aaa", false}, {"*x*", "abc", false}, {"A*", "abc", false}, {"a?c", "abc", false},
	} {
		m := tasks.NewManager("n")
		start(t, m, t.Context(), tasks.Spec{Action: c.action})
		if got := len(m.List(tasks.Filter{Actions: []string{c.pattern}})) == 1; got != c.want {
			t.Errorf("%q matches %q: %v, want %v", c.pattern, c.action, got, c.want)
		}
	}
}

func TestTaskByID(t *testing.T) {
	m := tasks.NewManager("n")
	all := map[tasks.ID]*tasks.Task{}
	for range 1000 {
		task := start(t, m, t.Context(), tasks.Spec{})
		all[task.ID()] = task
	}
	for id, task := range all {
		if id.Number%3 == 0 {
			task.End()
			all[id] = nil
		}
	}
	for id, task := range all {
		if m.Task(id) != task {
			t.Errorf("Task(%v) = %p, want %p", id, m.Task(id), task)
		}
	}
	if m.Task(tasks.ID{Node: "other", Number: 1}) != nil || m.Task(tasks.ID{Node: "n", Number: -1}) != nil || m.Task(tasks.ID{}) != nil {
		t.Error("found a task that there is not")
	}
}

func TestUsage(t *testing.T) {
	const ms = time.Millisecond
	task := start(t, tasks.NewManager("n"), t.Context(), tasks.Spec{})
	check := func(when string, want tasks.Usage) {
		t.Helper()
		if got := task.Usage(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", when, got, want)
		}
	}
	res := func(cpu time.Duration, memory int64) tasks.Resource { return tasks.Resource{CPU: cpu, Memory: memory} }

	check("before any work", tasks.Usage{})
	first := task.StartWork()
	first.Add(2*ms, 100)
	first.Add(2*ms, 100)
	check("one at work", tasks.Usage{
		Average: res(4*ms, 200), Total: res(4*ms, 200), Min: res(4*ms, 200), Max: res(4*ms, 200), Executions: 1, Active: 1})
	second := task.StartWork()
	check("a second that has used nothing yet", tasks.Usage{
		Average: res(2*ms, 100), Total: res(4*ms, 200), Min: res(0, 0), Max: res(4*ms, 200), Executions: 2, Active: 2})
	second.Add(2*ms, 400)
	first.Done()
	first.Done()
	first.Add(ms, 1)
	second.Add(-ms, -1)
	check("one done, one at work", tasks.Usage{
		Average: res(3*ms, 300), Total: res(6*ms, 600), Min: res(2*ms, 200), Max: res(4*ms, 400), Executions: 2, Active: 1})
	task.End()
	second.Done()
	check("all done", tasks.Usage{
		Average: res(3*ms, 300), Total: res(6*ms, 600), Min: res(2*ms, 200), Max: res(4*ms, 400), Executions: 2})
}

func TestGroupUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := tasks.NewManager("n")
		begin := func(group string) *tasks.Task {
			task := start(t, m, t.Context(), tasks.Spec{})
			task.SetGroup(group)
			return task
		}
		work := func(task *tasks.Task, cpu time.Duration, bytes int64) {
			w := task.StartWork()
			w.Add(cpu, bytes)
			w.Done()
		}
		old, ungrouped, gone := begin("a"), begin(""), begin("c")
		time.Sleep(time.Second)
		young, fresh := begin("a"), begin("b")
		work(fresh, time.Second, 5) // its time so far is zero: no share can be told yet
		if got := m.GroupUsage()["b"]; got != (tasks.GroupUsage{Memory: 5}) {
			t.Errorf("of a task that started just now: %+v", got)
		}
		time.Sleep(time.Second)
		work(old, time.Second, 10)
		work(young, time.Second, 20)
		work(ungrouped, time.Second, 40)
		work(gone, time.Second, 80)
		gone.End()
		want := map[string]tasks.GroupUsage{"a": {CPU: 0.5 + 1, Memory: 30}, "b": {CPU: 1, Memory: 5}}
		if got := m.GroupUsage(); !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestRegisterUnderACancelledContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := tasks.NewManager("n")
	_, err := m.Register(ctx, tasks.Spec{Action: search})
	var cancelled *tasks.CancelledError
	if !errors.As(err, &cancelled) || !cancelled.BeforeStart || cancelled.Cause.Kind != tasks.ByDisconnect || m.Len() != 0 {
		t.Errorf("%v, %d tasks", err, m.Len())
	}
}

// TestSize: a byte more, and each task takes 32 more.
func TestSize(t *testing.T) {
	if size := reflect.TypeFor[tasks.Task]().Size(); size > 256 {
		t.Errorf("a task has %d bytes", size)
	}
}
