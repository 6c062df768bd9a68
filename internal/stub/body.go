package stub

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/search"
)

// readCountBody reads the body of a count: a query, and what the count costs.
func (o *options) readCountBody(body []byte) error {
	root, err := parseObject(body)
	if err != nil {
		return unreadableCount(err, body, 0)
	}
	for _, m := range root.Members {
		switch {
		case m.Name == "query":
			err = o.readQuery(body, m.Value)
		case m.Name == "ext" && m.Value.Kind == jsondoc.Object:
			err = o.readExt(body, m.Value)
		default:
			err = parseFaultAt(body, m.Offset, "a count does not know ["+m.Name+"]; its body has a [query], and may have [ext] for what it costs", nil)
		}
		if err != nil {
			return unreadableCount(err, body, m.Value.Offset)
		}
	}
	return nil
}

// unreadableCount is why a count cannot be read. What is not an error of its place in the body is told as the cause of one.
func unreadableCount(err error, body []byte, offset int) error {
	if e, ok := errors.AsType[*search.ParseError](err); ok && e.Type == "" {
		return err
	}
	return parseFaultAt(body, offset, "the body of the count cannot be read: "+err.Error(), err)
}

// kinds is a set of kinds of JSON values.
type kinds uint8

const (
	scalar kinds = 1 << iota
	object
	array
)

func kindOf(v *jsondoc.Value) kinds {
	switch {
	case v.Scalar():
		return scalar
	case v.Kind == jsondoc.Object:
		return object
	case v.Kind == jsondoc.Array:
		return array
	}
	return 0
}

// bodyKeys are the keys of a search body and what may stand under each.
var bodyKeys = map[string]kinds{
	"_source":                     scalar | object | array,
	"aggregations":                object,
	"aggs":                        object,
	"collapse":                    object,
	"derived":                     object,
	"docvalue_fields":             array,
	"explain":                     scalar,
	"ext":                         object,
	"fields":                      array,
	"from":                        scalar,
	"highlight":                   object,
	"include_named_queries_score": scalar,
	"indices_boost":               object | array,
	"min_score":                   scalar,
	"pit":                         object,
	"post_filter":                 object,
	"profile":                     scalar,
	"query":                       object,
	"rescore":                     object | array,
	"script_fields":               object,
	"search_after":                array,
	"search_pipeline":             scalar | object,
	"seq_no_primary_term":         scalar,
	"size":                        scalar,
	"slice":                       object,
	"sort":                        scalar | object | array,
	"stats":                       array,
	"stored_fields":               scalar | array,
	"suggest":                     object,
	"terminate_after":             scalar,
	"timeout":                     scalar,
	"track_scores":                scalar,
	"track_total_hits":            scalar,
	"verbose_pipeline":            scalar,
	"version":                     scalar,
}

// refusedKeys are known keys that cannot be ignored: a client that relies on them
// would read the same hits again and again.
var refusedKeys = map[string]string{
	"pit":          "open a scroll instead",
	"search_after": "use [from] and [size], or a scroll, instead",
	"slice":        "read the scroll in one piece instead",
}

// readBody reads the body of a search.
func (o *options) readBody(body []byte) error {
	root, err := parseObject(body)
	if err != nil {
		return err
	}
	for _, m := range root.Members {
		allowed, known := bodyKeys[m.Name]
		switch {
		case !known:
			return parseFault(body, m.Value, fmt.Sprintf("unknown key [%s] with %s in a search.%s", m.Name, article(m.Value.Kind), didYouMean(m.Name, bodyKeyNames())))
		case allowed&kindOf(m.Value) == 0:
			return parseFault(body, m.Value, fmt.Sprintf("the key [%s] of a search must not be %s", m.Name, article(m.Value.Kind)))
		}
		if instead, refused := refusedKeys[m.Name]; refused {
			return &search.InvalidError{Reason: "[" + m.Name + "] is not provided by this server; " + instead}
		}
		if err := o.readKey(body, m.Name, m.Value); err != nil {
			return err
		}
	}
	return nil
}

