package rest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/tasks"
)

const searchAction, shardAction = "indices:data/read/search", "indices:data/read/search[phase/query]"

// work is a task with work that ends when it is cancelled.
func (n *node) work(s tasks.Spec) *tasks.Task {
	n.Helper()
	if s.Action == "" {
		s.Action = searchAction
	}
	s.Type, s.Cancellable = tasks.Transport, true
	t, err := n.tasks.Register(context.WithoutCancel(n.Context()), s)
	must(n.TB, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-t.Context().Done()
		t.End()
	}()
	n.Cleanup(func() {
		t.Cancel(tasks.ShutdownCause())
		<-ended
	})
	return t
}

// cancelled says by whom a task has been cancelled.
func cancelled(t *tasks.Task) bool { cause, _ := t.Cancelled(); return cause != nil }

// searchOverNodes is a search of node a with a shard on each of the nodes, and one of somebody else on node b.
func searchOverNodes(nodes []*node) (search, near, far, other *tasks.Task) {
	a, b := nodes[0], nodes[1]
	search = a.work(tasks.Spec{User: "ann", Headers: map[string]string{"X-Opaque-Id": "client-7"}})
	near = a.work(tasks.Spec{Action: shardAction, Parent: search})
	far = b.work(tasks.Spec{Action: shardAction, ParentID: search.ID(), User: "ann"})
	other = b.work(tasks.Spec{User: "bob"})
	return search, near, far, other
}

