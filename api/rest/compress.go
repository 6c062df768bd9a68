package rest

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"hash/crc32"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
)

// gzipCoding is the only content coding that there is here.
const gzipCoding = "gzip"

// storedBelow is from how many bytes on compressing an answer is worth its while: what is shorter fits into one packet
// anyway.
const storedBelow = 1 << 10

// compressor makes bodies gzip. It is safe for concurrent use.
//
// A writer takes more than a megabyte. As many as can work at the same time are kept; a sync.Pool would have them made anew after
// each collection or two, and that garbage would make the next one due.
type compressor struct {
	idle chan *gzip.Writer
}

func newCompressor() *compressor { return &compressor{make(chan *gzip.Writer, runtime.GOMAXPROCS(0))} }

// writer gives one that has no work.
func (c *compressor) writer() *gzip.Writer {
	select {
	case w := <-c.idle:
		return w
	default:
	}
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil { // the level is a constant
		panic(err)
	}
	return w
}

// keep keeps a writer for the next one who needs one.
func (c *compressor) keep(w *gzip.Writer) {
	w.Reset(io.Discard) // what it has written is not kept
	select {
	case c.idle <- w:
	default:
	}
}

// gzip returns body as gzip. A short one is wrapped and not compressed.
func (c *compressor) gzip(body []byte) []byte {
	if len(body) < storedBelow {
		return storedGzip(body)
	}
	out := bytes.NewBuffer(make([]byte, 0, len(body)/4))
	w := c.writer()
	defer c.keep(w)
	w.Reset(out)
	_, _ = w.Write(body) // a buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

// storedGzip wraps at most 65,535 bytes as one block that is stored as it is (RFC 1951, 3.2.4; RFC 1952, 2.3).
func storedGzip(body []byte) []byte {
	const header, block, trailer = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", "\x01", 8
	n := uint16(len(body))
	out := make([]byte, 0, len(header)+len(block)+4+len(body)+trailer)
	out = append(append(out, header...), block...)
	out = binary.LittleEndian.AppendUint16(out, n)
	out = binary.LittleEndian.AppendUint16(out, ^n)
	out = append(out, body...)
	out = binary.LittleEndian.AppendUint32(out, crc32.ChecksumIEEE(body))
	return binary.LittleEndian.AppendUint32(out, uint32(n))
}

// takesGzip says whether the sender of these headers wants gzip.
func takesGzip(h http.Header) bool {
	others := false // what holds for all codings that are not named
	for _, line := range h["Accept-Encoding"] {
		for item := range strings.SplitSeq(line, ",") {
			coding, parameter, _ := strings.Cut(item, ";")
			switch coding = strings.TrimSpace(coding); {
			case strings.EqualFold(coding, gzipCoding), strings.EqualFold(coding, "x-gzip"):
				return acceptable(parameter)
			case coding == "*":
				others = acceptable(parameter)
			}
		}
	}
	return others
}

// acceptable reads the weight of a coding: zero is a refusal.
func acceptable(parameter string) bool {
	name, weight, _ := strings.Cut(strings.TrimSpace(parameter), "=")
	if !strings.EqualFold(strings.TrimSpace(name), "q") {
		return true
	}
	q, err := strconv.ParseFloat(strings.TrimSpace(weight), 64)
	return err == nil && q > 0
}
