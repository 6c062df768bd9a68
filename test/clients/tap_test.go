package clients_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// tap passes bytes between clients and a server, unchanged, and keeps them: a proxy that understood them would hide what a strict
// client stumbles over.
type tap struct {
	URL string

	listener net.Listener
	server   string // host:port
	done     sync.WaitGroup

	mu          sync.Mutex
	connections []*connection
}

// connection is what was said on one connection.
type connection struct {
	client, server net.Conn
	asked, told    bytes.Buffer
	closed         sync.Once
	byServer       bool // it was the server that closed it
}

// exchange is one request with its answer.
type exchange struct {
	connection int // counted from 0 in the order of their opening
	request    *http.Request
	response   *http.Response
	body       []byte // of the answer, inflated
}

func newTap(t *testing.T, url string) *tap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tap{URL: "http://" + l.Addr().String(), listener: l, server: strings.TrimPrefix(url, "http://")}
	p.done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.pass(c)
		}
	})
	t.Cleanup(p.close)
	return p
}

// pass opens the other half of a connection and copies both ways until either side has closed it.
func (p *tap) pass(client net.Conn) {
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		_ = client.Close()
		return
	}
	c := &connection{client: client, server: server}
	p.mu.Lock()
	p.connections = append(p.connections, c)
	p.mu.Unlock()
	for _, way := range []struct {
		to, from net.Conn
		kept     *bytes.Buffer
	}{{server, client, &c.asked}, {client, server, &c.told}} {
		p.done.Go(func() {
			_, _ = io.Copy(way.to, io.TeeReader(way.from, way.kept)) // however it ends, it ends for both
			c.close(way.from == server)
		})
	}
}

func (c *connection) close(byServer bool) {
	c.closed.Do(func() {
		c.byServer = byServer
		_ = c.client.Close()
		_ = c.server.Close()
	})
}

func (p *tap) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	for _, c := range p.connections {
		c.close(false)
	}
	p.mu.Unlock()
	p.done.Wait()
}

// exchanges closes what is still open and gives everything that was asked and answered. It fails where an answer cannot be read, where
// there are bytes that belong to none, and where the server has closed a connection: no client has to expect that.
func (p *tap) exchanges() ([]exchange, error) {
	p.close()
	var all []exchange
	for i, c := range p.connections {
		asked, told := bufio.NewReader(&c.asked), bufio.NewReader(&c.told)
		for {
			if _, err := asked.Peek(1); err != nil {
				break
			}
			request, err := http.ReadRequest(asked)
			if err == nil {
				_, err = io.Copy(io.Discard, request.Body)
			}
			if errors.Is(err, io.ErrUnexpectedEOF) {
				break // the client has gone while it sent
			}
			if err != nil {
				return nil, fmt.Errorf("connection %d: a request: %w", i, err)
			}
			if _, err := told.Peek(1); err != nil {
				break // the client has gone before the answer
			}
			response, body, err := answer(told, request)
			if err != nil {
				return nil, fmt.Errorf("connection %d: the answer to %s %s: %w", i, request.Method, request.URL, err)
			}
			all = append(all, exchange{i, request, response, body})
		}
		if rest, _ := io.ReadAll(told); len(rest) > 0 {
			return nil, fmt.Errorf("connection %d: bytes that are no answer: %q", i, rest)
		}
		if c.byServer {
			return nil, fmt.Errorf("connection %d was closed by the server", i)
		}
	}
	return all, nil
}

func answer(r *bufio.Reader, request *http.Request) (*http.Response, []byte, error) {
	response, err := http.ReadResponse(r, request)
	for err == nil && response.StatusCode < http.StatusOK {
		response, err = http.ReadResponse(r, request)
	}
	if err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(response.Body)
	if err == nil && response.Header.Get("Content-Encoding") == "gzip" && len(body) > 0 {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(z)
		}
	}
	return response, body, err
}
