package rest

import (
	"strings"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
)

// yamlType is the media type of answers in YAML, which has no charset.
const yamlType = "application/yaml"

// format is the language that a document is written in.
type format uint8

const (
	anyFormat format = iota // nobody has said
	inJSON
	inYAML
)

// formatOf is the format that a media type stands for.
func formatOf(mediaType string) format {
	media, _, _ := strings.Cut(mediaType, ";")
	switch strings.ToLower(strings.TrimSpace(media)) {
	case "application/json", "application/vnd.opensearch+json":
		return inJSON
	case yamlType, "application/vnd.opensearch+yaml":
		return inYAML
	}
	return anyFormat
}

// formatNamed is the format that the parameter format calls by name, such as yaml or application/yaml.
func formatNamed(name string) format {
	return formatOf("application/" + strings.TrimPrefix(strings.ToLower(name), "application/"))
}

// wantedFormat is the format that the request asks for. What is not known, or not provided, counts as not said.
func (c *call) wantedFormat() format {
	if c.query.Has("format") {
		if f := formatNamed(c.query.Get("format")); f != anyFormat {
			return f
		}
	}
	for _, line := range c.r.Header["Accept"] {
		for item := range strings.SplitSeq(line, ",") {
			if f := formatOf(item); f != anyFormat {
				return f
			}
		}
	}
	return anyFormat
}

// filter leaves of an answer what the request wants to see.
func (c *call) filter(document []byte) []byte {
	if !c.query.Has("filter_path") {
		return document
	}
	return jsondoc.ParseFilter(c.query.Get("filter_path")).Apply(nil, document)
}

// layOut prints a document the way the request wants it, and says as what.
func (c *call) layOut(document []byte) (body []byte, mediaType string) {
	switch {
	case len(document) == 0:
	case c.format == inYAML:
		return jsondoc.YAML(make([]byte, 0, 2*len(document)), document), yamlType
	case c.pretty:
		return jsondoc.Pretty(make([]byte, 0, 2*len(document)), document), jsonType
	}
	return document, jsonType
}
