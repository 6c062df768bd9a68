package stub_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/internal/units"
	"github.com/wlmserver/wlmserver/search"
)

// Lines and columns are those that OpenSearch 3.9.0 answered.
func TestPositionsOfParseErrors(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct {
		name, body string
		column     int
		cause      string // type of the cause
		text       string
	}{
		{"an unknown key with an object", `{"nosuchkey":{"a":1}}`, 14, "", "[nosuchkey]"},
		{"an unknown key with an array", `{"nosuchkey":[1]}`, 14, "", "[nosuchkey]"},
		{"an unknown key with a string", `{"query":{"match_all":{}},"cancel_after_time_interval":"300ms"}`, 56, "", "[cancel_after_time_interval]"},
		{"an unknown query", `{"query":{"nosuchquery":{}}}`, 25, "named_object_not_found_exception", "[nosuchquery]"},
		{"one near a known one", `{"query":{"mtach_all":{}}}`, 23, "named_object_not_found_exception", "did you mean [match_all]?"},
		{"an unknown field of a query", `{"query":{"match_all":{"x":1}}}`, 28, "x_content_parse_exception", "[x]"},
		{"a query within a query", `{"query":{"bool":{"must":[{"match_all":{}},{"nosuchquery":{}}]}}}`, 59, "named_object_not_found_exception", "[nosuchquery]"},
		{"an array", `[1]`, 1, "", "an array"},
		{"a known key with the wrong kind", `{"size":{"a":1}}`, 9, "", "[size]"},
		{"null", `{"size":null}`, 9, "", "[size]"},
		{"two queries", `{"query":{"match_all":{},"term":{}}}`, 26, "", "[bool]"},
		{"a query that is no object", `{"query":{"term":1}}`, 18, "", "[term]"},
		{"an unknown part of ext", `{"ext":{"stbu":{}}}`, 16, "named_object_not_found_exception", "[stbu]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := f.searchFails("", c.body)
			e, ok := errors.AsType[*search.ParseError](err)
			if !ok {
				t.Fatalf("%v (%T), want a ParseError", err, err)
			}
			if strings.Contains(c.body, `{"bool":`) { // whose error has no place, but is caused by one that has
				if e.Type != "x_content_parse_exception" || !errors.As(e.Cause, &e) {
					t.Fatalf("%+v, want one that is caused by another", e)
				}
			}
			if e.Line != 1 || e.Column != c.column {
				t.Errorf("at %d:%d, want 1:%d", e.Line, e.Column, c.column)
			}
			if e.Type != "" {
				t.Errorf("type %q, want the default", e.Type)
			}
			if !strings.Contains(e.Reason, c.text) {
				t.Errorf("reason %q, want %q in it", e.Reason, c.text)
			}
			cause, _ := errors.AsType[*search.ParseError](e.Cause)
			if (cause != nil) != (c.cause != "") || cause != nil && (cause.Type != c.cause || cause.Line != 0) {
				t.Errorf("cause %+v, want one of type %q", cause, c.cause)
			}
		})
	}
}

func TestRefusedOptions(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct {
		path, body string
		want       any
		text       string
	}{
		{"?size=-1", ``, new(*search.InvalidError), "[size] must not be negative, it is [-1]"},
		{"?size=abc", ``, new(*search.InvalidError), "[abc] of [size]"},
		{"", `{"size":-1}`, new(*search.InvalidError), "[size]"},
		{"?from=-1", ``, new(*search.InvalidError), "[from]"},
		{"?timeout=300", ``, new(*units.ParseError), "[timeout]"},
		{"?timeout=-5s", ``, new(*units.ParseError), "[timeout]"},
		{"", `{"timeout":"300"}`, new(*units.ParseError), "[timeout]"},
		{"?search_type=bogus", ``, new(*search.InvalidError), "[bogus]"},
		{"?batched_reduce_size=1", ``, new(*search.InvalidError), "[batched_reduce_size]"},
		{"?max_concurrent_shard_requests=0", ``, new(*search.InvalidError), "[max_concurrent_shard_requests]"},
		{"?pre_filter_shard_size=0", ``, new(*search.InvalidError), "[pre_filter_shard_size]"},
		{"?allow_partial_search_results=maybe", ``, new(*search.InvalidError), "[maybe]"},
		{"?ignore_unavailable=maybe", ``, new(*search.InvalidError), "[maybe]"},
		{"?expand_wildcards=bogus", ``, new(*search.InvalidError), "[bogus]"},
		{"?track_total_hits=maybe", ``, new(*search.InvalidError), "[track_total_hits]"},
		{"?rest_total_hits_as_int=true&track_total_hits=5", ``, new(*search.InvalidError), "[rest_total_hits_as_int]"},
		{"?sort=a:up", ``, new(*search.InvalidError), "[up]"},
		{"", `{"sort":[{"a":{"order":"up"}}]}`, new(*search.InvalidError), "[up]"},
		{"", `{"sort":[{"_script":{}}]}`, new(*search.InvalidError), "[_script]"},
		{"", `{"search_after":[1]}`, new(*search.InvalidError), "[search_after]"},
		{"", `{"pit":{"id":"x"}}`, new(*search.InvalidError), "[pit]"},
		{"", `{"query":{}}`, new(*search.InvalidError), "match_all"},
		{"", `{"ext":{"stub":{"query_tiem":"1s"}}}`, new(*search.InvalidError), "did you mean [query_time]?"},
		{"", `{"ext":{"stub":{"nested":"a"}}}`, new(*search.InvalidError), "[ext.stub.nested]"},
		{"", `{"size":1`, new(*jsondoc.SyntaxError), ""},
		{"", `{"size":1,"size":2}`, new(*jsondoc.SyntaxError), "size"},
	} {
		_, err := f.engine.Prepare(request(c.path, c.body))
		if err == nil || !errors.As(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s %s: %v (%T), want a %T with %q", c.path, c.body, err, err, c.want, c.text)
		}
	}
}

