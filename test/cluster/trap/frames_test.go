package trap_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/wlmserver/wlmserver/test/cluster/trap"
	"github.com/wlmserver/wlmserver/test/faultproxy"
)

// wire is what one side says, frame by frame.
type wire struct {
	bytes.Buffer
	*http2.Framer
	block  bytes.Buffer
	fields *hpack.Encoder
	begins []int // of frames
}

func newWire() *wire {
	w := new(wire)
	w.Framer = http2.NewFramer(&w.Buffer, nil)
	w.fields = hpack.NewEncoder(&w.block)
	return w
}

// frame notes where the next one begins, and passes on how it was written.
func (w *wire) frame(t *testing.T, write func() error) {
	t.Helper()
	w.begins = append(w.begins, w.Len())
	if err := write(); err != nil {
		t.Fatal(err)
	}
}

// call begins one, its header fields in two frames.
func (w *wire) call(t *testing.T, stream uint32, method string) {
	t.Helper()
	w.block.Reset()
	for name, value := range map[string]string{":path": method, "filler": strings.Repeat("f", 50)} {
		if err := w.fields.WriteField(hpack.HeaderField{Name: name, Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	b := w.block.Bytes()
	w.frame(t, func() error {
		return w.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: b[:3], PadLength: 4})
	})
	w.frame(t, func() error { return w.WriteContinuation(stream, true, b[3:]) })
}

func (w *wire) data(t *testing.T, stream uint32, b []byte) {
	t.Helper()
	w.frame(t, func() error { return w.WriteDataPadded(stream, false, b, make([]byte, 3)) })
}

// message is how gRPC has one in a stream.
func message(body string) []byte {
	b := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body)))
	return append(b, body...)
}

// client is what a client says that has messages share frames, and lie across them.
func client(t *testing.T) *wire {
	t.Helper()
	w := newWire()
	w.WriteString(http2.ClientPreface)
	w.frame(t, func() error { return w.WriteSettings() })
	w.call(t, 1, "/a")
	w.data(t, 1, slices.Concat(message("a1"), message(""), message("a2")[:3]))
	w.call(t, 3, "/b")
	w.data(t, 3, message("b1"))
	w.data(t, 1, message("a2")[3:6])
	w.frame(t, func() error { return w.WriteWindowUpdate(0, 1) })
	w.data(t, 1, slices.Concat(message("a2")[6:], message("a3"), message("a4")))
	w.frame(t, func() error { return w.WriteRSTStream(3, http2.ErrCodeCancel) })
	w.call(t, 5, "/c")
	w.data(t, 5, message(strings.Repeat("c", 1000)))
	w.data(t, 5, nil)
	return w
}

var chunks = []int{1, 2, 7, 100, 1 << 20}

// pass has a watcher see what is said in pieces of such a size, and gives how much passed.
func pass(w faultproxy.Watcher, said []byte, chunk int) (passed int) {
	for piece := range slices.Chunk(said, chunk) {
		n := w.Watch(piece)
		passed += n
		if n < len(piece) {
			break
		}
	}
	return passed
}

// TestFramesInPieces: whatever pieces come, the messages are those that were sent, in their order, and nothing is held up.
func TestFramesInPieces(t *testing.T) {
	w := client(t)
	for _, chunk := range chunks {
		var r trap.Trap
		var got []string
		r.Set(func(m trap.Message) bool {
			got = append(got, m.Method+" "+string(m.Body))
			return false
		})
		up, down := r.Watch()
		if n := pass(up, w.Bytes(), chunk); n != w.Len() || r.Err() != nil {
			t.Errorf("in pieces of %d: %d bytes of %d have passed; %v", chunk, n, w.Len(), r.Err())
		}
		want := []string{"/a a1", "/a ", "/b b1", "/a a2", "/a a3", "/a a4", "/c " + strings.Repeat("c", 1000)}
		if !slices.Equal(got, want) {
			t.Errorf("in pieces of %d: %q", chunk, got)
		}

		// The answers; the server ends one call and says no more, and the client has given one up.
		got = nil
		answers := newWire()
		answers.frame(t, func() error { return answers.WriteSettings() })
		answers.data(t, 1, message("a1"))
		answers.data(t, 3, message("given up"))
		answers.frame(t, func() error {
			return answers.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndStream: true, EndHeaders: true})
		})
		if n := pass(down, answers.Bytes(), chunk); n != answers.Len() || r.Err() != nil {
			t.Errorf("in pieces of %d: %d bytes of %d have passed down; %v", chunk, n, answers.Len(), r.Err())
		}
		late := newWire()
		late.data(t, 1, message("after the end"))
		if n := pass(up, late.Bytes(), chunk); n != late.Len() || !slices.Equal(got, []string{"/a a1"}) {
			t.Errorf("in pieces of %d: down, and up after the end: %q", chunk, got)
		}
	}
}