func TestTasksOfAllNodes(t *testing.T) {
	_, nodes := newCluster(t, 2)
	a, b := nodes[0], nodes[1]
	search, near, far, other := searchOverNodes(nodes)
	for _, n := range nodes {
		r := n.do("GET", "/_tasks?actions=*search*", "").want(200)
		if got := r.keyOrder(); got != "nodes" {
			t.Errorf("keys %s", got)
		}
		if r.nodesOf() != "a-id b-id" || r.keyOrder("nodes", "b-id") != "name transport_address host ip roles attributes tasks" ||
			r.keyOrder("nodes", "a-id", "tasks") != search.ID().String()+" "+near.ID().String() || r.keyOrder("nodes", "b-id", "tasks") != far.ID().String()+" "+other.ID().String() {
			t.Errorf("by nodes: %s", r.body)
		}
		if r.at("nodes", "b-id", "name") != "beta" || r.at("nodes", "b-id", "ip") != b.address || r.at("nodes", "b-id", "tasks", far.ID().String(), "parent_task_id") != search.ID().String() {
			t.Errorf("of node b: %s", r.body)
		}
		if r.at("nodes", "a-id", "tasks", search.ID().String(), "headers", "X-Opaque-Id") != "client-7" {
			t.Errorf("headers: %s", r.body)
		}

		r = n.do("GET", "/_tasks?actions=*search*&group_by=parents", "").want(200)
		if r.keyOrder("tasks") != search.ID().String()+" "+other.ID().String() {
			t.Errorf("by parents: %s", r.body)
		}
		var below []string
		for _, child := range r.at("tasks", search.ID().String(), "children").([]any) {
			below = append(below, at(child, "node").(string))
		}
		if !slices.Equal(below, []string{"a-id", "b-id"}) {
			t.Errorf("shards of the search are on %v", below)
		}
		if all := n.do("GET", "/_tasks?actions=*search*&group_by=none", "").want(200).at("tasks").([]any); len(all) != 4 {
			t.Errorf("ungrouped: %v", all)
		}
		for path, want := range map[string]string{
			"/_tasks?nodes=beta&actions=*query]":                        "b-id",
			"/_tasks?nodes=_local&actions=*query]":                      n.id,
			"/_tasks?nodes=nosuch":                                      "",
			"/_tasks?actions=*nosuch*":                                  "",
			"/_tasks?actions=*search":                                   "a-id b-id",
			"/_tasks?parent_task_id=" + search.ID().String():            "a-id b-id",
			"/_tasks?nodes=b*&parent_task_id=" + search.ID().String():   "b-id",
			"/_tasks?nodes=alpha&parent_task_id=" + other.ID().String(): "",
		} {
			if got := n.do("GET", path, "").want(200).nodesOf(); got != want {
				t.Errorf("%s has nodes %s, want %s", path, got, want)
			}
		}

		want := strings.Join([]string{
			searchAction + " alpha -", shardAction + " alpha " + search.ID().String(), shardAction + " beta " + search.ID().String(), searchAction + " beta -", "",
		}, "\n")
		got := n.do("GET", "/_cat/tasks?h=action,node,parent_task_id&actions=*search*", "").want(200).body
		var lines []string
		for line := range strings.Lines(got) {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
		if got := strings.Join(lines, "\n") + "\n"; got != want {
			t.Errorf("table %q, want %q", got, want)
		}
		if got := n.do("GET", "/_cat/tasks?h=ip,port,version&nodes=b-id&actions=*search", "").body; got != strings.Replace(b.address, ":", " ", 1)+" 3.7.0\n" {
			t.Errorf("where node b is: %q", got)
		}
	}

	// The list on node a has a part on each node, and that on b names the list.
	all := a.do("GET", "/_tasks?group_by=parents&actions=*lists*", "", "X-Opaque-Id", "me").want(200)
	for _, list := range all.at("tasks").(map[string]any) {
		parts := map[any]any{}
		for _, part := range at(list, "children").([]any) {
			parts[at(part, "node")] = at(part, "type")
			if at(part, "action") != "cluster:monitor/tasks/lists[n]" || at(part, "headers", "X-Opaque-Id") != "me" {
				t.Errorf("part %v", part)
			}
		}
		if parts["a-id"] != "direct" || parts["b-id"] != "transport" || at(list, "node") != "a-id" {
			t.Errorf("the list has the parts %v", parts)
		}
	}
	if len(all.at("tasks").(map[string]any)) != 1 {
		t.Errorf("lists: %s", all.body)
	}
}

func TestTaskOfAnotherNode(t *testing.T) {
	_, nodes := newCluster(t, 2)
	a, b := nodes[0], nodes[1]
	far := b.work(tasks.Spec{Headers: map[string]string{"X-Opaque-Id": "7"}})
	id := far.ID().String()
	r := a.do("GET", "/_tasks/"+id, "").want(200)
	if r.keyOrder() != "completed task" || r.at("completed") != false || r.at("task", "node") != "b-id" || r.at("task", "headers", "X-Opaque-Id") != "7" {
		t.Error(r.body)
	}
	if got := a.do("GET", "/_tasks/"+id+"?filter_path=task.node&format=yaml", "").body; got != "---\ntask:\n  node: \"b-id\"\n" {
		t.Errorf("laid out as %q", got)
	}
	a.do("GET", "/_tasks/"+id+"?nosuch=1", "").wantError(400, "illegal_argument_exception")
	if b.times() != 2 {
		t.Errorf("node b was asked %d times", b.times())
	}

	// What another node answers is what it would answer a client, word for word.
	for _, path := range []string{"/_tasks/b-id:999999", "/_tasks/b-id:999999?error_trace", "/_tasks/b-id:999999?pretty"} {
		if got, want := a.do("GET", path, "").want(404).body, b.do("GET", path, "").want(404).body; got != want {
			t.Errorf("%s\ngot  %s\nwant %s", path, got, want)
		}
	}
	if got := a.do("GET", "/_tasks/nosuch:1", "").wantError(404, "resource_not_found_exception").body; !strings.Contains(got, "isn't part of the cluster") {
		t.Error(got)
	}
	a.do("GET", "/_tasks/"+id+"?wait_for_completion&timeout=10ms", "").wantError(504, "timeout_exception")

	waiting := a.background("GET", "/_tasks/"+id+"?wait_for_completion", "")
	b.eventually("node b waits", func() bool { return b.running("cluster:monitor/task/get") == 1 })
	if parent := b.tasks.List(tasks.Filter{Actions: []string{"cluster:monitor/task/get"}})[0].Parent(); parent.Node != "a-id" {
		t.Errorf("node b waits for %v", parent)
	}
	far.Cancel(tasks.UserCause())
	if r := (<-waiting).want(200); r.at("completed") != true {
		t.Error(r.body)
	}
}

func TestCancelOverNodes(t *testing.T) {
	_, nodes := newCluster(t, 2)
	a, b := nodes[0], nodes[1]

	_, _, far, other := searchOverNodes(nodes)
	r := a.do("POST", "/_tasks/"+far.ID().String()+"/_cancel?wait_for_completion", "").want(200)
	if r.nodesOf() != "b-id" || r.keyOrder("nodes", "b-id", "tasks") != far.ID().String() || r.at("nodes", "b-id", "tasks", far.ID().String(), "cancelled") != true || !cancelled(far) {
		t.Errorf("by id: %s", r.body)
	}
	if got := reasonless(a.do("POST", "/_tasks/b-id:999/_cancel", "").want(200).body); got !=
		`{"node_failures":[{"type":"failed_node_exception","reason":R,"node_id":"b-id","caused_by":{"type":"resource_not_found_exception","reason":R}}],"nodes":{}}` {
		t.Error(got)
	}
	if got := reasonless(a.do("POST", "/_tasks/nosuch:999/_cancel", "").want(200).body); got !=
		`{"node_failures":[{"type":"failed_node_exception","reason":R,"node_id":"nosuch","caused_by":{"type":"no_such_node_exception","reason":R,"node_id":"nosuch"}}],"nodes":{}}` {
		t.Error(got)
	}
	if got := a.do("POST", "/_tasks/_cancel?nodes=alpha&actions=nosuch", "").want(200).body; got != `{"nodes":{}}` || cancelled(other) {
		t.Error(got)
	}
	a.do("POST", "/_tasks/_cancel", "").want(200)

	search, near, far, other := searchOverNodes(nodes)
	r = b.do("POST", "/_tasks/_cancel?wait_for_completion&group_by=none&parent_task_id="+search.ID().String(), "").want(200)
	if l := r.at("tasks").([]any); len(l) != 2 || !cancelled(near) || !cancelled(far) || cancelled(search) || cancelled(other) {
		t.Errorf("by parent: %s", r.body)
	}
	r = b.do("POST", "/_tasks/_cancel?wait_for_completion&nodes=b*", "").want(200)
	if r.nodesOf() != "b-id" || !cancelled(other) || cancelled(search) {
		t.Errorf("by node: %s", r.body)
	}
	r = b.do("POST", "/_tasks/_cancel?wait_for_completion&actions=*search", "").want(200)
	if r.nodesOf() != "a-id" || !cancelled(search) {
		t.Errorf("by action: %s", r.body)
	}
}

// TestRightsOverNodes: another node goes by who the user is.
func TestRightsOverNodes(t *testing.T) {
	_, nodes := newCluster(t, 2, withUsers)
	a, b := nodes[0], nodes[1]
	_, _, far, other := searchOverNodes(nodes)
	ann, admin := []string{"X-User", "ann"}, []string{"X-User", "root", "X-Roles", "admin"}
	r := a.do("POST", "/_tasks/"+other.ID().String()+"/_cancel", "", ann...).wantError(403, "security_exception")
	if got, want := r.body, b.do("POST", "/_tasks/"+other.ID().String()+"/_cancel", "", ann...).want(403).body; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if r := a.do("POST", "/_tasks/_cancel?wait_for_completion&nodes=beta", "", ann...).want(200); r.keyOrder("nodes", "b-id", "tasks") != far.ID().String() || cancelled(other) {
		t.Errorf("ann's: %s", r.body)
	}
	path := "/_tasks/" + other.ID().String() + "/_cancel?wait_for_completion"
	if a.do("POST", path, "", admin...).want(200); !cancelled(other) {
		t.Error("an administrator could not cancel it")
	}
}

// TestWaitForTasksOfNodes: each node waits for its own, and who is late is a failure.
func TestWaitForTasksOfNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := newCluster(t, 3, func(o *options) { o.bubble = true })
		a, b := nodes[0], nodes[1]
		far := b.work(tasks.Spec{})
		begun := time.Now()
		r := a.do("GET", "/_tasks?wait_for_completion&timeout=3s&actions=*search", "").want(200)
		if took := time.Since(begun); took != 3*time.Second || r.keyOrder() != "node_failures nodes" || r.at("node_failures", 0, "node_id") != "b-id" ||
			r.at("node_failures", 0, "caused_by", "type") != "receive_timeout_transport_exception" {
			t.Errorf("after %v: %s", took, r.body)
		}

		time.AfterFunc(time.Minute, func() { far.Cancel(tasks.UserCause()) })
		begun = time.Now()
		r = a.do("GET", "/_tasks?wait_for_completion&timeout=-1&actions=*search", "").want(200)
		if took := time.Since(begun); took != time.Minute || r.at("nodes", "b-id") == nil {
			t.Errorf("after %v: %s", took, r.body)
		}

		// Without a limit to the wait for what is cancelled, there is none to the wait for other nodes.
		b.reached(lags(time.Hour))
		stubborn, err := b.tasks.Register(context.WithoutCancel(t.Context()), tasks.Spec{Action: searchAction, Type: tasks.Transport, Cancellable: true})
		must(t, err)
		time.AfterFunc(2*time.Hour, stubborn.End)
		begun = time.Now()
		r = a.do("POST", "/_tasks/_cancel?wait_for_completion&actions=*search", "").want(200)
		if took := time.Since(begun); took != 2*time.Hour || r.at("nodes", "b-id") == nil {
			t.Errorf("after %v: %s", took, r.body)
		}
	})
}

