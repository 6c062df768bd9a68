package compat_test

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// tree is a JSON value that keeps the order of its members, and a key that comes twice.
type tree struct {
	kind    string // object, array, string, number, boolean, null
	text    string // of a scalar
	members []member
	items   []*tree
}

type member struct {
	name  string
	value *tree
}

// parse reads one JSON value, with nothing behind it.
func parse(s string) (*tree, error) {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	t, err := readTree(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("there is more behind the value")
	}
	return t, nil
}

func readTree(d *json.Decoder) (*tree, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case json.Delim:
		t := &tree{kind: "array"}
		if v == '{' {
			t.kind = "object"
		}
		for d.More() {
			var name string
			if v == '{' {
				key, err := d.Token()
				if err != nil {
					return nil, err
				}
				name = key.(string)
			}
			value, err := readTree(d)
			if err != nil {
				return nil, err
			}
			if v == '{' {
				t.members = append(t.members, member{name, value})
			} else {
				t.items = append(t.items, value)
			}
		}
		_, err := d.Token() // the bracket at the end
		return t, err
	case string:
		return &tree{kind: "string", text: v}, nil
	case json.Number:
		return &tree{kind: "number", text: v.String()}, nil
	case bool:
		return &tree{kind: "boolean", text: fmt.Sprint(v)}, nil
	default:
		return &tree{kind: "null", text: "null"}, nil
	}
}

// parseYAML reads one YAML document.
func parseYAML(s string) (*tree, error) {
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(s), &n); err != nil {
		return nil, err
	}
	if len(n.Content) != 1 {
		return nil, fmt.Errorf("the document holds %d values", len(n.Content))
	}
	return fromYAML(n.Content[0]), nil
}

func fromYAML(n *yaml.Node) *tree {
	switch n.Kind {
	case yaml.MappingNode:
		t := &tree{kind: "object"}
		for i := 0; i+1 < len(n.Content); i += 2 {
			t.members = append(t.members, member{n.Content[i].Value, fromYAML(n.Content[i+1])})
		}
		return t
	case yaml.SequenceNode:
		t := &tree{kind: "array"}
		for _, c := range n.Content {
			t.items = append(t.items, fromYAML(c))
		}
		return t
	}
	kinds := map[string]string{"!!str": "string", "!!int": "number", "!!float": "number", "!!bool": "boolean", "!!null": "null"}
	return &tree{kind: kinds[n.Tag], text: n.Value}
}

func (t *tree) member(name string) *tree {
	if t == nil {
		return nil
	}
	for _, m := range t.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// at follows names with dots between them; nil when there is nothing.
func (t *tree) at(path string) *tree {
	for name := range strings.SplitSeq(path, ".") {
		t = t.member(name)
	}
	return t
}

// String is the text of a scalar; "" for nothing.
func (t *tree) String() string {
	if t == nil {
		return ""
	}
	return t.text
}

// print writes the value as JSON.
func (t *tree) print(b *strings.Builder) {
	switch t.kind {
	case "object":
		b.WriteByte('{')
		for i, m := range t.members {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(quote(m.name) + ":")
			m.value.print(b)
		}
		b.WriteByte('}')
	case "array":
		b.WriteByte('[')
		for i, v := range t.items {
			if i > 0 {
				b.WriteByte(',')
			}
			v.print(b)
		}
		b.WriteByte(']')
	case "string":
		b.WriteString(quote(t.text))
	default:
		b.WriteString(t.text)
	}
}

func (t *tree) json() string {
	var b strings.Builder
	t.print(&b)
	return b.String()
}

func quote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can always be
	return strings.TrimSuffix(b.String(), "\n")
}

// nodes are the value and all below it.
func (t *tree) nodes() []*tree {
	all := []*tree{t}
	for _, m := range t.members {
		all = append(all, m.value.nodes()...)
	}
	for _, v := range t.items {
		all = append(all, v.nodes()...)
	}
	return all
}

// sorted orders the members by name, and is the value itself.
func (t *tree) sorted() *tree {
	slices.SortStableFunc(t.members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return t
}
