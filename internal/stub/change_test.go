package stub_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/internal/stub"
	"github.com/wlmserver/wlmserver/search"
)

func TestAClosedIndexIsLeftAlone(t *testing.T) {
	f := newFixture(t)
	f.golden()
	f.index("open", 1, "")
	names, err := f.engine.SetClosed("gol*", stub.Expansion{}, true)
	if err != nil || !slices.Equal(names, []string{"golden"}) {
		t.Fatalf("closing: %v, %v", names, err)
	}
	refused := func(what string, err error) {
		t.Helper()
		if e, ok := errors.AsType[*stub.IndexClosedError](err); !ok || e.Index != "golden" || e.UUID == "" {
			t.Errorf("%s: %v, want an IndexClosedError", what, err)
		}
	}
	refused("a search", f.searchFails("golden", ""))
	refused("a search beside another", f.searchFails("open,golden", ""))
	_, err = f.engine.PutDocument("golden", "9", []byte(`{}`), false)
	refused("a document", err)
	_, err = f.engine.Document("golden", "1")
	refused("reading a document", err)
	for _, path := range []string{"", "*", "open,golden?ignore_unavailable=true"} {
		if got := parse(t, f.search(path, "")); got.Shards.Total != 1 {
			t.Errorf("search of %q asks %d shards, want those of the open index alone", path, got.Shards.Total)
		}
	}
	if infos, err := f.engine.Indices("golden"); err != nil || !infos[0].Closed || infos[0].Documents != 3 {
		t.Errorf("the closed index is %+v, %v", infos, err)
	}
	if _, err := f.engine.SetClosed("golden", stub.Expansion{}, false); err != nil {
		t.Fatal(err)
	}
	if got := parse(t, f.search("golden", "")); got.Hits.Total.Value != 3 {
		t.Errorf("opened again it has %d documents, want 3", got.Hits.Total.Value)
	}
	if _, err := f.engine.SetClosed("nosuch", stub.Expansion{}, true); !isIndexNotFound(err, "nosuch") {
		t.Errorf("closing what is not there: %v", err)
	}
}

