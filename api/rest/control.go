package rest

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/wlmserver/wlmserver/internal/faults"
	"github.com/wlmserver/wlmserver/internal/units"
)

// controlPath is where tests of clients script the server. What is below it is none of what they test: no fault acts there, and
// nothing of it is in the log of requests.
const controlPath = "/_stub"

// control is what a server has for tests of clients: faults, and a log of requests.
type control struct {
	script   faults.Script
	requests requestLog
}

// controlled is a request of a server that has control routes.
type controlled struct {
	logged *loggedRequest
	fault  *faults.Fault // nil for none
	place  int           // of the fault, in the script
}

func (s *Server) controlRoutes() []route {
	if s.control == nil {
		return nil
	}
	return []route{
		{methods: "GET", pattern: controlPath + "/faults", admin: true, prepare: s.listFaults},
		{methods: "PUT", pattern: controlPath + "/faults", admin: true, body: required, prepare: s.setFaults},
		{methods: "GET", pattern: controlPath + "/requests", params: "path limit", admin: true, prepare: s.listRequests},
		{methods: "POST", pattern: controlPath + "/reset", params: "only timeout", admin: true, prepare: s.reset},
	}
}

// underControl logs a request, and has the fault act on it that the script has for it, if any: the error is what it answers. Of a
// request that could not be opened, for the reason err, no fault is taken.
func (c *call) underControl(err error) error {
	if c.path == controlPath || strings.HasPrefix(c.path, controlPath+"/") {
		return err
	}
	x := &controlled{logged: c.s.control.requests.begin(c), place: -1}
	c.control = x
	if err != nil {
		return err
	}
	x.fault, x.place = c.s.control.script.Take(c.r.Method, c.path)
	if x.fault == nil {
		return nil
	}
	if err := c.delay(x.fault.Delay); err != nil || x.fault.Status == 0 {
		return err
	}
	if m := c.find(c.r.Method); m != nil {
		_ = c.readBody(m.body) // for the log; whether it is good does not matter to the answer
	}
	return faultFailure(x.fault)
}

