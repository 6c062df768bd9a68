package stub_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/wlmserver/wlmserver/internal/stub"
	"github.com/wlmserver/wlmserver/search"
)

func TestDocumentResultsReadLikeOpenSearchs(t *testing.T) {
	f := newFixture(t)
	f.index("golden", 2, "")
	for _, c := range []struct {
		name   string
		change func() (stub.DocumentResult, error)
		status int
		want   string
	}{
		{"created", func() (stub.DocumentResult, error) {
			return f.engine.PutDocument("golden", "1", []byte(`{"n":1}`), false)
		}, 201, `{"_index":"golden","_id":"1","_version":1,"result":"created","_shards":{"total":1,"successful":1,"failed":0},"_seq_no":0,"_primary_term":1}`},
		{"updated", func() (stub.DocumentResult, error) {
			return f.engine.PutDocument("golden", "1", []byte(`{"n":1}`), false)
		}, 200, `{"_index":"golden","_id":"1","_version":2,"result":"updated","_shards":{"total":1,"successful":1,"failed":0},"_seq_no":1,"_primary_term":1}`},
		{"on the other shard", func() (stub.DocumentResult, error) {
			return f.engine.PutDocument("golden", "0", []byte(`{"n":2}`), true)
		}, 201, `{"_index":"golden","_id":"0","_version":1,"result":"created","_shards":{"total":1,"successful":1,"failed":0},"_seq_no":0,"_primary_term":1}`},
		{"noop", func() (stub.DocumentResult, error) {
			return f.engine.UpdateDocument("golden", "0", []byte(`{"doc":{"n":2}}`))
		}, 200, `{"_index":"golden","_id":"0","_version":1,"result":"noop","_shards":{"total":0,"successful":0,"failed":0},"_seq_no":0,"_primary_term":1}`},
		{"deleted", func() (stub.DocumentResult, error) { return f.engine.DeleteDocument("golden", "1") },
			200, `{"_index":"golden","_id":"1","_version":3,"result":"deleted","_shards":{"total":1,"successful":1,"failed":0},"_seq_no":2,"_primary_term":1}`},
		{"not found", func() (stub.DocumentResult, error) { return f.engine.DeleteDocument("golden", "1") },
			404, `{"_index":"golden","_id":"1","_version":1,"result":"not_found","_shards":{"total":1,"successful":1,"failed":0},"_seq_no":3,"_primary_term":1}`},
	} {
		r, err := c.change()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got, err := json.Marshal(r)
		if err != nil || string(got) != c.want || r.Status() != c.status {
			t.Errorf("%s: %d %s, %v, want %d %s", c.name, r.Status(), got, err, c.status, c.want)
		}
	}
}

func TestGettingDocuments(t *testing.T) {
	f := newFixture(t)
	f.golden()
	d, err := f.engine.Document("golden", "1")
	if err != nil || !d.Found || d.Version != 2 || d.SeqNo != 1 || string(d.Source) != `{"n":1,"t":"red fox","k":"a"}` {
		t.Errorf("document 1 is %+v, %v", d, err)
	}
	d, err = f.engine.Document("golden", "99")
	if err != nil || d.Found || d.Index != "golden" || d.ID != "99" {
		t.Errorf("document 99 is %+v, %v", d, err)
	}
	if _, err := f.engine.Document("nosuch", "1"); !isIndexNotFound(err, "nosuch") {
		t.Errorf("document of a missing index: %v", err)
	}
	if _, err := f.engine.DeleteDocument("nosuch", "1"); !isIndexNotFound(err, "nosuch") {
		t.Errorf("deletion in a missing index: %v", err)
	}
}

func TestDocumentsMakeTheirIndex(t *testing.T) {
	f := newFixture(t)
	r := f.put("new", "", ` { "a" : [ 1, 2 ] } `)
	if r.Result != stub.Created || len(r.ID) != 20 || r.Shards.Total != 2 {
		t.Errorf("the first document of an index: %+v", r)
	}
	if d, err := f.engine.Document("new", r.ID); err != nil || string(d.Source) != `{"a":[1,2]}` {
		t.Errorf("it is %+v, %v", d, err)
	}
	if _, err := f.engine.PutDocument("_bad", "1", []byte(`{}`), false); err == nil {
		t.Error("a document makes an index of a name that is forbidden")
	}
}

