package rest_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/api/rest"
)

func TestPlainErrors(t *testing.T) {
	s := newServer(t)
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
		body         string
	}{
		{"GET", "/a/b/c", 400, "", `{"error":"no handler found for uri [/a/b/c] and method [GET]"}`},
		{"GET", "/a/b/c?x=1", 400, "", `{"error":"no handler found for uri [/a/b/c] and method [GET]"}`},
		{"GET", "//_search", 400, "", `{"error":"no handler found for uri [//_search] and method [GET]"}`},
		{"GET", "/_cluster/health//", 400, "", `{"error":"no handler found for uri [/_cluster/health//] and method [GET]"}`},
		{"GET", "/_nodes/usage", 400, "", `{"error":"no handler found for uri [/_nodes/usage] and method [GET]"}`},
		{"GET", "/_nodes/_local/hot_threads", 400, "", `{"error":"no handler found for uri [/_nodes/_local/hot_threads] and method [GET]"}`},
		{"POST", "/_tasks?detailed", 405, "GET", `{"error":"method [POST] is not allowed for uri [/_tasks?detailed], allowed: [GET]","status":405}`},
		{"GET", "/_tasks/_cancel", 405, "POST", `{"error":"method [GET] is not allowed for uri [/_tasks/_cancel], allowed: [POST]","status":405}`},
		{"PUT", "/_search", 405, "GET,POST", `{"error":"method [PUT] is not allowed for uri [/_search], allowed: [GET, POST]","status":405}`},
		{"POST", "/an-index", 405, "DELETE,GET,HEAD,PUT", `{"error":"method [POST] is not allowed for uri [/an-index], allowed: [GET, PUT, DELETE, HEAD]","status":405}`},
		{"FOO", "/_tasks", 405, "GET", `{"error":"method [FOO] is not allowed for uri [/_tasks], allowed: [GET]","status":405}`},
		{"OPTIONS", "/_wlm/workload_group/a", 200, "DELETE,GET,POST,PUT", ""},
		{"OPTIONS", "/a/b/c/d", 200, "", ""},
	} {
		r := s.do(c.method, c.path, "")
		if r.status != c.status || r.body != c.body || sortedList(r.header.Get("Allow")) != c.allow {
			t.Errorf("%s %s: %d %s Allow %q", c.method, c.path, r.status, r.body, r.header.Get("Allow"))
		}
	}
}

func TestPathsAreDecoded(t *testing.T) {
	s := newServer(t)
	for _, name := range []string{"a/b", "a b", "100%", "ü", "a+b"} {
		s.group(name, "")
	}
	for path, name := range map[string]string{"a%2Fb": "a/b", "a%20b": "a b", "100%25": "100%", "%C3%BC": "ü", "a+b": "a+b", "a%2Fb/": "a/b"} {
		if got := s.do("GET", "/_wlm/workload_group/"+path, "").want(200).at("workload_groups", 0, "name"); got != name {
			t.Errorf("%s: got %v", path, got)
		}
	}
}

func TestQueryParameters(t *testing.T) {
	s := newServer(t)
	for _, c := range []struct {
		path   string
		status int
		reason string // a part of it
	}{
		{"/_cluster/health?levle=x&nosuch=1", 400, "[/_cluster/health] has unknown parameters: [levle] -> did you mean [level]?, [nosuch]"},
		{"/_cluster/health?nosuch", 400, "has an unknown parameter: [nosuch]"},
		{"/_cluster/health?pretty=maybe", 400, "parameter [pretty] must be [true] or [false], not [maybe]"},
		{"/_cluster/health?human=1", 400, "parameter [human]"},
		{"/_cluster/health?error_trace=no", 400, "parameter [error_trace]"},
		{"/_cluster/health?local=x", 400, "parameter [local]"},
		{"/_cluster/health?timeout=1", 400, "[timeout]"},
		{"/_cluster/health?timeout=1x", 400, "[1x]"},
		{"/_cluster/health?wait_for_nodes=x", 400, "[wait_for_nodes]"},
		{"/_cluster/health?wait_for_active_shards=-1", 400, "[wait_for_active_shards]"},
		{"/_cluster/health?level=shards;nosuch=1", 400, "[nosuch]"},
		{"/_cluster/health?a=%zz", 400, "query string"},
		{"/_cluster/health?pretty=maybe&pretty=false", 200, ""},
		{"/_cluster/health?filter_path=x&format=json&error_trace", 200, ""},
		{"/_cluster/health?&&", 200, ""},
		{"/_tasks?detailed=&human=true", 200, ""},
		{"/_tasks?group_by=bogus", 400, "[nodes], [parents] or [none]"},
		{"/_msearch?max_concurrent_searches=x&source=%7B%7D%0A%7B%7D%0A&source_content_type=application/json", 400, "whole number"},
		{"/_msearch?max_concurrent_searches=0&source=%7B%7D%0A%7B%7D%0A&source_content_type=application/json", 400, "at least 1"},
	} {
		r := s.do("GET", c.path, "").want(c.status)
		if reason, _ := r.at("error", "reason").(string); !strings.Contains(reason, c.reason) {
			t.Errorf("%s: %s", c.path, r.body)
		}
	}
	if got := s.do("GET", "/_cluster/health?a=%zz", "").at("error", "type"); got != "bad_parameter_exception" {
		t.Errorf("a bad escape in the query: %v", got)
	}
}

