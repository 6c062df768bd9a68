package wlmtest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Fault is one way in which the server is to misbehave: which requests it is for, when it acts, and what it does. Its zero fields
// say nothing; one that does nothing is refused.
type Fault struct {
	Method string // of the requests; "" is all
	Path   string // of the requests, as it is sent, without the query string; * is any text, slashes too; "" is all

	After int // how many of these requests go by before it acts
	Times int // how many it acts on then; 0 is all that follow

	Delay   time.Duration     // wait before anything else, an hour at most
	Status  int               // answer this error, 400 to 599, and do not carry the request out; 0: carry it out
	Type    string            // of the error; without it rejected_execution_exception for 429, else status_exception
	Reason  string            // of the error
	Headers map[string]string // of the answer, whosever it is; "" takes a header away, such as the Retry-After of a 429
	Damage  Damage            // to the answer, whosever it is
}

// Damage is what is broken about an answer.
type Damage string

// The damages that there are.
const (
	NoAnswer   Damage = "no_answer"   // the connection ends before the first byte
	HalfAnswer Damage = "half_answer" // the connection ends in the middle of the body; before the first byte where there is no body
	Truncated  Damage = "truncated"   // half of the body, which says that it is whole
	NotJSON    Damage = "not_json"    // a body that is no JSON, as application/json
	HTML       Damage = "html"        // a page, as text/html
	WrongType  Damage = "wrong_type"  // the right body, as text/plain
)

// MarshalJSON gives the fault as PUT /_stub/faults takes it.
func (f Fault) MarshalJSON() ([]byte, error) {
	d := struct {
		Method  string             `json:"method,omitempty"`
		Path    string             `json:"path,omitempty"`
		After   int                `json:"after,omitempty"`
		Times   int                `json:"times,omitempty"`
		Delay   string             `json:"delay,omitempty"`
		Status  int                `json:"status,omitempty"`
		Type    string             `json:"type,omitempty"`
		Reason  string             `json:"reason,omitempty"`
		Headers map[string]*string `json:"headers,omitempty"`
		Damage  Damage             `json:"damage,omitempty"`
	}{Method: f.Method, Path: f.Path, After: f.After, Times: f.Times, Status: f.Status, Type: f.Type, Reason: f.Reason, Damage: f.Damage}
	if f.Delay != 0 {
		d.Delay = strconv.FormatInt(f.Delay.Nanoseconds(), 10) + "nanos"
	}
	if len(f.Headers) > 0 {
		d.Headers = make(map[string]*string, len(f.Headers))
	}
	for name, value := range f.Headers {
		d.Headers[name] = nil
		if value != "" {
			d.Headers[name] = &value
		}
	}
	return json.Marshal(d)
}

// Fault has the server misbehave as these faults say, and no longer as others did that were set before; without any it behaves.
// Each request meets at most one: the first that is for it, has let enough of them go by, and has times left. It fails the test
// when a fault is refused.
func (s *Server) Fault(script ...Fault) {
	s.t.Helper()
	if script == nil {
		script = []Fault{}
	}
	body, err := json.Marshal(map[string]any{"faults": script})
	if err != nil {
		s.t.Fatalf("wlmtest: %v", err)
	}
	s.must(http.MethodPut, "/_stub/faults", string(body), nil)
}

// Acted is how often each of the faults has acted, in the order in which they were given to [Server.Fault].
func (s *Server) Acted() []int {
	s.t.Helper()
	var script struct {
		Faults []struct{ Acted int }
	}
	s.must(http.MethodGet, "/_stub/faults", "", &script)
	acted := make([]int, len(script.Faults))
	for i, f := range script.Faults {
		acted[i] = f.Acted
	}
	return acted
}

// Request is a request as the server got it, and what became of it.
type Request struct {
	Number   int // from 1, of all that came in since the last reset
	Received time.Time
	Method   string
	Path     string // as it was sent, without the query string
	Query    string // as it was sent, without the question mark
	Header   http.Header

	Answered  bool   // whether it has been. What follows is known only then
	Status    int    // of the answer; 0 when the connection was cut before the first byte
	Body      string // inflated, YAML as JSON, the first 64 KiB; "" when nobody read it
	BodyBytes int    // of the whole body
	Group     string // id of the workload group that a search ran in, or else that it named
	User      string // who sent it; "" is nobody in particular
	Roles     []string
	Fault     int // which fault acted, from 0; -1 is none
}

// UnmarshalJSON reads a request as GET /_stub/requests shows it.
func (r *Request) UnmarshalJSON(b []byte) error {
	var d struct {
		Number    int         `json:"number"`
		Received  int64       `json:"received_millis"`
		Method    string      `json:"method"`
		Path      string      `json:"path"`
		Query     string      `json:"query"`
		Headers   http.Header `json:"headers"`
		Body      string      `json:"body"`
		BodyBytes int         `json:"body_bytes"`
		Answered  bool        `json:"answered"`
		Status    int         `json:"status"`
		Group     string      `json:"group"`
		Principal struct {
			User  string   `json:"user"`
			Roles []string `json:"roles"`
		} `json:"principal"`
		Fault *int `json:"fault"`
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return err
	}
	*r = Request{Number: d.Number, Received: time.UnixMilli(d.Received), Method: d.Method, Path: d.Path, Query: d.Query, Header: d.Headers,
		Answered: d.Answered, Status: d.Status, Body: d.Body, BodyBytes: d.BodyBytes, Group: d.Group,
		User: d.Principal.User, Roles: d.Principal.Roles, Fault: -1}
	if d.Fault != nil {
		r.Fault = *d.Fault
	}
	return nil
}

// Requests are the last requests that the server got, oldest first: those whose path fits the pattern, in which * is any text. What
// this package sends by [Server.Do] and methods that use it is among them, but for what scripts the server. At most 1,000 are kept.
func (s *Server) Requests(path string) []Request {
	s.t.Helper()
	var log struct {
		Requests []Request `json:"requests"`
	}
	s.must(http.MethodGet, "/_stub/requests?path="+url.QueryEscape(path), "", &log)
	return log.Requests
}

// Part is a part of what a server holds.
type Part string

// The parts that there are.
const (
	Faults   Part = "faults"
	Tasks    Part = "tasks" // searches that run or wait, which are cancelled, and scrolls
	Rules    Part = "rules"
	Groups   Part = "groups"
	Settings Part = "settings" // back to their start values
	Indices  Part = "indices"  // with their documents
	Requests Part = "requests" // what [Server.Requests] tells
)

// Reset brings the server back to what it was when it had just been started, or only the parts that are named; for tests that share
// one. When it returns no search is left. Counters of the default group count on. It fails the test when searches do not heed
// their cancellation for half a minute.
func (s *Server) Reset(parts ...Part) {
	s.t.Helper()
	path := "/_stub/reset"
	if len(parts) > 0 {
		names := make([]string, len(parts))
		for i, p := range parts {
			names[i] = string(p)
		}
		path += "?only=" + strings.Join(names, ",")
	}
	var done struct {
		Acknowledged bool `json:"acknowledged"`
	}
	s.must(http.MethodPost, path, "", &done)
	if !done.Acknowledged {
		s.t.Fatalf("wlmtest: searches still run long after they were cancelled")
	}
}
