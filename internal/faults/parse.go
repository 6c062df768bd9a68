package faults

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/internal/nearest"
	"github.com/wlmserver/wlmserver/internal/units"
)

const (
	// MaxFaults is how many a script may have: each request is compared with each.
	MaxFaults = 1000
	// MaxDelay is the longest that one may make a request wait.
	MaxDelay = time.Hour
)

// InvalidError: a script cannot be read. The reason names the key, the value and what would do.
type InvalidError struct{ Reason string }

func (e *InvalidError) Error() string { return e.Reason }

func invalid(format string, args ...any) error { return &InvalidError{fmt.Sprintf(format, args...)} }

// Parse reads a script, {"faults": [{…}, …]}, which may be empty. Errors: *InvalidError, and *jsondoc.SyntaxError where it is not JSON.
func Parse(body []byte) ([]*Fault, error) {
	document, err := jsondoc.Parse(body)
	if err != nil {
		return nil, err
	}
	const form = `send {"faults": [ … ]}, empty for none`
	if document.Kind != jsondoc.Object {
		return nil, invalid("the script is of the wrong kind, %s: %s", document.Kind, form)
	}
	for _, m := range document.Members {
		if m.Name != "faults" {
			return nil, invalid("unknown key [%s] of the script: %s", shorten(m.Name), form)
		}
	}
	list := document.Member("faults")
	switch {
	case list == nil:
		return nil, invalid("key [faults] is missing: %s", form)
	case list.Kind != jsondoc.Array:
		return nil, invalid("key [faults] is of the wrong kind, %s: %s", list.Kind, form)
	case len(list.Items) > MaxFaults:
		return nil, invalid("key [faults] has [%d] entries: send at most [%d]", len(list.Items), MaxFaults)
	}
	script := make([]*Fault, len(list.Items))
	for i, item := range list.Items {
		r := reader{at: "faults[" + strconv.Itoa(i) + "]"}
		if err := r.read(item); err != nil {
			return nil, err
		}
		script[i] = &r.Fault
	}
	return script, nil
}

// reader reads one fault.
type reader struct {
	Fault
	at string // where it is
}

var keys = [...]string{"method", "path", "after", "times", "delay", "status", "type", "reason", "headers", "damage", "acted", "left"}

func (r *reader) read(v *jsondoc.Value) error {
	if v.Kind != jsondoc.Object {
		return invalid("[%s] is of the wrong kind, %s: send an object such as {\"path\": \"/*/_search\", \"times\": 2, \"status\": 429}", r.at, v.Kind)
	}
	for _, m := range v.Members {
		if m.Value.Kind == jsondoc.Null {
			continue // as if it were not there
		}
		if err := r.member(m.Name, m.Value); err != nil {
			return err
		}
	}
	switch {
	case r.Status == 0 && (r.Type != "" || r.Reason != ""):
		return invalid("[%s] has a [type] or a [reason] but no [status]: they are those of the error that a fault answers; give a status from 400 to 599", r.at)
	case !r.acts():
		return invalid("[%s] does nothing: give [delay], [status], [headers] or [damage]", r.at)
	}
	return nil
}

func (r *reader) member(name string, v *jsondoc.Value) (err error) {
	switch name {
	case "method":
		r.Method, err = r.text(name, v, "a method such as POST, or leave it out for all", isToken)
		r.Method = strings.ToUpper(r.Method)
	case "path":
		r.Path, err = r.text(name, v, "a path that begins with / or *, such as /*/_search, or leave it out for all",
			func(s string) bool { return s[0] == '/' || s[0] == '*' })
	case "after":
		r.After, err = r.number(name, v, 0, maxCount)
	case "times":
		r.Times, err = r.number(name, v, 1, maxCount)
	case "delay":
		err = r.delay(name, v)
	case "status":
		r.Status, err = r.number(name, v, 400, 599)
	case "type":
		r.Type, err = r.text(name, v, "the type of an error, such as rejected_execution_exception", nil)
	case "reason":
		r.Reason, err = r.text(name, v, "a text", nil)
	case "headers":
		err = r.headers(name, v)
	case "damage":
		var d string
		d, err = r.text(name, v, "one of "+damages(), func(s string) bool { return slices.Contains(Damages(), Damage(s)) })
		r.Damage = Damage(d)
	case "acted", "left": // what a listing tells beside; sent back it says nothing
	default:
		remedy := "known are [" + strings.Join(keys[:len(keys)-2], "], [") + "]"
		if near := nearest.Name(name, keys[:]...); near != "" {
			remedy = "did you mean [" + near + "]?"
		}
		err = invalid("unknown key [%s.%s]: %s", r.at, shorten(name), remedy)
	}
	return err
}