func TestAnswersForPeople(t *testing.T) {
	s := newServer(t)
	const pretty = "{\n  \"persistent\" : { },\n  \"transient\" : { }\n}\n"
	if r := s.do("GET", "/_cluster/settings?pretty", ""); r.body != pretty {
		t.Errorf("%q", r.body)
	}
	if r := s.do("GET", "/_cluster/settings", ""); r.body != `{"persistent":{},"transient":{}}` {
		t.Errorf("%q", r.body)
	}
	if r := s.do("GET", "/nosuch/_search?pretty", ""); !strings.HasPrefix(r.body, "{\n  \"error\" : {\n") {
		t.Errorf("an error is not pretty: %q", r.body)
	}
	if r := s.do("GET", "/", ""); !strings.HasSuffix(r.body, "}\n") {
		t.Errorf("the root is not pretty: %q", r.body)
	}
	if r := s.do("GET", "/?pretty=false", ""); strings.Contains(r.body, "\n") {
		t.Errorf("the root is pretty although it should not be: %q", r.body)
	}
}

func TestHeaders(t *testing.T) {
	s := newServer(t)
	long := strings.Repeat("x", 5000)
	for _, path := range []string{"/", "/nosuch", "/a/b/c", "/_search/scroll"} {
		r := s.do("GET", path, "", "X-Opaque-Id", long, "X-Request-Id", "r-1")
		if r.header.Get("X-Opaque-Id") != long || r.header.Get("X-Request-Id") != "r-1" {
			t.Errorf("%s: ids are not echoed: %v", path, r.header)
		}
		if got := r.header.Get("X-OpenSearch-Version"); got != "OpenSearch/"+rest.Version+" (opensearch)" {
			t.Errorf("%s: version header %q", path, got)
		}
		if got := r.header.Get("Content-Type"); got != "application/json; charset=UTF-8" {
			t.Errorf("%s: content type %q", path, got)
		}
		if got := r.header.Get("Content-Length"); got != fmt.Sprint(len(r.body)) {
			t.Errorf("%s: content length %q for %d bytes", path, got, len(r.body))
		}
		for _, name := range []string{"Date", "Server", "Transfer-Encoding"} {
			if v, ok := r.header[name]; ok {
				t.Errorf("%s: header %s: %v", path, name, v)
			}
		}
	}
	if _, ok := s.do("GET", "/", "").header["X-Opaque-Id"]; ok {
		t.Error("an id is echoed that was not sent")
	}
	s.do("GET", "/", "", "X-Request-Id", strings.Repeat("a", 128)).want(200)
	s.do("GET", "/", "", "X-Request-Id", strings.Repeat("a", 129)).wantError(400, "illegal_argument_exception")
	s.do("GET", "/", "", "X-Big", strings.Repeat("b", 17<<10)).wantError(400, "too_long_http_header_exception")
	s.do("GET", "/?pretty&filter_path="+strings.Repeat("c", 4096), "").wantError(400, "too_long_http_line_exception")
}

