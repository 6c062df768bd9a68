package clients_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestTap: what strict clients stumble over does not get past the tap, and what they do not is passed on as it is.
func TestTap(t *testing.T) {
	const plain = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
	for _, c := range []struct {
		name, method string
		answers      []string // to one request after the other; the server closes after the last
		fault        string
	}{
		{"two answers", "GET", []string{plain + "ok", plain + "ok", ""}, ""},
		{"an answer to HEAD", "HEAD", []string{plain, ""}, ""},
		{"a body after HEAD", "HEAD", []string{plain + "ok", ""}, "bytes that are no answer"},
		{"no HTTP", "GET", []string{"what?\r\n\r\n", ""}, "the answer to GET /"},
		{"gzip that is none", "GET", []string{"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok", ""}, "the answer to GET /"},
		{"closed by the server", "GET", []string{plain + "ok"}, "closed by the server"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newTap(t, "http://"+answering(t, c.answers))
			client, err := net.Dial("tcp", strings.TrimPrefix(p.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			for _, answer := range c.answers {
				if answer == "" {
					break
				}
				if _, err := io.WriteString(client, c.method+" / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				got := make([]byte, len(answer))
				if _, err := io.ReadFull(client, got); err != nil || string(got) != answer {
					t.Fatalf("%q, %v, want %q", got, err, answer)
				}
			}
			if c.answers[len(c.answers)-1] != "" {
				if _, err := client.Read(make([]byte, 1)); err != io.EOF {
					t.Fatalf("not closed, but %v", err)
				}
			}
			all, err := p.exchanges()
			if c.fault == "" && (err != nil || len(all) != len(c.answers)-1) {
				t.Errorf("%d exchanges, %v", len(all), err)
			}
			if c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
				t.Errorf("%d exchanges, %v, want %s", len(all), err, c.fault)
			}
		})
	}
}

// answering is the address of a server that gives these answers on one connection, whatever is asked. An empty one waits until the
// client has gone.
func answering(t *testing.T, answers []string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		asked := bufio.NewReader(conn)
		for _, answer := range answers {
			if _, err := http.ReadRequest(asked); err != nil {
				return
			}
			if _, err := io.WriteString(conn, answer); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

func TestWellFormedError(t *testing.T) {
	const whole = `{"error":{"root_cause":[{"type":"a","reason":"b"}],"type":"a","reason":"b"},"status":404}`
	for _, c := range []struct {
		status     int
		kind, body string
		well       bool
	}{
		{404, "application/json; charset=UTF-8", whole, true},
		{405, "application/json", `{"error":"method","status":405}`, true},
		{400, "application/json", `{"error":"no handler"}`, true},
		{404, "text/plain", whole, false},
		{400, "application/json", whole, false}, // the status is another
		{404, "application/json", `{"error":"text","status":404}`, false},
		{404, "application/json", `{"error":{"root_cause":[],"type":"a","reason":"b"},"status":404}`, false},
		{404, "application/json", `{"error":{"root_cause":[{"type":"a","reason":"b"}],"type":"a","reason":"b"}}`, false},
		{404, "application/json", `<html>`, false},
		{429, "application/json", strings.ReplaceAll(whole, "404", "429"), false}, // without Retry-After
	} {
		e := exchange{
			request:  &http.Request{Method: http.MethodGet},
			response: &http.Response{StatusCode: c.status, Header: http.Header{"Content-Type": {c.kind}}},
			body:     []byte(c.body),
		}
		if err := e.wellFormedError(); (err == nil) != c.well {
			t.Errorf("%d %s %s: %v", c.status, c.kind, c.body, err)
		}
	}
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		line, name, reason string
		known              bool
	}{
		{"ok error 400", "error 400", "", true},
		{"not ok error 400: status: 500", "error 400", "status: 500", true},
		{"not ok error 400", "error 400", "", false},
		{"not ok error 400: ", "error 400", "", false},
		{"okay", "okay", "", false},
		{"", "", "", false},
	} {
		if name, reason, known := verdict(c.line); name != c.name || reason != c.reason || known != c.known {
			t.Errorf("%q: %q, %q, %t", c.line, name, reason, known)
		}
	}
}