// delay waits, unless the client goes or the server stops before: then the error is why.
func (c *call) delay(d time.Duration) error {
	if d == 0 {
		return nil
	}
	ctx, done := c.untilGone()
	defer done()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// faultFailure is the error that a fault answers.
func faultFailure(f *faults.Fault) *failure {
	e := &failure{status: f.Status, typ: f.Type, reason: f.Reason}
	switch {
	case e.typ != "":
	case e.status == http.StatusTooManyRequests:
		e.typ = "rejected_execution_exception"
	default:
		e.typ = "status_exception"
	}
	if e.reason == "" {
		e.reason = "a fault of the script, see GET " + controlPath + "/faults"
	}
	return e
}

// damage does to an answer what the request's fault says, as far as that is about what is in it.
func (x *controlled) damage(status int, mediaType string, body []byte) (string, []byte) {
	if x.fault == nil {
		return mediaType, body
	}
	switch x.fault.Damage {
	case faults.Truncated:
		body = body[:len(body)/2]
	case faults.NotJSON:
		body = []byte("}{ no JSON")
	case faults.HTML:
		body = []byte("<html><body><h1>" + http.StatusText(status) + "</h1></body></html>\n")
		mediaType = "text/html; charset=UTF-8"
	case faults.WrongType:
		mediaType = textType
	}
	return mediaType, body
}

// begin is called before the first byte of an answer: it logs the request as answered, and cuts the connection where that is what
// the fault says.
func (c *call) begin(status int, bodyFollows bool) {
	f := c.control.fault
	if f != nil && (f.Damage == faults.NoAnswer || f.Damage == faults.HalfAnswer && !bodyFollows) {
		c.s.control.requests.end(c, 0)
		panic(http.ErrAbortHandler)
	}
	if f != nil {
		f.Apply(c.Header())
	}
	c.s.control.requests.end(c, status)
}

// cuts says whether the connection is to end in the middle of the body.
func (x *controlled) cuts() bool { return x.fault != nil && x.fault.Damage == faults.HalfAnswer }

type faultsDTO struct {
	Faults []faultDTO `json:"faults"`
}

type faultDTO struct {
	Method  string        `json:"method,omitempty"`
	Path    string        `json:"path,omitempty"`
	After   int           `json:"after,omitempty"`
	Times   int           `json:"times,omitempty"`
	Delay   string        `json:"delay,omitempty"`
	Status  int           `json:"status,omitempty"`
	Type    string        `json:"type,omitempty"`
	Reason  string        `json:"reason,omitempty"`
	Headers members       `json:"headers,omitempty"`
	Damage  faults.Damage `json:"damage,omitempty"`
	Acted   int           `json:"acted"`
	Left    *int          `json:"left,omitempty"` // not of one that acts always
}

func newFaultDTO(x faults.State) faultDTO {
	d := faultDTO{Method: x.Method, Path: x.Path, After: x.After, Times: x.Times, Status: x.Status, Type: x.Type, Reason: x.Reason,
		Damage: x.Damage, Acted: x.Acted}
	if x.Delay > 0 {
		d.Delay = units.FormatTime(x.Delay)
	}
	for _, h := range x.Headers {
		var value any
		if !h.Remove {
			value = h.Value
		}
		d.Headers = append(d.Headers, member{h.Name, value})
	}
	if x.Times > 0 {
		d.Left = &x.Left
	}
	return d
}

func (s *Server) listFaults(*call) (action, error) {
	return func() (*answer, error) {
		states := s.control.script.States()
		d := faultsDTO{make([]faultDTO, len(states))}
		for i, x := range states {
			d.Faults[i] = newFaultDTO(x)
		}
		return ok(d)
	}, nil
}

func (s *Server) setFaults(c *call) (action, error) {
	script, err := faults.Parse(c.body)
	if err != nil {
		return nil, err
	}
	return func() (*answer, error) {
		s.control.script.Set(script)
		return ok(acknowledged{true})
	}, nil
}

func (s *Server) listRequests(c *call) (action, error) {
	limit, err := c.number("limit", maxLogged)
	if err != nil {
		return nil, err
	}
	if limit < 1 || limit > maxLogged {
		return nil, illegalArgument("parameter [limit] must be a whole number from 1 to %d, not [%d]", maxLogged, limit)
	}
	path := c.query.Get("path")
	return func() (*answer, error) { return ok(s.control.requests.list(path, limit)) }, nil
}

// The parts of a server that a reset can bring back to what they were when it had just been made, in the order in which it does:
// what runs first, so that nothing of it comes back.
const (
	faultsPart   = "faults"
	tasksPart    = "tasks" // with the scrolls
	rulesPart    = "rules"
	groupsPart   = "groups"
	settingsPart = "settings"
	indicesPart  = "indices" // with their documents
	requestsPart = "requests"
)

var resetParts = [...]string{faultsPart, tasksPart, rulesPart, groupsPart, settingsPart, indicesPart, requestsPart}

// reset brings the server back to what it was when it had just been made, or those parts of it that are named.
func (s *Server) reset(c *call) (action, error) {
	only := c.list("only")
	for _, part := range only {
		if !slices.Contains(resetParts[:], part) {
			return nil, illegalArgument("parameter [only] cannot hold [%s]: name some of [%s], or leave it out for all", part, strings.Join(resetParts[:], ","))
		}
	}
	if len(only) == 0 && c.query.Has("only") {
		return nil, illegalArgument("parameter [only] is empty: name some of [%s], or leave it out for all", strings.Join(resetParts[:], ","))
	}
	timeout, err := c.duration("timeout", taskWait)
	if err != nil {
		return nil, err
	}
	return func() (*answer, error) {
		ended := true
		for _, part := range resetParts {
			if len(only) > 0 && !slices.Contains(only, part) {
				continue
			}
			var err error
			if part == tasksPart {
				ended, err = c.resetTasks(timeout)
			} else {
				err = s.resetPart(context.WithoutCancel(c.r.Context()), part)
			}
			if err != nil {
				return nil, err
			}
		}
		return ok(acknowledged{ended})
	}, nil
}