func TestBodies(t *testing.T) {
	s := newServer(t, func(o *options) { o.limits.MaxContentLength = 1000 })
	const search, settings = "/_search", "/_cluster/settings"
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		answer                   string // a part of it
	}{
		{"no media type", "POST", search, `{}`, []string{"Content-Type", "-"}, 406, `{"error":"Content-Type header [] is not supported","status":406}`},
		{"text", "POST", search, `{}`, []string{"Content-Type", "text/plain"}, 406, `"Content-Type header [text/plain] is not supported"`},
		{"yaml", "POST", search, `size: 1`, []string{"Content-Type", "application/yaml"}, 200, "hits: []\n"},
		{"yaml where lines are taken", "POST", "/_msearch", `size: 1`, []string{"Content-Type", "application/yaml"}, 406, `"Content-Type header [application/yaml] is not supported"`},
		{"cbor", "POST", search, `{}`, []string{"Content-Type", "application/cbor"}, 406, `[application/cbor] is not supported: send JSON or YAML"`},
		{"one line where lines are not taken", "POST", search, "{}\n", []string{"Content-Type", "application/x-ndjson"}, 200, ""},
		{"lines where they are not", "POST", search, "{}\n{}\n", []string{"Content-Type", "application/x-ndjson"}, 400, ""},
		{"lines where they are", "POST", "/_msearch", "{}\n{}\n", []string{"Content-Type", "application/x-ndjson; charset=utf-8"}, 200, `"status":200`},
		{"no type at all", "POST", search, `{}`, []string{"Content-Type", "garbage"}, 400, "content_type_header_exception"},
		{"upper case", "POST", search, `{}`, []string{"Content-Type", "APPLICATION/JSON;CHARSET=utf-8"}, 200, ""},
		{"vendor type", "POST", search, `{}`, []string{"Content-Type", "application/vnd.opensearch+json;compatible-with=3"}, 200, ""},
		{"not compressed, and saying the opposite", "POST", search, `{}`, []string{"Content-Encoding", "gzip"}, 400, `not the gzip`},
		{"compressed otherwise", "POST", search, `{}`, []string{"Content-Encoding", "br"}, 415, `[br]`},
		{"not compressed, and saying so", "POST", search, `{}`, []string{"Content-Encoding", "identity"}, 200, ""},
		{"too large", "POST", search, strings.Repeat(" ", 1001), nil, 413, ""},
		{"as large as may be", "POST", search, `{}` + strings.Repeat(" ", 998), nil, 200, ""},
		{"missing", "PUT", settings, "", nil, 400, "parse_exception"},
		{"missing lines", "POST", "/_msearch", "", nil, 400, "parse_exception"},
		{"cut", "PUT", settings, `{"a":`, nil, 400, "unexpected_end_of_input_exception"},
		{"twice a key", "POST", search, `{"size":1,"size":2}`, nil, 400, "json_parse_exception"},
		{"an array", "POST", search, `[]`, nil, 400, `"parsing_exception"`},
		{"a bad body beside an unknown parameter", "POST", search + "?nosuch=1", `{"query":`, nil, 400, "unexpected_end_of_input_exception"},
		{"a good body beside an unknown parameter", "POST", search + "?nosuch=1", `{}`, nil, 400, "nosuch"},
		{"no body beside an unknown parameter", "PUT", settings + "?nosuch=1", "", nil, 400, "parse_exception"},
		{"ignored", "GET", "/_cluster/health", "garbage", []string{"Content-Type", "text/plain"}, 200, ""},
		{"source in the query", "GET", search + "?source=%7B%22size%22%3A0%7D&source_content_type=application/json", "", nil, 200, `"hits":[]`},
		{"source without a type", "GET", search + "?source=%7B%7D", "", nil, 500, "illegal_state_exception"},
		{"source of another type", "GET", search + "?source=x&source_content_type=text/plain", "", nil, 500, "illegal_state_exception"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := s.do(c.method, c.path, c.body, c.headers...)
			if r.status != c.status || !strings.Contains(r.body, c.answer) {
				t.Errorf("%d %s", r.status, r.body)
			}
			if c.status == 413 && (r.body != "" || len(r.header["X-Opensearch-Version"]) != 0) {
				t.Errorf("a 413 says more than it should: %v %s", r.header, r.body)
			}
		})
	}
	t.Run("no path", func(t *testing.T) {
		c, br := s.dial()
		fmt.Fprint(c, "CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n")
		readResponse(t, br, "POST", 400, "no handler")
	})
	t.Run("two types", func(t *testing.T) {
		c, br := s.dial()
		fmt.Fprint(c, "POST /_search HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}")
		readResponse(t, br, "POST", 400, "content_type_header_exception")
	})
	t.Run("chunked, too large", func(t *testing.T) {
		c, br := s.dial()
		fmt.Fprintf(c, "POST /_search HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n%s\r\n0\r\n\r\n", strings.Repeat(" ", 1001))
		readResponse(t, br, "POST", 413, "")
	})
	t.Run("chunked, without a type", func(t *testing.T) {
		c, br := s.dial()
		fmt.Fprint(c, "POST /_search HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")
		readResponse(t, br, "POST", 406, "Content-Type header []")
	})
	t.Run("chunked and empty", func(t *testing.T) {
		c, br := s.dial()
		fmt.Fprint(c, "POST /_search HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
		readResponse(t, br, "POST", 200, "hits")
	})
	t.Run("broken chunks", func(t *testing.T) {
		c, br := s.dial()
		fmt.Fprint(c, "POST /_search HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n")
		readResponse(t, br, "POST", 400, "illegal_argument_exception")
	})
	t.Run("expect 100-continue", func(t *testing.T) {
		c, br := s.dial()
		fmt.Fprint(c, "POST /_search HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
		if line, err := br.ReadString('\n'); err != nil || !strings.Contains(line, "100") {
			t.Fatal(line, err)
		}
		if _, err := br.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, "{}")
		readResponse(t, br, "POST", 200, "hits")
	})
}

