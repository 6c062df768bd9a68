package rest

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
)

const (
	// bodyProgress is how long the sender of a body may be silent.
	bodyProgress = 10 * time.Second
	// firstBuffer is what is set aside for a body before any of it has come, in bytes.
	firstBuffer = 8 << 10
)

// bodyKind says what a route does with a request body.
type bodyKind uint8

const (
	noBody   bodyKind = iota // whatever is sent is ignored
	optional                 // a JSON document, if there is one
	required                 // a JSON document
	lines                    // JSON documents with newlines between them, or in the query string
	requiredLines
)

// takesLines says whether the body may be newline-delimited JSON.
func (k bodyKind) takesLines() bool { return k == lines || k == requiredLines }

// readBody reads the whole body into c.body, within the limits, as far as the route wants one: inflated, and in JSON. The
// bytes are the budget's until the request has been answered.
func (c *call) readBody(kind bodyKind) error {
	if kind == noBody {
		return nil
	}
	if c.r.ContentLength > 0 {
		if err := c.checkMediaType(kind.takesLines()); err != nil {
			return err
		}
	}
	if c.r.ContentLength != 0 {
		if err := c.drain(); err != nil {
			return err
		}
	}
	if c.r.ContentLength < 0 && len(c.body) > 0 { // chunked: whether there is anything was not known before
		if err := c.checkMediaType(kind.takesLines()); err != nil {
			return err
		}
	}
	if err := c.toJSON(); err != nil {
		return err
	}
	if len(c.body) == 0 && (kind == required || kind == requiredLines) {
		return noBodySent("send a JSON document with Content-Type: application/json")
	}
	return nil
}

// toJSON turns a body in YAML into JSON. The answer is in YAML then too, unless the request says otherwise.
func (c *call) toJSON() error {
	if len(c.body) == 0 || formatOf(c.r.Header.Get("Content-Type")) != inYAML {
		return nil
	}
	if c.format == anyFormat {
		c.format = inYAML
	}
	document, err := c.yamlToJSON(c.body)
	if err != nil {
		return err
	}
	if more := int64(cap(document)) - int64(cap(c.body)); more > 0 {
		if err := c.hold(more); err != nil {
			return err
		}
	}
	c.body = document
	c.r.Header["Content-Type"] = []string{"application/json"} // for whoever gets the request from here
	return nil
}

// noBodySent is a request without a body where there has to be one.
func noBodySent(remedy string) *failure {
	return &failure{status: http.StatusBadRequest, typ: "parse_exception", reason: "the request needs a body: " + remedy}
}

// drain reads the body, and inflates it if it is compressed. A sender that stays silent for bodyProgress is cut off;
// whoever keeps sending may take as long as it wants, and holds only what has come.
func (c *call) drain() error {
	most := c.s.cfg.Limits.MaxContentLength
	var body io.Reader = c.r.Body
	var sent *sentBody // what is to be inflated
	if c.compressed() {
		sent = &sentBody{c: c, deadline: bodyDeadline{c: c}}
		z, err := gzip.NewReader(sent)
		switch {
		case errors.Is(err, io.EOF): // nothing at all
			c.clearDeadline()
			return nil
		case err != nil:
			return c.unreadable(err, sent)
		}
		body = z
	} else if n := c.r.ContentLength; n > 0 {
		most = n
	}
	deadline := bodyDeadline{c: c}
	var buf []byte
	for {
		if len(buf) == cap(buf) {
			room := min(max(2*int64(cap(buf)), firstBuffer), most+1) // one more, so that the end can be seen
			if err := c.hold(room - int64(cap(buf))); err != nil {
				return err
			}
			buf = append(make([]byte, 0, room), buf...)
		}
		deadline.renew()
		n, err := body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > most:
			return tooLarge()
		case errors.Is(err, io.EOF):
			c.body = buf
			c.clearDeadline()
			if sent != nil {
				c.r.Header.Del("Content-Encoding") // for whoever gets the request from here
			}
			return nil
		case err != nil:
			return c.unreadable(err, sent)
		}
	}
}

// compressed says whether the body is to be inflated. Other codings are refused before or after it has been read.
func (c *call) compressed() bool {
	coding := c.r.Header.Get("Content-Encoding")
	return strings.EqualFold(coding, gzipCoding) || strings.EqualFold(coding, "x-gzip")
}

// sentBody is a compressed body as it comes over the connection.
type sentBody struct {
	c   *call
	n   int64 // bytes so far
	err error // what ended it; nil at its end, and before

	deadline bodyDeadline
}

// errTooLong: the body is longer than it may be even before it is inflated. What it holds may be nothing, and without end.
var errTooLong = errors.New("too long")

