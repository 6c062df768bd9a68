package rest

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"runtime/debug"
	"time"

	"github.com/rs/zerolog"

	"github.com/wlmserver/wlmserver/auth"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
)

// Header names as net/http keys them.
const (
	opaqueIDHeader  = search.OpaqueIDHeader
	requestIDHeader = search.RequestIDHeader
	groupHeader     = "Workloadgroupid"
)

// versionHeader is spelt as OpenSearch spells it, which net/http would not.
const versionHeader = "X-OpenSearch-Version"

// maxRequestID is how many characters X-Request-Id may have.
const maxRequestID = 128

// call is one request on its way through: what was learnt of it, and the writer of its answer. It belongs to the
// goroutine that serves the request.
type call struct {
	http.ResponseWriter
	s *Server
	r *http.Request

	path   string // as it was sent, without the query string and one slash at the end
	query  url.Values
	params [maxPathParams]pathParam // of the path
	user   auth.User
	body   []byte
	held   int64 // bytes of the body budget that are this request's

	task    *tasks.Task // that the request is, if it is a search or one that other nodes take part in
	watched watched     // while it is a search

	passedOver string // parameters of the query that this request does not read, with spaces between them

	local   bool   // another node asks for this node's part
	bounded bool   // the body has, or had, a deadline
	format  format // of the answer; anyFormat is JSON
	pretty  bool   // the answer is for people to read
	human   bool   // with times and sizes for people to read
	trace   bool   // errors tell how they came about

	control *controlled // nil where no control routes are, and for those

	status int // of the answer; 0 while there is none
}

// serve answers one request, whatever happens.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	c := &call{ResponseWriter: w, s: s, r: r}
	started := time.Now()
	defer func() {
		s.cfg.Log.Debug().EmbedObject(c).Int("status", c.status).Dur("took", time.Since(started)).Msg("request")
	}()
	defer func() {
		s.bodies.release(c.held)
		if r.ContentLength != 0 && !c.bounded { // a body that nobody wanted
			d := bodyDeadline{c: c}
			d.renew()
		}
		if p := recover(); p != nil {
			c.panicked(p, debug.Stack())
		}
	}()
	err := c.open()
	if s.control != nil {
		err = c.underControl(err)
	}
	if err != nil {
		c.fail(err)
		return
	}
	c.dispatch()
}

// open does what every request goes through before it is known what it wants.
func (c *call) open() error {
	c.path = sentPath(c.r.URL)
	if n := len(c.path) - 1; n > 0 && c.path[n] == '/' && c.path[n-1] != '/' {
		c.path = c.path[:n]
	}
	var queryErr error
	c.query, queryErr = parseQuery(c.r.URL.RawQuery)
	if queryErr != nil { // what could be read of it holds no more than the rest
		c.query = nil
	}
	formatErr := c.readFormat()

	if err := c.checkSize(); err != nil {
		return err
	}
	if len(c.r.Header.Get(requestIDHeader)) > maxRequestID {
		return illegalArgument("header [X-Request-Id] is longer than %d characters: send a shorter one", maxRequestID)
	}
	user, err := c.s.cfg.Auth.Authenticate(c.r)
	if err != nil {
		return err
	}
	c.user = user
	if queryErr != nil {
		return badQuery(queryErr)
	}
	if err := c.checkContentType(); err != nil {
		return err
	}
	return formatErr
}

// sentPath is the path as it was sent. EscapedPath would write it anew where it holds bytes that should have been escaped, and then
// "%5fdoc" beside them came to "_doc".
func sentPath(u *url.URL) string {
	if u.RawPath != "" {
		return u.RawPath
	}
	return u.EscapedPath()
}

// checkSize refuses what is too large before any of it is read.
func (c *call) checkSize() error {
	l := c.s.cfg.Limits
	const around = int64(len("  HTTP/1.1"))
	if n := int64(len(c.r.Method)+len(c.r.RequestURI)) + around; n > l.MaxInitialLineLength {
		return tooLongLine(n, l.MaxInitialLineLength)
	}
	const perLine = int64(len(": \r\n"))
	n := int64(len("Host")+len(c.r.Host)) + perLine
	for name, values := range c.r.Header {
		for _, v := range values {
			n += int64(len(name)+len(v)) + perLine
		}
	}
	if n > l.MaxHeaderSize {
		return tooLongHeader(n, l.MaxHeaderSize)
	}
	if c.r.ContentLength > l.MaxContentLength {
		return tooLarge()
	}
	return nil
}

