package rest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/search"
)

// route is one entry of the route table.
type route struct {
	methods string // with spaces between them
	pattern string
	params  string // query parameters that it knows beside those known everywhere, with spaces between them
	body    bodyKind
	admin   bool // only for administrators
	change  bool // of what all nodes have in common: it is answered when all act by it
	view    bool // each node has a part in it, for which another may ask
	prepare func(*call) (action, error)
}

// action does what a prepared request wants.
type action func() (*answer, error)

// routes is the table of all paths. Where several patterns match, the one with the longer fixed beginning wins.
func (s *Server) routes() []route {
	return slices.Concat(s.rootRoutes(), s.clusterRoutes(), s.settingsRoutes(), s.nodesRoutes(), s.groupRoutes(), s.ruleRoutes(), s.wlmStatsRoutes(), s.wlmCheckRoutes(),
		s.taskRoutes(), s.searchRoutes(), s.scrollRoutes(), s.documentRoutes(), s.metricsRoutes(), s.catRoutes(), s.listStatsRoutes(), s.nodeStatsRoutes(), s.controlRoutes())
}

// dispatch finds the route of a request and answers it.
func (c *call) dispatch() {
	m := c.find(c.r.Method)
	if m == nil {
		c.unrouted()
		return
	}
	a, err := c.answer(m)
	if err != nil {
		c.fail(err)
		return
	}
	c.write(a)
}

// find looks for the route that the path has for a method, and takes the parameters out of the path; nil if there is none.
func (c *call) find(method string) *mounted { return c.s.table.find(method, c.path, &c.params) }

// answer takes a request through the steps that are the same for all routes.
func (c *call) answer(rt *mounted) (*answer, error) {
	if rt.admin {
		if err := c.needAdmin(); err != nil {
			return nil, err
		}
	}
	if err := c.readBody(rt.body); err != nil {
		return nil, err
	}
	act, invalid := rt.prepare(c)
	if _, late := errors.AsType[*search.ValidationError](invalid); invalid != nil && !late {
		return nil, invalid
	}
	if err := c.checkParams(rt.known); err != nil {
		// What takes a body or leaves it has not read it yet: that it is no JSON is the greater mistake.
		if rt.body == optional && len(c.body) > 0 {
			if _, bodyErr := jsondoc.Parse(c.body); bodyErr != nil {
				return nil, bodyErr
			}
		}
		return nil, err
	}
	if invalid != nil { // whether what was read makes sense is looked at last
		return nil, invalid
	}
	if rt.change {
		return c.settled(act)
	}
	return act()
}

// settleTimeout is how long a change waits for other nodes where the request does not say.
const settleTimeout = 30 * time.Second

// settled carries out a change of what all nodes have in common, and returns when every node acts by it, so that whoever has the answer
// finds the change everywhere. When that takes too long the change stands all the same, and is answered as not acknowledged where the
// answer has room for that.
func (c *call) settled(act action) (*answer, error) {
	a, err := act()
	if err != nil || c.s.cfg.Cluster == nil {
		return a, err
	}
	timeout, err := c.duration("timeout", settleTimeout)
	if err != nil {
		return nil, err
	}
	ctx := context.WithoutCancel(c.r.Context())
	if timeout >= 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	if err := c.s.cfg.Cluster.Settle(ctx); err != nil {
		c.s.cfg.Log.Warn().Err(err).EmbedObject(c).Msg("a change was answered before every node acts by it")
		if v, ok := a.value.(acknowledger); ok {
			a.value = v.notAcknowledged()
		}
	}
	return a, nil
}

// acknowledger is an answer that can say that not all nodes act by a change yet.
type acknowledger interface{ notAcknowledged() any }

// unrouted answers what no route takes: OPTIONS, a method that the path does not have, a path that does not exist.
func (c *call) unrouted() {
	allowed := c.allowed()
	if len(allowed) > 0 {
		c.Header()["Allow"] = []string{strings.Join(allowed, ",")}
	}
	switch {
	case c.r.Method == http.MethodOptions:
		c.send(http.StatusOK, textType, nil)
	case len(allowed) > 0:
		c.fail(plainError(http.StatusMethodNotAllowed, "method ["+c.r.Method+"] is not allowed for uri ["+c.r.RequestURI+"], allowed: ["+strings.Join(allowed, ", ")+"]"))
	default:
		c.fail(noHandler(c.r))
	}
}

// allowed are the methods that the path has.
func (c *call) allowed() []string {
	var methods []string
	for _, m := range [...]string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete, http.MethodHead} {
		if c.find(m) != nil {
			methods = append(methods, m)
		}
	}
	return methods
}
