package openapi_test

import (
	"encoding/json"
	"iter"
	"strings"

	"go.yaml.in/yaml/v3"
)

// node is a part of a YAML document, in its order. The zero node stands for what is not there.
type node struct{ *yaml.Node }

// at follows keys into mappings.
func (n node) at(keys ...string) node {
	for _, key := range keys {
		found := node{}
		for name, value := range n.members() {
			if name == key {
				found = value
				break
			}
		}
		n = found
	}
	return n
}

// text is the scalar that keys lead to; empty where there is none.
func (n node) text(keys ...string) string {
	if v := n.at(keys...); v.Node != nil && v.Kind == yaml.ScalarNode {
		return v.Value
	}
	return ""
}

// members are the entries of a mapping.
func (n node) members() iter.Seq2[string, node] {
	return func(yield func(string, node) bool) {
		if n.Node == nil || n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i].Value, unaliased(n.Content[i+1])) {
				return
			}
		}
	}
}

// items are the entries of a sequence.
func (n node) items() []node {
	if n.Node == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	var all []node
	for _, c := range n.Content {
		all = append(all, unaliased(c))
	}
	return all
}

// first is the value of the first entry of a mapping.
func (n node) first() node {
	for _, value := range n.members() {
		return value
	}
	return node{}
}

func unaliased(n *yaml.Node) node {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return node{n}
}

// layOut prints an example as JSON: in one line where that is not longer than width, with what is before it in the line, else a
// member in a line.
func layOut(n node, width, before int) string {
	if n.Kind == yaml.ScalarNode {
		if n.Tag != "!!str" {
			return n.Value
		}
		return quote(n.Value)
	}
	var parts []string
	for name, value := range n.members() {
		name = quote(name) + ": "
		parts = append(parts, name+layOut(value, width-2, len(name)))
	}
	for _, item := range n.items() {
		parts = append(parts, layOut(item, width-2, 0))
	}
	opening, closing := "{", "}"
	if n.Kind == yaml.SequenceNode {
		opening, closing = "[", "]"
	}
	if line := strings.Join(parts, ", "); before+len(line)+2 <= width && !strings.Contains(line, "\n") {
		return opening + line + closing
	}
	return opening + "\n" + indent(strings.Join(parts, ",\n"), "  ") + "\n" + closing
}

func quote(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		panic(err) // a string can be encoded
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// indent puts spaces before every line.
func indent(text, by string) string { return by + strings.ReplaceAll(text, "\n", "\n"+by) }
