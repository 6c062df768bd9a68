package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// request writes a request as it goes over the wire. The headers are names and values in turn.
func request(method, path, body string, headers ...string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: bench\r\n", method, path)
	for i := 0; i+1 < len(headers); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", headers[i], headers[i+1])
	}
	if body != "" {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n" + body)
	return b.Bytes()
}

// search is the request for a search that is the same for all servers.
func search(index, group string) []byte {
	if group == "" {
		group = "0123456789012345678901" // just as many bytes; nobody knows it
	}
	return request(http.MethodPost, "/"+index+"/_search", "{}", "workloadGroupId", group)
}

// connection is the client's side of one connection. It reads no more of an answer than it needs, because client and server share
// the machine.
type connection struct {
	address string
	dialer  net.Dialer
	net.Conn
	in *bufio.Reader
}

// connect opens a connection from the local address given; empty = any.
func connect(address, from string) (*connection, error) {
	c := &connection{address: address, in: bufio.NewReaderSize(nil, 1024)}
	if from != "" {
		c.dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	return c, c.dial()
}

func (c *connection) dial() error {
	conn, err := c.dialer.Dial("tcp", c.address)
	if err != nil {
		return err
	}
	c.Conn = conn
	c.in.Reset(conn)
	return nil
}

// drop closes the connection at once, so that its port is free again.
func (c *connection) drop() {
	if t, ok := c.Conn.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // else it takes a minute
	}
	_ = c.Close()
}

// do sends a request and reads the answer; it gives the status.
func (c *connection) do(request []byte) (int, error) {
	if _, err := c.Write(request); err != nil {
		return 0, err
	}
	return c.answer()
}

// answer reads one answer.
func (c *connection) answer() (int, error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(line) < len("HTTP/1.1 200") {
		return 0, fmt.Errorf("no status line: %q", line)
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil {
		return 0, fmt.Errorf("no status line: %q", line)
	}
	length, ends := -1, false
	for {
		line, err = c.in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch value = bytes.TrimSpace(value); {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil {
				return 0, err
			}
		case bytes.EqualFold(name, []byte("Connection")):
			ends = bytes.EqualFold(value, []byte("close"))
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			return status, c.discardChunks()
		}
	}
	if length < 0 {
		return 0, errors.New("an answer without Content-Length")
	}
	if _, err := c.in.Discard(length); err != nil {
		return 0, err
	}
	if ends {
		_ = c.Close()
		return status, c.dial()
	}
	return status, nil
}

// discardChunks reads over the rest of the headers and a body in chunks.
func (c *connection) discardChunks() error {
	for { // the headers that are left
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(bytes.TrimRight(line, "\r\n")) == 0 {
			break
		}
	}
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(string(bytes.TrimRight(line, "\r\n")), 16, 64)
		if err != nil {
			return err
		}
		if _, err := io.CopyN(io.Discard, c.in, n+2); err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
	}
}

// load is what clients do that each send the same request again as soon as it is answered.
type load struct {
	address string
	request []byte
	status  int // that every answer has to have
	clients int
	warm    time.Duration // not counted
	counted time.Duration
}

// outcome is what came of it.
type outcome struct {
	requests  int
	perSecond float64
	p50, p99  float64 // milliseconds
	jain      float64 // 1 when every client got as many answers as every other; 1/clients when one got all
}

// run drives the load. around is called at the beginning and at the end of the counted time.
func (l load) run(around func()) (outcome, error) {
	const (
		warming = iota
		counting
		over
	)
	var (
		phase atomic.Int32
		wg    sync.WaitGroup
		took  = make([][]float64, l.clients)
		errs  = make(chan error, l.clients)
	)
	connections := make([]*connection, l.clients)
	for i := range connections {
		c, err := connect(l.address, "")
		if err != nil {
			return outcome{}, err
		}
		defer c.drop()
		connections[i] = c
	}
	for i, c := range connections {
		wg.Go(func() {
			for phase.Load() != over {
				begun := time.Now()
				status, err := c.do(l.request)
				if err == nil && status != l.status {
					err = fmt.Errorf("answered %d, not %d", status, l.status)
				}
				if err != nil {
					errs <- err
					return
				}
				if phase.Load() == counting {
					took[i] = append(took[i], float64(time.Since(begun).Nanoseconds())/1e6)
				}
			}
		})
	}
	time.Sleep(l.warm)
	around()
	phase.Store(counting)
	begun := time.Now()
	time.Sleep(l.counted)
	phase.Store(over)
	seconds := time.Since(begun).Seconds()
	around()
	wg.Wait()
	close(errs)
	if err := <-errs; err != nil {
		return outcome{}, err
	}
	var (
		all         []float64
		sum, square float64
	)
	for _, t := range took {
		all = append(all, t...)
		n := float64(len(t))
		sum += n
		square += n * n
	}
	if len(all) == 0 {
		return outcome{}, errors.New("nothing was answered in time")
	}
	slices.Sort(all)
	return outcome{
		requests: len(all), perSecond: sum / seconds, p50: all[len(all)/2], p99: all[len(all)*99/100],
		jain: sum * sum / (float64(l.clients) * square),
	}, nil
}
