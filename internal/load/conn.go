package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// conn is one connection of HTTP/1.1 that carries one request after the other. It is not safe for concurrent use, but for
// Close.
//
// It is no client for general use: a request is bytes that somebody prepared, there are no redirects, no compression and no
// second try, and of an answer only what the driver counts is kept. That makes it less than half the work of net/http's
// client, which would take more of a shared machine than a light server does.
type conn struct {
	net.Conn

	r       *bufio.Reader
	used    time.Time // when the last answer was complete
	body    []byte    // of the last answer that failed
	noReuse bool      // after the last answer
}

const (
	readBuffer    = 4 << 10
	maxHeaderSize = 64 << 10
	keptBody      = 8 << 10 // of an answer that failed
	idleLimit     = 5 * time.Second
)

func newConn(c net.Conn) *conn { return &conn{Conn: c, r: bufio.NewReaderSize(c, readBuffer)} }

// reusable reports whether another request may go out. A connection that rested for long may be about to be closed by the
// server, and a request that meets this would look like one that was lost.
func (c *conn) reusable(now time.Time) bool { return !c.noReuse && now.Sub(c.used) < idleLimit }

// response is what the driver wants to know of an answer.
type response struct {
	status int
	body   []byte // its beginning, of an answer that is no success; until the next request
}

// roundTrip sends a request and reads its whole answer. After an error the connection is of no more use.
func (c *conn) roundTrip(request []byte, noBody bool) (response, error) {
	c.noReuse = true
	if _, err := c.Write(request); err != nil {
		return response{}, err
	}
	return c.readResponse(noBody)
}

var errMalformed = errors.New("malformed answer")

// framing is how the end of an answer is found.
type framing struct {
	length  int64 // -1 is not said
	chunked bool
	close   bool // the connection ends with the answer
	old     bool // HTTP/1.0, which has no chunks
}

func (c *conn) readResponse(noBody bool) (response, error) {
	for {
		status, f, err := c.readHead()
		if err != nil {
			return response{}, err
		}
		if status < 200 {
			if status == 101 {
				return response{}, fmt.Errorf("%w: status 101, which nobody asked for", errMalformed)
			}
			continue // 100 and its like come before the answer
		}
		c.body = c.body[:0]
		if !noBody && status != 204 && status != 304 {
			if err := c.readBody(f, status < 300); err != nil {
				return response{}, noEOF(err)
			}
			f.close = f.close || f.length < 0 && !f.chunked
		}
		c.noReuse = f.close
		return response{status, c.body}, nil
	}
}

func (c *conn) readHead() (status int, f framing, err error) {
	line, err := c.line()
	if err != nil {
		return 0, f, err // EOF too: the server closed the connection instead of answering
	}
	// HTTP/1.1 200 and maybe a space with words.
	if len(line) < 12 || string(line[:7]) != "HTTP/1." || line[8] != ' ' || len(line) > 12 && line[12] != ' ' {
		return 0, f, fmt.Errorf("%w: it begins %.40q", errMalformed, line)
	}
	status, err = strconv.Atoi(string(line[9:12]))
	if err != nil || status < 100 {
		return 0, f, fmt.Errorf("%w: it begins %.40q", errMalformed, line)
	}
	f = framing{length: -1, close: line[7] == '0', old: line[7] == '0'}
	for size := len(line); ; {
		if line, err = c.line(); err != nil {
			return 0, f, noEOF(err)
		}
		if len(line) == 0 {
			break
		}
		if size += len(line); size > maxHeaderSize {
			return 0, f, fmt.Errorf("%w: more than %d bytes of headers", errMalformed, maxHeaderSize)
		}
		if err := f.header(line); err != nil {
			return 0, f, err
		}
	}
	if f.chunked {
		f.length = -1
	}
	return status, f, nil
}

// header takes one header line; those that say nothing about the end of the answer are passed over.
func (f *framing) header(line []byte) error {
	name, value, ok := bytes.Cut(line, []byte(":"))
	if !ok {
		return fmt.Errorf("%w: the header %.40q", errMalformed, line)
	}
	value = bytes.Trim(value, " \t")
	switch {
	case len(name) == 14 && bytes.EqualFold(name, []byte("Content-Length")):
		n, err := strconv.ParseUint(string(value), 10, 63)
		if err != nil || f.length >= 0 && f.length != int64(n) {
			return fmt.Errorf("%w: the header %.40q", errMalformed, line)
		}
		f.length = int64(n)
	case len(name) == 17 && bytes.EqualFold(name, []byte("Transfer-Encoding")) && !f.old:
		if !bytes.EqualFold(value, []byte("chunked")) {
			return fmt.Errorf("%w: the header %.40q", errMalformed, line)
		}
		f.chunked = true
	case len(name) == 10 && bytes.EqualFold(name, []byte("Connection")):
		f.close = bytes.EqualFold(value, []byte("close")) || f.close && !bytes.EqualFold(value, []byte("keep-alive"))
	}
	return nil
}

func (c *conn) readBody(f framing, discard bool) error {
	switch {
	case f.chunked:
		return c.readChunks(discard)
	case f.length >= 0:
		return c.take(f.length, discard)
	}
	for {
		if err := c.take(1, discard); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := c.take(int64(c.r.Buffered()), discard); err != nil {
			return err
		}
	}
}

func (c *conn) readChunks(discard bool) error {
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		digits, _, _ := bytes.Cut(line, []byte(";"))
		n, err := strconv.ParseUint(string(bytes.Trim(digits, " \t")), 16, 62)
		if err != nil {
			return fmt.Errorf("%w: the length of a chunk %.40q", errMalformed, line)
		}
		if n == 0 {
			break
		}
		if err := c.take(int64(n), discard); err != nil {
			return err
		}
		if line, err = c.line(); err != nil {
			return err
		} else if len(line) > 0 {
			return fmt.Errorf("%w: a chunk is longer than it said", errMalformed)
		}
	}
	for size := 0; ; {
		line, err := c.line() // trailers
		if err != nil {
			return err
		}
		if len(line) == 0 {
			return nil
		}
		if size += len(line); size > maxHeaderSize {
			return fmt.Errorf("%w: more than %d bytes of trailers", errMalformed, maxHeaderSize)
		}
	}
}

// take reads n bytes of the body and keeps the first ones of all, unless they are to be discarded.
func (c *conn) take(n int64, discard bool) error {
	if room := min(int64(keptBody-len(c.body)), n); !discard && room > 0 {
		start := len(c.body)
		if cap(c.body) == 0 {
			c.body = make([]byte, 0, keptBody)
		}
		got, err := io.ReadFull(c.r, c.body[start:start+int(room)])
		c.body = c.body[:start+got]
		if err != nil {
			return err
		}
		n -= room
	}
	for n > 0 {
		d, err := c.r.Discard(int(min(n, 1<<20)))
		if n -= int64(d); err != nil {
			return err
		}
	}
	return nil
}

// line reads a line without its end. It is good until the next read.
func (c *conn) line() ([]byte, error) {
	b, err := c.r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, fmt.Errorf("%w: a line of more than %d bytes", errMalformed, readBuffer)
	case err != nil && len(b) > 0:
		return nil, noEOF(err)
	case err != nil:
		return nil, err
	}
	return bytes.TrimSuffix(b[:len(b)-1], []byte("\r")), nil
}

// noEOF names an end in the midst of an answer for what it is.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
