package rest

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"runtime/debug"

	"github.com/wlmserver/wlmserver/auth"
	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/tasks"
)

// parentTaskHeader names the task on whose behalf another node asks.
const parentTaskHeader = "X-Wlmserver-Parent-Task"

// forOthers is the request as other nodes are asked it.
func (c *call) forOthers() LocalRequest {
	r := LocalRequest{Method: c.r.Method, Path: c.path, RawQuery: c.r.URL.RawQuery, Header: http.Header{}, User: c.user.Name, Roles: c.user.Roles}
	if id := c.requestID(); id != "" {
		r.Header.Set(requestIDHeader, id)
	}
	if id := c.opaqueID(); id != "" {
		r.Header.Set(opaqueIDHeader, id)
	}
	if c.task != nil {
		r.Header.Set(parentTaskHeader, c.task.ID().String())
	}
	return r
}

// ServeLocal answers, for this node alone, a request that a client has sent to another node, which has found the user. Only what a node
// does or tells for itself can be asked so. What is wrong with the request is in the answer; there is no other error. The work ends when
// ctx does.
func (s *Server) ServeLocal(ctx context.Context, r LocalRequest) (a LocalAnswer, _ error) {
	header := maps.Clone(r.Header)
	if header == nil {
		header = http.Header{}
	}
	request := (&http.Request{Method: r.Method, RequestURI: r.Path, Header: header, Body: http.NoBody, URL: &url.URL{RawQuery: r.RawQuery}}).WithContext(ctx)
	c := &call{s: s, r: request, path: r.Path, user: auth.User{Name: r.User, Roles: r.Roles}, local: true}
	defer func() {
		if p := recover(); p != nil {
			s.cfg.Log.Error().EmbedObject(c).Any("panic", p).Bytes("stack", debug.Stack()).Msg("a request handler panicked")
			a = failed(internalFailure())
		}
	}()
	body, err := c.serveLocal()
	if err != nil {
		return failed(c.explain(err)), nil
	}
	return LocalAnswer{Status: http.StatusOK, ContentType: jsonType, Body: body}, nil
}

// serveLocal does what open and dispatch do for requests of clients, as far as the other node has not.
func (c *call) serveLocal() (body []byte, err error) {
	u := c.r.URL
	if u.Path, err = url.PathUnescape(c.path); err != nil {
		return nil, badQuery(err)
	}
	u.RawPath = c.path
	if c.query, err = parseQuery(u.RawQuery); err != nil {
		return nil, badQuery(err)
	}
	if err := c.readFormat(); err != nil {
		return nil, err
	}
	m := c.find(c.r.Method)
	if m == nil || !m.view {
		return nil, noHandler(c.r)
	}
	a, err := c.answer(m)
	if err != nil {
		return nil, err
	}
	if a.body != nil {
		return a.body, nil
	}
	return encode(a.value)
}

// failed is an answer that is an error.
func failed(f *failure) LocalAnswer {
	return LocalAnswer{Status: f.status, ContentType: jsonType, Body: f.body()}
}

// failureOf reads the error that another node has answered.
func failureOf(a LocalAnswer) *failure {
	f := internalFailure()
	if doc, err := jsondoc.Parse(a.Body); err == nil {
		switch e := doc.Member("error"); {
		case e == nil:
		case e.Kind == jsondoc.String:
			f.reason = e.Text
		default:
			f = causeOf(e)
		}
	}
	f.status = a.Status
	f.forwarded = a.Body
	return f
}

// causeOf reads an error with its causes.
func causeOf(v *jsondoc.Value) *failure {
	f := internalFailure()
	if typ := v.Member("type"); typ != nil {
		f.typ = typ.Text
	}
	if reason := v.Member("reason"); reason != nil {
		f.reason, f.noReason = reason.Text, reason.Kind == jsondoc.Null
	}
	if cause := v.Member("caused_by"); cause != nil {
		f.cause = causeOf(cause)
	}
	return f
}

// parentTask names the task on another node on whose behalf this request is answered.
func (c *call) parentTask() tasks.ID {
	id, err := tasks.ParseID(c.r.Header.Get(parentTaskHeader))
	if err != nil { // it is only shown
		return tasks.ID{}
	}
	return id
}
