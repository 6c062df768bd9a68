package rest

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/internal/units"
	"github.com/wlmserver/wlmserver/search"
)

// multiSearch answers many searches sent as one. The outer status is always 200: each item has its own.
func (s *Server) multiSearch(c *call) (action, error) {
	m, err := c.multiRequest()
	if err != nil {
		return nil, err
	}
	return func() (*answer, error) {
		ctx, done := c.untilGone()
		defer done()
		started := time.Now()
		results, err := s.cfg.Search.RunMulti(ctx, m)
		if err != nil {
			return nil, err
		}
		b := strconv.AppendInt([]byte(`{"took":`), time.Since(started).Milliseconds(), 10)
		b = append(b, `,"responses":[`...)
		for i, r := range results {
			if i > 0 {
				b = append(b, ',')
			}
			b = c.appendItem(b, r)
		}
		return &answer{body: append(b, "]}"...)}, nil
	}, nil
}

// appendItem prints one item of a multi-search, with its status as its last member.
func (c *call) appendItem(b []byte, r search.ItemResult) []byte {
	var status int
	if r.Err != nil {
		f := c.explain(r.Err)
		status = f.status
		b = f.appendObject(append(b, `{"error":`...))
	} else {
		status = r.Response.Status
		b = append(b, bytes.TrimSuffix(r.Response.Body, []byte{'}'})...)
	}
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return append(strconv.AppendInt(append(b, `"status":`...), int64(status), 10), '}')
}

// multiRequest reads a multi-search: the parameters, and pairs of lines in the body.
func (c *call) multiRequest() (*search.MultiRequest, error) {
	body, err := c.source()
	if err != nil {
		return nil, err
	}
	if len(body) == 0 {
		return nil, noBodySent("send pairs of lines, a header and a search, or the same as parameter [source]")
	}
	m := &search.MultiRequest{GroupID: c.groupID(), Principal: c.principal(), OpaqueID: c.opaqueID(), RequestID: c.requestID()}
	if m.CancelAfter, err = c.cancelAfter(); err != nil {
		return nil, err
	}
	if m.MaxConcurrent, err = c.number("max_concurrent_searches", 0); err != nil {
		return nil, err
	}
	if m.MaxConcurrent < 0 || m.MaxConcurrent == 0 && c.query.Has("max_concurrent_searches") {
		return nil, illegalArgument("parameter [max_concurrent_searches] must be at least 1, not [%s]", c.query.Get("max_concurrent_searches"))
	}
	m.Items, err = c.multiItems(body)
	if err == nil && len(m.Items) == 0 {
		err = &search.ValidationError{Problems: []string{"no search in the request: send pairs of lines, a header and a search"}}
	}
	return m, err
}

// maxItems is how many searches one multi-search may have. All are prepared before the first runs, so that a body of tiny ones
// would cost many times its size; more than that many could not wait in a group either.
const maxItems = groups.MaxQueued

