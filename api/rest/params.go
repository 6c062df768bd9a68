package rest

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wlmserver/wlmserver/internal/nearest"
	"github.com/wlmserver/wlmserver/internal/units"
)

// parseQuery reads a query string, in which & and ; separate. Of a repeated parameter only the last value is kept.
func parseQuery(raw string) (url.Values, error) {
	if raw == "" {
		return nil, nil
	}
	q, err := url.ParseQuery(strings.ReplaceAll(raw, ";", "&"))
	for name, v := range q {
		q[name] = v[len(v)-1:]
	}
	if v, ok := q[""]; ok && v[0] == "" { // a "=" alone says nothing
		delete(q, "")
	}
	return q, err
}

// everywhere are the query parameters that every path knows.
const everywhere = "pretty human filter_path format error_trace"

// timeouts are the parameters that bound what several nodes must agree on, or have to say. On one node they have no effect.
const timeouts = "timeout " + managerTimeouts

// managerTimeouts are those of them that reading has, too.
const managerTimeouts = "cluster_manager_timeout master_timeout"

// list is a parameter that holds names with commas between them.
func (c *call) list(name string) []string { return splitList(c.query.Get(name)) }

func splitList(s string) []string {
	if s == "" {
		return nil
	}
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' })
}

// splitTrimmed is splitList without the space and the control characters around the names, which Java takes for space too.
func splitTrimmed(s string) []string {
	names := splitList(s)
	for i := range names {
		names[i] = strings.TrimFunc(names[i], func(r rune) bool { return r <= ' ' })
	}
	return names
}

// flag is a boolean parameter: true, false, or empty for true.
func (c *call) flag(name string, absent bool) (bool, error) {
	if !c.query.Has(name) {
		return absent, nil
	}
	v := c.query.Get(name)
	if v != "" && strings.TrimSpace(v) == "" { // says nothing
		return absent, nil
	}
	switch v {
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

// unread says that this request does not read these parameters, with spaces between them, which its path knows.
func (c *call) unread(names string) {
	if len(c.query) > 0 { // mostly there is nothing to pass over
		c.passedOver += " " + names
	}
}

// checkParams refuses query parameters that the path does not know, those first for which it knows a similar one, or that
// this request does not read.
func (c *call) checkParams(known []string) error {
	if len(c.query) == 0 {
		return nil
	}
	passedOver := strings.Fields(c.passedOver)
	var strangers, meant, unknown []string
	for name := range c.query {
		if !slices.Contains(known, name) || slices.Contains(passedOver, name) {
			strangers = append(strangers, name)
		}
	}
	slices.Sort(strangers)
	for _, name := range strangers {
		if near := nearest.Name(name, known...); near != "" && near != name {
			meant = append(meant, "["+name+"] -> did you mean ["+near+"]?")
		} else {
			unknown = append(unknown, "["+name+"]")
		}
	}
	all := append(meant, unknown...)
	switch len(all) {
	case 0:
		return nil
	case 1:
		return illegalArgument("request [%s] has an unknown parameter: %s", c.r.URL.Path, all[0])
	default:
		return illegalArgument("request [%s] has unknown parameters: %s", c.r.URL.Path, strings.Join(all, ", "))
	}
}