func bodyKeyNames() []string {
	names := make([]string, 0, len(bodyKeys))
	for name := range bodyKeys {
		names = append(names, name)
	}
	return names
}

// readKey reads one key whose value is of an allowed kind.
func (o *options) readKey(body []byte, name string, v *jsondoc.Value) (err error) {
	switch name {
	case "_source":
		o.hideSource = v.Kind == jsondoc.Bool && v.Text == "false"
	case "sort":
		o.sort, err = readSort(v)
	case "query", "post_filter":
		err = o.readQuery(body, v)
	case "ext":
		err = o.readExt(body, v)
	default:
		if n, bad := strconv.ParseFloat(v.Text, 64); (name == "size" || name == "from") && bad == nil && math.Abs(n) > math.MaxInt32 {
			return &search.InvalidError{Reason: fmt.Sprintf("the value [%s] of [%s] is out of range", v.Text, name)}
		}
		err = o.readPlain(name, whole(name, v))
		_, notNumber := strconv.ParseFloat(v.Text, 64)
		if err != nil && name == "track_total_hits" && v.Kind == jsondoc.String && notNumber != nil {
			err = &search.ParseError{Type: "number_format_exception", Reason: err.Error()}
		}
	}
	return err
}

// whole is the text of a value. Of a number of hits that is a fraction, only what stands before the point counts.
func whole(name string, v *jsondoc.Value) string {
	if v.Kind == jsondoc.Number && (name == "size" || name == "from" || name == "track_total_hits") {
		if x, err := strconv.ParseFloat(v.Text, 64); err == nil && x < 1<<31 && x > -1<<31 {
			return strconv.Itoa(int(x))
		}
	}
	return v.Text
}

// readPlain reads one of the plain values that the body and the parameters have
// in common. Others are left alone.
func (o *options) readPlain(name, value string) (err error) {
	switch name {
	case "size":
		o.size, err = readCount(name, value)
	case "from":
		o.from, err = readCount(name, value)
	case "timeout":
		err = o.readTimeout(value)
	case "track_total_hits":
		err = o.readTrackTotal(value)
	case "version":
		o.version, err = readBool(name, value)
	case "seq_no_primary_term":
		o.seqNo, err = readBool(name, value)
	case "track_scores", "explain", "profile":
		_, err = readBool(name, value)
	}
	return err
}

// readExt reads what a search costs.
func (o *options) readExt(body []byte, v *jsondoc.Value) error {
	for _, m := range v.Members {
		if m.Name != "stub" {
			line, column := jsondoc.Position(body, m.Value.Offset)
			reason := fmt.Sprintf("unknown part [%s] of [ext]; known is [stub]", m.Name)
			return parseFaultAt(body, m.Value.Offset, reason, &search.ParseError{
				Type:   "named_object_not_found_exception",
				Reason: fmt.Sprintf("[%d:%d] unknown field [%s]", line, column, m.Name),
			})
		}
		if m.Value.Kind != jsondoc.Object {
			return parseFault(body, m.Value, "[ext.stub] must be an object, not "+article(m.Value.Kind))
		}
		if o.ext == nil {
			o.ext = &ext{}
		}
		for _, cost := range m.Value.Members {
			key := "ext.stub." + cost.Name
			switch {
			case cost.Value.Kind == jsondoc.Null:
			case !cost.Value.Scalar():
				return parseFault(body, cost.Value, "["+key+"] must not be "+article(cost.Value.Kind))
			case cost.Name == "nested":
				o.ext.nested = cost.Value.Text
			default:
				set, err := readCost(key, cost.Value.Text)
				if err != nil {
					return err
				}
				o.ext.costs = append(o.ext.costs, set)
			}
		}
	}
	return nil
}
