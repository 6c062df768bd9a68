package stub_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/internal/stub"
)

func TestCostValues(t *testing.T) {
	for _, c := range []struct {
		key, value string
		fault      string // in the error; empty: none
	}{
		{"stub.query_time", "200ms", ""},
		{"ext.stub.query_cpu", "0", ""},
		{"index.stub.fetch_memory", "64mb", ""},
		{"hits", "0", ""},
		{"hits", "2147483648", ""},
		{"fail_shards", "1024", ""},
		{"ignore_cancel", "true", ""},
		{"jitter", "0.25", ""},
		{"seed", "-7", ""},
		{"shard", "1023", ""},
		{"ext.stub.query_time", "5", "[5] of [ext.stub.query_time]"},
		{"ext.stub.query_time", "-1", "a time from 0 to 1h"},
		{"ext.stub.fetch_cpu", "61m", "a time from 0 to 1h"},
		{"ext.stub.query_memory", "lots", "[lots] of [ext.stub.query_memory]"},
		{"ext.stub.query_memory", "-1", "a size of 0 or more"},
		{"ext.stub.hits", "-1", "[-1] of [ext.stub.hits]"},
		{"ext.stub.hits", "1.5", "a whole number"},
		{"ext.stub.fail_shards", "1025", "from 0 to 1024"},
		{"ext.stub.ignore_cancel", "yes", "[true] or [false]"},
		{"ext.stub.jitter", "1.1", "a number from 0 to 1"},
		{"ext.stub.jitter", "NaN", "a number from 0 to 1"},
		{"ext.stub.seed", "x", "a whole number"},
		{"ext.stub.shard", "1024", "from 0 to 1023"},
		{"index.stub.ftech_time", "1s", "unknown key [index.stub.ftech_time]: did you mean [fetch_time]?"},
		{"index.stub.zzz", "1s", "known are [query_time]"},
	} {
		var cost stub.Cost
		err := cost.Set(c.key, c.value)
		if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s = %s: %v, want an error with %q", c.key, c.value, err, c.fault)
		}
		if err != nil && cost != (stub.Cost{}) {
			t.Errorf("%s = %s is refused and sets %+v", c.key, c.value, cost)
		}
	}
	if !slices.Contains(stub.CostKeys(), "query_time") || len(stub.CostKeys()) != 12 {
		t.Errorf("keys %v", stub.CostKeys())
	}
}

// The body wins over the index, which wins over the configuration, key by key.
func TestWhereACostComesFrom(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.index("plain", 1, "")
		f.index("own", 1, `"stub":{"query_time":"2s","hits":"7"}`)
		for _, c := range []struct {
			index, body string
			took        time.Duration
			hits        int
		}{
			{"plain", ``, 1 * time.Second, 5},
			{"own", ``, 2 * time.Second, 7},
			{"own", `{"ext":{"stub":{"query_time":"3s"}}}`, 3 * time.Second, 7},
			{"own", `{"ext":{"stub":{"query_time":null,"hits":9}}}`, 2 * time.Second, 9},
			{"plain", `{"ext":{"stub":{"query_time":"0"}}}`, 0, 5},
		} {
			start := time.Now()
			a := parse(f, f.search(c.index, c.body))
			if took := time.Since(start); took != c.took || a.Hits.Total.Value != c.hits {
				f.Errorf("search of %s with %s takes %v and finds %d, want %v and %d", c.index, c.body, took, a.Hits.Total.Value, c.took, c.hits)
			}
		}
	}, func(c *stub.Config) {
		for key, value := range map[string]string{"stub.query_time": "1s", "stub.hits": "5"} {
			if err := c.Defaults.Set(key, value); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestMadeUpHits(t *testing.T) {
	f := newFixture(t)
	f.index("a", 2, "")
	f.put("a", "1", `{"n":1}`) // on shard 0
	a := parse(t, f.search("a", `{"ext":{"stub":{"hits":3}}}`))
	if got := strings.Join(a.ids(), " "); a.Hits.Total.Value != 6 || got != "1 stub-0-1 stub-0-2 stub-1-0 stub-1-1 stub-1-2" {
		t.Errorf("%d hits: %s", a.Hits.Total.Value, got)
	}
	if got := string(a.Hits.Hits[3].Source); got != "{}" {
		t.Errorf("a made-up source: %s", got)
	}
	a = parse(t, f.search("a", `{"size":2,"from":4,"sort":"n","ext":{"stub":{"hits":3}}}`))
	if got := strings.Join(a.ids(), " "); got != "stub-1-1 stub-1-2" {
		t.Errorf("sorted, the last of them are %s", got)
	}
	a = parse(t, f.search("a", `{"ext":{"stub":{"hits":0}}}`))
	if a.Hits.Total.Value != 0 || len(a.Hits.Hits) != 0 {
		t.Errorf("none: %d, %v", a.Hits.Total.Value, a.ids())
	}
	a = parse(t, f.search("a", `{"ext":{"stub":{"hits":3,"shard":1}}}`))
	if got := strings.Join(a.ids(), " "); got != "1 stub-1-0 stub-1-1 stub-1-2" {
		t.Errorf("on one shard: %s", got)
	}
	// Numbers beyond anything that is ever listed cost nothing.
	a = parse(t, f.search("a?track_total_hits=true", `{"size":10000,"sort":"n","ext":{"stub":{"hits":2147483648}}}`))
	if a.Hits.Total.Value != 2<<31 || len(a.Hits.Hits) != 10000 {
		t.Errorf("%d hits in all, %d listed", a.Hits.Total.Value, len(a.Hits.Hits))
	}
	// As OpenSearch does, it counts up to ten thousand when nobody says more.
	if a = parse(t, f.search("a?size=0", `{"ext":{"stub":{"hits":6000}}}`)); a.Hits.Total.Value != 10_000 || a.Hits.Total.Relation != "gte" {
		t.Errorf("twelve thousand hits are told as %+v", a.Hits.Total)
	}
}

func TestJitter(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.index("a", 1, "")
		took := func(stub string) time.Duration {
			start := time.Now()
			f.search("a", `{"size":0,"ext":{"stub":{"query_time":"10s",`+stub+`}}}`)
			return time.Since(start)
		}
		seeded := took(`"jitter":0.5,"seed":7`)
		if again := took(`"jitter":0.5,"seed":7`); again != seeded {
			f.Errorf("the same seed takes %v and %v", seeded, again)
		}
		if other := took(`"jitter":0.5,"seed":8`); other == seeded {
			f.Errorf("two seeds both take %v", other)
		}
		varied := make(map[time.Duration]bool)
		for range 50 {
			d := took(`"jitter":0.5`)
			if d < 5*time.Second || d > 15*time.Second {
				f.Errorf("half more or less than 10s is %v", d)
			}
			varied[d] = true
		}
		if len(varied) < 2 {
			f.Errorf("without a seed every search takes the same")
		}
		if d := took(`"jitter":0`); d != 10*time.Second {
			f.Errorf("without jitter 10s is %v", d)
		}
	})
}
