package stub

import (
	"fmt"
	"slices"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/search"
)

// queryTypes are the queries of OpenSearch, with those of its plugins that come
// with the usual distribution.
var queryTypes = []string{
	"agentic", "bool", "boosting", "combined_fields", "constant_score", "dis_max", "distance_feature", "exists",
	"field_masking_span", "function_score", "fuzzy", "geo_bounding_box", "geo_distance", "geo_polygon",
	"geo_shape", "has_child", "has_parent", "hybrid", "ids", "intervals", "knn", "match", "match_all",
	"match_bool_prefix", "match_none", "match_phrase", "match_phrase_prefix", "more_like_this", "multi_match",
	"nested", "neural", "neural_knn", "neural_sparse", "parent_id", "percolate", "prefix", "query_string", "range",
	"rank_feature", "regexp", "script", "script_score", "simple_query_string", "span_containing", "span_first",
	"span_gap", "span_multi", "span_near", "span_not", "span_or", "span_term", "span_within", "sltr", "template",
	"term", "terms", "terms_set", "wildcard", "wrapper", "xy_shape",
}

// subqueries names the members of compound queries that are queries themselves,
// or lists of them.
var subqueries = map[string][]string{
	"bool":           {"must", "filter", "should", "must_not"},
	"boosting":       {"positive", "negative"},
	"constant_score": {"filter"},
	"dis_max":        {"queries"},
	"function_score": {"query"},
	"has_child":      {"query"},
	"has_parent":     {"query"},
	"hybrid":         {"queries"},
	"nested":         {"query"},
	"script_score":   {"query"},
}

// checkQuery makes sure that v is one query of a known type, and so are those
// within it. Nothing else of it is looked at, for it matches everything anyway.
func checkQuery(body []byte, v *jsondoc.Value) error {
	if v.Kind != jsondoc.Object {
		return parseFault(body, v, "a query must be an object, not "+article(v.Kind))
	}
	if len(v.Members) == 0 {
		return &search.InvalidError{Reason: "a query must not be empty; send {\"match_all\":{}} to match everything"}
	}
	q := v.Members[0]
	switch {
	case !slices.Contains(queryTypes, q.Name):
		line, column := jsondoc.Position(body, q.Value.Offset)
		return parseFaultAt(body, q.Value.Offset, "unknown query ["+q.Name+"]"+didYouMean(q.Name, queryTypes), &search.ParseError{
			Type:   "named_object_not_found_exception",
			Reason: fmt.Sprintf("[%d:%d] unknown field [%s]", line, column, q.Name),
		})
	case len(v.Members) > 1:
		return parseFaultAt(body, v.Members[1].Offset, fmt.Sprintf(
			"a query has one type, and [%s] comes after [%s]; combine queries with [bool]", v.Members[1].Name, q.Name), nil)
	case q.Value.Kind != jsondoc.Object:
		return parseFault(body, q.Value, fmt.Sprintf("the query [%s] must be an object, not %s", q.Name, article(q.Value.Kind)))
	case q.Name == "match_all" || q.Name == "match_none":
		return checkMatchAll(body, q)
	}
	if len(q.Value.Members) == 0 && (slices.Contains(neverEmpty, q.Name) || slices.Contains(neverNameless, q.Name)) {
		return emptyQuery(body, q)
	}
	if err := checkParts(body, q); err != nil {
		return err
	}
	for _, name := range subqueries[q.Name] {
		sub := q.Value.Member(name)
		if sub == nil {
			continue
		}
		list := []*jsondoc.Value{sub}
		if sub.Kind == jsondoc.Array {
			list = sub.Items
		}
		for _, item := range list {
			if err := checkQuery(body, item); err != nil {
				return within(body, q, name, err)
			}
		}
	}
	return nil
}

// within is why a query cannot be read that is a part of another. Of a bool query that is an error of its own.
func within(body []byte, q jsondoc.Member, part string, err error) error {
	if q.Name != "bool" {
		return err
	}
	e := misreadBool(body, q.Value.Offset, fmt.Sprintf("[%s] of [bool] cannot be read: %v", part, err))
	e.Cause = err
	return e
}

