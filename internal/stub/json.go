package stub

import (
	"bytes"
	"encoding/json"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/search"
)

// parseObject reads a body that must be one JSON object.
func parseObject(body []byte) (*jsondoc.Value, error) {
	root, err := jsondoc.Parse(body)
	if err != nil {
		return nil, err
	}
	if root.Kind != jsondoc.Object {
		return nil, parseFault(body, root, "expected an object, found "+article(root.Kind))
	}
	return root, nil
}

// parseFault is a *search.ParseError about the value v of body.
func parseFault(body []byte, v *jsondoc.Value, reason string) error {
	return parseFaultAt(body, v.Offset, reason, nil)
}

func parseFaultAt(body []byte, offset int, reason string, cause error) error {
	line, column := jsondoc.Position(body, offset)
	return &search.ParseError{Reason: reason, Line: line, Column: column, Cause: cause}
}

func article(k jsondoc.Kind) string {
	switch k {
	case jsondoc.Object, jsondoc.Array:
		return "an " + k.String()
	case jsondoc.Null:
		return k.String()
	}
	return "a " + k.String()
}

// compact returns valid JSON without white space, in a slice of its own.
func compact(b []byte) []byte {
	var buf bytes.Buffer
	buf.Grow(len(b))
	if err := json.Compact(&buf, b); err != nil {
		return bytes.Clone(b)
	}
	return buf.Bytes()
}

// appendValue appends v as compact JSON.
func appendValue(dst []byte, v *jsondoc.Value) []byte {
	switch v.Kind {
	case jsondoc.Object:
		dst = append(dst, '{')
		for i, m := range v.Members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(jsondoc.AppendString(dst, m.Name), ':')
			dst = appendValue(dst, m.Value)
		}
		return append(dst, '}')
	case jsondoc.Array:
		dst = append(dst, '[')
		for i, item := range v.Items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(dst, item)
		}
		return append(dst, ']')
	case jsondoc.String:
		return jsondoc.AppendString(dst, v.Text)
	}
	return append(dst, v.Text...)
}

// merge returns base with the members of patch laid over it: objects member by
// member, everything else replaced. Neither is changed.
func merge(base, patch *jsondoc.Value) *jsondoc.Value {
	if base.Kind != jsondoc.Object || patch.Kind != jsondoc.Object {
		return patch
	}
	merged := &jsondoc.Value{Kind: jsondoc.Object, Members: make([]jsondoc.Member, 0, len(base.Members)+len(patch.Members))}
	place := make(map[string]int, len(base.Members))
	for i, m := range base.Members {
		place[m.Name] = i
		merged.Members = append(merged.Members, m)
	}
	for _, m := range patch.Members {
		if i, ok := place[m.Name]; ok {
			merged.Members[i].Value = merge(merged.Members[i].Value, m.Value)
		} else {
			merged.Members = append(merged.Members, m)
		}
	}
	return merged
}