func TestRefusedDocuments(t *testing.T) {
	f := newFixture(t)
	f.golden()
	_, err := f.engine.PutDocument("golden", "1", []byte(`{}`), true)
	if e, ok := errors.AsType[*stub.VersionConflictError](err); !ok || e.ID != "1" || e.Shard != 0 || e.Version != 2 || len(e.UUID) != 22 {
		t.Errorf("creating a document that exists: %v", err)
	}
	for source, cause := range map[string]string{
		`not json`:          "not_x_content_exception",
		`[1]`:               "not_x_content_exception",
		`{"n":"x"}`:         "number_format_exception",
		`{"n":true}`:        "input_coercion_exception",
		`{"n":{"a":1}}`:     "input_coercion_exception",
		`{"n":[1,"2","c"]}`: "number_format_exception",
	} {
		_, err := f.engine.PutDocument("golden", "9", []byte(source), false)
		if e, ok := errors.AsType[*stub.MalformedDocumentError](err); !ok || e.CauseType != cause || e.CauseReason == "" {
			t.Errorf("document %s: %v, want a MalformedDocumentError with %s", source, err, cause)
		}
	}
	for _, source := range []string{`{"n":"7"}`, `{"n":[1,2.5,null]}`, `{"n":null}`, `{"k":true}`} {
		if _, err := f.engine.PutDocument("golden", "9", []byte(source), false); err != nil {
			t.Errorf("document %s: %v", source, err)
		}
	}
	_, err = f.engine.PutDocument("golden", strings.Repeat("x", 513), []byte(`{}`), false)
	if _, ok := errors.AsType[*search.ValidationError](err); !ok {
		t.Errorf("an id of 513 bytes: %v", err)
	}
}

func TestUpdatingDocuments(t *testing.T) {
	f := newFixture(t)
	f.index("a", 1, "")
	f.put("a", "1", `{"n":1.50,"o":{"p":1,"q":"ü\n"},"l":[1,2]}`)
	for _, c := range []struct{ id, body, want string }{
		{"1", `{"doc":{"o":{"p":2,"r":null},"l":[3],"z":true}}`, `{"n":1.50,"o":{"p":2,"q":"ü\n","r":null},"l":[3],"z":true}`},
		{"1", `{"doc":{"o":7},"upsert":{"x":1}}`, `{"n":1.50,"o":7,"l":[3],"z":true}`},
		{"2", `{"doc":{"a":1},"upsert":{"b":2}}`, `{"b":2}`},
		{"3", `{"doc":{"a":1},"doc_as_upsert":true}`, `{"a":1}`},
	} {
		if _, err := f.engine.UpdateDocument("a", c.id, []byte(c.body)); err != nil {
			t.Errorf("%s: %v", c.body, err)
		}
		if d, err := f.engine.Document("a", c.id); err != nil || string(d.Source) != c.want {
			t.Errorf("after %s the document is %s, %v, want %s", c.body, d.Source, err, c.want)
		}
	}
	_, err := f.engine.UpdateDocument("a", "4", []byte(`{"doc":{}}`))
	if e, ok := errors.AsType[*stub.DocumentMissingError](err); !ok || e.ID != "4" || e.Index != "a" {
		t.Errorf("update of a missing document: %v", err)
	}
	for _, body := range []string{`{}`, `{"doc":1}`, `{"script":{}}`, `{"dog":{}}`, `[]`, `{`} {
		if _, err := f.engine.UpdateDocument("a", "1", []byte(body)); err == nil {
			t.Errorf("update %s is accepted", body)
		}
	}
}

func TestDocumentsAreBounded(t *testing.T) {
	const limit = 100 << 10
	f := newFixture(t, func(c *stub.Config) { c.MaxDocumentBytes = limit })
	big := fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 40<<10))
	f.put("a", "1", big)
	f.put("b", "2", big)
	_, err := f.engine.PutDocument("b", "3", []byte(big), false)
	if e, ok := errors.AsType[*stub.FullError](err); !ok || e.Limit != limit || e.Wanted <= limit {
		t.Fatalf("a document too many: %v, want a FullError", err)
	}
	f.put("b", "2", big) // in the place of the old one
	if _, err := f.engine.DeleteDocument("b", "2"); err != nil {
		t.Fatal(err)
	}
	f.put("b", "3", big)
	if err := f.engine.DeleteIndex("a"); err != nil {
		t.Fatal(err)
	}
	f.put("c", "4", big)

	// Indices without documents are bounded, too.
	for i := range 10_000 {
		if err = f.engine.CreateIndex(fmt.Sprintf("empty-%d", i), nil); err != nil {
			break
		}
	}
	if _, ok := errors.AsType[*stub.FullError](err); !ok {
		t.Errorf("ten thousand indices in 100 KiB: %v", err)
	}
}

