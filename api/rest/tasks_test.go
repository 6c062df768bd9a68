package rest_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
)

// keyOrder is the order of keys of an object in the body.
func (r response) keyOrder(path ...string) string {
	r.Helper()
	v, err := jsondoc.Parse([]byte(r.body))
	must(r.TB, err)
	for _, name := range path {
		if v.Kind == jsondoc.Array {
			v = v.Items[0]
		}
		v = v.Member(name)
	}
	if v == nil {
		r.Fatalf("no %v in %s", path, r.body)
	}
	if v.Kind == jsondoc.Array {
		v = v.Items[0]
	}
	return keys(v)
}

// searching is a server with one running search, and a task of its own for each listing.
func searching(t *testing.T) (s *server, id string, end func() response) {
	t.Helper()
	hold := make(chan struct{})
	s = newServer(t, func(o *options) { o.executor = &gate{open: hold} })
	answer := s.background("POST", "/_search", `{}`, "X-Opaque-Id", "client-7")
	s.eventually("the search runs", func() bool { return s.running("indices:data/read/search") == 1 })
	for _, x := range s.tasks.List(everything) {
		id = x.ID().String()
	}
	return s, id, func() response { close(hold); return <-answer }
}

func TestListTasks(t *testing.T) {
	s, id, end := searching(t)
	const (
		plain    = "node id type action start_time_in_millis running_time_in_nanos cancellable cancelled headers"
		detailed = "node id type action description start_time_in_millis running_time_in_nanos cancellable cancelled headers resource_stats"
		human    = "node id type action description start_time start_time_in_millis running_time running_time_in_nanos cancellable cancelled headers resource_stats"
	)
	only := "&actions=indices:data/read/search"
	r := s.do("GET", "/_tasks?actions=*search", "").want(200)
	if got := r.keyOrder("nodes", nodeID); got != "name transport_address host ip roles attributes tasks" {
		t.Errorf("keys of a node: %s", got)
	}
	if got := r.keyOrder("nodes", nodeID, "tasks", id); got != plain {
		t.Errorf("keys of a task: %s", got)
	}
	if got := r.at("nodes", nodeID, "tasks", id, "headers", "X-Opaque-Id"); got != "client-7" {
		t.Errorf("headers: %v", got)
	}
	if got := s.do("GET", "/_tasks?group_by=none&detailed"+only, "").keyOrder("tasks"); got != detailed {
		t.Errorf("keys with details: %s", got)
	}
	r = s.do("GET", "/_tasks?group_by=none&detailed&human"+only, "")
	if got := r.keyOrder("tasks"); got != human {
		t.Errorf("keys for people: %s", got)
	}
	if got := r.keyOrder("tasks", "resource_stats"); got != "average total min max thread_info" {
		t.Errorf("keys of resource_stats: %s", got)
	}
	if _, err := time.Parse(time.RFC3339, r.at("tasks", 0, "start_time").(string)); err != nil {
		t.Error(err)
	}

	// A list is a task itself, with a part on each node, and shows both.
	all := s.do("GET", "/_tasks?group_by=parents", "").want(200).at("tasks").(map[string]any)
	var lists int
	for _, x := range all {
		if at(x, "action") == "cluster:monitor/tasks/lists" {
			lists++
			if at(x, "children", 0, "action") != "cluster:monitor/tasks/lists[n]" || at(x, "children", 0, "type") != "direct" {
				t.Errorf("the part of a list: %v", x)
			}
		}
	}
	if lists != 1 || len(all) != 2 {
		t.Errorf("tasks: %v", all)
	}

	for path, want := range map[string]string{
		"/_tasks?actions=*nosuch*":                  `{"nodes":{}}`,
		"/_tasks?actions=*nosuch*&group_by=parents": `{"tasks":{}}`,
		"/_tasks?actions=*nosuch*&group_by=none":    `{"tasks":[]}`,
		"/_tasks?nodes=nosuch":                      `{"nodes":{}}`,
		"/_tasks?parent_task_id=nosuchnode:5":       `{"nodes":{}}`,
		"/_tasks?nodes=ingest:false,data:false":     `{"nodes":{}}`,
		"/_tasks?parent_task_id=" + id:              `{"nodes":{}}`,
	} {
		if got := s.do("GET", path, "").want(200).body; got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
	for _, nodes := range []string{"_local", "_all", nodeID, nodeName, "golden-*", "data:true", "nosuch,_local", "127.0.0.1", s.address} {
		if got := s.do("GET", "/_tasks?nodes="+nodes+only, "").want(200).at("nodes", nodeID); got == nil {
			t.Errorf("nodes=%s does not find this node", nodes)
		}
	}
	end().want(200)
}

func TestGetTask(t *testing.T) {
	s, id, end := searching(t)
	r := s.do("GET", "/_tasks/"+id, "").want(200)
	if r.keyOrder() != "completed task" || r.at("completed") != false || r.at("task", "description") != "a search at the gate" {
		t.Error(r.body)
	}
	s.do("GET", "/_tasks/"+id+"?wait_for_completion&timeout=10ms", "").wantError(504, "timeout_exception")

	for path, want := range map[string]struct {
		status int
		typ    string
	}{
		nodeID + ":999999": {404, "resource_not_found_exception"},
		"nosuch:5":         {404, "resource_not_found_exception"},
		":5":               {404, "resource_not_found_exception"},
		"garbage":          {400, "illegal_argument_exception"},
		nodeID + ":abc":    {400, "illegal_argument_exception"},
		nodeID + ":-1":     {400, "action_request_validation_exception"},
		nodeID + ":5?x=1":  {400, "illegal_argument_exception"},
	} {
		s.do("GET", "/_tasks/"+path, "").wantError(want.status, want.typ)
	}
	const (
		index = `{"type":"index_not_found_exception","reason":R,"index":".tasks","resource.id":".tasks","resource.type":"index_expression","index_uuid":"_na_"}`
		gone  = `"type":"resource_not_found_exception","reason":R,"caused_by":`
	)
	for id, want := range map[string]string{
		nodeID + ":999999": `{"error":{"root_cause":[` + index + `],` + gone + index + `},"status":404}`,
		"nosuch:5":         `{"error":{"root_cause":[` + index + `],` + gone + `{` + gone + index + `}},"status":404}`,
	} {
		if got := reasonless(s.do("GET", "/_tasks/"+id, "").body); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", id, got, want)
		}
	}

	waiting := s.background("GET", "/_tasks/"+id+"?wait_for_completion", "")
	s.eventually("somebody waits", func() bool { return s.running("cluster:monitor/task/get") == 1 })
	end().want(200)
	if r := (<-waiting).want(200); r.at("completed") != true || r.at("task", "id") == nil {
		t.Error(r.body)
	}
}

