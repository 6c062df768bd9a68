package load

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// scripted is a connection on which the server has said everything already.
type scripted struct {
	net.Conn
	in io.Reader
}

func (s *scripted) Read(p []byte) (int, error)  { return s.in.Read(p) }
func (s *scripted) Write(p []byte) (int, error) { return len(p), nil }

func answers(s string) *conn { return newConn(&scripted{in: strings.NewReader(s)}) }

func TestReadsAnswers(t *testing.T) {
	long := strings.Repeat("x", keptBody+5)
	for name, c := range map[string]struct {
		answer string
		status int
		body   string
		reuse  bool
	}{
		"success":         {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "", true},
		"failure":         {"HTTP/1.1 429 Too Many Requests\r\ncontent-length:5\r\n\r\nhello", 429, "hello", true},
		"no words":        {"HTTP/1.1 500\r\nContent-Length: 0\r\n\r\n", 500, "", true},
		"bare line feeds": {"HTTP/1.1 500 x\nContent-Length: 2\n\nab", 500, "ab", true},
		"long":            {"HTTP/1.1 500 x\r\nContent-Length: 8197\r\n\r\n" + long, 500, long[:keptBody], true},
		"chunked":         {"HTTP/1.1 400 x\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n1\r\n!\r\n0\r\nTrailer: 1\r\n\r\n", 400, "hello!", true},
		"until the end":   {"HTTP/1.1 400 x\r\n\r\nhello", 400, "hello", false},
		"asked to close":  {"HTTP/1.1 200 x\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n", 200, "", false},
		"old":             {"HTTP/1.0 200 x\r\nContent-Length: 0\r\n\r\n", 200, "", false},
		"old but kept":    {"HTTP/1.0 200 x\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", 200, "", true},
		"no content":      {"HTTP/1.1 204 x\r\n\r\n", 204, "", true},
		"continue first":  {"HTTP/1.1 100 Continue\r\nA: b\r\n\r\nHTTP/1.1 201 x\r\nContent-Length: 1\r\n\r\na", 201, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			conn := answers(c.answer)
			r, err := conn.roundTrip(nil, false)
			if err != nil || r.status != c.status || string(r.body) != c.body || conn.reusable(conn.used) != c.reuse {
				t.Errorf("%d %.40q, reusable %v, %v", r.status, r.body, conn.reusable(conn.used), err)
			}
			if rest, _ := io.ReadAll(conn.r); len(rest) > 0 {
				t.Errorf("%q is left", rest)
			}
		})
	}
}

func TestRefusesAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		want   error
	}{
		"nothing":                {"", io.EOF},
		"half a line":            {"HTTP/1.1 2", io.ErrUnexpectedEOF},
		"no end of headers":      {"HTTP/1.1 200 OK\r\nA: b\r\n", io.ErrUnexpectedEOF},
		"too little body":        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", io.ErrUnexpectedEOF},
		"no HTTP":                {"SSH-2.0-OpenSSH_9.2\r\n", errMalformed},
		"no status":              {"HTTP/1.1 abc OK\r\n\r\n", errMalformed},
		"small status":           {"HTTP/1.1 099 OK\r\n\r\n", errMalformed},
		"other protocol":         {"HTTP/1.1 101 Switching Protocols\r\n\r\n", errMalformed},
		"no colon":               {"HTTP/1.1 200 OK\r\nA\r\n\r\n", errMalformed},
		"no length":              {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", errMalformed},
		"two lengths":            {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", errMalformed},
		"compressed":             {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", errMalformed},
		"no chunk":               {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", errMalformed},
		"chunk longer than said": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", errMalformed},
		"chunks without end":     {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n", io.ErrUnexpectedEOF},
		"long line":              {"HTTP/1.1 200 OK\r\nA: " + strings.Repeat("b", readBuffer) + "\r\n\r\n", errMalformed},
		"long headers":           {"HTTP/1.1 200 OK\r\n" + strings.Repeat("A: "+strings.Repeat("b", 1000)+"\r\n", 70) + "\r\n", errMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			conn := answers(c.answer)
			if r, err := conn.roundTrip(nil, false); !errors.Is(err, c.want) || conn.reusable(conn.used) {
				t.Errorf("%d, %v, reusable %v", r.status, err, conn.reusable(conn.used))
			}
		})
	}
}

// TestHeadHasNoBody: the length that is told of a HEAD is that of a body which does not come.
func TestHeadHasNoBody(t *testing.T) {
	conn := answers("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\n")
	for _, want := range []int{200, 404} {
		if r, err := conn.roundTrip(nil, true); r.status != want || err != nil {
			t.Errorf("%d, %v", r.status, err)
		}
	}
}

func TestRestedConnectionsAreNotReused(t *testing.T) {
	conn := answers("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	if _, err := conn.roundTrip(nil, false); err != nil {
		t.Fatal(err)
	}
	if !conn.reusable(conn.used.Add(idleLimit-1)) || conn.reusable(conn.used.Add(idleLimit)) {
		t.Error("the limit does not hold")
	}
}

// FuzzResponse holds the reader against net/http's: what both accept they understand alike, and ours accepts nothing that
// ends elsewhere.
func FuzzResponse(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"))
	f.Add([]byte("HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\nRetry-After: 1\r\n\r\n{}"))
	f.Add([]byte("HTTP/1.1 400 x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"))
	f.Add([]byte("HTTP/1.0 500 x\r\n\r\nhello"))
	f.Add([]byte("HTTP/1.0 700 \nTransfer-Encoding: chunked\n\n0\n\n")) // HTTP/1.0 has no chunks
	f.Fuzz(func(t *testing.T, b []byte) {
		ours, err := answers(string(b)).roundTrip(nil, false)
		if err != nil || ours.status < 300 || bytes.HasPrefix(b, []byte("HTTP/1.1 1")) {
			return
		}
		theirs, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(b)), nil)
		if err != nil {
			return // net/http is stricter about the names and values of headers
		}
		defer theirs.Body.Close()
		body, err := io.ReadAll(theirs.Body)
		if err != nil {
			return
		}
		if ours.status != theirs.StatusCode || !bytes.Equal(ours.body, body[:min(len(body), keptBody)]) {
			t.Errorf("%q:\nours   %d %q\ntheirs %d %q", b, ours.status, ours.body, theirs.StatusCode, body)
		}
	})
}

// TestRoundTripsAreCheap: what is read of the usual answers leaves no garbage behind.
func TestRoundTripsAreCheap(t *testing.T) {
	for name, answer := range map[string]string{
		"success": "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Opaque-Id: 1\r\nContent-Length: 5\r\n\r\nhello",
		"failure": "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 5\r\n\r\nhello",
	} {
		in := strings.NewReader(answer)
		conn := newConn(&scripted{in: in})
		n := testing.AllocsPerRun(100, func() {
			in.Reset(answer)
			if _, err := conn.roundTrip(nil, false); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
