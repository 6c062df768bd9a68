package clients_test

import (
	"context"
	"encoding/csv"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/test/server"
)

// TestBenchmark lets opensearch-benchmark run a workload of the usual form against a server whose group has one search at a time:
// the others wait, none is refused, and there is a summary at the end.
func TestBenchmark(t *testing.T) {
	t.Parallel()
	bench := program{name: "benchmark", locks: []string{"requirements.txt"}, install: pip}
	source, folder := bench.ready(t)
	p := server.Start(t)
	group := p.CreateGroup("benchmark", `"throttling":{"attribute":"group","node_limit":1},"queue":{"size_per_bucket":10}`)
	p.Must(http.MethodPut, "/_rules/workload_group", `{"description":"the benchmark","index_pattern":["books"],"workload_group":"`+group+`"}`, nil)
	wire := newTap(t, p.URL)
	s := &site{}
	s.countAtEnd(t, bench.name)

	home := t.TempDir()
	workload := filepath.Join(home, "workload") // a copy: files are put beside the documents
	if err := os.CopyFS(workload, os.DirFS(filepath.Join(source, "workload"))); err != nil {
		t.Fatal(err)
	}
	results := filepath.Join(home, "results.csv")
	ctx, stop := context.WithTimeout(t.Context(), longest)
	defer stop()
	c := exec.CommandContext(ctx, filepath.Join(folder, "bin", "opensearch-benchmark"), "run",
		"--pipeline=benchmark-only", "--offline", "--workload-path="+workload, "--target-hosts="+strings.TrimPrefix(wire.URL, "http://"),
		"--on-error=abort", "--results-format=csv", "--results-file="+results)
	c.Env = append(os.Environ(), "BENCHMARK_HOME="+home)
	s.count(t.Run("from start to summary", func(t *testing.T) {
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}))
	s.count(t.Run("summary: every task, without errors", func(t *testing.T) { checkSummary(t, results) }))
	s.count(t.Run("the searches waited, and none was refused", func(t *testing.T) {
		if got := p.Stats(group); got.Queued == 0 || got.QueueRejections != 0 || got.Completions < 40 {
			t.Errorf("%+v", got)
		}
	}))
	s.count(t.Run("wire: nothing was asked for in vain", func(t *testing.T) {
		all, err := wire.exchanges()
		if err != nil || len(all) < 50 {
			t.Fatalf("%d exchanges, %v", len(all), err)
		}
		made := false // before, there is no index to be asked about
		for _, e := range all {
			made = made || e.request.Method == http.MethodPut && e.request.URL.Path == "/books"
			switch status := e.response.StatusCode; {
			case status < 400:
			case made || status != http.StatusNotFound:
				t.Errorf("%s %s: %d %s", e.request.Method, e.request.URL, status, e.body)
			default:
				if err := e.wellFormedError(); err != nil {
					t.Errorf("%s %s: %v", e.request.Method, e.request.URL, err)
				}
			}
		}
	}))
}

// checkSummary reads the results, which have a metric, a task, a value and its unit a line.
func checkSummary(t *testing.T, file string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{"index-append": true, "match-all": true, "pages-by-year": true, "pages": true, "group-statistics": true}
	for _, row := range rows {
		if len(row) != 4 {
			t.Fatalf("%q", row)
		}
		if metric, task, value := row[0], row[1], row[2]; metric == "error rate" {
			delete(left, task)
			if strings.Trim(value, "0.") != "" {
				t.Errorf("%s has an error rate of %s %s", task, value, row[3])
			}
		}
	}
	if len(left) > 0 {
		t.Errorf("without a result: %v, in %q", left, rows)
	}
}