func TestWaitForTasks(t *testing.T) {
	s, id, end := searching(t)
	r := s.do("GET", "/_tasks?actions=*search&wait_for_completion&timeout=10ms", "").want(200)
	if r.keyOrder() != "node_failures nodes" || r.keyOrder("node_failures") != "type reason node_id caused_by" ||
		r.at("node_failures", 0, "caused_by", "type") != "receive_timeout_transport_exception" || len(r.at("nodes").(map[string]any)) != 0 {
		t.Error(r.body)
	}
	waiting := s.background("GET", "/_tasks?wait_for_completion", "")
	s.eventually("somebody waits", func() bool { return s.running("cluster:monitor/tasks/lists") == 1 })
	end().want(200)
	if r := (<-waiting).want(200); r.at("nodes", nodeID, "tasks", id) == nil {
		t.Errorf("what was waited for is not listed: %s", r.body)
	}
}

func TestCancelTasks(t *testing.T) {
	s, id, end := searching(t)
	for path, want := range map[string]string{
		"/_tasks/" + nodeID + ":999999/_cancel": `{"node_failures":[{"type":"failed_node_exception","reason":R,"node_id":"` + nodeID + `","caused_by":{"type":"resource_not_found_exception","reason":R}}],"nodes":{}}`,
		"/_tasks/nosuch:5/_cancel":              `{"node_failures":[{"type":"failed_node_exception","reason":R,"node_id":"nosuch","caused_by":{"type":"no_such_node_exception","reason":R,"node_id":"nosuch"}}],"nodes":{}}`,
		"/_tasks/_cancel?actions=*nosuch*":      `{"nodes":{}}`,
		"/_tasks/_cancel?nodes=nosuch":          `{"nodes":{}}`,
	} {
		if got := reasonless(s.do("POST", path, "").want(200).body); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
	s.do("POST", "/_tasks/garbage/_cancel", "").wantError(400, "illegal_argument_exception")
	s.do("POST", "/_tasks/_cancel?parent_task_id=garbage", "").wantError(400, "illegal_argument_exception")
	s.do("POST", "/_tasks/_cancel?detailed", "").wantError(400, "illegal_argument_exception")
	if s.running("*search") != 1 {
		t.Fatal("a request that matches nothing has cancelled the search")
	}

	r := s.do("POST", "/_tasks/"+id+"/_cancel?wait_for_completion", "").want(200)
	if got := r.keyOrder("nodes", nodeID, "tasks", id); got != "node id type action start_time_in_millis running_time_in_nanos cancellable cancelled headers cancellation_time_millis" {
		t.Errorf("keys of a cancelled task: %s", got)
	}
	if r.at("nodes", nodeID, "tasks", id, "cancelled") != true || s.running("*search") != 0 {
		t.Errorf("not cancelled, or not waited for: %s", r.body)
	}
	victim := end().wantError(500, "task_cancelled_exception")
	if !strings.Contains(victim.body, "by user request") {
		t.Error(victim.body)
	}
}

func TestCancelWhatCannotBe(t *testing.T) {
	s := newServer(t)
	waiting := s.background("GET", "/_cluster/health?wait_for_nodes=9&timeout=300ms", "")
	var id string
	s.eventually("health waits", func() bool {
		for _, x := range s.tasks.List(everything) {
			id = x.ID().String()
		}
		return id != ""
	})
	want := `{"node_failures":[{"type":"failed_node_exception","reason":R,"node_id":"` + nodeID + `","caused_by":{"type":"illegal_argument_exception","reason":R}}],"nodes":{}}`
	if got := reasonless(s.do("POST", "/_tasks/"+id+"/_cancel", "").want(200).body); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := s.do("POST", "/_tasks/_cancel?actions=cluster:monitor/health", "").want(200).body; got != `{"nodes":{}}` {
		t.Error(got)
	}
	(<-waiting).want(408)
}

// reasonless replaces the texts of reasons by R.
func reasonless(body string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(body, `"reason":"`)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString(`"reason":R`)
		_, body, _ = strings.Cut(after, `"`)
	}
}

