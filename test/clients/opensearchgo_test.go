package clients_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/opensearch-project/opensearch-go/v4"
	"github.com/opensearch-project/opensearch-go/v4/opensearchapi"

	"github.com/wlmserver/wlmserver/test/server"
)

func TestMain(m *testing.M) { server.Main(m) }

// TestOpensearchGo: a user of opensearch-go goes through the list of checks.
func TestOpensearchGo(t *testing.T) {
	t.Parallel()
	s := newSite(t, "go")
	u := &goUser{site: s, client: connect(t, opensearch.Config{Addresses: []string{s.open.URL}})}
	s.count(t.Run("product", u.product))
	s.count(t.Run("ping", u.ping))
	s.count(t.Run("groups", u.groups))
	s.count(t.Run("settings", u.settings))
	s.count(t.Run("bulk", u.bulk))
	s.count(t.Run("search", u.search))
	s.count(t.Run("count", u.count))
	s.count(t.Run("msearch", u.msearch))
	s.count(t.Run("scroll", u.scroll))
	s.count(t.Run("tasks list", u.tasksList))
	s.count(t.Run("tasks get", u.tasksGet))
	s.count(t.Run("tasks cancel parked", u.cancelParked))
	s.count(t.Run("tasks cancel running", u.cancelRunning))
	s.count(t.Run("error 400", u.error400))
	s.count(t.Run("error 401", u.error401))
	s.count(t.Run("error 403", u.error403))
	s.count(t.Run("error 404", u.error404))
	s.count(t.Run("error 405", u.error405))
	s.count(t.Run("error 429", u.error429))
	s.count(t.Run("error 500", u.error500))
	s.count(t.Run("retry after", u.retryAfter))
	s.count(t.Run("gzip", u.gzip))
	s.count(t.Run("keep-alive", u.keepAlive))
	if n := s.passed + s.failed; n != len(checks) {
		t.Errorf("%d checks instead of %d", n, len(checks))
	}
	s.judge(t)
	s.count(t.Run("example", func(t *testing.T) {
		runExample(t, "go", func(file string) (*exec.Cmd, error) { return exec.CommandContext(t.Context(), "go", "run", file), nil })
	}))
}

// goUser is somebody who uses opensearch-go.
type goUser struct {
	site   *site
	client *opensearchapi.Client

	// One search that runs and one that is parked, which the checks of tasks look at and end.
	calls map[string]<-chan error // by the state of the search
	ids   map[string]string
}

// connect makes a client whose connections end with the test.
func connect(t *testing.T, config opensearch.Config) *opensearchapi.Client {
	t.Helper()
	transport := &http.Transport{}
	config.Transport = transport
	c, err := opensearchapi.NewClient(opensearchapi.Config{Client: config})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		transport.CloseIdleConnections()
	})
	return c
}

// raw is a request that the client has no typed call for.
type raw struct {
	method, path, body string
	header             http.Header
}

func (r raw) GetRequest(string) (*http.Request, error) {
	req, err := http.NewRequest(r.method, r.path, strings.NewReader(r.body))
	if err == nil {
		maps.Copy(req.Header, r.header)
		if r.body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
	}
	return req, err
}

// do sends a request that the client has no typed call for, and gives the client's typed error.
func do[T any](ctx context.Context, c *opensearchapi.Client, r raw, v *T) error {
	res, err := opensearch.Do(ctx, c.Client, r.method, r, v)
	if err == nil && res.IsError() {
		err = opensearch.ParseError(res)
	}
	return err
}

// wantError checks that err is the client's error for this status and type, and gives what it tells.
func wantError(t *testing.T, err error, status int, kind string) opensearch.Err {
	t.Helper()
	typed, ok := errors.AsType[*opensearch.StructError](err)
	if !ok || typed.Status != status || typed.Err.Type != kind || typed.Err.Reason == "" || len(typed.Err.RootCause) == 0 {
		t.Fatalf("not a [%s] with %d: %v", kind, status, err)
	}
	return typed.Err
}

// group is what is read of a workload group.
type group struct {
	ID         string         `json:"_id"`
	Name       string         `json:"name"`
	Throttling map[string]any `json:"throttling"`
}

func (u *goUser) createGroup(t *testing.T, name, blocks string) string {
	t.Helper()
	var made group
	body := fmt.Sprintf(`{"name":%q,"resiliency_mode":"enforced","resource_limits":{"cpu":0.1},%s}`, name, blocks)
	if err := do(t.Context(), u.client, raw{method: http.MethodPut, path: "/_wlm/workload_group", body: body}, &made); err != nil {
		t.Fatal(err)
	}
	return made.ID
}