// readResponse reads one answer from a connection, and checks it.
func readResponse(t *testing.T, br *bufio.Reader, method string, status int, part string) string {
	t.Helper()
	resp, err := http.ReadResponse(br, &http.Request{Method: method})
	must(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(t, err)
	if resp.StatusCode != status || !strings.Contains(string(b), part) {
		t.Fatalf("got %d %s, want %d with %q", resp.StatusCode, b, status, part)
	}
	return string(b)
}

// HEAD never has a body, not even a byte that would be taken for the next answer.
func TestHeadOnOneConnection(t *testing.T) {
	s := newServer(t)
	s.do("PUT", "/idx", `{}`).want(200)
	c, br := s.dial()
	for _, x := range []struct {
		path   string
		status int
	}{
		{"/", 200}, {"/?pretty", 200}, {"/idx", 200}, {"/missing", 404}, {"/_nosuch", 400}, {"/_cluster/health", 405}, {"/a/b/c", 400},
		{"/idx/_doc/1", 404}, {"/?nosuch", 400},
	} {
		fmt.Fprintf(c, "HEAD %s HTTP/1.1\r\nHost: x\r\n\r\n", x.path)
		readResponse(t, br, "HEAD", x.status, "")
		if n := br.Buffered(); n != 0 {
			b, _ := br.Peek(n)
			t.Fatalf("HEAD %s is followed by %q", x.path, b)
		}
	}
	fmt.Fprint(c, "GET /_cluster/settings HTTP/1.1\r\nHost: x\r\n\r\n")
	readResponse(t, br, "GET", 200, `{"persistent":{},"transient":{}}`)
}

func TestHeadHasTheLengthOfTheBody(t *testing.T) {
	s := newServer(t)
	get, head := s.do("GET", "/", ""), s.do("HEAD", "/", "")
	if head.header.Get("Content-Length") != get.header.Get("Content-Length") || head.body != "" {
		t.Errorf("HEAD: %v %q, GET: %v", head.header, head.body, get.header)
	}
}

// A sender that stops in the middle of its body is cut off; one that goes on slowly is not.
func TestSlowSenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(o *options) { o.bubble = true })
		const head = "POST /_search HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 40\r\n\r\n"

		slow, br := s.dial()
		fmt.Fprint(slow, head)
		for range 40 {
			time.Sleep(time.Second)
			fmt.Fprint(slow, " ")
		}
		readResponse(t, br, "POST", 400, "byte offset: #40") // forty spaces are no search, but they have come

		silent, br := s.dial()
		started := time.Now()
		fmt.Fprint(silent, head+"{")
		readResponse(t, br, "POST", 408, "timeout_exception")
		if waited := time.Since(started); waited < 9*time.Second || waited > 11*time.Second {
			t.Errorf("cut off after %v", waited)
		}
		if _, err := br.ReadByte(); err != io.EOF {
			t.Errorf("the connection of a silent sender stays open: %v", err)
		}

		// Nor does it help to send a body that nobody wants to read.
		unwanted, br := s.dial()
		fmt.Fprint(unwanted, strings.Replace(head, "POST /_search", "GET /_cluster/settings", 1))
		readResponse(t, br, "GET", 200, "persistent")
		started = time.Now()
		if _, err := br.ReadByte(); err != io.EOF || time.Since(started) > 11*time.Second {
			t.Errorf("an unwanted body may take %v, and then: %v", time.Since(started), err)
		}

		// A deadline for the body does not outlast it, wanted or not.
		careless, br := s.dial()
		for range 2 {
			fmt.Fprint(careless, "GET /_cluster/settings HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
			readResponse(t, br, "GET", 200, "persistent")
			time.Sleep(25 * time.Second)
		}
		patient, br := s.dial()
		fmt.Fprint(patient, "POST /_search HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
		readResponse(t, br, "POST", 200, "hits")
		time.Sleep(30 * time.Second)
		fmt.Fprint(patient, "GET /_cluster/settings HTTP/1.1\r\nHost: x\r\n\r\n")
		readResponse(t, br, "GET", 200, "persistent")
	})
}

