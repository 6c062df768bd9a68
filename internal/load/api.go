package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// api asks the server for what is not load: groups, statistics, tasks.
type api struct {
	base        string
	credentials string
	http        *http.Client
}

const apiTimeout = 15 * time.Second

func newAPI(u *url.URL, o *Options) *api {
	t := &http.Transport{DialContext: o.Dial, MaxIdleConnsPerHost: 4}
	if u.Scheme == "https" {
		t.TLSClientConfig = tlsConfig(u, o)
	}
	credentials := o.Admin
	if credentials == "" && len(o.Users) > 0 {
		credentials = o.Users[0].Name
	}
	return &api{base: u.String(), credentials: credentials, http: &http.Client{Transport: t, Timeout: apiTimeout}}
}

func (a *api) close() { a.http.CloseIdleConnections() }

// statusError is an answer that is no success.
type statusError struct {
	method, path string
	status       int
	body         string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s %s was answered %d: %s", e.method, e.path, e.status, e.body)
}

// do sends a request and reads the answer into v unless that is nil.
func (a *api) do(ctx context.Context, method, path, body string, v any) error {
	r, err := http.NewRequestWithContext(ctx, method, a.base+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if name, password, ok := strings.Cut(a.credentials, ":"); ok {
		r.SetBasicAuth(name, password)
	}
	resp, err := a.http.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		told, _ := io.ReadAll(io.LimitReader(resp.Body, 300)) // what of it can be read
		return &statusError{method, path, resp.StatusCode, string(bytes.TrimSpace(told))}
	}
	if v == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(v); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection is used again
	return nil
}

// group is a workload group as the load names it.
type group struct {
	name, id string // of the default group both are its id
}

const defaultGroup = "DEFAULT_WORKLOAD_GROUP"

// resolve finds the groups by name, or else by id. A server without workload groups is asked for none: the names are
// taken for ids then, and noGroups says so.
func (a *api) resolve(ctx context.Context, names []Weighted) (found []group, noGroups bool, err error) {
	if len(names) == 0 {
		return []group{{defaultGroup, defaultGroup}}, false, nil
	}
	for _, n := range names {
		g, err := a.find(ctx, n.Name)
		switch {
		case errors.Is(err, errNoGroups):
			noGroups = true
			g = group{n.Name, n.Name}
		case errors.Is(err, errNotFound):
			return nil, false, &FlagError{"--group", n.Name, "no group has this name or id; GET /_wlm/workload_group lists those there are"}
		case err != nil:
			return nil, false, fmt.Errorf("cannot look up the group %s: %w", n.Name, err)
		}
		if slices.Contains(found, g) {
			return nil, false, &FlagError{"--group", n.Name, "this group is given already; say it once, with the weight of both"}
		}
		found = append(found, g)
	}
	return found, noGroups, nil
}

var (
	errNotFound = errors.New("not found")
	errNoGroups = errors.New("the server has no workload groups")
)

// find looks for a group of this name, or else of this id.
func (a *api) find(ctx context.Context, name string) (group, error) {
	if name == defaultGroup { // which is in no list
		return group{defaultGroup, defaultGroup}, nil
	}
	g, err := a.groupNamed(ctx, name)
	if errors.Is(err, errNotFound) {
		return a.groupWithID(ctx, name)
	}
	return g, err
}

func (a *api) groupNamed(ctx context.Context, name string) (group, error) {
	return a.groupWhere(ctx, "/"+url.PathEscape(name), func(g listedGroup) bool { return g.Name == name })
}

func (a *api) groupWithID(ctx context.Context, id string) (group, error) {
	return a.groupWhere(ctx, "", func(g listedGroup) bool { return g.ID == id })
}

type listedGroup struct {
	ID   string `json:"_id"`
	Name string `json:"name"`
}

func (a *api) groupWhere(ctx context.Context, path string, fits func(listedGroup) bool) (group, error) {
	var told struct {
		Groups *[]listedGroup `json:"workload_groups"`
	}
	err := a.do(ctx, http.MethodGet, "/_wlm/workload_group"+path, "", &told)
	switch s, ok := errors.AsType[*statusError](err); {
	case ok && s.status == http.StatusNotFound && path != "" && strings.Contains(s.body, "resource_not_found_exception"):
		return group{}, errNotFound
	case ok && (s.status == http.StatusBadRequest || s.status == http.StatusNotFound || s.status == http.StatusMethodNotAllowed):
		return group{}, errNoGroups
	case ok:
		return group{}, err
	case isSyntax(err):
		return group{}, errNoGroups
	case err != nil:
		return group{}, err
	case told.Groups == nil:
		return group{}, errNoGroups
	}
	for _, g := range *told.Groups {
		if fits(g) {
			return group{g.Name, g.ID}, nil
		}
	}
	return group{}, errNotFound
}

