package rest

import (
	"net/http"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/internal/units"
	"github.com/wlmserver/wlmserver/search"
)

func (s *Server) scrollRoutes() []route {
	const params = "scroll scroll_id rest_total_hits_as_int" + bodyInQuery
	return []route{
		{methods: "GET POST", pattern: "/_search/scroll", params: params, body: optional, prepare: s.scrollPage},
		{methods: "GET POST", pattern: "/_search/scroll/{id}", params: params, body: optional, prepare: s.scrollPage},
		{methods: "DELETE", pattern: "/_search/scroll", params: "scroll_id" + bodyInQuery, body: optional, prepare: s.clearScroll},
		{methods: "DELETE", pattern: "/_search/scroll/{id}", params: "scroll_id" + bodyInQuery, body: optional, prepare: s.clearScroll},
	}
}

// scrollPage answers the next page of a scroll. What the body says comes before what the path and the query say.
func (s *Server) scrollPage(c *call) (action, error) {
	r, err := c.searchRequest(search.ScrollPage)
	if err != nil {
		return nil, err
	}
	if r.ScrollKeepAlive, err = c.duration("scroll", 0); err != nil {
		return nil, err
	}
	ids, keepAlive, err := c.scrollBody(r.Body, false)
	if err != nil {
		return nil, err
	}
	if keepAlive != "" {
		if r.ScrollKeepAlive, err = units.ParseTime("scroll", keepAlive); err != nil {
			return nil, err
		}
	}
	if len(ids) != 1 {
		return func() (*answer, error) {
			return nil, &search.ValidationError{Problems: []string{"one scroll_id is required: that of the page before"}}
		}, nil
	}
	r.ScrollID, r.Indices = ids[0], nil
	return c.running(r), nil
}

type clearedDTO struct {
	Succeeded bool `json:"succeeded"`
	Freed     int  `json:"num_freed"`
}

// clearScroll frees scrolls. That there was nothing to free is a 404.
func (s *Server) clearScroll(c *call) (action, error) {
	body, err := c.source()
	if err != nil {
		return nil, err
	}
	ids, _, err := c.scrollBody(body, true)
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return func() (*answer, error) {
			return nil, &search.ValidationError{Problems: []string{"scroll_id is required: one, a list, or [_all]"}}
		}, nil
	}
	if len(ids) == 1 && ids[0] == "_all" {
		ids = nil
	}
	for _, id := range ids {
		if err := search.CheckScrollID(id); err != nil {
			return nil, err
		}
	}
	return func() (*answer, error) {
		return c.asTask("indices:data/read/scroll/clear", false, func() (*answer, error) {
			a := &answer{}
			freed := s.clear(c, ids)
			if freed == 0 {
				a.status = http.StatusNotFound
			}
			a.value = clearedDTO{Succeeded: true, Freed: freed}
			return a, nil
		})
	}, nil
}

// clear frees the scrolls with these ids, or without any all of them, as far as they are the user's to free.
func (s *Server) clear(c *call, ids []string) (freed int) {
	switch {
	case !c.isAdmin():
		return s.cfg.Search.ClearOwnScrolls(c.principal(), ids)
	case ids == nil:
		return s.cfg.Search.ClearAllScrolls()
	default:
		return s.cfg.Search.ClearScrolls(ids)
	}
}

// scrollBody reads the ids of scrolls, and for how long to keep them, from a body such as {"scroll_id":["…"],"scroll":"1m"}.
// Without ids there, they are those of the path or of the query. A list of ids can only be where many are taken; elsewhere a comma is part
// of an id.
func (c *call) scrollBody(body []byte, many bool) (ids []string, keepAlive string, err error) {
	named := func(text string) []string {
		if many {
			return splitList(text)
		}
		return []string{text}
	}
	if id := c.param("id"); id != "" {
		ids = named(id)
	} else if c.query.Has("scroll_id") {
		if ids = named(c.query.Get("scroll_id")); len(ids) == 0 {
			ids = []string{""}
		}
	}
	if len(body) == 0 {
		return ids, "", nil
	}
	if many {
		ids = nil // those of the body stand for all
	}
	if _, err := jsondoc.Parse(body); err != nil {
		f := illegalArgument("the body cannot be read: %v", err)
		f.cause = describe(err)
		f.roots = []*failure{f.cause}
		return nil, "", f
	}
	doc, err := object(body)
	if err != nil {
		return nil, "", illegalArgument("%v", err)
	}
	for _, m := range doc.Members {
		switch {
		case m.Name == "scroll_id" && m.Value.Kind == jsondoc.String:
			ids = []string{m.Value.Text}
		case m.Name == "scroll_id" && m.Value.Kind == jsondoc.Array && many:
			ids = nil
			for _, item := range m.Value.Items {
				if item.Kind != jsondoc.String {
					return nil, "", illegalArgument("key [scroll_id] must hold strings, not: %s", item.Kind)
				}
				ids = append(ids, item.Text)
			}
		case m.Name == "scroll" && m.Value.Kind == jsondoc.String:
			keepAlive = m.Value.Text
		default:
			return nil, "", illegalArgument("key [%s] with a value that is: %s, is not known in the body of a scroll; known are scroll_id and scroll", m.Name, m.Value.Kind)
		}
	}
	return ids, keepAlive, nil
}
