package rest

import (
	"time"

	"github.com/wlmserver/wlmserver/internal/units"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
)

// Query parameters of the search API. Most of them are the executor's business; here they only have to be known.
const (
	whichIndices = " allow_no_indices expand_wildcards ignore_throttled ignore_unavailable"
	whichShards  = " routing preference"
	lucene       = " q df analyzer analyze_wildcard default_operator lenient"
	bodyInQuery  = " source source_content_type"

	searchParams = whichIndices + whichShards + lucene + bodyInQuery + " allow_partial_search_results batched_reduce_size cancel_after_time_interval" +
		" ccs_minimize_roundtrips docvalue_fields explain from include_named_queries_score index max_concurrent_shard_requests" +
		" phase_took pre_filter_shard_size request_cache rest_total_hits_as_int scroll search_pipeline search_type" +
		" seq_no_primary_term size sort _source _source_excludes _source_includes stats stored_fields suggest_field" +
		" suggest_mode suggest_size suggest_text terminate_after timeout track_scores track_total_hits typed_keys" +
		" verbose_pipeline version"
	countParams       = whichIndices + whichShards + lucene + bodyInQuery + " index min_score terminate_after"
	validateParams    = whichIndices + lucene + bodyInQuery + " explain rewrite all_shards"
	multiSearchParams = bodyInQuery + " index routing cancel_after_time_interval ccs_minimize_roundtrips max_concurrent_searches" +
		" max_concurrent_shard_requests pre_filter_shard_size rest_total_hits_as_int search_type typed_keys allow_no_indices expand_wildcards" +
		" ignore_throttled ignore_unavailable"
)

func (s *Server) searchRoutes() []route {
	searches, counts := s.searchOf(search.Search), s.searchOf(search.Count)
	return []route{
		{methods: "GET POST", pattern: "/_search", params: searchParams, body: optional, prepare: searches},
		{methods: "GET POST", pattern: "/{index}/_search", params: searchParams, body: optional, prepare: searches},
		{methods: "GET POST", pattern: "/_count", params: countParams, body: optional, prepare: counts},
		{methods: "GET POST", pattern: "/{index}/_count", params: countParams, body: optional, prepare: counts},
		{methods: "GET POST", pattern: "/_validate/query", params: validateParams, body: optional, prepare: s.validateQuery},
		{methods: "GET POST", pattern: "/{index}/_validate/query", params: validateParams, body: optional, prepare: s.validateQuery},
		{methods: "GET POST", pattern: "/_msearch", params: multiSearchParams, body: lines, prepare: s.multiSearch},
		{methods: "GET POST", pattern: "/{index}/_msearch", params: multiSearchParams, body: lines, prepare: s.multiSearch},
	}
}

// searchOf answers searches or counts.
func (s *Server) searchOf(kind search.Kind) func(*call) (action, error) {
	return func(c *call) (action, error) {
		r, err := c.searchRequest(kind)
		if err != nil {
			return nil, err
		}
		return c.running(r), nil
	}
}

// searchRequest is what a request asks of the search service.
func (c *call) searchRequest(kind search.Kind) (*search.Request, error) {
	body, err := c.source()
	if err != nil {
		return nil, err
	}
	c.passOver(kind)
	if err := c.checkPipeline(); err != nil {
		return nil, err
	}
	r := &search.Request{
		Kind:      kind,
		Method:    c.r.Method,
		Path:      c.r.URL.Path,
		Query:     c.query,
		Header:    c.r.Header,
		Body:      body,
		Indices:   c.indices(),
		GroupID:   c.groupID(),
		Principal: c.principal(),
		OpaqueID:  c.opaqueID(),
		RequestID: c.requestID(),
	}
	if kind != search.Search {
		return r, nil
	}
	if r.CancelAfter, err = c.cancelAfter(); err != nil {
		return nil, err
	}
	r.ScrollKeepAlive, err = c.duration("scroll", 0)
	return r, err
}

// passOver takes away what the request does not read because something else stands for it: for the body in the query string the
// body, for the query there, in a count, as well. What tells how such a query is to be read means nothing without one.
func (c *call) passOver(kind search.Kind) {
	const query, howToRead = "q", "df analyzer analyze_wildcard default_operator lenient"
	if len(c.body) > 0 {
		c.unread(bodyInQuery)
	}
	if (len(c.body) > 0 || c.query.Has("source")) && kind == search.Count {
		c.unread(query)
		c.unread(howToRead)
	}
	if !c.query.Has(query) {
		c.unread(howToRead)
	}
}

// checkPipeline refuses a search pipeline: there is none.
func (c *call) checkPipeline() error {
	if name := c.query.Get("search_pipeline"); name != "" && name != "_none" {
		return illegalArgument("there is no search pipeline [%s]: this server has none", name)
	}
	return nil
}

// running runs a prepared search until its client goes.
func (c *call) running(r *search.Request) action {
	r.Follower = c
	return func() (*answer, error) {
		resp, err := c.s.cfg.Search.Run(c.r.Context(), r)
		if err != nil {
			return nil, err
		}
		return passOn(resp), nil
	}
}

// Started has the search end when its client goes. It is for [search.Service.Run], as Ended is.
func (c *call) Started(t *tasks.Task) {
	c.task = t
	c.s.watch.enter(c.r.Context(), &c.watched, c)
}

// Ended says that the search is over.
func (c *call) Ended() { c.s.watch.leave(&c.watched) }

func (c *call) clientGone() { c.task.Cancel(tasks.DisconnectCause()) }

// passOn is an executor's answer as it is. One that says what it is, is not ours to lay out.
func passOn(r *search.Response) *answer {
	return &answer{status: r.Status, header: r.Header, body: r.Body, mediaType: r.Header.Get("Content-Type")}
}

// indices are the names in the path, or in the parameter that may stand for it.
func (c *call) indices() []string {
	if names := c.param("index"); names != "" {
		return splitList(names)
	}
	return c.list("index")
}

// groupID is the workload group that the request names.
func (c *call) groupID() string { return c.r.Header.Get(groupHeader) }

// cancelAfter is how long the request lets its search live; nil where it does not say.
func (c *call) cancelAfter() (*time.Duration, error) {
	const name = "cancel_after_time_interval"
	if !c.query.Has(name) {
		return nil, nil
	}
	d, err := units.ParseTime(name, c.query.Get(name))
	return &d, err
}