// multiItems splits the body into searches.
func (c *call) multiItems(body []byte) ([]*search.Request, error) {
	if body[len(body)-1] != '\n' {
		return nil, illegalArgument("the last line of a multi-search must end in a newline [\\n]")
	}
	if n := (bytes.Count(body, []byte{'\n'}) + 1) / 2; n > maxItems {
		return nil, illegalArgument("a multi-search has at most [%d] searches, not [%d]: send them in several requests", maxItems, n)
	}
	var items []*search.Request
	lines := bytes.Split(body[:len(body)-1], []byte{'\n'})
	for i := 0; i < len(lines); i += 2 {
		if i == 0 && len(lines[0]) == 0 && len(lines) > 1 { // OpenSearch passes over one empty line before the first header
			i++
		}
		if i+1 == len(lines) {
			if len(bytes.TrimSpace(lines[i])) == 0 {
				break
			}
			if err := readItemHeader(&search.Request{Query: url.Values{}}, lines[i]); err != nil {
				return nil, err
			}
			return nil, &search.ValidationError{Problems: []string{fmt.Sprintf("the header in line %d of the multi-search has no search in the line below it", i+1)}}
		}
		item, err := c.multiItem(lines[i], lines[i+1])
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// itemParams are parameters of a multi-search that hold for each of its items.
var itemParams = [...]string{"routing", "ccs_minimize_roundtrips", "max_concurrent_shard_requests", "pre_filter_shard_size",
	"rest_total_hits_as_int", "search_type", "typed_keys", "allow_no_indices", "expand_wildcards", "ignore_throttled", "ignore_unavailable"}

// multiItem is one search of a multi-search.
func (c *call) multiItem(header, body []byte) (*search.Request, error) {
	r := &search.Request{
		Kind:    search.Search,
		Method:  http.MethodPost,
		Query:   url.Values{},
		Header:  c.r.Header,
		Body:    bytes.TrimSpace(body),
		Indices: c.indices(),
	}
	for _, name := range itemParams {
		if v, ok := c.query[name]; ok {
			r.Query[name] = v
		}
	}
	if len(bytes.TrimSpace(header)) > 0 {
		if err := readItemHeader(r, header); err != nil {
			return nil, err
		}
	}
	if len(r.Body) == 0 {
		return nil, parsing(body, 0, "a JSON object is needed in the line of a search, not nothing: send {} to match everything")
	}
	r.Path = "/_search"
	if len(r.Indices) > 0 {
		r.Path = "/" + strings.Join(r.Indices, ",") + "/_search"
	}
	return r, nil
}

// itemHeader are the keys of an item's header that stand for query parameters of a search.
var itemHeader = [...]string{"search_type", "preference", "routing", "request_cache", "allow_partial_search_results",
	"ccs_minimize_roundtrips", "ignore_unavailable", "allow_no_indices", "expand_wildcards", "ignore_throttled"}

// readItemHeader adds to a search what the header of its item says.
func readItemHeader(r *search.Request, header []byte) error {
	doc, err := object(header)
	if err != nil {
		return err
	}
	for _, m := range doc.Members {
		if m.Value.Kind == jsondoc.Null {
			continue
		}
		if slices.Contains(itemFlags[:], m.Name) || slices.Contains(indexFlags[:], m.Name) {
			if err := checkItemFlag(m); err != nil {
				return err
			}
		}
		values, ok := texts(m.Value)
		if !ok {
			return illegalArgument("key [%s] in the header of a search must be a name or a list of names, not: %s", m.Name, m.Value.Kind)
		}
		switch {
		case m.Name == "index" || m.Name == "indices":
			r.Indices = nil
			for _, v := range values {
				r.Indices = append(r.Indices, splitList(v)...)
			}
		case m.Name == "cancel_after_time_interval":
			d, err := units.ParseTime(m.Name, strings.Join(values, ","))
			if err != nil {
				return err
			}
			r.CancelAfter = &d
		case slices.Contains(itemHeader[:], m.Name):
			r.Query.Set(m.Name, strings.Join(values, ","))
		default:
			return illegalArgument("key [%s] is not known in the header of a search; known are [%s]", m.Name,
				strings.Join(slices.Sorted(slices.Values(append(itemHeader[:], "index", "cancel_after_time_interval"))), ", "))
		}
	}
	return nil
}

// The keys of an item's header that are true or false, indexFlags those that say which indices are meant.
var (
	itemFlags  = [...]string{"allow_partial_search_results", "ccs_minimize_roundtrips", "request_cache"}
	indexFlags = [...]string{"ignore_unavailable", "allow_no_indices", "ignore_throttled"}
)

// checkItemFlag refuses what is neither true nor false. Nothing counts as true for those that say which indices are meant. That it
// cannot be read is told twice, as OpenSearch does, for all but the one that other clusters would mind.
func checkItemFlag(m jsondoc.Member) error {
	switch text := m.Value.Text; {
	case !m.Value.Scalar():
	case text == "true" || text == "false":
		return nil
	case strings.TrimSpace(text) == "" && slices.Contains(indexFlags[:], m.Name):
		return nil
	}
	err := &search.InvalidError{Reason: "key [" + m.Name + "] in the header of a search must be true or false"}
	if m.Name != "ccs_minimize_roundtrips" {
		err.Cause = &search.InvalidError{Reason: err.Reason}
	}
	return err
}

// texts is a scalar, or a list of them, as texts.
func texts(v *jsondoc.Value) ([]string, bool) {
	if v.Scalar() {
		return []string{v.Text}, true
	}
	if v.Kind != jsondoc.Array {
		return nil, false
	}
	var all []string
	for _, item := range v.Items {
		if !item.Scalar() {
			return nil, false
		}
		all = append(all, item.Text)
	}
	return all, true
}