func TestACountKnowsOnlyQueries(t *testing.T) {
	f := newFixture(t)
	f.golden()
	count := func(path, body string) (string, error) {
		r := request(path, body)
		r.Kind = search.Count
		return f.try(r)
	}
	for _, c := range []struct{ path, body, want string }{
		{"golden", ``, `{"count":3,"_shards":{"total":2,"successful":2,"skipped":0,"failed":0}}`},
		{"golden?pretty", `{"query":{"match_all":{}}}`, `{"count":3,"_shards":{"total":2,"successful":2,"skipped":0,"failed":0}}`},
		{"golden?size=bogus", ``, `{"count":3,"_shards":{"total":2,"successful":2,"skipped":0,"failed":0}}`},
		{"nosuch?ignore_unavailable", ``, `{"count":0,"_shards":{"total":0,"successful":0,"skipped":0,"failed":0}}`},
	} {
		if got, err := count(c.path, c.body); err != nil || got != c.want {
			t.Errorf("count of %s: %s, %v, want %s", c.path, got, err, c.want)
		}
	}
	if got, err := count("golden", `{"query":{"match_all":{}},"ext":{"stub":{"hits":7}}}`); err != nil || !strings.HasPrefix(got, `{"count":14,`) {
		t.Errorf("a count that says what it costs: %s, %v", got, err)
	}
	_, err := count("golden", `{"size":1}`)
	if e, ok := errors.AsType[*search.ParseError](err); !ok || e.Line != 1 || e.Column != 2 {
		t.Errorf("count with a size: %v, want a ParseError at 1:2", err)
	}
	if _, err := count("nosuch", ``); !isIndexNotFound(err, "nosuch") {
		t.Errorf("count of a missing index: %v", err)
	}
}

// Every shard would have to gather so many hits: each of them refuses.
func TestTheResultWindowIsBounded(t *testing.T) {
	f := newFixture(t)
	f.golden()
	f.search("golden", `{"from":9000,"size":1000}`)
	for _, path := range []string{"golden?size=10001", "golden?from=9999&size=2", "golden?from=2147483647&size=2147483647", "golden?from=9223372036854775807&size=1"} {
		err := f.searchFails(path, "")
		e, ok := errors.AsType[*search.PhaseError](err)
		if !ok || e.Phase != "query" || e.Reason != "all shards failed" || len(e.Failures) != 2 {
			t.Fatalf("%s: %v, want a PhaseError of two shards", path, err)
		}
		if _, ok := errors.AsType[*search.InvalidError](e.Failures[0].Err); !ok || e.Failures[0].Index != "golden" || e.Failures[0].Node != node {
			t.Errorf("%s: failure %+v, want an InvalidError of golden", path, e.Failures[0])
		}
	}
	// Without a shard there is nobody to refuse.
	f.search("nosuch*?size=10001", "")
}