// TestClientOfAViewGoes: then no other node works on its part any more.
func TestClientOfAViewGoes(t *testing.T) {
	_, nodes := newCluster(t, 2)
	a, b := nodes[0], nodes[1]
	b.work(tasks.Spec{})
	stubborn, err := b.tasks.Register(context.WithoutCancel(t.Context()), tasks.Spec{Action: "stubborn", Type: tasks.Transport, Cancellable: true})
	must(t, err)
	defer stubborn.End()
	for _, request := range []struct{ method, path, action string }{
		{"GET", "/_tasks?wait_for_completion&actions=*search", "cluster:monitor/tasks/lists[n]"},
		{"GET", "/_tasks/" + b.tasks.List(everything)[0].ID().String() + "?wait_for_completion", "cluster:monitor/task/get"},
		{"POST", "/_tasks/_cancel?wait_for_completion&actions=stubborn", "cluster:admin/tasks/cancel[n]"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() { _, err := a.try(ctx, request.method, request.path, ""); gone <- err }()
		b.eventually("node b waits", func() bool { return b.running(request.action) == 1 })
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", request.path, err)
		}
		b.eventually("node b does not wait any more", func() bool { return b.running(request.action) == 0 })
		a.eventually("node a has nothing left", func() bool { return a.tasks.Len() == 0 })
	}
}