func TestSettingsOfAnIndexChange(t *testing.T) {
	f := newFixture(t)
	f.index("a", 1, `"index.stub.hits":5,"x":"kept"`)
	hits := func() int { return parse(t, f.search("a", `{"size":0}`)).Hits.Total.Value }
	settings := func() string {
		infos, err := f.engine.Indices("a")
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, kv := range infos[0].Settings {
			if kv.Key != "index.uuid" && kv.Key != "index.creation_date" {
				all = append(all, strings.TrimPrefix(kv.Key, "index.")+"="+kv.Value)
			}
		}
		return strings.Join(all[2:], " ") // behind the type of replication and the number of shards
	}
	if got, want := settings(), "provided_name=a number_of_replicas=0 stub.hits=5 x=kept"; got != want {
		t.Fatalf("settings %q, want %q", got, want)
	}
	for _, c := range []struct {
		body, want string
		hits       int
	}{
		{`{"index":{"stub":{"hits":7}}}`, "provided_name=a number_of_replicas=0 x=kept stub.hits=7", 7},
		{`{"settings":{"index.number_of_replicas":2}}`, "provided_name=a number_of_replicas=2 x=kept stub.hits=7", 7},
		{`{"number_of_replicas":null,"index.x":null,"refresh_interval":"1s"}`, "provided_name=a number_of_replicas=1 stub.hits=7 refresh_interval=1s", 7},
		{`{"index.stub.hits":null}`, "provided_name=a number_of_replicas=1 refresh_interval=1s", 0},
	} {
		if err := f.engine.ChangeSettings("a", stub.Expansion{}, []byte(c.body)); err != nil {
			t.Fatalf("%s: %v", c.body, err)
		}
		if got := settings(); got != c.want {
			t.Errorf("after %s: %q, want %q", c.body, got, c.want)
		}
		if got := hits(); got != c.hits {
			t.Errorf("after %s: %d hits, want %d", c.body, got, c.hits)
		}
	}
	before := settings()
	for body, want := range map[string]string{
		`{}`:                               "Validation Failed",
		`{"index.number_of_shards":2}`:     "cannot be changed",
		`{"index.uuid":"x"}`:               "server's own",
		`{"x":1,"index.stub.hits":-1}`:     "[index.stub.hits]",
		`{"x":1,"index.stub.nosuch":1}`:    "nosuch",
		`{"x":1,"number_of_replicas":"a"}`: "[index.number_of_replicas]",
		`[]`:                               "no settings to change",
	} {
		if err := f.engine.ChangeSettings("a", stub.Expansion{}, []byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
	if got := settings(); got != before {
		t.Errorf("refused changes left %q, want %q", got, before)
	}
}

func TestSettingsTakeTheirShareOfTheMemory(t *testing.T) {
	f := newFixture(t, func(c *stub.Config) { c.MaxDocumentBytes = 64 << 10 })
	f.index("a", 1, "")
	value := strings.Repeat("x", 1000)
	var err error
	n := 0
	for ; err == nil && n < 1000; n++ {
		err = f.engine.ChangeSettings("a", stub.Expansion{}, []byte(`{"k`+itoa(n)+`":"`+value+`"}`))
	}
	if _, full := errors.AsType[*stub.FullError](err); !full || n < 40 || n > 64 {
		t.Fatalf("after %d settings of 1 KB each: %v, want a FullError at 64 KiB", n, err)
	}
	for range 3 { // the same again takes no more
		if err := f.engine.ChangeSettings("a", stub.Expansion{}, []byte(`{"k0":"`+value+`"}`)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.engine.DeleteIndex("a"); err != nil {
		t.Fatal(err)
	}
	f.put("b", "1", `{"x":"`+strings.Repeat("x", 60<<10)+`"}`)
}

func TestAFieldOfNumbersHoldsNoWords(t *testing.T) {
	f := newFixture(t)
	f.golden()
	f.index("other", 1, "")
	for _, query := range []string{
		`{"term":{"n":"x"}}`, `{"term":{"n":{"value":"x"}}}`, `{"terms":{"n":[1,"x"]}}`, `{"match":{"n":{"query":"x"}}}`, `{"range":{"n":{"gte":"x"}}}`,
		`{"bool":{"must":[{"match_all":{}},{"term":{"n":"x"}}]}}`, `{"constant_score":{"filter":{"term":{"n":"x"}}}}`,
	} {
		err := f.searchFails("golden", `{"query":`+query+`}`)
		phase, ok := errors.AsType[*search.PhaseError](err)
		if !ok || len(phase.Failures) != 2 {
			t.Fatalf("%s: %v, want both shards to fail", query, err)
		}
		if e, ok := errors.AsType[*stub.QueryShardError](phase.Failures[0].Err); !ok || e.Value != "x" || e.Index != "golden" {
			t.Errorf("%s: %v, want a QueryShardError", query, phase.Failures[0].Err)
		}
		if got := parse(t, f.search("golden,other", `{"query":`+query+`}`)); got.Shards.Failed != 2 || got.Shards.Successful != 1 {
			t.Errorf("%s beside an index without mappings: %+v", query, got.Shards)
		}
	}
	for _, query := range []string{
		`{"term":{"n":"1"}}`, `{"term":{"n":1}}`, `{"term":{"k":"x"}}`, `{"range":{"n":{"gte":" 1.5 ","format":"x"}}}`, `{"match":{"n":{"query":"x","lenient":true}}}`,
	} {
		if got := parse(t, f.search("golden", `{"query":`+query+`}`)); got.Shards.Failed != 0 {
			t.Errorf("%s: %+v", query, got.Shards)
		}
	}
}

func TestASearchAsksNoMoreShardsThanItMay(t *testing.T) {
	f := newFixture(t)
	f.index("a", 3, "")
	for most, fits := range map[int]bool{0: true, 3: true, 2: false} {
		c, err := f.prepare(request("a", ""))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.run(search.Limits{MaxShards: most})
		c.end()
		if _, refused := errors.AsType[*search.InvalidError](err); refused == fits || !refused && err != nil {
			t.Errorf("three shards, and at most %d: %v", most, err)
		}
	}
}