// The documents of an index are those of a map, and a search sees them as they
// were when it began.
func TestDocumentsBehaveLikeAMap(t *testing.T) {
	f := newFixture(t)
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		name := fmt.Sprintf("run-%d", run)
		f.index(name, rapid.IntRange(1, 3).Draw(t, "shards"), "")
		model := make(map[string]string)
		ids := rapid.StringMatching(`[a-e]`)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				id, n := ids.Draw(t, "id"), rapid.IntRange(0, 9).Draw(t, "n")
				source := fmt.Sprintf(`{"n":%d}`, n)
				r, err := f.engine.PutDocument(name, id, []byte(source), false)
				if err != nil {
					t.Fatal(err)
				}
				if _, there := model[id]; there != (r.Result == stub.Updated) {
					t.Fatalf("put %s: %s, there before: %v", id, r.Result, there)
				}
				model[id] = source
			},
			"delete": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				r, err := f.engine.DeleteDocument(name, id)
				if err != nil {
					t.Fatal(err)
				}
				if _, there := model[id]; there != (r.Result == stub.Deleted) {
					t.Fatalf("delete %s: %s, there before: %v", id, r.Result, there)
				}
				delete(model, id)
			},
			"": func(t *rapid.T) {
				a := parse(f.TB, f.search(name, `{"size":100}`))
				if a.Hits.Total.Value != len(model) || len(a.Hits.Hits) != len(model) {
					t.Fatalf("%d of %d hits, want %d", len(a.Hits.Hits), a.Hits.Total.Value, len(model))
				}
				for _, h := range a.Hits.Hits {
					if model[h.ID] != string(h.Source) {
						t.Fatalf("document %s is %s, want %s", h.ID, h.Source, model[h.ID])
					}
				}
			},
		})
		if err := f.engine.DeleteIndex(name); err != nil {
			t.Fatal(err)
		}
	})
}

// Writers and searches at once; what it proves it proves under the race detector,
// and by every search finding each document exactly once.
func TestWritingWhileSearching(t *testing.T) {
	f := newFixture(t)
	f.index("a", 2, "")
	const documents, rounds = 20, 200
	for i := range documents {
		f.put("a", itoa(i), `{"n":0}`)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for n := range rounds {
			if _, err := f.engine.PutDocument("a", itoa(n%documents), fmt.Appendf(nil, `{"n":%d}`, n), false); err != nil {
				t.Error(err)
			}
		}
	})
	all.Go(func() {
		for n := range rounds {
			if _, err := f.engine.UpdateDocument("a", itoa(n%documents), fmt.Appendf(nil, `{"doc":{"m":%d}}`, n)); err != nil {
				t.Error(err)
			}
		}
	})
	for range 2 {
		all.Go(func() {
			for range rounds / 4 {
				body, err := f.try(request("a", `{"size":100,"sort":["_id"]}`))
				if err != nil {
					t.Error(err)
					return
				}
				seen := make(map[string]bool)
				for _, id := range parse(t, body).ids() {
					seen[id] = true
				}
				if n := parse(t, body).Hits.Total.Value; n != documents || len(seen) != documents {
					t.Errorf("a search finds %d documents, %d different ones, want %d", n, len(seen), documents)
					return
				}
			}
		})
	}
	all.Wait()
}

func TestDeletingAnIndexUnderWriters(t *testing.T) {
	const limit = 1 << 20
	f := newFixture(t, func(c *stub.Config) { c.MaxDocumentBytes = limit })
	var all sync.WaitGroup
	for w := range 3 {
		all.Go(func() {
			for n := range 100 {
				if _, err := f.engine.PutDocument("a", fmt.Sprintf("%d-%d", w, n), []byte(`{}`), false); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		for range 100 {
			if err := f.engine.DeleteIndex("a*"); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	if err := f.engine.DeleteIndex("*"); err != nil {
		t.Fatal(err)
	}
	// Nothing is counted any more: all the room is there again.
	big := fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", limit*9/10))
	f.put("b", "1", big)
}
