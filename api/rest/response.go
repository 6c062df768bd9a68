package rest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
)

// Media types of answers.
const (
	jsonType = "application/json; charset=UTF-8"
	textType = "text/plain; charset=UTF-8"
)

// answer is what a handler has to say: a JSON document, or text in a type of its own.
type answer struct {
	status    int         // 0 stands for 200
	header    http.Header // further headers; may be nil
	value     any         // encoded as JSON, when body is nil
	body      []byte      // compact JSON, unless mediaType says otherwise
	mediaType string      // empty for JSON
}

// ok answers 200 with a JSON document.
func ok(v any) (*answer, error) { return &answer{value: v}, nil }

// acknowledged is the answer to a change that has nothing else to tell.
type acknowledged struct {
	Acknowledged bool `json:"acknowledged"`
}

func (acknowledged) notAcknowledged() any { return acknowledged{} }

// write sends an answer.
func (c *call) write(a *answer) {
	body := a.body
	if body == nil && a.value != nil {
		var err error
		if body, err = encode(a.value); err != nil {
			c.fail(err)
			return
		}
	}
	maps.Copy(c.Header(), a.header)
	mediaType := a.mediaType
	if mediaType == "" {
		body, mediaType = c.layOut(c.filter(body))
	}
	c.send(cmp.Or(a.status, http.StatusOK), mediaType, body)
}

// send signs an answer and puts it on its way.
func (c *call) send(status int, mediaType string, body []byte) {
	c.sign()
	c.put(status, mediaType, body)
}

// sign adds the headers that every answer has. That is done last, so that no search that waits keeps them.
func (c *call) sign() {
	h := c.Header()
	h["Date"] = nil // keeps net/http from adding one
	for _, name := range [...]string{opaqueIDHeader, requestIDHeader} {
		if v, ok := c.r.Header[name]; ok && len(h[name]) == 0 {
			h[name] = v[:1]
		}
	}
	h[versionHeader] = c.s.sayVersion
}

// put sends headers and body, compressed if the client wants that; of the body of a HEAD request only the length.
func (c *call) put(status int, mediaType string, body []byte) {
	if c.control != nil {
		mediaType, body = c.control.damage(status, mediaType, body)
	}
	h := c.Header()
	switch mediaType {
	case "":
	case jsonType:
		h["Content-Type"] = c.s.sayJSON
	default:
		h["Content-Type"] = []string{mediaType}
	}
	if len(body) > 0 && len(h["Content-Encoding"]) == 0 && c.r.ProtoAtLeast(1, 1) && takesGzip(c.r.Header) {
		h["Content-Encoding"] = []string{gzipCoding}
		body = c.s.compressor.gzip(body)
	}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	withBody := c.r.Method != http.MethodHead && len(body) > 0
	if c.control != nil {
		c.begin(status, withBody)
	}
	c.WriteHeader(status)
	switch {
	case !withBody:
	case c.control != nil && c.control.cuts():
		_, _ = c.Write(body[:len(body)/2])
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	default:
		_, _ = c.Write(body) // whoever does not take the answer has gone
	}
}

// WriteHeader remembers that the answer has begun.
func (c *call) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

// encode prints compact JSON: struct fields in their order, no escapes that JSON does not need.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// member is one key of an object.
type member struct {
	name  string
	value any
}

// members is a JSON object whose keys are known only at run time, in their order.
type members []member

// MarshalJSON prints the object.
func (m members) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, x := range m {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(jsondoc.AppendString(b, x.name), ':')
		v, err := encode(x.value)
		if err != nil {
			return nil, err
		}
		b = append(b, v...)
	}
	return append(b, '}'), nil
}

// double prints a number as Java prints a double, which is how clients know OpenSearch's fractions: 0.4, 1.0, 1.0E-6.
type double float64

// MarshalJSON prints the number.
func (d double) MarshalJSON() ([]byte, error) {
	x := float64(d)
	if abs := math.Abs(x); abs == 0 || abs >= 1e-3 && abs < 1e7 {
		b := strconv.AppendFloat(nil, x, 'f', -1, 64)
		if !bytes.ContainsRune(b, '.') {
			b = append(b, ".0"...)
		}
		return b, nil
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(x, 'e', -1, 64), "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	e, err := strconv.Atoi(exponent)
	if err != nil { // NaN and infinities are no JSON
		return nil, &json.UnsupportedValueError{Str: strconv.FormatFloat(x, 'g', -1, 64)}
	}
	return []byte(mantissa + "E" + strconv.Itoa(e)), nil
}
