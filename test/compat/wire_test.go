package compat_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// patience is how long an answer may take. What the grammar asks for never takes as long.
const patience = 20 * time.Second

// answer is what came back: status 0 for a connection that was closed without one.
type answer struct {
	status  int
	header  http.Header
	body    string // inflated
	problem error  // there was no answer, and not for the reason that the server closed the connection
}

// side is one of the two servers.
type side struct {
	name    string
	address string
	ids     ids

	conn net.Conn
	in   *bufio.Reader
}

// send sends a request and reads the answer. A connection is kept as long as the server keeps it.
func (s *side) send(r *request) answer {
	kept := s.conn != nil
	a, err := s.exchange(r)
	if err != nil && kept { // the server may have closed it before it saw the request
		s.close()
		a, err = s.exchange(r)
	}
	if err != nil {
		s.close()
		a = answer{}
		var wait net.Error
		if errors.As(err, &wait) && wait.Timeout() {
			a.problem = err
		}
	}
	return a
}

func (s *side) close() {
	if s.conn != nil {
		_ = s.conn.Close() // what was to be read has been
		s.conn = nil
	}
}

func (s *side) exchange(r *request) (answer, error) {
	if s.conn == nil {
		c, err := net.DialTimeout("tcp", s.address, patience)
		if err != nil {
			return answer{}, err
		}
		s.conn, s.in = c, bufio.NewReader(c)
	}
	if err := s.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return answer{}, err
	}
	_, sent := s.conn.Write(r.bytes(s.address, s.ids)) // a server may answer, and close, before it has read all
	for {
		res, err := http.ReadResponse(s.in, &http.Request{Method: r.method})
		if err != nil {
			return answer{}, errors.Join(err, sent)
		}
		if res.StatusCode < 200 {
			continue
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			return answer{}, err
		}
		if res.Close || res.StatusCode == http.StatusExpectationFailed || strings.Contains(string(body), "too_long_http_") { // what follows of the request would be taken for the next
			s.close()
		}
		return answer{status: res.StatusCode, header: res.Header, body: inflated(res.Header, body)}, nil
	}
}

func inflated(h http.Header, body []byte) string {
	if !strings.EqualFold(h.Get("Content-Encoding"), "gzip") {
		return string(body)
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err == nil {
		var plain []byte
		if plain, err = io.ReadAll(z); err == nil {
			return string(plain)
		}
	}
	return "not gzip: " + err.Error()
}
