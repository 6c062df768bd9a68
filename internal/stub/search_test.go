package stub_test

import (
	"testing"
)

// The bodies below are what OpenSearch 3.9.0 answered, with the times taken out
// and, where a query would have chosen documents, all of them.

func TestAnswersLikeOpenSearch(t *testing.T) {
	f := newFixture(t)
	f.golden()
	const (
		head = `{"took":0,"timed_out":false,"_shards":{"total":2,"successful":2,"skipped":0,"failed":0},"hits":`
		hit1 = `{"_index":"golden","_id":"1","_score":1.0,"_source":{"n":1,"t":"red fox","k":"a"}}`
		hit2 = `{"_index":"golden","_id":"3","_score":1.0,"_source":{"n":3,"t":"blue fox","k":"a"}}`
		hit3 = `{"_index":"golden","_id":"Jg3vKKIB7LZ-4g7f2SD0","_score":1.0,"_source":{"n":2,"t":"red dog","k":"b"}}`
		all  = head + `{"total":{"value":3,"relation":"eq"},"max_score":1.0,"hits":[` + hit1 + `,` + hit2 + `,` + hit3 + `]}}`
		none = `{"took":0,"timed_out":false,"_shards":{"total":0,"successful":0,"skipped":0,"failed":0},"hits":{"total":{"value":0,"relation":"eq"},"max_score":0.0,"hits":[]}}`
	)
	for _, c := range []struct{ name, path, body, want string }{
		{"match_all", "golden", `{"query":{"match_all":{}}}`, all},
		{"no body", "golden", ``, all},
		{"an empty body", "golden", `{}`, all},
		{"every index", "", ``, all},
		{"a pattern", "gol*", ``, all},
		{"size 1", "golden?q=t:fox&size=1", ``, head + `{"total":{"value":3,"relation":"eq"},"max_score":1.0,"hits":[` + hit1 + `]}}`},
		{"size in the body", "golden", `{"size":2}`, head + `{"total":{"value":3,"relation":"eq"},"max_score":1.0,"hits":[` + hit1 + `,` + hit2 + `]}}`},
		{"the parameter wins", "golden?size=1", `{"size":2}`, head + `{"total":{"value":3,"relation":"eq"},"max_score":1.0,"hits":[` + hit1 + `]}}`},
		{"the last of two parameters wins", "golden?size=2&size=1", ``, head + `{"total":{"value":3,"relation":"eq"},"max_score":1.0,"hits":[` + hit1 + `]}}`},
		{"from, across the shards", "golden", `{"from":1,"size":2}`, head + `{"total":{"value":3,"relation":"eq"},"max_score":1.0,"hits":[` + hit2 + `,` + hit3 + `]}}`},
		{"from behind the end", "golden", `{"from":7}`, head + `{"total":{"value":3,"relation":"eq"},"max_score":1.0,"hits":[]}}`},
		{"size 0", "golden", `{"size":0,"aggs":{"by":{"terms":{"field":"k"}}}}`, head + `{"total":{"value":3,"relation":"eq"},"max_score":null,"hits":[]}}`},
		{"no index", "nosuch*", ``, none},
		{"a missing index, ignored", "nosuch?ignore_unavailable=true", ``, none},
		{"total as a number", "golden?rest_total_hits_as_int&size=0", ``, head + `{"total":3,"max_score":null,"hits":[]}}`},
		{"total up to 2", "golden?size=0&track_total_hits=2", ``, head + `{"total":{"value":2,"relation":"gte"},"max_score":null,"hits":[]}}`},
		{"no total", "golden?size=0", `{"track_total_hits":false}`, head + `{"max_score":null,"hits":[]}}`},
		{"no total as a number", "golden?size=0&rest_total_hits_as_int=true", `{"track_total_hits":false}`, head + `{"total":-1,"max_score":null,"hits":[]}}`},
		{"no source", "golden?size=1", `{"_source":false}`, head + `{"total":{"value":3,"relation":"eq"},"max_score":1.0,"hits":[{"_index":"golden","_id":"1","_score":1.0}]}}`},
		{"versions", "golden?size=1&version=true&_source=false", `{"seq_no_primary_term":true}`,
			head + `{"total":{"value":3,"relation":"eq"},"max_score":1.0,"hits":[{"_index":"golden","_id":"1","_version":2,"_seq_no":1,"_primary_term":1,"_score":1.0}]}}`},
		{"sorted", "golden", `{"sort":[{"n":"desc"}],"size":2,"_source":false}`,
			head + `{"total":{"value":3,"relation":"eq"},"max_score":null,"hits":[{"_index":"golden","_id":"3","_score":null,"sort":[3]},{"_index":"golden","_id":"Jg3vKKIB7LZ-4g7f2SD0","_score":null,"sort":[2]}]}}`},
		{"phase_took", "golden?phase_took=true&size=0", ``,
			`{"took":0,"phase_took":{"dfs_pre_query":0,"query":0,"fetch":0,"dfs_query":0,"expand":0,"can_match":0},` + head[len(`{"took":0,`):] + `{"total":{"value":3,"relation":"eq"},"max_score":null,"hits":[]}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := f.search(c.path, c.body); got != c.want {
				t.Errorf("answer\n %s, want\n %s", got, c.want)
			}
		})
	}
}

// What a search costs that costs nothing on purpose, its own task included. One
// shard is the least there is; five are what one search asks at once, with a fetch
// on each.
func BenchmarkFreeSearch(b *testing.B) {
	for _, shards := range []int{1, 5} {
		b.Run("shards="+itoa(shards), func(b *testing.B) {
			f := newFixture(b)
			f.index("a", shards, "")
			for i := range 20 {
				f.put("a", itoa(i), `{"n":1}`)
			}
			r := request("a?size=20", ``)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.try(r); err != nil {
					b.Fatal(err)
				}
				f.ended = f.ended[:0]
			}
		})
	}
}

// The promise is that a free search needs no timer, no goroutine and little
// memory. The bound is what it takes now, 38 allocations, and some room for the
// packages below.
func TestAFreeSearchIsCheap(t *testing.T) {
	f := newFixture(t)
	f.index("a", 1, "")
	r := request("a", ``)
	f.search("a", ``) // the worker starts
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := f.try(r); err != nil {
			t.Fatal(err)
		}
		f.ended = f.ended[:0]
	})
	if allocs > 50 {
		t.Errorf("%v allocations", allocs)
	}
}
