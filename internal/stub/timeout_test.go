package stub_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/search"
)

func TestTimeout(t *testing.T) {
	slow := `{"ext":{"stub":{"query_time":"6s"}}}`
	oneSlow := `{"ext":{"stub":{"query_time":"6s","shard":1}}}`
	const none = `{"took":0,"timed_out":true,"_shards":{"total":2,"successful":2,"skipped":0,"failed":0},"hits":{"total":{"value":0,"relation":"eq"},"max_score":null,"hits":[]}}`
	cluster := func(d time.Duration) search.Limits {
		return search.Limits{Cluster: search.Bounds{Timeout: &d}}
	}
	bubble(t, func(f *fixture) {
		f.golden()
		for _, c := range []struct {
			name, path, body string
			limits           search.Limits
			took             time.Duration
			ids              string // of the hits; "none" for the answer above
			timedOut         bool
		}{
			{"as a parameter", "golden?timeout=300ms", slow, search.Limits{}, 300 * time.Millisecond, "none", true},
			{"in the body", "golden", `{"timeout":"300ms",` + slow[1:], search.Limits{}, 300 * time.Millisecond, "none", true},
			{"of the cluster", "golden", slow, cluster(300 * time.Millisecond), 300 * time.Millisecond, "none", true},
			{"the request's before the cluster's", "golden?timeout=-1", slow, cluster(300 * time.Millisecond), 6 * time.Second, "1 3 Jg3vKKIB7LZ-4g7f2SD0", false},
			{"of one shard", "golden?timeout=300ms", oneSlow, search.Limits{}, 300 * time.Millisecond, "1 3", true},
			{"at once", "golden?timeout=0ms", slow, search.Limits{}, 0, "none", true},
			{"at once, though it costs nothing", "golden?timeout=0ms", ``, search.Limits{}, 0, "none", true},
			{"long enough", "golden?timeout=7s", slow, search.Limits{}, 6 * time.Second, "1 3 Jg3vKKIB7LZ-4g7f2SD0", false},
			{"of a query that does not look", "golden?timeout=1s", `{"ext":{"stub":{"query_time":"6s","ignore_cancel":true}}}`, search.Limits{}, 6 * time.Second, "1 3 Jg3vKKIB7LZ-4g7f2SD0", false},
			{"it does not bound the fetch", "golden?timeout=1s", `{"ext":{"stub":{"fetch_time":"6s"}}}`, search.Limits{}, 6 * time.Second, "1 3 Jg3vKKIB7LZ-4g7f2SD0", false},
		} {
			o := f.start(request(c.path, c.body), c.limits)
			<-o.done
			if o.err != nil || o.took != c.took {
				f.Errorf("%s: takes %v, %v, want %v", c.name, o.took, o.err, c.took)
				continue
			}
			a := parse(f, o.body)
			if c.ids == "none" && o.body != none || c.ids != "none" && strings.Join(a.ids(), " ") != c.ids || a.TimedOut != c.timedOut {
				f.Errorf("%s: %s", c.name, o.body)
			}
		}
	})
}

// A search of one shard fetches in the same task; its time limit is over then.
func TestTimeoutDoesNotBoundTheFetchOfASingleShard(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.index("one", 1, "")
		f.put("one", "1", `{}`)
		o := f.start(request("one?timeout=2s", `{"ext":{"stub":{"query_time":"1s","fetch_time":"6s"}}}`), search.Limits{})
		<-o.done
		if a := parse(f, o.body); o.took != 7*time.Second || a.TimedOut || len(a.Hits.Hits) != 1 {
			f.Errorf("after %v: %s", o.took, o.body)
		}
	})
}

func TestTimeoutWithoutPartialResults(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.golden()
		for body, c := range map[string]struct {
			reason string
			shards []int
		}{
			`{"ext":{"stub":{"query_time":"6s"}}}`:           {"all shards failed", []int{0, 1}},
			`{"ext":{"stub":{"query_time":"6s","shard":1}}}`: {"Partial shards failure", []int{1}},
		} {
			o := f.start(request("golden?timeout=300ms&allow_partial_search_results=false", body), search.Limits{})
			<-o.done
			e, ok := errors.AsType[*search.PhaseError](o.err)
			if !ok || e.Phase != "query" || e.Reason != c.reason || len(e.Failures) != len(c.shards) || o.took != 300*time.Millisecond {
				f.Fatalf("after %v: %+v, want %s", o.took, e, c.reason)
			}
			for i, shard := range c.shards {
				se, ok := e.Failures[i].Err.(*search.ShardError)
				if !ok || e.Failures[i].Shard != shard || se.Type != "query_phase_execution_exception" || se.Reason != "Time exceeded" || se.Status != 500 {
					f.Errorf("failure %+v of shard %d", e.Failures[i], shard)
				}
			}
		}
	})
}
