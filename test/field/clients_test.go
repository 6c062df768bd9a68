package field_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/test/server"
)

// TestP10EveryErrorIsJSON makes each kind of error. What real clients make of them is in test/clients.
func TestP10EveryErrorIsJSON(t *testing.T) {
	p := start(t, "thread_pool.search.size=2", "thread_pool.search.queue_size=1")
	unqueued := p.CreateGroup("unqueued", limits("group", 1, -1, 0))
	queued := p.CreateGroup("queued", limits("group", 1, -1, 1))
	holders := []<-chan server.Answer{hold(t, p, unqueued), hold(t, p, queued)} // both workers are busy
	parked := make(chan server.Answer, 1)
	go func() {
		parked <- p.Send(t.Context(), http.MethodPost, "/slow/_search", "{}", "workloadGroupId", queued)
	}()
	p.AwaitQueued(queued, 1)
	inPool := make(chan server.Answer, 1)
	go func() { inPool <- p.Send(t.Context(), http.MethodPost, "/slow/_search", "{}") }()
	p.Await("the pool is full", func() bool {
		return strings.Contains(string(p.Send(t.Context(), http.MethodGet, "/_nodes/stats/thread_pool", "").Body), `"queue":1`)
	})
	const none = "none" // the error is a text
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		kind                     string
	}{
		{"a limit", "POST", "/quick/_search", "{}", []string{"workloadGroupId", unqueued}, 429, "rejected_execution_exception"},
		{"a full queue", "POST", "/quick/_search", "{}", []string{"workloadGroupId", queued}, 429, "rejected_execution_exception"},
		{"the pool", "POST", "/quick/_search", "{}", nil, 429, "search_phase_execution_exception"},
		{"an index", "GET", "/nosuch/_search", "", nil, 404, "index_not_found_exception"},
		{"a group", "GET", "/_wlm/workload_group/nosuch", "", nil, 404, "resource_not_found_exception"},
		{"a method", "DELETE", "/_wlm/stats", "", nil, 405, none},
		{"a path", "GET", "/_wlm/nosuch", "", nil, 400, none},
		{"no JSON", "POST", "/quick/_search", "{", nil, 400, "unexpected_end_of_input_exception"},
		{"a query", "POST", "/quick/_search", `{"query":{"nosuch":{}}}`, nil, 400, "parsing_exception"},
		{"a parameter", "GET", "/quick/_search?nosuch=1", "", nil, 400, "illegal_argument_exception"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantJSONError(t, p.Send(t.Context(), c.method, c.path, c.body, c.headers...), c.status, c.kind)
		})
	}
	cancelAll(p)
	t.Run("cancelled while parked", func(t *testing.T) { wantJSONError(t, <-parked, 500, "task_cancelled_exception") })
	for _, h := range append(holders, inPool) {
		t.Run("cancelled while running", func(t *testing.T) { wantJSONError(t, <-h, 500, "search_phase_execution_exception") })
	}
	t.Run("failed", func(t *testing.T) {
		a := p.Send(t.Context(), http.MethodPost, "/quick/_search", `{"ext":{"stub":{"fail_shards":1}}}`)
		wantJSONError(t, a, 500, "search_phase_execution_exception")
	})
}

// wantJSONError checks that an answer is an error in the shape that clients decode. The kind none stands for a text in its place.
func wantJSONError(t *testing.T, a server.Answer, status int, kind string) {
	t.Helper()
	if a.Err != nil || a.Status != status {
		t.Fatalf("%v, %d %s, want %d", a.Err, a.Status, a.Body, status)
	}
	if got := a.Header.Get("Content-Type"); got != "application/json; charset=UTF-8" {
		t.Errorf("the content type is %q", got)
	}
	if waits := a.Header.Get("Retry-After"); (waits != "") != (status == http.StatusTooManyRequests) {
		t.Errorf("Retry-After is %q", waits)
	}
	var body struct {
		Error  json.RawMessage
		Status *int
	}
	if err := json.Unmarshal(a.Body, &body); err != nil {
		t.Fatalf("%v in %s", err, a.Body)
	}
	if body.Status != nil && *body.Status != status {
		t.Errorf("the status is %d in %s", *body.Status, a.Body)
	}
	if kind == "none" {
		var text string
		if err := json.Unmarshal(body.Error, &text); err != nil || text == "" {
			t.Errorf("no text: %s", a.Body)
		}
		return
	}
	var e struct {
		Type, Reason string
		RootCause    []struct{ Type, Reason string } `json:"root_cause"`
	}
	if err := json.Unmarshal(body.Error, &e); err != nil {
		t.Fatalf("%v in %s", err, a.Body)
	}
	if body.Status == nil || e.Type != kind || e.Reason == "" || len(e.RootCause) == 0 || e.RootCause[0].Type == "" || e.RootCause[0].Reason == "" {
		t.Errorf("%s, want a %s", a.Body, kind)
	}
}

