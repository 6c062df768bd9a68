package rest

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wlmserver/wlmserver/internal/units"
)

// parseQuery reads a query string, in which & and ; separate. Of a repeated parameter only the last value is kept.
func parseQuery(raw string) (url.Values, error) {
	q, err := url.ParseQuery(strings.ReplaceAll(raw, ";", "&"))
	for name, v := range q {
		q[name] = v[len(v)-1:]
	}
	return q, err
}

// everywhere are the query parameters that every path knows.
const everywhere = "pretty human filter_path format error_trace"

// timeouts are the parameters that bound what several nodes must agree on. On one node they have no effect.
const timeouts = "timeout cluster_manager_timeout master_timeout"

// list is a parameter that holds names with commas between them.
func (c *call) list(name string) []string { return splitList(c.query.Get(name)) }

func splitList(s string) []string {
	if s == "" {
		return nil
	}
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' })
}

// flag is a boolean parameter: true, false, or empty for true.
func (c *call) flag(name string, absent bool) (bool, error) {
	if !c.query.Has(name) {
		return absent, nil
	}
	switch v := c.query.Get(name); v {
	case "true", "":
		return true, nil
	case "false":
		return false, nil
	default:
		return absent, illegalArgument("parameter [%s] must be [true] or [false], not [%s]", name, v)
	}
}

// duration is a time parameter; units.None is no limit.
func (c *call) duration(name string, absent time.Duration) (time.Duration, error) {
	if !c.query.Has(name) {
		return absent, nil
	}
	return units.ParseTime(name, c.query.Get(name))
}

// number is a parameter that holds a whole number.
func (c *call) number(name string, absent int) (int, error) {
	if !c.query.Has(name) {
		return absent, nil
	}
	n, err := strconv.Atoi(c.query.Get(name))
	if err != nil {
		e := illegalArgument("parameter [%s] must be a whole number, not [%s]", name, c.query.Get(name))
		e.cause = numberFormat(c.query.Get(name))
		return 0, e
	}
	return n, nil
}

// checkTimeouts refuses timeouts that cannot be read.
func (c *call) checkTimeouts() error {
	for name := range strings.FieldsSeq(timeouts) {
		if _, err := c.duration(name, 0); err != nil {
			return err
		}
	}
	return nil
}

// checkParams refuses query parameters that the path does not know, each with the known ones that look like it.
func (c *call) checkParams(known []string) error {
	var unknown []stranger
	for name := range c.query {
		if !slices.Contains(known, name) {
			unknown = append(unknown, meet(name, known))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.SortFunc(unknown, func(a, b stranger) int {
		return cmp.Or(cmp.Compare(b.likeness, a.likeness), strings.Compare(a.name, b.name))
	})
	noun := "an unknown parameter"
	if len(unknown) > 1 {
		noun = "unknown parameters"
	}
	texts := make([]string, len(unknown))
	for i, x := range unknown {
		texts[i] = x.String()
	}
	return illegalArgument("request [%s] has %s: %s", c.r.URL.Path, noun, strings.Join(texts, ", "))
}

// stranger is an unknown name beside the known ones of which more than half is like it, the most alike first.
type stranger struct {
	name     string
	near     []string
	likeness float64 // of the nearest: 0 to 1
}

func (s stranger) String() string {
	switch len(s.near) {
	case 0:
		return "[" + s.name + "]"
	case 1:
		return "[" + s.name + "] -> did you mean [" + s.near[0] + "]?"
	default:
		return "[" + s.name + "] -> did you mean any of [" + strings.Join(s.near, ", ") + "]?"
	}
}

func meet(name string, known []string) stranger {
	s := stranger{name: name}
	const longestSlip = 64
	if len(name) > longestSlip { // nobody's slip of the pen, and dear to compare
		return s
	}
	likeness := make(map[string]float64)
	for _, k := range known {
		if l := 1 - float64(distance(name, k))/float64(max(len(name), len(k), 1)); l > 0.5 {
			likeness[k] = l
			s.near = append(s.near, k)
			s.likeness = max(s.likeness, l)
		}
	}
	slices.SortFunc(s.near, func(a, b string) int {
		return cmp.Or(cmp.Compare(likeness[b], likeness[a]), strings.Compare(a, b))
	})
	return s
}

// distance is how many bytes must be put in, taken out or replaced to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j]+1, corner+1)
		}
	}
	return row[len(b)]
}
