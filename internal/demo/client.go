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

// call sends one request and returns the answer with its body.
func (c *client) call(ctx context.Context, method, path, body string, header http.Header) (*http.Response, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	if header != nil {
		r.Header = header.Clone()
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp, b, err
}

// do is call for requests that must be answered with 200; the answer goes into v unless that is nil.
func (c *client) do(ctx context.Context, method, path, body string, v any) error {
	resp, b, err := c.call(ctx, method, path, body, nil)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s was answered %d: %s", method, path, resp.StatusCode, bytes.TrimSpace(b))
	}
	if v == nil {
		return nil
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s %s: %w in %s", method, path, err, b)
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
	resp, body, err := c.call(ctx, http.MethodPost, path, p.searchBody(), h)
	switch {
	case err != nil:
		return outcome{state: failed, failure: err.Error()}
	case resp.StatusCode == http.StatusOK:
		return outcome{state: answered}
	case resp.StatusCode == http.StatusTooManyRequests:
		return outcome{state: refused, retryAfter: resp.Header.Get("Retry-After")}
	}
	// One that was cancelled while it waited is answered with that alone, one that ran with how its shards ended.
	var answer struct {
		Error struct {
			Type      string `json:"type"`
			RootCause []struct {
				Type string `json:"type"`
			} `json:"root_cause"`
		} `json:"error"`
	}
	const isCancelled = "task_cancelled_exception"
	switch e := &answer.Error; {
	case json.Unmarshal(body, &answer) == nil && e.Type == isCancelled:
		return outcome{state: cancelled}
	case len(e.RootCause) > 0 && e.RootCause[0].Type == isCancelled:
		return outcome{state: cancelled, ran: true}
	default:
		return outcome{state: failed, failure: fmt.Sprintf("%d: %s", resp.StatusCode, body)}
	}
}

// listing is what _tasks says of the searches.
type listing struct {
	running []int
	waiters []waiter
}

func (c *client) tasks(ctx context.Context) (listing, error) {
	var answer struct {
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
	if err := c.do(ctx, http.MethodGet, "/_tasks?"+q.Encode(), "", &answer); err != nil {
		return listing{}, err
	}
	var l listing
	for _, t := range answer.Tasks {
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

// stats reads the counters of the group with that id. The nodes of the answer are keys beside its other members.
func (c *client) stats(ctx context.Context, group string) (groupStats, error) {
	var answer map[string]json.RawMessage
	if err := c.do(ctx, http.MethodGet, "/_wlm/stats/"+group, "", &answer); err != nil {
		return groupStats{}, err
	}
	for _, raw := range answer {
		var node struct {
			Groups map[string]groupStats `json:"workload_groups"`
		}
		if json.Unmarshal(raw, &node) != nil {
			continue
		}
		if g, ok := node.Groups[group]; ok {
			return g, nil
		}
	}
	return groupStats{}, fmt.Errorf("GET /_wlm/stats/%s does not speak of the group", group)
}