// A parked search tells where it stands, and what runs tells on whose account.
func TestTaskStatus(t *testing.T) {
	hold := make(chan struct{})
	s := newServer(t, func(o *options) { o.executor = &gate{open: hold} })
	id := s.group("g", `,"throttling":{"attribute":"group","node_limit":1},"queue":{"size_per_bucket":5}`)
	var answers []<-chan response
	for i := range 3 {
		answers = append(answers, s.background("POST", "/_search", `{}`, "workloadGroupId", id))
		s.eventually("it is in its place", func() bool { return int(s.admission.Totals().Waiters) == i })
		s.eventually("it runs or waits", func() bool { return s.running("*search") == i+1 })
	}
	free := s.background("POST", "/_search", `{}`)
	s.eventually("all are there", func() bool { return s.running("*search") == 4 && s.admission.Totals().Untracked == 1 })

	const detailed = "/_tasks?group_by=none&detailed&actions=*search"
	var statuses []string
	r := s.do("GET", detailed, "").want(200)
	for i, x := range r.at("tasks").([]any) {
		st := at(x, "status")
		statuses = append(statuses, fmt.Sprint(at(st, "state"), " ", at(st, "position")))
		if i > 0 && at(st, "state") == "waiting" {
			if at(st, "bucket") == "" || at(st, "tier") != "node" || at(st, "waiting_millis") == nil {
				t.Errorf("a waiting search: %v", st)
			}
		}
	}
	if got := strings.Join(statuses, ", "); got != "running <nil>, waiting 1, waiting 2, <nil> <nil>" {
		t.Errorf("statuses: %s in %s", got, r.body)
	}
	if strings.Contains(s.do("GET", strings.Replace(detailed, "&detailed", "", 1), "").body, "status") {
		t.Error("a status is shown without details")
	}
	order := statusKeys(t, r.body, "waiting")
	if order != "state tier bucket position waiting_millis" && order != "state tier bucket position waiting_millis estimated_wait_millis" {
		t.Errorf("keys of a status: %s", order)
	}

	// Taking the limit away lets everybody run; nothing counts them then, and they say so.
	s.do("PUT", "/_wlm/workload_group/g", `{"throttling":null,"queue":null}`).want(200)
	r = s.do("GET", detailed, "").want(200)
	tracked := map[any]int{}
	for _, x := range r.at("tasks").([]any) {
		tracked[at(x, "status", "tracked")]++
	}
	if tracked[true] != 1 || tracked[false] != 2 || tracked[nil] != 1 {
		t.Errorf("tracked: %v in %s", tracked, r.body)
	}
	close(hold)
	for _, a := range append(answers, free) {
		(<-a).want(200)
	}
}

