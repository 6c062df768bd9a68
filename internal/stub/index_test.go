package stub_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/internal/stub"
	"github.com/wlmserver/wlmserver/internal/units"
	"github.com/wlmserver/wlmserver/search"
)

func TestIndexInfo(t *testing.T) {
	f := newFixture(t)
	f.golden()
	f.index("other", 1, `"index":{"refresh_interval":"5s","analysis":{"x":["p","q"]}},"index.stub.query_time":"1s"`)
	infos, err := f.engine.Indices("golden,oth*")
	if err != nil || len(infos) != 2 {
		t.Fatalf("Indices: %d, %v", len(infos), err)
	}
	g := infos[0]
	if g.Name != "golden" || g.Shards != 2 || g.Replicas != 0 || g.Documents != 3 || len(g.UUID) != 22 {
		t.Errorf("golden is %+v", g)
	}
	if want := `{"properties":{"n":{"type":"integer"},"t":{"type":"text"},"k":{"type":"keyword"}}}`; string(g.Mappings) != want {
		t.Errorf("mappings %s, want %s", g.Mappings, want)
	}
	want := []stub.KV{
		{Key: "index.replication.type", Value: "DOCUMENT"},
		{Key: "index.number_of_shards", Value: "2"},
		{Key: "index.provided_name", Value: "golden"},
		{Key: "index.creation_date", Value: fmt.Sprint(g.Created.UnixMilli())},
		{Key: "index.number_of_replicas", Value: "0"},
		{Key: "index.uuid", Value: g.UUID},
	}
	if !slices.Equal(g.Settings, want) {
		t.Errorf("settings %v, want %v", g.Settings, want)
	}
	extra := []stub.KV{
		{Key: "index.refresh_interval", Value: "5s"},
		{Key: "index.analysis.x", Value: `["p","q"]`, List: true},
		{Key: "index.stub.query_time", Value: "1s"},
	}
	if got := infos[1].Settings[len(want):]; !slices.Equal(got, extra) {
		t.Errorf("further settings %v, want %v", got, extra)
	}
}

func TestDefaultsOfAnIndex(t *testing.T) {
	f := newFixture(t)
	for name, body := range map[string]string{"a": "", "b": "{}", "c": `{"mappings":null,"aliases":{}}`, "d": `{"settings":{"index":{"number_of_shards":null}}}`} {
		f.create(name, body)
		infos, err := f.engine.Indices(name)
		if err != nil || len(infos) != 1 || infos[0].Shards != 1 || infos[0].Replicas != 1 || string(infos[0].Mappings) != "{}" {
			t.Errorf("an index made with %q is %+v, %v", body, infos, err)
		}
	}
}

func TestBadIndexBodies(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct {
		body string
		want any // pointer to the type of the error
		text string
	}{
		{`{"settings":{"number_of_shards":0}}`, new(*search.InvalidError), "[0] of [index.number_of_shards]"},
		{`{"settings":{"number_of_shards":1025}}`, new(*search.InvalidError), "from 1 to 1024"},
		{`{"settings":{"index":{"number_of_replicas":-1}}}`, new(*search.InvalidError), "[index.number_of_replicas]"},
		{`{"settings":{"index.stub.query_time":"5"}}`, new(*units.ParseError), "[index.stub.query_time]"},
		{`{"settings":{"index":{"stub":{"qery_time":"5s"}}}}`, new(*search.InvalidError), "did you mean [query_time]?"},
		{`{"setings":{}}`, new(*search.ParseError), "[setings]"},
		{`{"settings":[]}`, new(*search.ParseError), "[settings]"},
		{`[]`, new(*search.ParseError), "expected an object"},
		{`{"aliases":{"x":{}}}`, new(*search.InvalidError), "[aliases]"},
		{`{"mappings":{"properties":1.5}}`, new(*search.ParseError), "[properties] has to be an object"},
		{`{"mappings":{"properties":[{}]}}`, new(*search.ParseError), "[properties] has to be an object"},
		{`{"settings":`, new(*jsondoc.SyntaxError), ""},
	} {
		err := f.engine.CreateIndex("a", []byte(c.body))
		if err == nil || !errors.As(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("index with %s: %v (%T), want a %T with %q", c.body, err, err, c.want, c.text)
		}
	}
	if infos, _ := f.engine.Indices(""); len(infos) != 0 {
		t.Errorf("a refused index is there: %+v", infos)
	}
}

func TestAnIndexIsMadeOnce(t *testing.T) {
	f := newFixture(t)
	f.index("a", 1, "")
	err := f.engine.CreateIndex("a", nil)
	infos, _ := f.engine.Indices("a")
	if e, ok := errors.AsType[*stub.IndexExistsError](err); !ok || e.Index != "a" || e.UUID != infos[0].UUID {
		t.Errorf("second creation: %v, want an IndexExistsError of the first", err)
	}
}

func TestDeletingIndices(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"a1", "a2", "b", "c"} {
		f.index(name, 1, "")
	}
	if err := f.engine.DeleteIndex("b,nosuch"); !isIndexNotFound(err, "nosuch") {
		t.Errorf("deleting b and nosuch: %v", err)
	}
	if got := f.names(); !slices.Equal(got, []string{"a1", "a2", "b", "c"}) {
		t.Errorf("a failed deletion leaves %v", got)
	}
	if err := f.engine.DeleteIndex("a*,b"); err != nil {
		t.Error(err)
	}
	if err := f.engine.DeleteIndex("nosuch*"); err != nil {
		t.Error(err)
	}
	if got := f.names(); !slices.Equal(got, []string{"c"}) {
		t.Errorf("deletions leave %v", got)
	}
}

func TestShardsAreBounded(t *testing.T) {
	f := newFixture(t)
	for i := range 9 {
		f.index("a"+itoa(i), 1024, "")
	}
	err := f.engine.CreateIndex("b", []byte(`{"settings":{"number_of_shards":1024}}`))
	if _, ok := errors.AsType[*search.ValidationError](err); !ok || !strings.Contains(err.Error(), "[10240] shards, and the most is [10000]") {
		t.Errorf("shards beyond 10,000: %v", err)
	}
	if err := f.engine.DeleteIndex("a1"); err != nil {
		t.Fatal(err)
	}
	f.index("b", 1024, "")
	f.search("*?size=0&max_concurrent_shard_requests=100", "") // over all of them
}

func (f *fixture) names() []string {
	f.Helper()
	infos, err := f.engine.Indices("_all")
	if err != nil {
		f.Fatal(err)
	}
	var names []string
	for _, i := range infos {
		names = append(names, i.Name)
	}
	return names
}

func isIndexNotFound(err error, name string) bool {
	e, ok := errors.AsType[*search.IndexNotFoundError](err)
	return ok && e.Index == name
}