// isSyntax reports whether an answer was no JSON, or of another shape: that of a server that is something else.
func isSyntax(err error) bool {
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, shape := errors.AsType[*json.UnmarshalTypeError](err)
	return syntax || shape || errors.Is(err, io.EOF) && !isTransport(err)
}

func isTransport(err error) bool {
	_, ok := errors.AsType[*url.Error](err)
	return ok
}

// counters are those of one group in _wlm/stats, summed over the nodes.
type counters struct {
	Completions     int64  `json:"total_completions"`
	Throttled       *int64 `json:"total_throttled"` // nil: the server has no throttling
	WouldThrottle   int64  `json:"total_would_throttle"`
	Queued          *int64 `json:"total_queued"` // nil: the server has no queues
	QueueRejections int64  `json:"total_queue_rejections"`
	QueuedCurrent   int64  `json:"queued_current"`
	QueuePeak       int64  `json:"queue_peak"`
	Waits           int64  `json:"queue_wait_count"`
	WaitMillis      int64  `json:"total_queue_wait_millis"`
	MaxWaitMillis   int64  `json:"max_queue_wait_millis"`
}

func (c *counters) add(o counters) {
	c.Completions += o.Completions
	c.Throttled = sum(c.Throttled, o.Throttled)
	c.WouldThrottle += o.WouldThrottle
	c.Queued = sum(c.Queued, o.Queued)
	c.QueueRejections += o.QueueRejections
	c.QueuedCurrent += o.QueuedCurrent
	c.QueuePeak = max(c.QueuePeak, o.QueuePeak)
	c.Waits += o.Waits
	c.WaitMillis += o.WaitMillis
	c.MaxWaitMillis = max(c.MaxWaitMillis, o.MaxWaitMillis)
}

func sum(a, b *int64) *int64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return new(*a + *b)
}

// errNoStats: the server has no _wlm/stats.
var errNoStats = errors.New("the server has no _wlm/stats")

// stats reads the counters of all groups, by id.
func (a *api) stats(ctx context.Context) (map[string]counters, error) {
	var told map[string]json.RawMessage // the nodes are members beside _nodes and cluster_name
	err := a.do(ctx, http.MethodGet, "/_wlm/stats", "", &told)
	if s, ok := errors.AsType[*statusError](err); ok {
		switch s.status {
		case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
			return nil, errNoStats
		}
	}
	if isSyntax(err) {
		return nil, errNoStats
	}
	if err != nil {
		return nil, err
	}
	if told["_nodes"] == nil {
		return nil, errNoStats
	}
	groups := map[string]counters{}
	for _, raw := range told {
		var node struct {
			Groups map[string]counters `json:"workload_groups"`
		}
		if json.Unmarshal(raw, &node) != nil {
			continue // no node
		}
		for id, c := range node.Groups {
			all := groups[id]
			all.add(c)
			groups[id] = all
		}
	}
	return groups, nil
}

// searchTasks returns the ids of the searches that run or wait, by their X-Opaque-Id.
func (a *api) searchTasks(ctx context.Context) (map[string]string, error) {
	var told struct {
		Tasks []struct {
			Node    string            `json:"node"`
			ID      int64             `json:"id"`
			Parent  string            `json:"parent_task_id"`
			Headers map[string]string `json:"headers"`
		} `json:"tasks"`
	}
	if err := a.do(ctx, http.MethodGet, "/_tasks?group_by=none&actions=indices:data/read/*", "", &told); err != nil {
		return nil, err
	}
	ids := make(map[string]string, len(told.Tasks))
	for _, t := range told.Tasks {
		if opaque := t.Headers["X-Opaque-Id"]; opaque != "" && t.Parent == "" {
			ids[opaque] = fmt.Sprintf("%s:%d", t.Node, t.ID)
		}
	}
	return ids, nil
}

// cancel cancels a task and reports whether there was one to cancel.
func (a *api) cancel(ctx context.Context, task string) (bool, error) {
	var told struct {
		Failures []json.RawMessage          `json:"node_failures"`
		Nodes    map[string]json.RawMessage `json:"nodes"`
	}
	err := a.do(ctx, http.MethodPost, "/_tasks/"+task+"/_cancel", "", &told)
	if s, ok := errors.AsType[*statusError](err); ok && s.status == http.StatusNotFound {
		return false, nil
	}
	return err == nil && len(told.Failures) == 0 && len(told.Nodes) > 0, err
}

// makeIndex makes the index unless it is there, and reports whether it did.
func (a *api) makeIndex(ctx context.Context, name string) (bool, error) {
	err := a.do(ctx, http.MethodHead, "/"+name, "", nil)
	if s, ok := errors.AsType[*statusError](err); !ok || s.status != http.StatusNotFound {
		return false, err
	}
	err = a.do(ctx, http.MethodPut, "/"+name, `{"settings":{"number_of_shards":1,"number_of_replicas":0}}`, nil)
	return err == nil, err
}

func (a *api) deleteIndex(ctx context.Context, name string) error {
	return a.do(ctx, http.MethodDelete, "/"+name, "", nil)
}