func TestBodyBudget(t *testing.T) {
	hold := make(chan struct{})
	s := newServer(t, func(o *options) {
		o.limits.MaxInFlightBytes = 64 << 10
		o.executor = &gate{open: hold}
	})
	body := `{"query":"` + strings.Repeat("x", 40<<10) + `"}`
	first := s.background("POST", "/_search", body)
	s.eventually("the first search runs", func() bool { return s.running("indices:data/read/search") == 1 })

	r := s.do("POST", "/_search", body).wantError(429, "circuit_breaking_exception")
	for _, part := range []any{r.json()["error"], at(r.json(), "error", "root_cause", 0)} {
		if at(part, "bytes_limit") != float64(64<<10) || at(part, "durability") != "TRANSIENT" || at(part, "bytes_wanted").(float64) <= 64<<10 {
			t.Errorf("%v", part)
		}
	}
	if got := r.header.Get("Retry-After"); got != "1" {
		t.Errorf("Retry-After %q", got)
	}
	small := s.background("POST", "/_search", `{}`)
	close(hold)
	(<-first).want(200)
	(<-small).want(200)
	s.do("POST", "/_search", body).want(200)
	if !strings.Contains(s.do("GET", "/metrics", "").body, "\nwlmserver_http_body_bytes 0\n") {
		t.Error("bytes of bodies are still counted after all requests have ended")
	}
}

func TestPanicsAreAnswered(t *testing.T) {
	var log lockedBuffer
	s := newServer(t, func(o *options) {
		o.executor = &gate{panics: true}
		o.log = &log
	})
	r := s.do("POST", "/_search", "").wantError(500, "exception")
	if strings.Contains(r.body, "a fault of the executor") {
		t.Errorf("the answer tells what is for the log: %s", r.body)
	}
	for _, part := range []string{"a fault of the executor", "call.go", `"level":"error"`} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log lacks %q: %s", part, log.String())
		}
	}
	s.do("GET", "/_cluster/settings", "").want(200)
}

// At level debug every request is a line of the log; one that was cut off, too.
func TestAccessLog(t *testing.T) {
	var log lockedBuffer
	s := newServer(t, func(o *options) { o.log = &log })
	s.do("GET", "/nosuch?pretty", "", "X-Request-Id", "r-1").want(404)
	for _, part := range []string{`"level":"debug"`, `"method":"GET"`, `"uri":"/nosuch?pretty"`, `"status":404`, `"request_id":"r-1"`, `"took":`} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log lacks %s: %s", part, log.String())
		}
	}
}

func TestUnknownErrorsAreLoggedAndNotShown(t *testing.T) {
	var log lockedBuffer
	s := newServer(t, func(o *options) {
		o.executor = &gate{err: io.ErrClosedPipe}
		o.log = &log
	})
	r := s.do("POST", "/_search", "", "X-Opaque-Id", "me").wantError(500, "exception")
	if strings.Contains(r.body, "pipe") || !strings.Contains(log.String(), "closed pipe") || !strings.Contains(log.String(), `"opaque_id":"me"`) {
		t.Errorf("answer %s\nlog %s", r.body, log.String())
	}
}

func TestMetrics(t *testing.T) {
	s := newServer(t)
	s.group("reports", "")
	r := s.do("GET", "/metrics", "").want(200)
	if got := r.header.Get("Content-Type"); got != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("content type %q", got)
	}
	names := make(map[string]bool)
	for line := range strings.Lines(r.body) {
		if name, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, _, _ = strings.Cut(name, " ")
			if names[name] {
				t.Errorf("%s is there twice", name)
			}
			names[name] = true
		}
	}
	for _, name := range []string{"wlmserver_http_body_bytes", "wlmserver_search_pool_rejected_total", "wlmserver_group_throttled_total"} {
		if !names[name] {
			t.Errorf("%s is missing", name)
		}
	}
	if !slices.Contains(strings.Split(r.body, "\n"), "wlmserver_search_pool_queue 0") {
		t.Error(r.body)
	}
}

func sortedList(s string) string {
	l := strings.Split(s, ",")
	slices.Sort(l)
	return strings.Join(l, ",")
}
