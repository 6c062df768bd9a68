// Package clients drives the real server with OpenSearch's own clients, written as their users write them.
package clients_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/opensearch-project/opensearch-go/v4"
	"github.com/opensearch-project/opensearch-go/v4/opensearchapi"

	"github.com/wlmserver/wlmserver/test/server"
)

func TestMain(m *testing.M) { server.Main(m) }

// raw is a request that the client has no typed call for.
type raw struct{ method, path, body string }

func (r raw) GetRequest(string) (*http.Request, error) {
	req, err := http.NewRequest(r.method, r.path, bytes.NewBufferString(r.body))
	if err == nil && r.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, err
}

// do sends a request that the client has no typed call for, and gives the client's typed error.
func do(ctx context.Context, c *opensearchapi.Client, r raw, v *json.RawMessage) error {
	res, err := opensearch.Do(ctx, c.Client, r.method, r, v)
	if err == nil && res.IsError() {
		err = opensearch.ParseError(res)
	}
	return err
}

// TestOpensearchGo: a user of opensearch-go makes a group, searches, looks at tasks, cancels one, and gets typed errors.
func TestOpensearchGo(t *testing.T) {
	p := server.Start(t)
	client, err := opensearchapi.NewClient(opensearchapi.Config{Client: opensearch.Config{Addresses: []string{p.URL}, Transport: p.Client.Transport}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx := t.Context()

	info, err := client.Info(ctx, nil)
	if err != nil || info.Version.Distribution != "opensearch" || info.Version.Number == "" {
		t.Fatalf("info: %+v, %v", info, err)
	}
	if res, err := client.Ping(ctx, nil); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("ping: %v, %v", res, err)
	}
	if _, err := client.Indices.Create(ctx, opensearchapi.IndicesCreateReq{
		Index: "docs", Body: strings.NewReader(`{"settings":{"number_of_shards":2,"number_of_replicas":0}}`),
	}); err != nil {
		t.Fatalf("create index: %v", err)
	}
	if _, err := client.Index(ctx, opensearchapi.IndexReq{Index: "docs", DocumentID: "1", Body: strings.NewReader(`{"n":1}`)}); err != nil {
		t.Fatalf("index a document: %v", err)
	}

	var group struct {
		ID   string `json:"_id"`
		Name string `json:"name"`
	}
	create := raw{http.MethodPut, "/_wlm/workload_group", `{"name":"analytics","resiliency_mode":"enforced","resource_limits":{"cpu":0.2},
		"throttling":{"attribute":"group","node_limit":1},"queue":{"size_per_bucket":1}}`}
	var text json.RawMessage
	if err := do(ctx, client, create, &text); err != nil {
		t.Fatalf("create a group: %v", err)
	}
	if err := json.Unmarshal(text, &group); err != nil || group.Name != "analytics" || group.ID == "" {
		t.Fatalf("create a group: %+v, %v", group, err)
	}
	tagged := http.Header{"Workloadgroupid": []string{group.ID}, "X-Opaque-Id": []string{"report-7"}}
	search := func(body string) (*opensearchapi.SearchResp, error) {
		return client.Search(ctx, &opensearchapi.SearchReq{Indices: []string{"docs"}, Body: strings.NewReader(body), Header: tagged.Clone()})
	}
	found, err := search(`{"query":{"match_all":{}}}`)
	if err != nil || found.Hits.Total.Value != 1 || len(found.Hits.Hits) != 1 {
		t.Fatalf("search: %+v, %v", found, err)
	}

	t.Run("tasks", func(t *testing.T) {
		const long = `{"ext":{"stub":{"query_time":"10m"}}}`
		type answer struct{ err error }
		answers := make(chan answer, 2)
		for range 2 {
			go func() {
				_, err := search(long)
				answers <- answer{err}
			}()
		}
		p.AwaitQueued(group.ID, 1)
		list, err := client.Tasks.List(ctx, &opensearchapi.TasksListReq{Params: opensearchapi.TasksListParams{
			Actions: []string{"indices:data/read/search"}, Detailed: new(true),
		}})
		if err != nil {
			t.Fatal(err)
		}
		var running, parked string
		for _, node := range list.Nodes {
			for id, task := range node.Tasks {
				if task.Headers["X-Opaque-Id"] != "report-7" || !task.Cancellable || !strings.Contains(task.Description, "docs") {
					t.Errorf("task %+v", task)
				}
				var status struct {
					State    string
					Position int
				}
				if err := json.Unmarshal(task.Status, &status); err == nil && status.State == "waiting" && status.Position == 1 {
					parked = id
				} else {
					running = id
				}
			}
		}
		if running == "" || parked == "" {
			t.Fatalf("running %q, parked %q in %+v", running, parked, list)
		}
		one, err := client.Tasks.Get(ctx, opensearchapi.TasksGetReq{TaskID: running})
		if err != nil || one.Completed || one.Task.Action != "indices:data/read/search" {
			t.Errorf("get: %+v, %v", one, err)
		}
		for _, id := range []string{parked, running} {
			cancelled, err := client.Tasks.Cancel(ctx, opensearchapi.TasksCancelReq{TaskID: id})
			if err != nil || len(cancelled.Nodes) != 1 || len(cancelled.NodeFailures) != 0 {
				t.Errorf("cancel %s: %+v, %v", id, cancelled, err)
			}
			a := <-answers
			var typed *opensearch.StructError
			if !errors.As(a.err, &typed) || typed.Status != http.StatusInternalServerError || len(typed.Err.RootCause) == 0 ||
				typed.Err.RootCause[0].Type != "task_cancelled_exception" {
				t.Errorf("a cancelled search: %v", a.err)
			}
		}
	})

	t.Run("errors", func(t *testing.T) {
		done := make(chan error, 2)
		long := func(ctx context.Context) {
			_, err := client.Search(ctx, &opensearchapi.SearchReq{Indices: []string{"docs"}, Header: tagged.Clone(), Body: strings.NewReader(`{"ext":{"stub":{"query_time":"10m"}}}`)})
			done <- err
		}
		held, release := context.WithCancel(ctx)
		go long(held)
		go long(held)
		p.AwaitQueued(group.ID, 1)
		for _, c := range []struct {
			name, errType string
			status        int
			call          func() error
		}{
			{"refused", "rejected_execution_exception", http.StatusTooManyRequests, func() error { _, err := search(`{}`); return err }},
			{"unknown query", "parsing_exception", http.StatusBadRequest, func() error { _, err := search(`{"query":{"nosuch":{}}}`); return err }},
			{"unknown index", "index_not_found_exception", http.StatusNotFound, func() error {
				_, err := client.Search(ctx, &opensearchapi.SearchReq{Indices: []string{"nosuch"}})
				return err
			}},
			{"bad group", "illegal_argument_exception", http.StatusBadRequest, func() error {
				return do(ctx, client, raw{http.MethodPut, "/_wlm/workload_group/analytics", `{"throttling":{"node_limit":-5}}`}, &text)
			}},
			{"unknown group", "resource_not_found_exception", http.StatusNotFound, func() error {
				return do(ctx, client, raw{http.MethodGet, "/_wlm/workload_group/nosuch", ""}, &text)
			}},
			{"unknown task", "resource_not_found_exception", http.StatusNotFound, func() error {
				_, err := client.Tasks.Get(ctx, opensearchapi.TasksGetReq{TaskID: "nosuch:1"})
				return err
			}},
		} {
			var typed *opensearch.StructError
			if err := c.call(); !errors.As(err, &typed) || typed.Status != c.status || typed.Err.Type != c.errType || typed.Err.Reason == "" {
				t.Errorf("%s: %v (%+v)", c.name, err, typed)
			}
		}
		release()
		for range 2 {
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("a search whose client has gone: %v", err)
			}
		}
		p.Await("the searches of a client that has gone are gone", func() bool { return len(p.Tasks("*search*")) == 0 })
	})
}
