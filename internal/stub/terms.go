package stub

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
)

// term is a text that a query looks for in a field.
type term struct{ field, text string }

// readQuery checks a query and keeps the terms in it.
func (o *options) readQuery(body []byte, v *jsondoc.Value) error {
	if err := checkQuery(body, v); err != nil {
		return err
	}
	o.terms = appendTerms(o.terms, v)
	return nil
}

// appendTerms adds the texts that a checked query looks for. Numbers are left out:
// they fit any field.
func appendTerms(terms []term, query *jsondoc.Value) []term {
	q := query.Members[0]
	switch q.Name {
	case "term", "terms", "match", "range":
		for _, m := range q.Value.Members {
			if m.Value.Kind == jsondoc.Object && lenient(m.Value) {
				continue
			}
			terms = appendTexts(terms, m.Name, m.Value)
		}
		return terms
	}
	for _, name := range subqueries[q.Name] {
		sub := q.Value.Member(name)
		switch {
		case sub == nil:
		case sub.Kind == jsondoc.Array:
			for _, item := range sub.Items {
				terms = appendTerms(terms, item)
			}
		default:
			terms = appendTerms(terms, sub)
		}
	}
	return terms
}

func lenient(v *jsondoc.Value) bool {
	l := v.Member("lenient")
	return l != nil && l.Text == "true"
}

// bounds are the members of a query on one field that hold what it looks for.
var bounds = []string{"value", "query", "gt", "gte", "lt", "lte", "from", "to"}

func appendTexts(terms []term, field string, v *jsondoc.Value) []term {
	switch v.Kind {
	case jsondoc.String:
		return append(terms, term{field, v.Text})
	case jsondoc.Array:
		for _, item := range v.Items {
			terms = appendTexts(terms, field, item)
		}
	case jsondoc.Object:
		for _, m := range v.Members {
			if slices.Contains(bounds, m.Name) && m.Value.Kind == jsondoc.String {
				terms = append(terms, term{field, m.Value.Text})
			}
		}
	}
	return terms
}

// refusal says why the index cannot take a query with these terms: a field of
// numbers is looked into for something else. Nil: it can.
func (ix *index) refusal(terms []term) error {
	for _, t := range terms {
		kind, ok := ix.numeric[t.field]
		if !ok {
			continue
		}
		if _, err := strconv.ParseFloat(strings.TrimSpace(t.text), 64); err != nil {
			return &QueryShardError{Index: ix.name, UUID: ix.uuid, Value: t.text, Reason: fmt.Sprintf(
				"the field [%s] is mapped to [%s], and the query looks for [%s] in it, which is no number", t.field, kind, t.text)}
		}
	}
	return nil
}