func TestDescription(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct {
		path, body string
		keepAlive  time.Duration
		want       string
	}{
		{"golden", "{ \"query\" : {\"match_all\":{}} }", 0, `indices[golden], search_type[QUERY_THEN_FETCH], source[{"query":{"match_all":{}}}]`},
		{"a,b?search_type=dfs_query_then_fetch", "", 0, `indices[a,b], search_type[DFS_QUERY_THEN_FETCH], source[]`},
		{"", "", time.Minute, `indices[], search_type[QUERY_THEN_FETCH], scroll[1m], source[]`},
	} {
		r := request(c.path, c.body)
		r.ScrollKeepAlive = c.keepAlive
		x, err := f.engine.Prepare(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := x.Description(); got != c.want {
			t.Errorf("description %s, want %s", got, c.want)
		}
		x.Close()
	}
}

func TestSorting(t *testing.T) {
	f := newFixture(t)
	f.index("a", 3, "")
	for id, source := range map[string]string{
		"1": `{"n":10,"k":"b","o":{"d":1},"b":true}`,
		"2": `{"n":-2,"k":"a","o":{"d":2},"b":false}`,
		"3": `{"n":3.5,"k":"b","o":{"d":3},"b":true}`,
		"4": `{"k":"c","o":{"d":4}}`,
		"5": `{"n":[7,1],"k":"a"}`,
	} {
		f.put("a", id, source)
	}
	for _, c := range []struct {
		sort string
		ids  string
		keys string
	}{
		{`"n"`, "2 3 5 1 4", "[-2] [3.5] [7] [10] [null]"},
		{`{"n":{"order":"desc","missing":"_last"}}`, "1 5 3 2 4", "[10] [7] [3.5] [-2] [null]"},
		{`["k","_id"]`, "2 5 1 3 4", "[a 2] [a 5] [b 1] [b 3] [c 4]"},
		{`[{"k.keyword":"desc"},{"n":"asc"}]`, "4 3 1 2 5", "[c null] [b 3.5] [b 10] [a -2] [a 7]"},
		{`"o.d"`, "1 2 3 4 5", "[1] [2] [3] [4] [null]"},
		{`[{"b":"desc"},{"_id":"desc"}]`, "3 1 2 5 4", "[1 3] [1 1] [0 2] [null 5] [null 4]"},
		{`["_score",{"_id":"desc"}]`, "5 4 3 2 1", "[1 5] [1 4] [1 3] [1 2] [1 1]"},
	} {
		for from := range 5 {
			a := parse(t, f.search("a", `{"sort":`+c.sort+`,"size":2,"from":`+itoa(from)+`}`))
			to := min(from+2, 5)
			wantIDs := strings.Split(c.ids, " ")[from:to]
			wantKeys := strings.SplitAfter(c.keys, "] ")[from:to]
			if len(a.Hits.Hits) != len(wantIDs) {
				t.Fatalf("sort %s from %d: %d hits, want %d", c.sort, from, len(a.Hits.Hits), len(wantIDs))
			}
			for i, h := range a.Hits.Hits {
				if want := strings.TrimSpace(wantKeys[i]); h.ID != wantIDs[i] || keys(h.Sort) != want {
					t.Errorf("sort %s from %d: hit %d is %s with %s, want %s with %s", c.sort, from, i, h.ID, keys(h.Sort), wantIDs[i], want)
				}
			}
		}
	}
	// To sort by the score is no sort: everything has the same.
	if body := f.search("a", `{"sort":"_score"}`); strings.Contains(body, `"sort"`) || !strings.Contains(body, `"max_score":1.0`) {
		t.Errorf("sorted by score: %s", body)
	}
	if a := parse(t, f.search("a?sort=n:desc", "")); a.Hits.Hits[0].ID != "1" {
		t.Errorf("sorted by the parameter: %v", a.ids())
	}
}

// keys prints sort values as "[10 a null]".
func keys(values []any) string {
	var b strings.Builder
	for i, v := range values {
		if i > 0 {
			b.WriteByte(' ')
		}
		switch v := v.(type) {
		case nil:
			b.WriteString("null")
		case string:
			b.WriteString(v)
		case float64:
			if v == math.Trunc(v) {
				b.WriteString(itoa(int(v)))
			} else {
				b.WriteString("3.5") // the only fraction in these tests
			}
		}
	}
	return "[" + b.String() + "]"
}

func FuzzSearchBody(f *testing.F) {
	for _, seed := range []string{
		`{"query":{"bool":{"must":[{"term":{"a":1}}],"filter":{"match_all":{"boost":2}}}},"size":3,"from":1,"sort":[{"a":"desc"},"_doc"],"track_total_hits":false}`,
		`{"ext":{"stub":{"hits":3,"seed":1,"jitter":0.5,"fail_shards":1,"shard":0}},"_source":["a"],"timeout":"1s"}`,
		`{"sort":{"a":{"order":"asc"}},"version":true,"aggs":{},"search_after":[1]}`,
	} {
		f.Add([]byte(seed), "size=1&sort=a:desc&track_total_hits=5")
	}
	f.Fuzz(func(t *testing.T, body []byte, query string) {
		if strings.Contains(string(body), "time") || strings.Contains(string(body), "cpu") || strings.Contains(string(body), "memory") {
			t.Skip("would really cost something")
		}
		x := newFixture(t)
		x.index("a", 2, "")
		x.put("a", "1", `{"a":1}`)
		r := request("a", string(body))
		for pair := range strings.SplitSeq(query, "&") {
			name, value, _ := strings.Cut(pair, "=")
			r.Query.Add(name, value)
		}
		answer, err := x.try(r)
		if err != nil {
			return
		}
		parse(t, answer) // it is JSON, of the right shape
	})
}
