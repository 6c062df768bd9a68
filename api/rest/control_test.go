package rest_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/internal/faults"
)

func withControl(o *options) { o.control = true }

func (s *server) script(list string) {
	s.Helper()
	s.do("PUT", "/_stub/faults", `{"faults":[`+list+`]}`).want(200)
}

// Without control routes their paths are like any other that does not exist.
func TestNoControl(t *testing.T) {
	s := newServer(t)
	for _, x := range []struct{ method, path string }{{"PUT", "/_stub/faults"}, {"GET", "/_stub/faults"}, {"GET", "/_stub/requests"}, {"POST", "/_stub/reset"}} {
		r := s.do(x.method, x.path, `{"faults":[]}`).want(400)
		if want := `{"error":"no handler found for uri [` + x.path + `] and method [` + x.method + `]"}`; r.body != want {
			t.Errorf("%s %s: %s", x.method, x.path, r.body)
		}
	}
}

func TestControlRoutes(t *testing.T) {
	s := newServer(t, withControl)
	for path, allowed := range map[string]string{"/_stub/faults": "GET,PUT", "/_stub/requests": "GET", "/_stub/reset": "POST", "/_stub": "DELETE,GET,HEAD,PUT"} {
		if got := sortedList(s.do("OPTIONS", path, "").header.Get("Allow")); got != allowed {
			t.Errorf("%s: %q, want %q", path, got, allowed)
		}
	}
	for _, c := range []struct{ method, path, body, reason string }{
		{"PUT", "/_stub/faults", `{"faults":[{"status":42}]}`, "[faults[0].status] cannot be [42]: give a whole number from 400 to 599"},
		{"PUT", "/_stub/faults?x=1", `{"faults":[]}`, "[x]"},
		{"GET", "/_stub/requests?limit=0", "", "[limit] must be a whole number from 1 to 1000, not [0]"},
		{"GET", "/_stub/requests?limit=1001", "", "[1001]"},
		{"GET", "/_stub/requests?pth=/a", "", "did you mean [path]?"},
		{"POST", "/_stub/reset?only=index", "", "[only] cannot hold [index]: name some of [faults,tasks,rules,groups,settings,indices,requests]"},
		{"POST", "/_stub/reset?only=", "", "[only] is empty"},
		{"POST", "/_stub/reset?only=faults&timeout=3", "", "[timeout]"},
	} {
		s.script(`{"path":"/kept","status":503}`)
		r := s.do(c.method, c.path, c.body).wantError(400, "illegal_argument_exception")
		if reason, _ := r.at("error", "reason").(string); !strings.Contains(reason, c.reason) {
			t.Errorf("%s %s: %s", c.method, c.path, reason)
		}
		if got := s.do("GET", "/_stub/faults", "").body; got != `{"faults":[{"path":"/kept","status":503,"acted":0}]}` {
			t.Errorf("%s %s is refused, and something changed: %s", c.method, c.path, got)
		}
	}
	s.do("PUT", "/_stub/faults", "").wantError(400, "parse_exception")
	s.do("PUT", "/_stub/faults", `{"faults":[`).wantError(400, "unexpected_end_of_input_exception")
}

