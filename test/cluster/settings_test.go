package cluster_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	server "github.com/wlmserver/wlmserver/internal/node"
)

// server is a node with all of its server, in the test's process.
func (c *cluster) server(name string, log io.Writer, overrides ...string) *server.Node {
	c.Helper()
	config, err := server.Load(server.Sources{Overrides: append([]string{
		"node.name=" + name, "cluster.name=test", "path.data=" + c.TempDir(), "http.port=0", "transport.port=0", "logger.format=json",
		"cluster.etcd.endpoints=" + c.etcd.Endpoint(), "cluster.etcd.prefix=" + c.prefix,
	}, overrides...)})
	if err != nil {
		c.Fatal(err)
	}
	config.Log.Output = log
	n, err := server.Start(c.Context(), config)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() {
		if err := n.Close(); err != nil {
			c.Error(err)
		}
	})
	return n
}

// ask sends a request and returns the answer's body.
func ask(t testing.TB, n *server.Node, method, path, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, n.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s, %s, %v", method, path, answer.Status, b, err)
	}
	return string(b)
}

// What a request sets on one server acts on the others, transient settings too; and of two start values one acts on both.
func TestSettingsOfServers(t *testing.T) {
	c := newCluster(t)
	var log journal
	a := c.server("a", io.Discard, "search.default_search_timeout=1s")
	b := c.server("b", &log, "search.default_search_timeout=2s")
	ask(t, a, "PUT", "/_cluster/settings", `{"transient":{"search.max_buckets":8},"persistent":{"search.cancel_after_time_interval":"9s"}}`)
	got := ask(t, b, "GET", "/_cluster/settings?flat_settings&include_defaults", "")
	for _, part := range []string{
		`"transient":{"search.max_buckets":"8"}`, `"persistent":{"search.cancel_after_time_interval":"9s"}`, `"search.default_search_timeout":"1s"`,
	} {
		if !strings.Contains(got, part) {
			t.Errorf("%s is not in %s", part, got)
		}
	}
	if !strings.Contains(log.String(), "[2s] of [search.default_search_timeout]") {
		t.Errorf("b does not tell that its start value has no effect: %s", log.String())
	}
}