// TestP11TasksHaveWhatStrictClientsNeed: clients that give up where a key is missing find all of them, for a search that runs and for
// one that is parked.
func TestP11TasksHaveWhatStrictClientsNeed(t *testing.T) {
	p := start(t)
	id := p.CreateGroup("g", limits("group", 1, -1, 1))
	running := hold(t, p, id)
	parked := make(chan server.Answer, 1)
	go func() { parked <- p.Send(t.Context(), http.MethodPost, "/slow/_search", "{}", "workloadGroupId", id) }()
	p.AwaitQueued(id, 1)
	var list struct {
		Nodes map[string]map[string]json.RawMessage
	}
	p.Must(http.MethodGet, "/_tasks?detailed=true&actions=*search*", "", &list)
	if len(list.Nodes) != 1 {
		t.Fatalf("%v", list.Nodes)
	}
	var whole []string // the ids of the searches themselves
	for _, node := range list.Nodes {
		needKeys(t, "a node", node, "name", "transport_address", "host", "ip", "roles", "attributes", "tasks")
		var tasks map[string]map[string]json.RawMessage
		if err := json.Unmarshal(node["tasks"], &tasks); err != nil {
			t.Fatal(err)
		}
		for id, task := range tasks {
			needKeys(t, "task "+id, task, "node", "id", "type", "action", "description", "start_time_in_millis", "running_time_in_nanos",
				"cancellable", "cancelled", "headers", "resource_stats")
			var stats map[string]json.RawMessage
			if err := json.Unmarshal(task["resource_stats"], &stats); err != nil {
				t.Fatal(err)
			}
			needKeys(t, "the resource_stats of "+id, stats, "average", "total", "min", "max", "thread_info")
			if string(task["action"]) == `"`+searches+`"` {
				whole = append(whole, id)
			}
			if string(task["cancellable"]) != "true" {
				t.Errorf("task %s cannot be cancelled", id)
			}
		}
	}
	if len(whole) != 2 {
		t.Fatalf("the searches are %v", whole)
	}
	for _, id := range whole {
		p.Must(http.MethodPost, "/_tasks/"+id+"/_cancel", "", nil)
	}
	for _, a := range []server.Answer{<-running, <-parked} {
		if a.Status != http.StatusInternalServerError {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
}

func needKeys(t *testing.T, what string, object map[string]json.RawMessage, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if text, ok := object[key]; !ok || string(text) == "null" {
			t.Errorf("%s has no %s", what, key)
		}
	}
}

// TestP12HeadHasNoBody: on one connection, what follows HEAD is the next answer.
func TestP12HeadHasNoBody(t *testing.T) {
	p := start(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"HEAD", "/", 200}, {"HEAD", "/?pretty", 200}, {"HEAD", "/quick", 200}, {"HEAD", "/missing", 404}, {"HEAD", "/quick/_doc/missing", 404},
		{"HEAD", "/_wlm/stats", 405}, {"HEAD", "/_nosuch", 400}, {"HEAD", "/?nosuch=1", 400}, {"GET", "/", 200},
	} {
		// With gzip, since an empty body has a closing chunk and a trailer of its own.
		for _, coding := range []string{"identity", "gzip"} {
			if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nAccept-Encoding: %s\r\n\r\n", c.method, c.path, coding); err != nil {
				t.Fatal(err)
			}
			res, err := http.ReadResponse(answers, &http.Request{Method: c.method})
			if err != nil {
				t.Fatalf("%s %s: %v", c.method, c.path, err) // where bytes of the answer before are taken for this one
			}
			body, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != c.status || (len(body) > 0) != (c.method == "GET") {
				t.Errorf("%s %s: %d %q, %v, want %d", c.method, c.path, res.StatusCode, body, err, c.status)
			}
			if slices.Contains(res.TransferEncoding, "chunked") && c.method == "HEAD" {
				t.Errorf("%s %s: chunks are promised", c.method, c.path)
			}
		}
	}
	if n := answers.Buffered(); n > 0 {
		t.Errorf("%d bytes are left", n)
	}
}
