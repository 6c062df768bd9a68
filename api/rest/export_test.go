package rest

import "strings"

// Route is one method of one entry of the table of routes, for tests.
type Route struct {
	Method, Pattern string
	Params          []string // of the query
	TakesBody       bool
	NeedsBody       bool
	Admin           bool
}

// Routes is the table of routes.
func (s *Server) Routes() []Route {
	var all []Route
	for _, rt := range s.routes() {
		for method := range strings.FieldsSeq(rt.methods) {
			all = append(all, Route{
				Method: method, Pattern: rt.pattern, Params: s.table.routes[routeKey{method, rt.pattern}].known,
				TakesBody: rt.body != noBody, NeedsBody: rt.body == required || rt.body == requiredLines, Admin: rt.admin,
			})
		}
	}
	return all
}