// An item of a multi-search that waits for its sibling says so.
func TestHeldItem(t *testing.T) {
	hold := make(chan struct{})
	s := newServer(t, func(o *options) { o.executor = &gate{open: hold} })
	id := s.group("g", `,"throttling":{"attribute":"group","node_limit":1}`)
	answer := s.background("POST", "/_msearch", "{}\n{}\n{}\n{}\n", "workloadGroupId", id)
	var held response
	s.eventually("an item is held", func() bool {
		held = s.do("GET", "/_tasks?group_by=none&detailed&actions=*/search", "")
		return statusKeys(t, held.body, "held") != ""
	})
	if got := statusKeys(t, held.body, "held"); got != "state reason" {
		t.Errorf("keys of its status: %s", got)
	}
	parents := s.do("GET", "/_tasks?group_by=parents&actions=*search", "").at("tasks").(map[string]any)
	for _, x := range parents {
		if at(x, "action") != "indices:data/read/msearch" || len(at(x, "children").([]any)) != 2 {
			t.Errorf("the multi-search: %v", x)
		}
	}
	close(hold)
	if r := (<-answer).want(200); r.at("responses", 0, "status") != 200.0 || r.at("responses", 1, "status") != 200.0 {
		t.Error(r.body)
	}
}

// statusKeys are the keys of the first task status with a state, in their order.
func statusKeys(t *testing.T, body, state string) string {
	t.Helper()
	v, err := jsondoc.Parse([]byte(body))
	must(t, err)
	for _, x := range v.Member("tasks").Items {
		if st := x.Member("status"); st.Member("state") != nil && st.Member("state").Text == state {
			return keys(st)
		}
	}
	return ""
}

// Whoever waits for tasks waits half a minute unless they say otherwise.
func TestDefaultWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		s := newServer(t, func(o *options) { o.bubble = true; o.executor = &gate{open: hold} })
		answer := s.background("POST", "/_search", `{}`)
		synctest.Wait()
		id := s.tasks.List(everything)[0].ID().String()
		for path, want := range map[string]struct {
			wait   time.Duration
			status int
		}{
			"/_tasks/" + id + "?wait_for_completion":            {30 * time.Second, 504},
			"/_tasks/" + id + "?wait_for_completion&timeout=3s": {3 * time.Second, 504},
			"/_tasks?actions=*search&wait_for_completion":       {30 * time.Second, 200},
			"/_cluster/health?wait_for_nodes=2":                 {30 * time.Second, 408},
			"/_cluster/health?wait_for_nodes=2&timeout=5s":      {5 * time.Second, 408},
		} {
			started := time.Now()
			s.do("GET", path, "").want(want.status)
			if took := time.Since(started); took != want.wait {
				t.Errorf("%s took %v, want %v", path, took, want.wait)
			}
		}
		close(hold)
		(<-answer).want(200)
	})
}

func keys(v *jsondoc.Value) string {
	var names []string
	for _, m := range v.Members {
		names = append(names, m.Name)
	}
	return strings.Join(names, " ")
}

// TestTasksShowMarks: both marks that a client can give a request are shown with its task.
func TestTasksShowMarks(t *testing.T) {
	s := newServer(t)
	r := s.do("GET", "/_tasks?group_by=none", "", "X-Opaque-Id", "mine", "X-Request-Id", "0123456789abcdef0123456789abcdef").want(200)
	if headers := `"headers":{"X-Opaque-Id":"mine","X-Request-Id":"0123456789abcdef0123456789abcdef"}`; !strings.Contains(r.body, headers) {
		t.Errorf("no task has %s: %s", headers, r.body)
	}
}