func TestFaults(t *testing.T) {
	s := newServer(t, withControl)
	s.do("PUT", "/i", `{}`).want(200)
	s.script(`{"method":"post","path":"/*/_search","after":1,"times":2,"status":429,"headers":{"Retry-After":7,"X-A":"b"}},
		{"path":"/_count","status":503,"type":"a_type","reason":"a reason","headers":{"X-OpenSearch-Version":null}},
		{"path":"/_cluster/*","headers":{"Warning":"299 - old"}},
		{"path":"*","method":"DELETE","status":429,"headers":{"Retry-After":null}},
		{"status":500,"path":"/_stub*"}`)

	s.do("POST", "/i/_search", `{}`).want(200)
	for range 2 {
		r := s.do("POST", "/i/_search", `{}`).wantError(429, "rejected_execution_exception")
		if r.header.Get("Retry-After") != "7" || r.header.Get("X-A") != "b" || r.header.Get("X-OpenSearch-Version") == "" {
			t.Errorf("%v", r.header)
		}
	}
	s.do("POST", "/i/_search", `{}`).want(200)
	s.do("GET", "/i/_search", "").want(200)
	r := s.do("GET", "/_count", "").wantError(503, "a_type")
	if r.at("error", "reason") != "a reason" || r.header.Get("X-OpenSearch-Version") != "" {
		t.Errorf("%v %s", r.header, r.body)
	}
	if r := s.do("GET", "/_cluster/settings", "").want(200); r.header.Get("Warning") != "299 - old" {
		t.Errorf("%v", r.header)
	}
	// What a fault answers is not carried out.
	if r := s.do("DELETE", "/i", "").wantError(429, "rejected_execution_exception"); len(r.header["Retry-After"]) != 0 {
		t.Errorf("%v", r.header)
	}
	s.do("HEAD", "/i", "").want(200)

	want := `{"faults":[{"method":"POST","path":"/*/_search","after":1,"times":2,"status":429,"headers":{"Retry-After":"7","X-A":"b"},"acted":2,"left":0},` +
		`{"path":"/_count","status":503,"type":"a_type","reason":"a reason","headers":{"X-Opensearch-Version":null},"acted":1},` +
		`{"path":"/_cluster/*","headers":{"Warning":"299 - old"},"acted":1},` +
		`{"method":"DELETE","path":"*","status":429,"headers":{"Retry-After":null},"acted":1},` +
		`{"path":"/_stub*","status":500,"acted":0}]}`
	got := s.do("GET", "/_stub/faults", "").want(200).body
	if got != want {
		t.Errorf("\ngot  %s\nwant %s", got, want)
	}
	s.do("PUT", "/_stub/faults", got).want(200) // what is listed can be sent back
	if again := s.do("GET", "/_stub/faults", "").body; strings.Contains(again, `"acted":1`) || strings.Count(again, "acted") != 5 {
		t.Errorf("%s", again)
	}
	s.script("")
	s.do("DELETE", "/i", "").want(200)
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, withControl, func(o *options) { o.bubble = true })
		s.script(`{"path":"/_search","delay":"20m","times":1},{"path":"/_search","delay":"3s","status":429,"times":1}`)
		for _, want := range []struct {
			status int
			delay  time.Duration
		}{{200, 20 * time.Minute}, {429, 3 * time.Second}, {200, 0}} {
			started := time.Now()
			s.do("POST", "/_search", `{}`).want(want.status)
			if got := time.Since(started); got != want.delay {
				t.Errorf("answered after %v, want %v", got, want.delay)
			}
		}
	})
}

// A client that leaves ends the delay, and what it asked for is not carried out.
func TestDelayEndsWithTheClient(t *testing.T) {
	s := newServer(t, withControl)
	s.script(`{"path":"/i","delay":"1h"}`)
	c, _ := s.dial()
	fmt.Fprint(c, "PUT /i HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
	s.eventually("the request waits", func() bool { return strings.Contains(s.do("GET", "/_stub/faults", "").body, `"acted":1`) })
	c.Close()
	s.eventually("it ends", func() bool { return s.do("GET", "/_stub/requests", "").at("requests", 0, "answered") == true })
	s.script("")
	s.do("HEAD", "/i", "").want(404)
}

// raw sends a request over a connection of its own and gives all that comes until the server closes it.
func (s *server) raw(request string) string {
	s.Helper()
	c, br := s.dial()
	fmt.Fprint(c, request)
	b, err := io.ReadAll(br)
	must(s.TB, err)
	return string(b)
}

func TestDamage(t *testing.T) {
	const get = "GET /_cluster/settings HTTP/1.1\r\nHost: x\r\n\r\n"
	const whole = `{"persistent":{},"transient":{}}`
	s := newServer(t, withControl)

	s.script(`{"damage":"no_answer"}`)
	if got := s.raw(get); got != "" {
		t.Errorf("no answer: %q", got)
	}
	s.script(`{"damage":"half_answer"}`)
	got := s.raw(get)
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(got)), nil)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode != 200 || resp.ContentLength != int64(len(whole)) || string(body) != whole[:len(whole)/2] || err != io.ErrUnexpectedEOF {
		t.Errorf("half an answer: %d %d %q %v", resp.StatusCode, resp.ContentLength, body, err)
	}
	if got := s.raw("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n"); got != "" { // it has no body to be cut in
		t.Errorf("half an answer to HEAD: %q", got)
	}

	for damage, want := range map[faults.Damage]struct{ body, mediaType string }{
		faults.Truncated: {whole[:len(whole)/2], "application/json; charset=UTF-8"},
		faults.NotJSON:   {"}{ no JSON", "application/json; charset=UTF-8"},
		faults.HTML:      {"<html><body><h1>OK</h1></body></html>\n", "text/html; charset=UTF-8"},
		faults.WrongType: {whole, "text/plain; charset=UTF-8"},
	} {
		s.script(fmt.Sprintf(`{"damage":%q}`, damage))
		r := s.do("GET", "/_cluster/settings", "").want(200)
		if r.body != want.body || r.header.Get("Content-Type") != want.mediaType || r.header.Get("Content-Length") != fmt.Sprint(len(want.body)) {
			t.Errorf("%s: %v %q", damage, r.header, r.body)
		}
	}
	s.script(`{"status":502,"damage":"html"}`)
	if r := s.do("GET", "/", "").want(502); r.body != "<html><body><h1>Bad Gateway</h1></body></html>\n" {
		t.Errorf("%q", r.body)
	}
}