// readFormat reads how the answer is to look.
func (c *call) readFormat() error {
	c.format = c.wantedFormat()
	var prettyErr, humanErr, traceErr error
	c.pretty, prettyErr = c.flag("pretty", false)
	c.human, humanErr = c.flag("human", false)
	c.trace, traceErr = c.flag("error_trace", false)
	err := cmp.Or(prettyErr, humanErr, traceErr)
	if err != nil { // nothing that was asked for holds yet
		c.trace, c.pretty, c.format = false, false, anyFormat
	}
	return err
}

// panicked answers a request whose handler panicked, and logs why.
func (c *call) panicked(p any, stack []byte) {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(http.ErrAbortHandler)
	}
	c.s.cfg.Log.Error().EmbedObject(c).Any("panic", p).Bytes("stack", stack).Msg("a request handler panicked")
	if c.status != 0 {
		panic(http.ErrAbortHandler) // the answer has begun: cut it, so that nobody takes it for whole
	}
	c.writeFailure(internalFailure())
}

// MarshalZerologObject tells a log line which request it is about, and who sent it as far as they said.
func (c *call) MarshalZerologObject(e *zerolog.Event) {
	e.Str("method", c.r.Method).Str("uri", c.r.RequestURI).Str("peer", c.r.RemoteAddr)
	for _, x := range [...]struct{ field, value string }{
		{"request_id", c.requestID()}, {"opaque_id", c.opaqueID()}, {"user", c.user.Name},
	} {
		if x.value != "" {
			e.Str(x.field, x.value)
		}
	}
}

// param is a part of the path, decoded; "" where the path has no such part.
func (c *call) param(name string) string {
	for _, p := range c.params {
		if p.name != name {
			continue
		}
		v, err := url.PathUnescape(p.value)
		if err != nil { // net/http has refused bad escapes
			panic(err)
		}
		return v
	}
	return ""
}

// Unwrap is for http.ResponseController.
func (c *call) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// untilGone returns a context that ends when the client goes away, or when the server's own context ends. Its cause tells
// which: the server's *[tasks.Cause], or else [context.Canceled] or [tasks.DisconnectCause], as who noticed it has it. done
// must be called when the answer is known.
func (c *call) untilGone() (ctx context.Context, done func()) {
	base := c.r.Context()
	ctx, cancel := context.WithCancelCause(base)
	x := &watched{}
	c.s.watch.enter(base, x, waiting(cancel))
	return ctx, func() {
		c.s.watch.leave(x)
		cancel(nil)
	}
}

// waiting ends what a request waits under.
type waiting context.CancelCauseFunc

func (w waiting) clientGone() { w(tasks.DisconnectCause()) }

// register lists the request as a task of the user's. The caller ends it.
func (c *call) register(action, kind string, parent *tasks.Task) (*tasks.Task, error) {
	spec := tasks.Spec{Action: action, Type: kind, Parent: parent, User: c.user.Name}
	if id := c.opaqueID(); id != "" {
		spec.Headers = map[string]string{opaqueIDHeader: id}
	}
	if id := c.requestID(); id != "" {
		if spec.Headers == nil {
			spec.Headers = make(map[string]string, 1)
		}
		spec.Headers[requestIDHeader] = id
	}
	if c.local {
		spec.ParentID = c.parentTask()
	}
	return c.s.cfg.Tasks.Register(context.WithoutCancel(c.r.Context()), spec)
}

func (c *call) requestID() string { return c.r.Header.Get(requestIDHeader) }

func (c *call) opaqueID() string { return c.r.Header.Get(opaqueIDHeader) }

// asTask does fn as a task of the given action. Of an action that all nodes take part in, the node's part is a task of
// its own below it, as OpenSearch lists them. Where another node asks, it is the only one.
func (c *call) asTask(action string, everyNode bool, fn func() (*answer, error)) (*answer, error) {
	const ofNode = "[n]"
	if c.local && everyNode {
		action += ofNode
	}
	t, err := c.register(action, tasks.Transport, nil)
	if err != nil {
		return nil, err
	}
	defer t.End()
	c.task = t
	if everyNode && !c.local {
		part, err := c.register(action+ofNode, tasks.Direct, t)
		if err != nil {
			return nil, err
		}
		defer part.End()
	}
	return fn()
}
