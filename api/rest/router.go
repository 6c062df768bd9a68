package rest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
)

// route is one entry of the route table.
type route struct {
	methods string // with spaces between them
	pattern string
	params  string // query parameters that it knows beside those known everywhere, with spaces between them
	body    bodyKind
	admin   bool // only for administrators
	prepare func(*call) (action, error)
}

// action does what a prepared request wants.
type action func() (*answer, error)

// routes is the table of all paths. Where several patterns match, the one with the longer fixed beginning wins.
func (s *Server) routes() []route {
	return slices.Concat(s.rootRoutes(), s.clusterRoutes(), s.settingsRoutes(), s.nodesRoutes(), s.groupRoutes(), s.wlmStatsRoutes(), s.wlmCheckRoutes(),
		s.taskRoutes(), s.searchRoutes(), s.scrollRoutes(), s.documentRoutes(), s.metricsRoutes())
}

// mount puts the table into the router.
func (s *Server) mount() {
	s.mux.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			chi.RouteContext(r.Context()).RoutePath = w.(*call).path
			next.ServeHTTP(w, r)
		})
	})
	s.mux.NotFound(s.unrouted)
	s.mux.MethodNotAllowed(s.unrouted)
	for _, rt := range s.routes() {
		h := s.handler(rt)
		for m := range strings.FieldsSeq(rt.methods) {
			s.mux.Method(m, rt.pattern, h)
		}
		if !strings.Contains(rt.pattern, "{") {
			s.fixed[rt.pattern] = true
		}
	}
}

// handler answers the requests of one route.
func (s *Server) handler(rt route) http.Handler {
	known := strings.Fields(rt.params + " " + everywhere)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := w.(*call)
		c.r = r
		if !s.isMatch(rt.pattern, c.path, chi.RouteContext(r.Context())) {
			s.unrouted(w, r)
			return
		}
		a, err := c.answer(rt, known)
		if err != nil {
			c.fail(err)
			return
		}
		c.write(a)
	})
}

// answer takes a request through the steps that are the same for all routes.
func (c *call) answer(rt route, known []string) (*answer, error) {
	if rt.admin {
		if err := c.needAdmin(); err != nil {
			return nil, err
		}
	}
	if err := c.readBody(rt.body); err != nil {
		return nil, err
	}
	act, err := rt.prepare(c)
	if err != nil {
		return nil, err
	}
	if err := c.checkParams(known); err != nil {
		// What takes a body or leaves it has not read it yet: that it is no JSON is the greater mistake.
		if rt.body == optional && len(c.body) > 0 {
			if _, bodyErr := jsondoc.Parse(c.body); bodyErr != nil {
				return nil, bodyErr
			}
		}
		return nil, err
	}
	return act()
}

// unrouted answers what no route takes: OPTIONS, a method that the path does not have, a path that does not exist.
func (s *Server) unrouted(w http.ResponseWriter, r *http.Request) {
	c := w.(*call)
	allowed := s.allowed(c.path)
	if len(allowed) > 0 {
		c.Header()["Allow"] = []string{strings.Join(allowed, ",")}
	}
	switch {
	case r.Method == http.MethodOptions:
		c.send(http.StatusOK, textType, nil)
	case len(allowed) > 0:
		c.fail(plainError(http.StatusMethodNotAllowed, "method ["+r.Method+"] is not allowed for uri ["+r.RequestURI+"], allowed: ["+strings.Join(allowed, ", ")+"]"))
	default:
		c.fail(noHandler(r))
	}
}

// allowed are the methods that a path has.
func (s *Server) allowed(path string) []string {
	var methods []string
	for _, m := range [...]string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete, http.MethodHead} {
		rctx := chi.NewRouteContext()
		if pattern := s.mux.Find(rctx, m, path); pattern != "" && s.isMatch(pattern, path, rctx) {
			methods = append(methods, m)
		}
	}
	return methods
}

// isMatch says whether what the router has found counts: a path that is in the table as it stands is never taken for one
// with parameters, and a parameter is never empty.
func (s *Server) isMatch(pattern, path string, rctx *chi.Context) bool {
	return (pattern == path || !s.fixed[path]) && !slices.Contains(rctx.URLParams.Values, "")
}