// Read reads what comes, for which the sender has bodyProgress.
func (s *sentBody) Read(p []byte) (int, error) {
	s.deadline.renew()
	n, err := s.c.r.Body.Read(p)
	if s.n += int64(n); s.n > s.c.s.cfg.Limits.MaxContentLength {
		err = errTooLong
	}
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// unreadable tells why a body could not be read, or not be inflated: sent is nil where there was nothing to inflate.
func (c *call) unreadable(err error, sent *sentBody) *failure {
	if sent != nil {
		if sent.err == nil {
			return illegalArgument("the request body is not the gzip that its Content-Encoding promises: %v", err)
		}
		err = sent.err
	}
	switch {
	case errors.Is(err, errTooLong):
		return tooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.Header().Set("Connection", "close")
		return &failure{status: http.StatusRequestTimeout, typ: "timeout_exception",
			reason: "no byte of the request body came for " + bodyProgress.String() + ": send it without such pauses"}
	default:
		c.Header().Set("Connection", "close")
		return illegalArgument("the request body ended early or is badly framed: send it whole")
	}
}

// bodyDeadline bounds how long a body may make no progress. One that is not read to its end keeps its deadline: net/http
// reads on after the answer, to find the next request, and must not wait for ever. It takes the deadline away itself then.
type bodyDeadline struct {
	c   *call
	set time.Time // when it was last moved; zero while there is none
}

// renew moves the deadline away, but not for every packet.
func (d *bodyDeadline) renew() {
	if now := time.Now(); now.Sub(d.set) > bodyProgress/10 {
		d.set, d.c.bounded = now, true
		_ = http.NewResponseController(d.c.ResponseWriter).SetReadDeadline(now.Add(bodyProgress)) // a writer without deadlines has no slow sender either
	}
}

// clearDeadline takes the deadline away: what is read next is for net/http to wait for.
func (c *call) clearDeadline() {
	_ = http.NewResponseController(c.ResponseWriter).SetReadDeadline(time.Time{})
}

// hold takes n bytes of the budget for this request.
func (c *call) hold(n int64) error {
	if err := c.s.bodies.take(n); err != nil {
		return err
	}
	c.held += n
	return nil
}

// checkMediaType refuses a body that is neither JSON, by whatever name, nor YAML where no lines of JSON are wanted.
func (c *call) checkMediaType(linesToo bool) error {
	if enc := c.r.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") && !c.compressed() {
		return plainError(http.StatusUnsupportedMediaType, "Content-Encoding ["+enc+"] is not supported: send the body as gzip, or uncompressed")
	}
	ct := c.r.Header.Get("Content-Type")
	media := mediaTypeOf(ct)
	switch {
	case formatOf(media) == inJSON, formatOf(media) == inYAML && !linesToo:
		return nil
	case media == "application/cbor", media == "application/smile", media == "application/vnd.opensearch+cbor", media == "application/vnd.opensearch+smile":
		return plainError(http.StatusNotAcceptable, "Content-Type header ["+ct+"] is not supported: send JSON or YAML")
	case media == "application/x-ndjson", media == "application/vnd.opensearch+x-ndjson": // one line is JSON, too
		return nil
	}
	return plainError(http.StatusNotAcceptable, "Content-Type header ["+ct+"] is not supported")
}

// checkContentType refuses a Content-Type that says nothing, whether a body follows or not.
func (c *call) checkContentType() error {
	types := c.r.Header["Content-Type"]
	if len(types) > 1 {
		return badContentType("only one Content-Type header may be sent, not " + strconv.Itoa(len(types)))
	}
	if len(types) == 0 {
		return nil
	}
	media := mediaTypeOf(types[0])
	kindName, sub, ok := strings.Cut(media, "/")
	if !ok || kindName == "" || sub == "" || strings.ContainsAny(media, " \t,") {
		return badContentType("header Content-Type [" + types[0] + "] is not a media type such as application/json")
	}
	return nil
}

// mediaTypeOf is the media type that a Content-Type names, without its parameters.
func mediaTypeOf(contentType string) string {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// badContentType refuses a Content-Type that cannot be read at all.
func badContentType(reason string) error {
	return &failure{status: http.StatusBadRequest, typ: "content_type_header_exception", reason: reason,
		cause: illegalArgument("%s", reason)}
}

// source is the body, or what stands in its place in the query string.
func (c *call) source() ([]byte, error) {
	if len(c.body) > 0 || !c.query.Has("source") {
		return c.body, nil
	}
	switch ct := c.query.Get("source_content_type"); {
	case ct == "":
		return nil, illegalState("parameter [source] needs [source_content_type] beside it: application/json")
	case formatOf(ct) == inYAML:
		return c.yamlToJSON([]byte(c.query.Get("source")))
	case !strings.HasPrefix(strings.ToLower(ct), "application/json"):
		return nil, illegalState("parameter [source_content_type] must be application/json or application/yaml, not [%s]", ct)
	}
	return []byte(c.query.Get("source")), nil
}

// object reads a body that has to be one JSON object.
func object(body []byte) (*jsondoc.Value, error) {
	doc, err := jsondoc.Parse(body)
	if err != nil {
		return nil, err
	}
	if doc.Kind != jsondoc.Object {
		return nil, parsing(body, doc.Offset, "a JSON object is needed here, not: "+doc.Kind.String())
	}
	return doc, nil
}
