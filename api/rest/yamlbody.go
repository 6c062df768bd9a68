package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
)

const (
	// maxYAML is how long a body in YAML may be, in bytes. People write such bodies; programs send JSON.
	maxYAML = 256 << 10
	// yamlCost is how many bytes reading a byte of YAML may take for the time being.
	yamlCost = 256
)

// yamlToJSON reads a document in YAML, and takes from the budget what that costs while it lasts. Nothing at all is nil.
func (c *call) yamlToJSON(body []byte) ([]byte, error) {
	if len(body) > maxYAML {
		return nil, badYAML("it is longer than " + strconv.Itoa(maxYAML) + " bytes: send JSON")
	}
	cost := yamlCost * int64(len(body))
	if err := c.s.bodies.take(cost); err != nil {
		return nil, err
	}
	defer c.s.bodies.release(cost)
	return readYAML(body)
}

// readYAML prints a document in YAML as JSON. Aliases are refused: a few lines of them can stand for any amount of data.
func readYAML(body []byte) ([]byte, error) {
	d := yaml.NewDecoder(bytes.NewReader(body))
	var document, next yaml.Node
	switch err := d.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, badYAML(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := d.Decode(&next); !errors.Is(err, io.EOF) {
		return nil, badYAML("something follows the document: send one")
	}
	return appendYAMLNode(make([]byte, 0, 2*len(body)), &document, 0)
}

// badYAML refuses a body for what is wrong with it as YAML.
func badYAML(reason string) *failure {
	return &failure{status: http.StatusBadRequest, typ: "parsing_exception", reason: "malformed YAML: " + reason}
}

// appendYAMLNode prints a node as JSON.
func appendYAMLNode(b []byte, n *yaml.Node, depth int) ([]byte, error) {
	wrong := func(reason string) ([]byte, error) {
		f := badYAML(fmt.Sprintf("line %d: %s", n.Line, reason))
		f.extra = position(n.Line, n.Column)
		return nil, f
	}
	if depth > jsondoc.MaxDepth {
		return wrong(fmt.Sprintf("it nests deeper than %d levels", jsondoc.MaxDepth))
	}
	var err error
	switch n.Kind {
	case yaml.DocumentNode:
		return appendYAMLNode(b, n.Content[0], depth)
	case yaml.MappingNode:
		b = append(b, '{')
		for i := 0; i < len(n.Content); i += 2 {
			if i > 0 {
				b = append(b, ',')
			}
			if n.Content[i].Kind != yaml.ScalarNode {
				return wrong("a key must be a name")
			}
			b = append(jsondoc.AppendString(b, n.Content[i].Value), ':')
			if b, err = appendYAMLNode(b, n.Content[i+1], depth+1); err != nil {
				return nil, err
			}
		}
		return append(b, '}'), nil
	case yaml.SequenceNode:
		b = append(b, '[')
		for i, item := range n.Content {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendYAMLNode(b, item, depth+1); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case yaml.AliasNode:
		return wrong("alias [*" + n.Value + "] stands for something else: write that out")
	}
	var number any
	switch n.ShortTag() {
	case "!!null":
		return append(b, "null"...), nil
	case "!!bool":
		var is bool
		if err := n.Decode(&is); err != nil {
			return wrong("[" + n.Value + "] is no boolean")
		}
		return strconv.AppendBool(b, is), nil
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) { // as it was written
			return append(b, n.Value...), nil
		}
		if err := n.Decode(&number); err != nil {
			return wrong("[" + n.Value + "] is no number")
		}
	}
	switch x := number.(type) {
	case int:
		return strconv.AppendInt(b, int64(x), 10), nil
	case int64:
		return strconv.AppendInt(b, x, 10), nil
	case uint64:
		return strconv.AppendUint(b, x, 10), nil
	case float64:
		if math.IsInf(x, 0) || math.IsNaN(x) {
			return wrong("[" + n.Value + "] has no place in JSON")
		}
		return strconv.AppendFloat(b, x, 'g', -1, 64), nil
	}
	return jsondoc.AppendString(b, n.Value), nil
}