const forever = `{"ext":{"stub":{"query_time":"10m"}}}`

func (u *goUser) searchIn(ctx context.Context, group, body string) (*opensearchapi.SearchResp, error) {
	return u.client.Search(ctx, &opensearchapi.SearchReq{
		Indices: []string{"books"}, Body: strings.NewReader(body),
		Header: http.Header{"Workloadgroupid": {group}, "X-Opaque-Id": {"report-7"}},
	})
}

// begin starts a search, and gives what it ends with. It may outlive the check that has begun it.
func (u *goUser) begin(group, body string) <-chan error {
	end := make(chan error, 1)
	go func() {
		_, err := u.searchIn(context.Background(), group, body)
		end <- err
	}()
	return end
}

func (u *goUser) listTasks(t *testing.T) opensearchapi.TasksListNodes {
	t.Helper()
	list, err := u.client.Tasks.List(t.Context(), &opensearchapi.TasksListReq{Params: opensearchapi.TasksListParams{
		Actions: []string{"indices:data/read/search"}, Detailed: new(true),
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range list.Nodes {
		return node // there is one at most
	}
	return opensearchapi.TasksListNodes{}
}

// state is where a task stands; empty when it does not say.
func state(t *testing.T, status json.RawMessage) string {
	t.Helper()
	if len(status) == 0 {
		return ""
	}
	var s struct{ State string }
	if err := json.Unmarshal(status, &s); err != nil {
		t.Fatal(err)
	}
	return s.State
}

// waitFor waits for searches in these states and no others, and gives their ids.
func (u *goUser) waitFor(t *testing.T, states ...string) map[string]string {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		found := map[string]string{}
		for id, task := range u.listTasks(t).Tasks {
			if s := state(t, task.Status); s != "" {
				found[s] = id
			}
		}
		if slices.Equal(slices.Sorted(maps.Keys(found)), states) {
			return found
		}
		if time.Now().After(deadline) {
			t.Fatalf("there is %v, not %v", found, states)
		}
	}
}

func (u *goUser) product(t *testing.T) {
	info, err := u.client.Info(t.Context(), nil)
	if err != nil || info.Version.Distribution != "opensearch" || info.Version.Number == "" {
		t.Errorf("%+v, %v", info, err)
	}
}

func (u *goUser) ping(t *testing.T) {
	if res, err := u.client.Ping(t.Context(), nil); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("%v, %v", res, err)
	}
}

func (u *goUser) groups(t *testing.T) {
	const path = "/_wlm/workload_group"
	id := u.createGroup(t, "crud", `"throttling":{"attribute":"group","node_limit":3}`)
	var read struct {
		Groups []group `json:"workload_groups"`
	}
	if err := do(t.Context(), u.client, raw{method: http.MethodGet, path: path + "/crud"}, &read); err != nil || len(read.Groups) != 1 || read.Groups[0].ID != id {
		t.Errorf("%+v, %v", read, err)
	}
	var changed group
	body := `{"throttling":{"node_limit":5},"queue":{"size_per_bucket":7}}`
	if err := do(t.Context(), u.client, raw{method: http.MethodPut, path: path + "/crud", body: body}, &changed); err != nil || changed.Throttling["node_limit"] != 5.0 {
		t.Errorf("%+v, %v", changed, err)
	}
	if err := do(t.Context(), u.client, raw{method: http.MethodGet, path: path}, &read); err != nil ||
		!slices.ContainsFunc(read.Groups, func(g group) bool { return g.Name == "crud" }) {
		t.Errorf("%+v, %v", read, err)
	}
	var deleted struct{ Acknowledged bool }
	if err := do(t.Context(), u.client, raw{method: http.MethodDelete, path: path + "/crud"}, &deleted); err != nil || !deleted.Acknowledged {
		t.Errorf("%+v, %v", deleted, err)
	}
	err := do(t.Context(), u.client, raw{method: http.MethodGet, path: path + "/crud"}, &read)
	wantError(t, err, http.StatusNotFound, "resource_not_found_exception")
}

func (u *goUser) settings(t *testing.T) {
	const key = "wlm.workload_group.mode"
	put := func(value string) {
		t.Helper()
		body := fmt.Sprintf(`{"transient":{%q:%s}}`, key, value)
		if res, err := u.client.Cluster.PutSettings(t.Context(), opensearchapi.ClusterPutSettingsReq{Body: strings.NewReader(body)}); err != nil || !res.Acknowledged {
			t.Errorf("%+v, %v", res, err)
		}
	}
	want := func(text string) {
		t.Helper()
		res, err := u.client.Cluster.GetSettings(t.Context(), &opensearchapi.ClusterGetSettingsReq{
			Params: opensearchapi.ClusterGetSettingsParams{FlatSettings: new(true)},
		})
		if err != nil || string(res.Transient) != text {
			t.Errorf("%s, %v, want %s", res.Transient, err, text)
		}
	}
	put(`"enabled"`)
	want(`{"` + key + `":"enabled"}`)
	put("null")
	want("{}")
}

func (u *goUser) bulk(t *testing.T) {
	settings := `{"settings":{"number_of_shards":2,"number_of_replicas":0}}`
	if _, err := u.client.Indices.Create(t.Context(), opensearchapi.IndicesCreateReq{Index: "books", Body: strings.NewReader(settings)}); err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for i := range 30 {
		fmt.Fprintf(&lines, "{\"index\":{\"_id\":\"%d\"}}\n{\"title\":\"book %d\"}\n", i, i)
	}
	made, err := u.client.Bulk(t.Context(), opensearchapi.BulkReq{Index: "books", Body: strings.NewReader(lines.String())})
	if err != nil || made.Errors || len(made.Items) != 30 {
		t.Errorf("%+v, %v", made, err)
	}
	if _, err := u.client.Indices.Refresh(t.Context(), &opensearchapi.IndicesRefreshReq{Index: []string{"books"}}); err != nil {
		t.Error(err)
	}
	again := "{\"create\":{\"_id\":\"1\"}}\n{\"title\":\"again\"}\n"
	if res, err := u.client.Bulk(t.Context(), opensearchapi.BulkReq{Index: "books", Body: strings.NewReader(again)}); res == nil ||
		!res.Errors || res.Items[0]["create"].Status != http.StatusConflict {
		t.Errorf("%+v, %v", res, err)
	}
}

func (u *goUser) search(t *testing.T) {
	found, err := u.client.Search(t.Context(), &opensearchapi.SearchReq{
		Indices: []string{"books"}, Body: strings.NewReader(`{"query":{"match_all":{}},"size":5}`),
	})
	if err != nil || found.Hits.Total.Value != 30 || len(found.Hits.Hits) != 5 || !strings.Contains(string(found.Hits.Hits[0].Source), "book ") {
		t.Errorf("%+v, %v", found, err)
	}
}

func (u *goUser) count(t *testing.T) {
	res, err := u.client.Indices.Count(t.Context(), &opensearchapi.IndicesCountReq{
		Indices: []string{"books"}, Body: strings.NewReader(`{"query":{"term":{"title":"x"}}}`),
	})
	if err != nil || res.Count != 30 {
		t.Errorf("%+v, %v", res, err)
	}
}

func (u *goUser) msearch(t *testing.T) {
	lines := "{}\n{\"size\":1}\n{\"index\":\"nosuch\"}\n{}\n{}\n{\"query\":{\"match_all\":{}}}\n"
	found, err := u.client.MSearch(t.Context(), opensearchapi.MSearchReq{Indices: []string{"books"}, Body: strings.NewReader(lines)})
	if found == nil || len(found.Responses) != 3 {
		t.Fatalf("%+v, %v", found, err)
	}
	for i, want := range []int{http.StatusOK, http.StatusNotFound, http.StatusOK} {
		if found.Responses[i].Status != want {
			t.Errorf("the status of search %d is %d, want %d", i, found.Responses[i].Status, want)
		}
	}
}

func (u *goUser) scroll(t *testing.T) {
	page, err := u.client.Search(t.Context(), &opensearchapi.SearchReq{
		Indices: []string{"books"}, Body: strings.NewReader(`{"size":7}`), Params: opensearchapi.SearchParams{Scroll: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	id, hits := page.ScrollID, page.Hits.Hits
	for id != nil && len(hits) > 0 {
		for _, hit := range hits {
			ids[hit.ID] = true
		}
		next, err := u.client.Scroll.Get(t.Context(), opensearchapi.ScrollGetReq{
			ScrollID: *id, Params: opensearchapi.ScrollGetParams{Scroll: time.Minute},
		})
		if err != nil {
			t.Fatal(err)
		}
		id, hits = next.ScrollID, next.Hits.Hits
	}
	if id == nil || len(ids) != 30 {
		t.Fatalf("%d documents, the scroll is %v", len(ids), id)
	}
	if res, err := u.client.Scroll.Delete(t.Context(), opensearchapi.ScrollDeleteReq{ScrollIDs: []string{*id}}); err != nil || res.NumFreed != 1 {
		t.Errorf("%+v, %v", res, err)
	}
}

func (u *goUser) tasksList(t *testing.T) {
	g := u.createGroup(t, "tasks", `"throttling":{"attribute":"group","node_limit":1},"queue":{"size_per_bucket":1}`)
	u.calls = map[string]<-chan error{"running": u.begin(g, forever)}
	u.waitFor(t, "running")
	u.calls["waiting"] = u.begin(g, forever)
	u.ids = u.waitFor(t, "running", "waiting")
	node := u.listTasks(t)
	if node.Name == "" || node.TransportAddress == "" || node.Host == "" || node.IP == "" || len(node.Roles) == 0 || node.Attributes == nil || len(node.Tasks) != 2 {
		t.Errorf("%+v", node)
	}
	for _, task := range node.Tasks {
		if task.Headers["X-Opaque-Id"] != "report-7" || !task.Cancellable || !strings.Contains(task.Description, "books") || task.RunningTimeInNanos <= 0 {
			t.Errorf("%+v", task)
		}
	}
	var status struct{ Position int }
	if err := json.Unmarshal(node.Tasks[u.ids["waiting"]].Status, &status); err != nil || status.Position != 1 {
		t.Errorf("%+v, %v", status, err)
	}
}

func (u *goUser) tasksGet(t *testing.T) {
	for want, id := range u.ids {
		one, err := u.client.Tasks.Get(t.Context(), opensearchapi.TasksGetReq{TaskID: id})
		if err != nil || one.Completed || one.Task.Action != "indices:data/read/search" || state(t, one.Task.Status) != want {
			t.Errorf("%+v, %v", one, err)
		}
	}
	_, err := u.client.Tasks.Get(t.Context(), opensearchapi.TasksGetReq{TaskID: "nosuch:1"})
	wantError(t, err, http.StatusNotFound, "resource_not_found_exception")
}

func (u *goUser) cancelParked(t *testing.T) { u.cancel(t, "waiting", "task_cancelled_exception") }
func (u *goUser) cancelRunning(t *testing.T) {
	u.cancel(t, "running", "search_phase_execution_exception")
}

func (u *goUser) cancel(t *testing.T, state, kind string) {
	t.Helper()
	res, err := u.client.Tasks.Cancel(t.Context(), opensearchapi.TasksCancelReq{TaskID: u.ids[state]})
	if err != nil || len(res.Nodes) != 1 || len(res.NodeFailures) != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	if e := wantError(t, <-u.calls[state], http.StatusInternalServerError, kind); e.RootCause[0].Type != "task_cancelled_exception" {
		t.Errorf("%+v", e)
	}
}

func (u *goUser) error400(t *testing.T) {
	_, err := u.client.Search(t.Context(), &opensearchapi.SearchReq{Body: strings.NewReader(`{"query":{"nosuch":{}}}`)})
	if e := wantError(t, err, http.StatusBadRequest, "parsing_exception"); !strings.Contains(e.Reason, "nosuch") {
		t.Errorf("%+v", e)
	}
}

// as is a client of the server that has users.
func (u *goUser) as(t *testing.T, user, password string) *opensearchapi.Client {
	t.Helper()
	return connect(t, opensearch.Config{Addresses: []string{u.site.guarded.URL}, Username: user, Password: password})
}

func (u *goUser) error401(t *testing.T) {
	_, err := u.as(t, admin, "wrong").Info(t.Context(), nil)
	wantError(t, err, http.StatusUnauthorized, "security_exception")
	if _, err := u.as(t, admin, password).Ping(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func (u *goUser) error403(t *testing.T) {
	body := strings.NewReader(`{"transient":{"wlm.workload_group.mode":"enabled"}}`)
	_, err := u.as(t, plain, password).Cluster.PutSettings(t.Context(), opensearchapi.ClusterPutSettingsReq{Body: body})
	wantError(t, err, http.StatusForbidden, "security_exception")
}

func (u *goUser) error404(t *testing.T) {
	_, err := u.client.Search(t.Context(), &opensearchapi.SearchReq{Indices: []string{"nosuch"}})
	wantError(t, err, http.StatusNotFound, "index_not_found_exception")
}

// error405: the error is a text, for which the client has a type of its own.
func (u *goUser) error405(t *testing.T) {
	err := do[any](t.Context(), u.client, raw{method: http.MethodDelete, path: "/_wlm/stats"}, nil)
	if typed, ok := errors.AsType[*opensearch.StringError](err); !ok || typed.Status != http.StatusMethodNotAllowed ||
		!strings.Contains(typed.Err, "is not allowed for uri") {
		t.Error(err)
	}
}

func (u *goUser) error429(t *testing.T) {
	g := u.createGroup(t, "full", `"throttling":{"attribute":"group","node_limit":1}`)
	running := u.begin(g, forever)
	found := u.waitFor(t, "running")
	_, err := u.searchIn(t.Context(), g, "{}")
	wantError(t, err, http.StatusTooManyRequests, "rejected_execution_exception")
	if _, err := u.client.Tasks.Cancel(t.Context(), opensearchapi.TasksCancelReq{TaskID: found["running"]}); err != nil {
		t.Fatal(err)
	}
	wantError(t, <-running, http.StatusInternalServerError, "search_phase_execution_exception")
}

func (u *goUser) error500(t *testing.T) {
	_, err := u.client.Search(t.Context(), &opensearchapi.SearchReq{
		Indices: []string{"books"}, Body: strings.NewReader(`{"ext":{"stub":{"fail_shards":2}}}`),
	})
	wantError(t, err, http.StatusInternalServerError, "search_phase_execution_exception")
}

// searchPatiently searches until it is not refused, and each time waits as long as the refusal says.
func (u *goUser) searchPatiently(ctx context.Context, group string) (found *opensearchapi.SearchResp, waited int, err error) {
	for {
		found, err := u.searchIn(ctx, group, "{}")
		res := found.Inspect().Response
		if err == nil || res == nil || res.StatusCode != http.StatusTooManyRequests || waited == 10 {
			return found, waited, err
		}
		waited++
		seconds, err := strconv.Atoi(res.Header.Get("Retry-After"))
		if err != nil {
			return nil, waited, err
		}
		time.Sleep(time.Duration(seconds) * time.Second)
	}
}

func (u *goUser) retryAfter(t *testing.T) {
	g := u.createGroup(t, "patience", `"throttling":{"attribute":"group","node_limit":1}`)
	running := u.begin(g, `{"ext":{"stub":{"query_time":"3s"}}}`)
	u.waitFor(t, "running")
	found, waited, err := u.searchPatiently(t.Context(), g)
	if err != nil || found.Hits.Total.Value != 30 || waited == 0 {
		t.Errorf("%+v after %d times, %v", found, waited, err)
	}
	if err := <-running; err != nil {
		t.Error(err)
	}
}

func (u *goUser) gzip(t *testing.T) {
	c := connect(t, opensearch.Config{Addresses: []string{u.site.open.URL}, CompressRequestBody: true})
	body := `{"size":30,"query":{"terms":{"title":["` + strings.Repeat(`many words","`, 200) + `"]}}}`
	found, err := c.Search(t.Context(), &opensearchapi.SearchReq{
		Indices: []string{"books"}, Body: strings.NewReader(body), Header: http.Header{"X-Opaque-Id": {gzipMark}},
	})
	if err != nil || len(found.Hits.Hits) != 30 {
		t.Errorf("%+v, %v", found, err)
	}
}

func (u *goUser) keepAlive(t *testing.T) {
	c := connect(t, opensearch.Config{Addresses: []string{u.site.open.URL}})
	mark := func() http.Header { return http.Header{"X-Opaque-Id": {keepAliveMark}} }
	_, err := c.Search(t.Context(), &opensearchapi.SearchReq{Header: mark(), Body: strings.NewReader(`{"query":{"nosuch":{}}}`)})
	wantError(t, err, http.StatusBadRequest, "parsing_exception")
	_, err = c.Search(t.Context(), &opensearchapi.SearchReq{Header: mark(), Indices: []string{"nosuch"}})
	wantError(t, err, http.StatusNotFound, "index_not_found_exception")
	if err := do[any](t.Context(), c, raw{method: http.MethodDelete, path: "/_wlm/stats", header: mark()}, nil); err == nil {
		t.Error("DELETE /_wlm/stats: no error")
	}
	if _, err := c.Ping(t.Context(), &opensearchapi.PingReq{Header: mark()}); err != nil {
		t.Error(err)
	}
	if res, _ := c.Document.Exists(t.Context(), opensearchapi.DocumentExistsReq{Header: mark(), Index: "books", DocumentID: "nosuch"}); res == nil || res.StatusCode != http.StatusNotFound {
		t.Errorf("%v", res)
	}
	if res, err := c.Indices.Count(t.Context(), &opensearchapi.IndicesCountReq{Header: mark(), Indices: []string{"books"}}); err != nil || res.Count != 30 {
		t.Errorf("%+v, %v", res, err)
	}
}