// Without a status a request is carried out, whatever becomes of its answer; with one it is not.
func TestDamageAndWork(t *testing.T) {
	s := newServer(t, withControl)
	put := func(name string) string { return "PUT /" + name + " HTTP/1.1\r\nHost: x\r\n\r\n" }
	s.script(`{"path":"/done","damage":"no_answer","times":1},{"path":"/undone","status":503,"damage":"no_answer","times":1}`)
	for _, name := range []string{"done", "undone"} {
		if got := s.raw(put(name)); got != "" {
			t.Errorf("%q", got)
		}
	}
	s.do("HEAD", "/done", "").want(200)
	s.do("HEAD", "/undone", "").want(404)
}

func TestRequestLog(t *testing.T) {
	s := newServer(t, withControl)
	group := s.group("g", "")
	s.script(`{"path":"/i/_search","status":429,"times":1},{"path":"/gone","damage":"no_answer","times":1}`)
	s.do("PUT", "/i", `{"settings":{"number_of_shards":1}}`).want(200)
	s.do("POST", "/i/_search?size=1&pretty", `{"size":2}`, "workloadGroupId", group, "Authorization", "Basic c2VjcmV0").want(429)
	s.do("POST", "/i/_search", `{"size":3}`, "workloadGroupId", "unknown").want(200)
	s.raw("GET /gone HTTP/1.1\r\nHost: x\r\n\r\n")
	s.do("GET", "/_cluster/health?nosuch", "").want(400)
	s.do("POST", "/_search", "size: 4\n", "Content-Type", "application/yaml").want(200)
	s.do("POST", "/_search", `"`+strings.Repeat("x", 64<<10-2)+`üü"`, "workloadGroupId", group).want(400)

	var log struct {
		Received, Dropped int
		Requests          []struct {
			Number    int
			Received  int64 `json:"received_millis"`
			Method    string
			Path      string
			Query     string
			Headers   http.Header
			Body      string
			BodyBytes int `json:"body_bytes"`
			Answered  bool
			Status    int
			Group     string
			Fault     *int
		}
	}
	read := func(query string) {
		t.Helper()
		log.Requests = nil
		must(t, json.Unmarshal([]byte(s.do("GET", "/_stub/requests"+query, "").want(200).body), &log))
	}
	read("")
	var got []string
	for _, x := range log.Requests {
		fault := -1
		if x.Fault != nil {
			fault = *x.Fault
		}
		if x.BodyBytes < 1000 && x.BodyBytes != len(x.Body) || !x.Answered || time.Since(time.UnixMilli(x.Received)) > time.Hour {
			t.Errorf("%+v", x)
		}
		got = append(got, fmt.Sprintf("%d %s %s?%s %.40s %d %s %d", x.Number, x.Method, x.Path, x.Query, x.Body, x.Status, strings.ReplaceAll(x.Group, group, "G"), fault))
	}
	want := []string{
		`1 PUT /_wlm/workload_group? {"name":"g","resiliency_mode":"enforced" 200  -1`,
		`2 PUT /i? {"settings":{"number_of_shards":1}} 200  -1`,
		`3 POST /i/_search?size=1&pretty {"size":2} 429 G 0`,
		`4 POST /i/_search? {"size":3} 200 DEFAULT_WORKLOAD_GROUP -1`,
		`5 GET /gone?  0  1`,
		`6 GET /_cluster/health?nosuch  400  -1`,
		`7 POST /_search? {"size":4} 200 DEFAULT_WORKLOAD_GROUP -1`,
		`8 POST /_search? "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx 400 G -1`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || log.Received != len(want) || log.Dropped != 0 {
		t.Errorf("%d, %d\n%s", log.Received, log.Dropped, strings.Join(got, "\n"))
	}
	if h := log.Requests[2].Headers; h.Get("Authorization") != "Basic …" || h.Get("Workloadgroupid") != group || h.Get("Content-Type") != "application/json" {
		t.Errorf("headers %v", h)
	}
	if h := log.Requests[6].Headers; h.Get("Content-Type") != "application/yaml" {
		t.Errorf("headers are not as they were sent: %v", h)
	}
	if long := log.Requests[7]; long.BodyBytes != 64<<10+4 || len(long.Body) != 64<<10-1 || !strings.HasSuffix(long.Body, "x") {
		t.Errorf("%d bytes of %d, ending in %q", len(long.Body), long.BodyBytes, long.Body[len(long.Body)-4:])
	}

	for query, want := range map[string]string{
		"?path=/i/*": "3 4", "?path=/i/*&limit=1": "4", "?limit=2": "7 8", "?path=/*": "1 2 3 4 5 6 7 8", "?path=/nosuch": "", "?path=/_search&limit=1000": "7 8",
	} {
		read(query)
		var numbers []string
		for _, x := range log.Requests {
			numbers = append(numbers, fmt.Sprint(x.Number))
		}
		if got := strings.Join(numbers, " "); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

// The log is bounded, in requests and in bytes.
func TestRequestLogIsBounded(t *testing.T) {
	s := newServer(t, withControl)
	for range 1005 {
		s.serve(t, "GET", "/a/b/c", "")
	}
	r := s.do("GET", "/_stub/requests?limit=1000", "").want(200)
	if list, _ := r.at("requests").([]any); len(list) != 1000 || r.at("received") != 1005.0 || r.at("dropped") != 5.0 || at(list, 0, "number") != 6.0 {
		t.Errorf("%d requests, received %v, dropped %v", len(list), r.at("received"), r.at("dropped"))
	}
	body := `{"query":"` + strings.Repeat("x", 70<<10) + `"}`
	for range 300 {
		s.serve(t, "POST", "/_search", body)
	}
	r = s.do("GET", "/_stub/requests", "").want(200)
	if list, _ := r.at("requests").([]any); len(list) < 200 || len(list) > 16<<20/(64<<10) || r.at("received") != 1305.0 {
		t.Errorf("%d requests of 64 KiB are kept, received %v", len(list), r.at("received"))
	}
}

// A request that is still on its way is in the log, with what is known of it.
func TestRequestLogOfRunning(t *testing.T) {
	hold := make(chan struct{})
	s := newServer(t, withControl, func(o *options) { o.executor = &gate{open: hold} })
	answer := s.background("POST", "/_search", `{}`)
	s.eventually("the search runs", func() bool { return s.running("indices:data/read/search") == 1 })
	if r := s.do("GET", "/_stub/requests", ""); r.at("requests", 0, "path") != "/_search" || r.at("requests", 0, "answered") != false {
		t.Error(r.body)
	}
	s.do("POST", "/_stub/reset?only=requests", "").want(200)
	close(hold)
	(<-answer).want(200)
	if got := s.do("GET", "/_stub/requests", "").body; got != `{"received":0,"dropped":0,"requests":[]}` {
		t.Errorf("forgotten, and there again: %s", got)
	}
}

func TestReset(t *testing.T) {
	s := newServer(t, withControl)
	paths := map[string]string{"faults": "/_stub/faults", "groups": "/_wlm/workload_group", "rules": rulesPath, "settings": "/_cluster/settings", "indices": "/_cat/indices"}
	state := func() map[string]string {
		got := map[string]string{"tasks": fmt.Sprint(s.running("*search*")), "requests": "some"}
		for name, path := range paths {
			got[name] = s.do("GET", path, "").want(200).body
		}
		if s.do("GET", "/_stub/requests?path=/*/_doc", "").at("requests", 0) == nil {
			got["requests"] = "none"
		}
		return got
	}
	empty := state()
	fill := func() map[string]string {
		group := s.group("g", `,"throttling":{"attribute":"group","node_limit":1},"queue":{"size_per_bucket":5}`)
		s.do("PUT", rulesPath, `{"description":"d","index_pattern":["x*"],"workload_group":"`+group+`"}`).want(200)
		s.do("PUT", "/_cluster/settings", `{"transient":{"search.max_buckets":9},"persistent":{"search.max_keep_alive":"1h"}}`).want(200)
		s.do("POST", "/i/_doc", `{"a":1}`).want(201)
		s.script(`{"path":"/nosuch","status":404}`)
		for range 3 {
			s.background("POST", "/i/_search?scroll=1m", `{"ext":{"stub":{"query_time":"1h"}}}`, "workloadGroupId", group)
		}
		s.eventually("the searches wait", func() bool { return strings.Contains(s.do("GET", "/_wlm/stats/"+group, "").body, `"queued_current":2`) })
		return state()
	}
	full := fill()
	for name := range empty {
		if full[name] == empty[name] {
			t.Fatalf("nothing to reset: %s is %s", name, full[name])
		}
	}
	if got := s.do("POST", "/_stub/reset", "").want(200).body; got != `{"acknowledged":true}` {
		t.Error(got)
	}
	for name, got := range state() {
		if got != empty[name] {
			t.Errorf("%s after a reset: %s, want %s", name, got, empty[name])
		}
	}
	s.do("POST", "/_stub/reset", "").want(200) // nothing is left to do, which is no mistake

	for name := range empty {
		fill()
		before := state()
		s.do("POST", "/_stub/reset?only="+name, "").want(200)
		after := state()
		for other := range empty {
			want := before[other]
			if other == name {
				want = empty[other]
			}
			if (other != "tasks" || name == "tasks") && after[other] != want { // without their group waiting searches run
				t.Errorf("only %s: %s is %s, want %s", name, other, after[other], want)
			}
		}
		s.do("POST", "/_stub/reset", "").want(200)
	}
}

// A reset that does not wait long enough for searches that go on in spite of it says so.
func TestResetTimeout(t *testing.T) {
	s := newServer(t, withControl)
	s.do("PUT", "/i", `{"settings":{"number_of_shards":1}}`).want(200)
	s.background("POST", "/i/_search", `{"ext":{"stub":{"query_time":"500ms","ignore_cancel":true}}}`)
	s.eventually("the search runs", func() bool { return s.running("*phase/query*") == 1 })
	if got := s.do("POST", "/_stub/reset?timeout=1ms", "").want(200).body; got != `{"acknowledged":false}` {
		t.Error(got)
	}
}

// Where there are users, control is for administrators, and the log tells who asked.
func TestControlRights(t *testing.T) {
	s := newServer(t, withControl, withUsers)
	admin, plain := []string{"X-User", "ann", "X-Roles", "admin"}, []string{"X-User", "bob", "X-Roles", "analyst"}
	const script = `{"faults":[{"path":"/_search","status":503}]}`
	for _, x := range []struct{ method, path, body string }{
		{"PUT", "/_stub/faults", script}, {"GET", "/_stub/faults", ""}, {"GET", "/_stub/requests", ""}, {"POST", "/_stub/reset", ""},
	} {
		s.do(x.method, x.path, x.body).wantError(401, "security_exception")
		s.do(x.method, x.path, x.body, plain...).wantError(403, "security_exception")
		s.do(x.method, x.path, x.body, admin...).want(200)
	}
	s.do("PUT", "/_stub/faults", script, admin...).want(200)
	s.do("GET", "/_search", "").want(401) // whom nobody knows meets no fault
	s.do("GET", "/_search", "", plain...).want(503)
	r := s.do("GET", "/_stub/requests", "", admin...).want(200)
	if r.at("requests", 0, "status") != 401.0 || r.at("requests", 0, "principal") != nil ||
		r.at("requests", 1, "principal", "user") != "bob" || r.at("requests", 1, "principal", "roles", 0) != "analyst" || r.at("requests", 2) != nil {
		t.Error(r.body)
	}
}
