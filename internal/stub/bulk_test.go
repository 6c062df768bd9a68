package stub_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/internal/stub"
	"github.com/wlmserver/wlmserver/search"
)

func TestBulk(t *testing.T) {
	f := newFixture(t)
	f.golden()
	r, err := f.engine.Bulk("golden", []byte(`{"index":{"_index":"golden","_id":"3"}}
{"n":3,"t":"blue fox","k":"a"}
{"index":{"_id":"4"}}
{"n":"x"}

{"create":{"_id":"1"}}
{"n":1}
{"index":{"_index":"other"}}
{"n":5}
{"update":{"_id":"1","retry_on_conflict":3}}
{"doc":{"n":6}}
{"delete":{"_id":"3"}}
{"delete":{"_id":"99"}}
{"delete":{"_index":"nosuch","_id":"1"}}
{"update":{"_id":"98"}}
{"doc":{"n":6}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if !r.Errors || len(r.Items) != 9 {
		t.Fatalf("%d items, errors %v", len(r.Items), r.Errors)
	}
	for i, want := range []struct {
		action, index, id string
		result            stub.Result
		err               any
	}{
		{"index", "golden", "3", stub.Updated, nil},
		{"index", "golden", "4", "", new(*stub.MalformedDocumentError)},
		{"create", "golden", "1", "", new(*stub.VersionConflictError)},
		{"index", "other", r.Items[3].Result.ID, stub.Created, nil},
		{"update", "golden", "1", stub.Updated, nil},
		{"delete", "golden", "3", stub.Deleted, nil},
		{"delete", "golden", "99", stub.NotFound, nil},
		{"delete", "nosuch", "1", "", new(*search.IndexNotFoundError)},
		{"update", "golden", "98", "", new(*stub.DocumentMissingError)},
	} {
		got := r.Items[i]
		if got.Action != want.action || got.Index != want.index || got.ID != want.id || got.Result.Result != want.result {
			t.Errorf("item %d is %+v, want %+v", i, got, want)
		}
		if want.err == nil && got.Err != nil || want.err != nil && !errors.As(got.Err, want.err) {
			t.Errorf("item %d has the error %v, want a %T", i, got.Err, want.err)
		}
	}
	if id := r.Items[3].ID; len(id) != 20 {
		t.Errorf("the id made for a document is %q", id)
	}
}

func TestAMalformedBulkDoesNothing(t *testing.T) {
	f := newFixture(t)
	good := `{"index":{"_index":"a","_id":"1"}}` + "\n{}\n"
	update := `{"update":{"_index":"a","_id":"1"}}` + "\n"
	for _, c := range []struct {
		name, body string
		want       any
		text       string
	}{
		{"empty", "\n", new(*search.ValidationError), "no action"},
		{"without the last newline", good + `{"delete":{"_index":"a","_id":"1"}}`, new(*search.InvalidError), "newline"},
		{"without a document", good + `{"index":{"_index":"a"}}` + "\n", new(*search.InvalidError), "line 3"},
		{"an unknown action", good + `{"indx":{"_index":"a"}}` + "\n{}\n", new(*search.InvalidError), "[indx]"},
		{"an unknown parameter", good + `{"index":{"_index":"a","nosuch":1}}` + "\n{}\n", new(*search.InvalidError), "[nosuch]"},
		{"two actions in a line", good + `{"index":{},"delete":{}}` + "\n{}\n", new(*search.InvalidError), "line 3"},
		{"no index", good + `{"index":{}}` + "\n{}\n", new(*search.ValidationError), "line 3 names no index"},
		{"no id", good + `{"delete":{"_index":"a"}}` + "\n", new(*search.ValidationError), "needs an _id"},
		{"no object", good + "[]\n", new(*search.InvalidError), "line 3"},
		{"an update that is none", good + update + "[{\"doc\":{}}]\n", new(*search.ParseError), "an array"},
		{"an update with a part that is not known", good + update + "{\"nosuch\":1}\n", new(*search.ParseError), "[nosuch]"},
		{"an update that is no JSON", good + update + "{\n", new(*jsondoc.SyntaxError), "ends too soon"},
		{"an update without a change", good + update + "{}\n", new(*search.ValidationError), "the document in line 4"},
	} {
		_, err := f.engine.Bulk("", []byte(c.body))
		if err == nil || !errors.As(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want a %T with %q", c.name, err, c.want, c.text)
		}
	}
	if names := f.names(); len(names) != 0 {
		t.Errorf("there is %v", names)
	}
}

func FuzzBulk(f *testing.F) {
	f.Add([]byte("{\"index\":{\"_id\":\"1\"}}\n{\"a\":1}\n"))
	f.Add([]byte("{\"update\":{\"_id\":\"1\"}}\n{\"doc\":{\"a\":{\"b\":1}},\"doc_as_upsert\":true}\n{\"delete\":{\"_id\":\"1\"}}\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := newFixture(t).engine.Bulk("a", body)
		if err != nil && len(r.Items) > 0 {
			t.Errorf("a refused bulk has %d items", len(r.Items))
		}
		for _, item := range r.Items {
			if (item.Err == nil) == (item.Result.Result == "") {
				t.Errorf("the item %+v has neither error nor result, or both", item)
			}
		}
	})
}