// maxCount is more requests than any test sends.
const maxCount = 1_000_000_000

func (r *reader) number(name string, v *jsondoc.Value, least, most int) (int, error) {
	n, err := strconv.Atoi(v.Text)
	if v.Kind != jsondoc.Number || err != nil || n < least || n > most {
		return 0, r.bad(name, v, fmt.Sprintf("give a whole number from %d to %d", least, most))
	}
	return n, nil
}

// text reads a string that is not empty and passes a check, which may be nil.
func (r *reader) text(name string, v *jsondoc.Value, remedy string, check func(string) bool) (string, error) {
	if v.Kind != jsondoc.String || v.Text == "" || check != nil && !check(v.Text) {
		return "", r.bad(name, v, "give "+remedy)
	}
	return v.Text, nil
}

func (r *reader) delay(name string, v *jsondoc.Value) error {
	if v.Kind != jsondoc.String {
		return r.bad(name, v, "give a time in quotes, such as \"300ms\"")
	}
	d, err := units.ParseTime(r.at+"."+name, v.Text)
	if e, ok := errors.AsType[*units.ParseError](err); ok {
		return r.bad(name, v, e.Reason)
	}
	if d <= 0 || d > MaxDelay {
		return r.bad(name, v, "give a time above 0 and up to "+units.FormatTime(MaxDelay)+", or leave it out")
	}
	r.Delay = d
	return nil
}

func (r *reader) headers(name string, v *jsondoc.Value) error {
	if v.Kind != jsondoc.Object {
		return r.bad(name, v, "give an object of names and values, such as {\"Retry-After\": \"3\"}")
	}
	for _, m := range v.Members {
		at := name + "." + shorten(m.Name)
		h := Header{Name: http.CanonicalHeaderKey(m.Name), Value: m.Value.Text}
		switch m.Value.Kind {
		case jsondoc.Null:
			h = Header{Name: h.Name, Remove: true}
		case jsondoc.String, jsondoc.Number:
		default:
			return r.bad(at, m.Value, "give a text or a number, or null for an answer without this header")
		}
		switch {
		case !isToken(h.Name):
			return r.bad(at, m.Value, "the name is none that a header can have; use letters, digits and -")
		case strings.ContainsFunc(h.Value, isControl):
			return r.bad(at, m.Value, "the value is none that a header can have; leave out line breaks and other control characters")
		case isFraming(h.Name):
			return r.bad(at, m.Value, "the server must set this header itself; see [damage] for answers that are broken")
		case slices.ContainsFunc(r.Headers, func(x Header) bool { return x.Name == h.Name }):
			return r.bad(at, m.Value, "the same header is there twice; give it once")
		}
		r.Headers = append(r.Headers, h)
	}
	return nil
}

// bad is an error about the value of a key.
func (r *reader) bad(name string, v *jsondoc.Value, remedy string) error {
	value := v.Kind.String()
	switch v.Kind {
	case jsondoc.String, jsondoc.Number, jsondoc.Bool:
		value = shorten(v.Text)
	}
	return invalid("[%s.%s] cannot be [%s]: %s", r.at, name, value, remedy)
}

// isToken says whether a text can be the name of a method or of a header (RFC 9110, 5.6.2).
func isToken(s string) bool {
	const marks = "!#$%&'*+-.^_`|~"
	for _, c := range s {
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || strings.ContainsRune(marks, c)) {
			return false
		}
	}
	return s != ""
}

// isControl says whether a character can be in no header.
func isControl(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }

// damages names all of them.
func damages() string {
	var names []string
	for _, d := range Damages() {
		names = append(names, string(d))
	}
	return strings.Join(names, ", ")
}

// shorten cuts what a client sent to what fits into a message.
func shorten(s string) string {
	const most = 100
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
