package trap

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/wlmserver/wlmserver/test/faultproxy"
)

// connection is what both ways of one have to know.
type connection struct {
	trap *Trap

	mu    sync.Mutex
	calls map[uint32]*call // under way, by stream
}

// call is one call of a connection.
type call struct {
	method     string
	incomplete map[faultproxy.Way][]byte // of the message that is coming
}

func (c *connection) begin(stream uint32, method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[stream] = &call{method: method, incomplete: make(map[faultproxy.Way][]byte)}
}

func (c *connection) end(stream uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, stream)
}

// prefix is how many bytes are before each message: whether it is compressed, and its length.
const prefix = 5

// data takes in a part of a stream. It reports whether it may pass.
func (c *connection) data(w faultproxy.Way, stream uint32, b []byte) (pass bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.calls[stream]
	if x == nil { // the server has ended it, or one of the two has given it up
		return true, nil
	}
	all := append(x.incomplete[w], b...)
	rest := all
	for n := 0; len(rest) >= prefix; n++ {
		length := int(binary.BigEndian.Uint32(rest[1:prefix]))
		if rest[0] != 0 {
			return true, fmt.Errorf("a message of %s is compressed", x.method)
		}
		if len(rest)-prefix < length {
			break
		}
		if c.trap.takes(Message{Way: w, Method: x.method, Body: rest[prefix : prefix+length], Beside: n}) {
			return false, nil
		}
		rest = rest[prefix+length:]
	}
	x.incomplete[w] = append(all[:0], rest...)
	return true, nil
}

// frameHeader is how many bytes a frame begins with, of which the first three are the length of the rest; maxFrame is the most that this
// can be.
const (
	frameHeader = 9
	maxFrame    = 1<<24 - 1
)

// maxTable is the most that the other side may have the table of header fields be.
const maxTable = 1 << 20

// way is one way of a connection. It implements [faultproxy.Watcher].
type way struct {
	*connection
	is      faultproxy.Way
	preface bool   // it is still to come
	blind   bool   // what came is not understood
	frame   []byte // as far as it has come; or of the preface
	reader  bytes.Reader
	framer  *http2.Framer // of the reader
	block   []byte        // of header fields, as far as it has come
	fields  *hpack.Decoder
}

func newWay(c *connection, is faultproxy.Way) *way {
	w := &way{connection: c, is: is, preface: is == faultproxy.Up}
	w.framer = http2.NewFramer(nil, &w.reader)
	w.framer.SetMaxReadFrameSize(maxFrame)
	w.fields = hpack.NewDecoder(4096, nil) // what HTTP/2 begins with
	w.fields.SetAllowedMaxDynamicTableSize(maxTable)
	return w
}

// Watch has everything pass up to the frame that completes the message to be lost. What of that frame has passed already no receiver can
// act by.
func (w *way) Watch(b []byte) int {
	began := 0 // where in b the frame did, if it did not before
	for at := 0; at < len(b) && !w.blind; {
		n := min(w.missing(), len(b)-at)
		w.frame = append(w.frame, b[at:at+n]...)
		at += n
		if w.missing() > 0 {
			continue
		}
		pass, err := w.take()
		if err != nil {
			w.blind = true
			w.trap.fail(err)
			break
		}
		if !pass {
			return began
		}
		w.frame, began = w.frame[:0], at
	}
	return len(b)
}

// missing is how many bytes are still to come before it is known what to do: of the preface, of a frame's header, of the frame.
func (w *way) missing() int {
	switch have := len(w.frame); {
	case w.preface:
		return len(http2.ClientPreface) - have
	case have < frameHeader:
		return frameHeader - have
	default:
		return frameHeader + (int(w.frame[0])<<16 | int(w.frame[1])<<8 | int(w.frame[2])) - have
	}
}

// take takes in a whole frame, or the preface. It reports whether that may pass.
func (w *way) take() (pass bool, err error) {
	if w.preface {
		w.preface = false
		if string(w.frame) != http2.ClientPreface {
			return true, fmt.Errorf("%q is not how HTTP/2 begins", w.frame)
		}
		return true, nil
	}
	w.reader.Reset(w.frame)
	f, err := w.framer.ReadFrame()
	if err != nil {
		return true, fmt.Errorf("a frame cannot be read: %w", err)
	}
	stream := f.Header().StreamID
	pass = true
	switch f := f.(type) {
	case *http2.HeadersFrame:
		err = w.headers(stream, f.HeaderBlockFragment(), f.HeadersEnded())
		w.ends(stream, f.StreamEnded())
	case *http2.ContinuationFrame:
		err = w.headers(stream, f.HeaderBlockFragment(), f.HeadersEnded())
	case *http2.DataFrame:
		pass, err = w.data(w.is, stream, f.Data())
		w.ends(stream, f.StreamEnded())
	case *http2.RSTStreamFrame:
		w.end(stream)
	}
	return pass, err
}

// headers takes in a part of a block of header fields. Those of the client begin a call; those of the server do not matter.
func (w *way) headers(stream uint32, part []byte, last bool) error {
	if w.is == faultproxy.Down {
		return nil
	}
	w.block = append(w.block, part...)
	if !last {
		return nil
	}
	fields, err := w.fields.DecodeFull(w.block)
	if err != nil {
		return fmt.Errorf("header fields cannot be read: %w", err)
	}
	w.block = w.block[:0]
	for _, f := range fields {
		if f.Name == ":path" {
			w.begin(stream, f.Value)
		}
	}
	return nil
}

// ends is told whether a frame is the last of its stream this way. After the client's the server may still say much.
func (w *way) ends(stream uint32, last bool) {
	if last && w.is == faultproxy.Down {
		w.end(stream)
	}
}