// TestBreaksBeforeTheFrame: all frames before that with the end of the picked message pass; of that one at most what was in earlier pieces.
func TestBreaksBeforeTheFrame(t *testing.T) {
	for body, want := range map[string]struct{ frame, beside int }{
		"a1": {3, 0}, "": {3, 1}, "b1": {6, 0}, "a2": {9, 0}, "a3": {9, 1}, "a4": {9, 2}, strings.Repeat("c", 1000): {13, 0},
	} {
		w := client(t)
		begins, ends := w.begins[want.frame], w.begins[want.frame+1]
		for _, chunk := range chunks {
			var r trap.Trap
			lost := r.Set(func(m trap.Message) bool { return string(m.Body) == body })
			up, _ := r.Watch()
			switch n := pass(up, w.Bytes(), chunk); {
			case n < begins || n >= ends:
				t.Errorf("%.5q in pieces of %d: %d bytes have passed, the frame has those from %d to %d", body, chunk, n, begins, ends)
			case begins/chunk == (ends-1)/chunk && n != begins:
				t.Errorf("%.5q in pieces of %d: a part of the frame has passed although it came in one", body, chunk)
			}
			select {
			case m := <-lost:
				if string(m.Body) != body || m.Beside != want.beside || m.Way != faultproxy.Up {
					t.Errorf("%.5q in pieces of %d: lost was %.5q, with %d beside", body, chunk, m.Body, m.Beside)
				}
			default:
				t.Errorf("%.5q in pieces of %d: nothing was lost", body, chunk)
			}
			again, _ := r.Watch() // of the next connection
			if n := pass(again, w.Bytes(), chunk); n != w.Len() {
				t.Errorf("%.5q in pieces of %d: a second one was lost", body, chunk)
			}
		}
	}
}

// TestNotUnderstood: what is no gRPC passes as it is, and the trap says so.
func TestNotUnderstood(t *testing.T) {
	torn := newWire()
	torn.WriteString(http2.ClientPreface)
	torn.frame(t, func() error { return torn.WriteRawFrame(http2.FrameData, 0, 0, message("of no stream")) })
	fields := newWire()
	fields.WriteString(http2.ClientPreface)
	fields.frame(t, func() error {
		return fields.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0xff}, EndHeaders: true})
	})
	packed := newWire()
	packed.WriteString(http2.ClientPreface)
	packed.call(t, 1, "/a")
	packed.data(t, 1, append([]byte{1}, message("a1")[1:]...))
	for what, said := range map[string][]byte{
		"HTTP/1":  []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
		"a frame": torn.Bytes(), "header fields": fields.Bytes(), "compressed": packed.Bytes(),
	} {
		for _, chunk := range chunks {
			var r trap.Trap
			lost := r.Set(func(trap.Message) bool { return true })
			up, _ := r.Watch()
			all := slices.Concat(said, message("more"))
			if n := pass(up, all, chunk); n != len(all) || len(lost) > 0 {
				t.Errorf("%s: %d bytes of %d have passed", what, n, len(all))
			}
			if r.Err() == nil || what == "compressed" && !strings.Contains(r.Err().Error(), "/a is compressed") {
				t.Errorf("%s: the trap says %v", what, r.Err())
			}
		}
	}
}