func misreadBool(body []byte, offset int, reason string) *search.ParseError {
	line, column := jsondoc.Position(body, offset)
	return &search.ParseError{Type: "x_content_parse_exception", Reason: fmt.Sprintf("[%d:%d] %s", line, column, reason)}
}

// boolParts are what a bool query may have beside queries.
var boolParts = []string{"minimum_should_match", "adjust_pure_negative", "boost", "_name"}

// neverEmpty are queries that say what they look for, neverNameless those that name a field, or something else, to look in.
var (
	neverEmpty    = []string{"boosting", "constant_score", "dis_max", "match", "more_like_this", "multi_match", "query_string", "simple_query_string", "terms"}
	neverNameless = []string{"fuzzy", "match_bool_prefix", "match_phrase", "match_phrase_prefix", "nested", "prefix", "range", "regexp", "script_score", "term", "wildcard"}
)

// emptyQuery is a query that says nothing. What OpenSearch misses only when it puts the query together is no error of a place.
func emptyQuery(body []byte, q jsondoc.Member) error {
	reason := "the query [" + q.Name + "] must not be empty"
	if slices.Contains(neverNameless, q.Name) {
		return &search.InvalidError{Reason: reason}
	}
	return parseFault(body, q.Value, reason)
}

// rangeParts are what a range query may say of its field.
var rangeParts = []string{"gt", "gte", "lt", "lte", "from", "to", "include_lower", "include_upper", "boost", "format", "time_zone", "relation", "_name"}

// checkParts looks at what leaves the commonest queries without a meaning.
func checkParts(body []byte, q jsondoc.Member) error {
	switch q.Name {
	case "bool":
		for _, m := range q.Value.Members {
			switch {
			case slices.Contains(subqueries["bool"], m.Name):
				if m.Value.Scalar() {
					return misreadBool(body, m.Value.Offset, "["+m.Name+"] of [bool] must be a query or a list of queries, not "+article(m.Value.Kind))
				}
			case !slices.Contains(boolParts, m.Name):
				return misreadBool(body, m.Offset, "[bool] has no parameter ["+m.Name+"]"+didYouMean(m.Name, slices.Concat(subqueries["bool"], boolParts)))
			}
		}
	case "exists":
		if f := q.Value.Member("field"); f == nil || !f.Scalar() {
			return parseFault(body, q.Value, "[exists] needs a [field], the name of one")
		}
		for _, m := range q.Value.Members {
			if !m.Value.Scalar() || m.Name != "field" && m.Name != "boost" && m.Name != "_name" {
				return parseFault(body, m.Value, "[exists] has no parameter ["+m.Name+"] with "+article(m.Value.Kind)+"; known are [field], [boost] and [_name]")
			}
		}
	case "terms":
		for _, m := range q.Value.Members {
			if m.Value.Scalar() && m.Name != "boost" && m.Name != "_name" && m.Name != "value_type" {
				return parseFault(body, m.Value, "[terms] needs a list of values for the field ["+m.Name+"], not "+article(m.Value.Kind))
			}
		}
	case "range":
		for _, m := range q.Value.Members {
			for _, part := range m.Value.Members {
				if !slices.Contains(rangeParts, part.Name) {
					return parseFault(body, part.Value, fmt.Sprintf("[range] has no parameter [%s]; known are %v", part.Name, rangeParts))
				}
			}
		}
	}
	return nil
}

// checkMatchAll looks at the two members that the simplest queries have.
func checkMatchAll(body []byte, q jsondoc.Member) error {
	for _, m := range q.Value.Members {
		if m.Name == "boost" || m.Name == "_name" {
			continue
		}
		line, column := jsondoc.Position(body, m.Value.Offset)
		reason := fmt.Sprintf("[%s] has no parameter [%s]; known are [boost] and [_name]", q.Name, m.Name)
		return parseFaultAt(body, m.Value.Offset, reason, &search.ParseError{
			Type:   "x_content_parse_exception",
			Reason: fmt.Sprintf("[%d:%d] %s", line, column, reason),
		})
	}
	return nil
}
