package golden_test

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
)

// compareYAML lists in what an answer in YAML differs from the recorded one.
func (r *replay) compareYAML(c *recorded, a answer) []string {
	if !strings.HasPrefix(a.body, "---\n") || !strings.HasSuffix(a.body, "\n") {
		return []string{fmt.Sprintf("the answer is framed wrongly: %q", a.body)}
	}
	var want, have yaml.Node
	for text, n := range map[string]*yaml.Node{c.text(): &want, a.body: &have} {
		if err := yaml.Unmarshal([]byte(text), n); err != nil {
			return []string{err.Error()}
		}
	}
	return r.diff("", documentOf(&want), documentOf(&have))
}

// documentOf is a document in YAML as another reader understands it.
func documentOf(n *yaml.Node) *jsondoc.Value {
	v := &jsondoc.Value{Text: n.Value}
	switch n.Kind {
	case yaml.DocumentNode:
		return documentOf(n.Content[0])
	case yaml.MappingNode:
		v.Kind = jsondoc.Object
		for i := 0; i < len(n.Content); i += 2 {
			v.Members = append(v.Members, jsondoc.Member{Name: n.Content[i].Value, Value: documentOf(n.Content[i+1])})
		}
	case yaml.SequenceNode:
		v.Kind = jsondoc.Array
		for _, x := range n.Content {
			v.Items = append(v.Items, documentOf(x))
		}
	default:
		v.Kind = map[string]jsondoc.Kind{"!!int": jsondoc.Number, "!!float": jsondoc.Number, "!!bool": jsondoc.Bool, "!!null": jsondoc.Null}[n.Tag]
		if n.Style == yaml.DoubleQuotedStyle || n.Tag == "!!str" {
			v.Kind = jsondoc.String
		}
	}
	return v
}
