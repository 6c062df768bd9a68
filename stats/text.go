package stats

import (
	"strconv"
	"unicode/utf8"
)

// Kind says how a metric moves.
type Kind uint8

const (
	// Gauge goes up and down.
	Gauge Kind = iota
	// Counter only grows, until the process ends. Its name ends in "_total".
	Counter
)

// String is the name of the kind in Prometheus' text format.
func (k Kind) String() string {
	if k == Counter {
		return "counter"
	}
	return "gauge"
}

// Metric is one number, or one for each combination of labels. A metric
// without samples is announced all the same.
type Metric struct {
	Name    string // lower-case words with underscores
	Help    string
	Kind    Kind
	Samples []Sample
}

// Sample is one value of a metric.
type Sample struct {
	Labels []Label // the same names in each sample of a metric
	Value  float64
}

// Label is one dimension of a sample.
type Label struct {
	Name, Value string
}

// appendText writes a metric in Prometheus' text format, version 0.0.4.
func (m Metric) appendText(b []byte) []byte {
	b = append(b, "# HELP "...)
	b = append(b, m.Name...)
	b = append(b, ' ')
	b = appendEscaped(b, m.Help, false)
	b = append(b, "\n# TYPE "...)
	b = append(b, m.Name...)
	b = append(b, ' ')
	b = append(b, m.Kind.String()...)
	b = append(b, '\n')
	for _, s := range m.Samples {
		b = append(b, m.Name...)
		b = appendLabels(b, s.Labels)
		b = append(b, ' ')
		b = strconv.AppendFloat(b, s.Value, 'f', -1, 64)
		b = append(b, '\n')
	}
	return b
}

func appendLabels(b []byte, labels []Label) []byte {
	for i, l := range labels {
		if i == 0 {
			b = append(b, '{')
		} else {
			b = append(b, ',')
		}
		b = append(b, l.Name...)
		b = append(b, `="`...)
		b = appendEscaped(b, l.Value, true)
		b = append(b, '"')
	}
	if len(labels) > 0 {
		b = append(b, '}')
	}
	return b
}

// appendEscaped writes a text on one line, as valid UTF-8. Within a label it
// stands in quotes.
func appendEscaped(b []byte, text string, quoted bool) []byte {
	for _, r := range text { // what is not UTF-8 comes as U+FFFD
		switch {
		case r == '\\':
			b = append(b, `\\`...)
		case r == '\n':
			b = append(b, `\n`...)
		case r == '"' && quoted:
			b = append(b, `\"`...)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}
