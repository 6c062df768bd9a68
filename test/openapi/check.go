package openapi

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"go.yaml.in/yaml/v3"
)

// Exchange is a request and its answer.
type Exchange struct {
	Method string
	URL    *url.URL

	Status int
	Header http.Header
	Body   []byte // whole
}

// Check says what of an answer the description does not allow. The error names method, path and status. Requests are not
// looked at: the server takes more than what it asks for, such as numbers in quotes.
//
// An answer in YAML has to be what it would be in JSON. One that filter_path has left parts of only has to be well formed;
// errors are never filtered.
func (c *Contract) Check(x Exchange) error {
	r := c.find(x.Method, x.URL)
	if err := c.check(r, x); err != nil {
		const most = 1000
		body := x.Body
		if len(body) > most {
			body = append(body[:most:most], "…"...)
		}
		return fmt.Errorf("%s %s, status %d, is not as %s says: %w\nanswer: %s", x.Method, x.URL.RequestURI(), x.Status, File, err, body)
	}
	return nil
}

func (c *Contract) check(r *route, x Exchange) error {
	if r == nil || x.Status == http.StatusExpectationFailed {
		return c.checkOutside(x)
	}
	described := r.Responses.Status(x.Status)
	if described == nil {
		return fmt.Errorf("%s %s has no such status", r.method, r.path)
	}
	return checkResponse(described.Value, x)
}

// checkOutside looks at an answer that belongs to no operation.
func (c *Contract) checkOutside(x Exchange) error {
	if x.Method == http.MethodOptions && x.Status == http.StatusOK {
		if len(x.Body) > 0 {
			return errors.New("OPTIONS has no body")
		}
		return nil
	}
	err := errors.New("there is no such operation")
	for _, name := range outside(x.Status) {
		if err = checkResponse(c.doc.Components.Responses[name].Value, x); err == nil {
			return nil
		}
	}
	return err
}

func checkResponse(described *openapi3.Response, x Exchange) error {
	for name, h := range described.Headers {
		if err := checkHeader(h.Value, x.Header.Get(name)); err != nil {
			return fmt.Errorf("header %s: %w", name, err)
		}
	}
	if x.Method == http.MethodHead {
		return nil
	}
	body, err := inflate(x.Header, x.Body)
	if err != nil {
		return err
	}
	if len(described.Content) == 0 {
		if len(body) > 0 {
			return errors.New("there is to be no body")
		}
		return nil
	}
	media, _, err := mime.ParseMediaType(x.Header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("Content-Type %q: %w", x.Header.Get("Content-Type"), err)
	}
	inYAML := media == "application/yaml"
	if inYAML {
		media = "application/json"
	}
	content := described.Content[media]
	if content == nil {
		return fmt.Errorf("Content-Type %s is not among those described", media)
	}
	if media != "application/json" {
		return nil
	}
	value, err := parse(body, inYAML)
	if err != nil {
		return err
	}
	if x.URL.Query().Has("filter_path") && !isError(value) {
		return nil
	}
	return content.Schema.Value.VisitJSON(value, openapi3.VisitAsResponse(), openapi3.SetSchemaErrorMessageCustomizer(tell))
}

// tell says where a document is not as its schema wants it, and why.
func tell(err *openapi3.SchemaError) string {
	reason := err.Reason
	if err.Origin != nil {
		reason += " (" + err.Origin.Error() + ")"
	}
	return "at /" + strings.Join(err.JSONPointer(), "/") + ": " + reason
}

func checkHeader(h *openapi3.Header, value string) error {
	if value == "" {
		if h.Required {
			return errors.New("is missing")
		}
		return nil
	}
	if h.Schema.Value.Type.Is("integer") {
		n, err := strconv.Atoi(value)
		if err != nil {
			return err
		}
		return h.Schema.Value.VisitJSON(float64(n))
	}
	return h.Schema.Value.VisitJSON(value)
}

// isError says whether an answer is an error as a whole.
func isError(value any) bool {
	object, ok := value.(map[string]any)
	return ok && object["error"] != nil
}

func inflate(h http.Header, body []byte) ([]byte, error) {
	if h.Get("Content-Encoding") != "gzip" || len(body) == 0 {
		return body, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// parse reads a document as encoding/json has it. Where a name stands twice in an object, as in some tables, the last one counts.
func parse(body []byte, inYAML bool) (value any, err error) {
	if inYAML {
		var document yaml.Node
		if err := yaml.Unmarshal(body, &document); err != nil {
			return nil, err
		}
		if value, err = plain(&document); err != nil {
			return nil, err
		}
		if body, err = json.Marshal(value); err != nil {
			return nil, err
		}
		value = nil
	}
	err = json.Unmarshal(body, &value)
	return value, err
}

// plain is what a node of a YAML document holds.
func plain(n *yaml.Node) (value any, err error) {
	switch n.Kind {
	case yaml.DocumentNode:
		return plain(n.Content[0])
	case yaml.MappingNode:
		object := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			if object[n.Content[i].Value], err = plain(n.Content[i+1]); err != nil {
				return nil, err
			}
		}
		return object, nil
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			if list[i], err = plain(item); err != nil {
				return nil, err
			}
		}
		return list, nil
	default:
		err = n.Decode(&value)
		return value, err
	}
}
