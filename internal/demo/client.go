package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// client speaks to one server.
type client struct {
	base string
	http *http.Client
}

func newClient(base string, connections int) *client {
	t := &http.Transport{MaxIdleConnsPerHost: connections}
	return &client{base: base, http: &http.Client{Transport: t}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// answer is what came back for a request.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// call sends one request and returns its answer.
func (c *client) call(ctx context.Context, method, path, body string, header http.Header) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if header != nil {
		r.Header = header.Clone()
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, b}, err
}

// do is call for requests that must be answered with 200; the answer goes into v unless that is nil.
func (c *client) do(ctx context.Context, method, path, body string, v any) error {
	a, err := c.call(ctx, method, path, body, nil)
	if err != nil {
		return err
	}
	if a.status != http.StatusOK {
		return fmt.Errorf("%s %s was answered %d: %s", method, path, a.status, bytes.TrimSpace(a.body))
	}
	if v == nil {
		return nil
	}
	if err := json.Unmarshal(a.body, v); err != nil {
		return fmt.Errorf("%s %s: %w in %s", method, path, err, a.body)
	}
	return nil
}

// outcome is how a search ended for its client.
type outcome struct {
	state      state
	ran        bool   // of a cancelled one: it was admitted before
	retryAfter string // seconds, of a refusal
	failure    string // of a failed one
}

// search runs one search to its end. Its number travels as X-Opaque-Id, so that _tasks tells which it is.
func (c *client) search(ctx context.Context, p plan, group string, number int, patience time.Duration) outcome {
	path := "/" + p.index + "/_search"
	if patience > 0 {
		path += fmt.Sprintf("?cancel_after_time_interval=%dms", patience.Milliseconds())
	}
	h := http.Header{"X-Opaque-Id": {strconv.Itoa(number)}, "Workloadgroupid": {group}}
	a, err := c.call(ctx, http.MethodPost, path, p.searchBody(), h)
	switch {
	case err != nil:
		return outcome{state: failed, failure: err.Error()}
	case a.status == http.StatusOK:
		return outcome{state: answered}
	case a.status == http.StatusTooManyRequests:
		return outcome{state: refused, retryAfter: a.header.Get("Retry-After")}
	}
	// One that was cancelled while it waited is answered with that alone, one that ran with how its shards ended.
	var told struct {
		Error struct {
			Type      string `json:"type"`
			RootCause []struct {
				Type string `json:"type"`
			} `json:"root_cause"`
		} `json:"error"`
	}
	const isCancelled = "task_cancelled_exception"
	switch e := &told.Error; {
	case json.Unmarshal(a.body, &told) == nil && e.Type == isCancelled:
		return outcome{state: cancelled}
	case len(e.RootCause) > 0 && e.RootCause[0].Type == isCancelled:
		return outcome{state: cancelled, ran: true}
	default:
		return outcome{state: failed, failure: fmt.Sprintf("%d: %s", a.status, a.body)}
	}
}

// listing is what _tasks says of the searches.
type listing struct {
	running []int
	waiters []waiter
}

func (c *client) tasks(ctx context.Context) (listing, error) {
	var told struct {
		Tasks []struct {
			Node    string            `json:"node"`
			ID      int64             `json:"id"`
			Headers map[string]string `json:"headers"`
			Status  struct {
				State     string `json:"state"`
				Position  int    `json:"position"`
				Waiting   int64  `json:"waiting_millis"`
				Estimated int64  `json:"estimated_wait_millis"`
			} `json:"status"`
		} `json:"tasks"`
	}
	q := url.Values{"group_by": {"none"}, "detailed": {"true"}, "actions": {"indices:data/read/search"}}
	if err := c.do(ctx, http.MethodGet, "/_tasks?"+q.Encode(), "", &told); err != nil {
		return listing{}, err
	}
	var l listing
	for _, t := range told.Tasks {
		number, err := strconv.Atoi(t.Headers["X-Opaque-Id"])
		if err != nil {
			continue // not one of ours
		}
		switch t.Status.State {
		case "running":
			l.running = append(l.running, number)
		case "waiting":
			l.waiters = append(l.waiters, waiter{
				search:    number,
				task:      fmt.Sprintf("%s:%d", t.Node, t.ID),
				position:  t.Status.Position,
				waiting:   time.Duration(t.Status.Waiting) * time.Millisecond,
				estimated: time.Duration(t.Status.Estimated) * time.Millisecond,
			})
		}
	}
	return l, nil
}

// groupStats are the counters of one group in _wlm/stats.
type groupStats struct {
	Completions      int64 `json:"total_completions"`
	Throttled        int64 `json:"total_throttled"`
	Queued           int64 `json:"total_queued"`
	QueueRejections  int64 `json:"total_queue_rejections"`
	QueuedCurrent    int64 `json:"queued_current"`
	QueuePeak        int64 `json:"queue_peak"`
	QueueWaits       int64 `json:"queue_wait_count"`
	QueueWaitMillis  int64 `json:"total_queue_wait_millis"`
	LongestWaitMilli int64 `json:"max_queue_wait_millis"`
}

// stats reads the counters of the group with that id from a server alone.
func (c *client) stats(ctx context.Context, group string) (groupStats, error) {
	nodes, err := c.statsByNode(ctx, group)
	if err != nil {
		return groupStats{}, err
	}
	for _, s := range nodes {
		return s, nil
	}
	return groupStats{}, fmt.Errorf("GET /_wlm/stats/%s does not speak of the group", group)
}

// statsByNode reads the counters of the group with that id from each node, by the nodes' names. The nodes of the answer, by their
// ids, are keys beside its other members.
func (c *client) statsByNode(ctx context.Context, group string) (map[string]groupStats, error) {
	var told map[string]json.RawMessage
	if err := c.do(ctx, http.MethodGet, "/_wlm/stats/"+group, "", &told); err != nil {
		return nil, err
	}
	var known struct {
		Nodes map[string]struct {
			Name string `json:"name"`
		} `json:"nodes"`
	}
	if err := c.do(ctx, http.MethodGet, "/_nodes", "", &known); err != nil {
		return nil, err
	}
	nodes := map[string]groupStats{}
	for id, raw := range told {
		var node struct {
			Groups map[string]groupStats `json:"workload_groups"`
		}
		if json.Unmarshal(raw, &node) != nil {
			continue
		}
		if g, ok := node.Groups[group]; ok {
			nodes[known.Nodes[id].Name] = g
		}
	}
	return nodes, nil
}

// health is what _cluster/health says of a cluster.
type health struct {
	Nodes   int      `json:"number_of_nodes"`
	Reasons []string `json:"reasons"` // what is not as it should be
}

func (c *client) health(ctx context.Context) (h health, err error) {
	err = c.do(ctx, http.MethodGet, "/_cluster/health", "", &h)
	return h, err
}
