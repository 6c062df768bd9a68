package stub

import (
	"fmt"
	"strings"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/search"
)

// readSort reads the sort of a body: a field, a field with an order, or a list of
// these.
func readSort(v *jsondoc.Value) ([]shard.Sort, error) {
	list := []*jsondoc.Value{v}
	if v.Kind == jsondoc.Array {
		list = v.Items
	}
	var sorts []shard.Sort
	for _, item := range list {
		switch {
		case item.Kind == jsondoc.String || item == v && item.Scalar():
			sorts = append(sorts, shard.Sort{Field: item.Text, Descending: item.Text == sortScore})
		case item.Kind == jsondoc.Object:
			for _, m := range item.Members {
				s, err := readSortMember(m)
				if err != nil {
					return nil, err
				}
				sorts = append(sorts, s)
			}
		default:
			return nil, &search.InvalidError{Reason: "a list in [sort] holds fields and objects, not " + article(item.Kind)}
		}
	}
	return effective(sorts), nil
}

func readSortMember(m jsondoc.Member) (shard.Sort, error) {
	s := shard.Sort{Field: m.Name, Descending: m.Name == sortScore}
	if m.Name == "_script" || m.Name == "_geo_distance" {
		return s, &search.InvalidError{Reason: "sorting by [" + m.Name + "] is not provided by this server; sort by a field"}
	}
	order := m.Value
	if order.Kind == jsondoc.Object {
		if order = m.Value.Member("order"); order == nil {
			return s, nil
		}
	}
	if err := setOrder(&s, order.Text); err != nil {
		return s, &search.ParseError{Type: "x_content_parse_exception", Reason: "the sort cannot be read: " + err.Error(), Cause: err}
	}
	return s, nil
}

// readSortParameter reads a list such as "a:desc,b".
func readSortParameter(value string) ([]shard.Sort, error) {
	var sorts []shard.Sort
	for item := range strings.SplitSeq(value, ",") {
		s := shard.Sort{Field: item, Descending: item == sortScore}
		if i := strings.LastIndexByte(item, ':'); i >= 0 {
			s.Field = item[:i]
			if err := setOrder(&s, item[i+1:]); err != nil {
				return nil, err
			}
		}
		sorts = append(sorts, s)
	}
	return effective(sorts), nil
}

func setOrder(s *shard.Sort, order string) error {
	switch strings.ToLower(order) {
	case "asc":
		s.Descending = false
	case "desc":
		s.Descending = true
	default:
		return &search.InvalidError{Reason: fmt.Sprintf("the order [%s] of the sort by [%s] must be [asc] or [desc]", order, s.Field)}
	}
	return nil
}

// effective leaves out a sort that is the order without a sort.
func effective(sorts []shard.Sort) []shard.Sort {
	if len(sorts) == 1 && sorts[0] == (shard.Sort{Field: sortScore, Descending: true}) {
		return nil
	}
	return sorts
}
