package stub_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/internal/stub"
	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/records/recordstest"
)

// kept gives an engine that is the only one of a cluster, with these records.
func kept(r records.Repository) func(*stub.Config) {
	self := shard.Node{ID: node, Incarnation: "1"}
	return func(c *stub.Config) {
		c.Cluster = &stub.Cluster{
			Indices: r, Self: self, Members: func() stub.Members { return stub.Members{Epoch: 7, Nodes: []shard.Node{self}} },
		}
	}
}

// What is kept of an index is all there is to it, beside its documents.
func TestIndicesAreKept(t *testing.T) {
	r := recordstest.Of(nil)
	first := newFixture(t, kept(r))
	first.create("logs", `{"settings":{"number_of_shards":3,"number_of_replicas":0,"index.stub.query_time":"5ms","z":"<&>","a":{"b":["p","q"]}},
		"mappings":{"_meta":{"x":"<b> & é"},"properties":{"n":{"type":"long"},"t":{"type":"text"}}}}`)
	first.create("closed", "")
	if _, err := first.engine.SetClosed("closed", stub.Expansion{}, true); err != nil {
		t.Fatal(err)
	}
	second := newFixture(t, kept(r))
	for _, name := range []string{"logs", "closed"} {
		want, err := first.engine.Indices(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := second.engine.Indices(name)
		if err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("read again, %s is\n%+v (%v), was\n%+v", name, got, err, want)
		}
	}
	_, err := second.engine.PutDocument("logs", "1", []byte(`{"n":"x"}`), false)
	if _, ok := errors.AsType[*stub.MalformedDocumentError](err); !ok {
		t.Errorf("a text for a number: %v", err)
	}
}

// What a newer version has written outlives a change by this one.
func TestWhatIsNotKnownOfAnIndexStays(t *testing.T) {
	r := recordstest.Of(nil)
	newFixture(t, kept(r)).create("logs", "")
	var record map[string]any
	if err := json.Unmarshal([]byte(r.Stored()["logs"]), &record); err != nil {
		t.Fatal(err)
	}
	record["aliases"] = []any{"a"}
	newer, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	r.Write(map[string]string{"logs": string(newer)})
	f := newFixture(t, kept(r))
	if err := f.engine.ChangeSettings("logs", stub.Expansion{}, []byte(`{"x":1}`)); err != nil {
		t.Fatal(err)
	}
	if got := r.Stored()["logs"]; !strings.Contains(got, `"aliases":["a"]`) || !strings.Contains(got, `"index.x"`) {
		t.Errorf("after a change the record is %s", got)
	}
}

func TestRecordsThatCannotBeUsed(t *testing.T) {
	for _, record := range []string{``, `[]`, `{}`, `{"uuid":"u","number_of_shards":0,"copies":[]}`, `{"uuid":"u","number_of_shards":2,"copies":[[]],"mappings":{}}`,
		`{"uuid":"u","number_of_shards":1,"copies":[[]],"mappings":null}`, `{"uuid":"u","number_of_shards":1,"copies":[[]]}`} {
		c := stub.Config{Node: node}
		kept(recordstest.Of(map[string]string{"logs": record}))(&c)
		e, err := stub.Open(t.Context(), c)
		if err == nil {
			t.Errorf("an engine opens with the record %s", record)
			e.Close()
		} else if !strings.Contains(err.Error(), "[logs]") {
			t.Errorf("with the record %s: %v, which does not say of which index", record, err)
		}
	}
}

// Metadata that are out of reach refuse changes of indices, not of documents.
func TestWithoutMetadata(t *testing.T) {
	r := recordstest.Of(nil)
	f := newFixture(t, kept(r))
	f.create("logs", "")
	fault := &records.UnavailableError{Cause: errors.New("no leader")}
	r.Fault = fault
	for what, err := range map[string]error{
		"creating": f.engine.CreateIndex("more", nil),
		"deleting": f.engine.DeleteIndex("logs"),
		"changing": f.engine.ChangeSettings("logs", stub.Expansion{}, []byte(`{"x":1}`)),
	} {
		if !errors.Is(err, fault) {
			t.Errorf("%s: %v", what, err)
		}
	}
	f.put("logs", "1", `{}`)
	if got := parse(t, f.search("logs", "")); got.Hits.Total.Value != 1 {
		t.Errorf("a search finds %d documents", got.Hits.Total.Value)
	}
	if _, err := f.engine.PutDocument("more", "1", []byte(`{}`), false); !errors.Is(err, fault) {
		t.Errorf("a document of an index that would have to be made: %v", err)
	}
}
