package stub_test

import (
	"errors"
	"testing"

	"github.com/wlmserver/wlmserver/internal/stub"
	"github.com/wlmserver/wlmserver/search"
)

// condition is what parameters come to: name, value, name, value.
func condition(t *testing.T, parameters ...string) stub.Condition {
	t.Helper()
	var c stub.Condition
	for i := 0; i < len(parameters); i += 2 {
		if err := c.Set(parameters[i], parameters[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// TestConditions: a document that is not as the request has it is neither changed nor shown.
func TestConditions(t *testing.T) {
	type given []string
	const fine, conflict, invalid = "", "conflict", "invalid"
	for _, c := range []struct {
		what    string // to the document 1, which has the sequence number 1 and the version 2, or to 2, which does not exist
		id      string
		given   given
		want    string
		version int64
	}{
		{"put", "1", nil, fine, 3},
		{"put", "1", given{"if_seq_no", "1", "if_primary_term", "1"}, fine, 3},
		{"put", "1", given{"if_seq_no", "0", "if_primary_term", "1"}, conflict, 0},
		{"put", "1", given{"if_seq_no", "1", "if_primary_term", "2"}, conflict, 0},
		{"put", "2", given{"if_seq_no", "0", "if_primary_term", "1"}, conflict, 0},
		{"put", "1", given{"if_seq_no", "-2", "if_primary_term", "0", "version", "-3"}, fine, 3},
		{"put", "1", given{"if_seq_no", "1"}, invalid, 0},
		{"put", "1", given{"if_primary_term", "1"}, invalid, 0},
		{"put", "1", given{"version", "2"}, invalid, 0},
		{"put", "1", given{"version_type", "external"}, invalid, 0},
		{"put", "1", given{"version", "7", "version_type", "external", "if_seq_no", "1", "if_primary_term", "1"}, invalid, 0},
		{"put", "1", given{"version", "7", "version_type", "external"}, fine, 7},
		{"put", "1", given{"version", "2", "version_type", "external"}, conflict, 0},
		{"put", "1", given{"version", "2", "version_type", "external_gte"}, fine, 2},
		{"put", "1", given{"version", "1", "version_type", "external_gte"}, conflict, 0},
		{"put", "2", given{"version", "0", "version_type", "external"}, fine, 0},
		{"create", "2", given{"if_seq_no", "1", "if_primary_term", "1"}, invalid, 0},
		{"create", "2", given{"version", "7", "version_type", "external"}, invalid, 0},
		{"create", "2", nil, fine, 1},
		{"create", "1", nil, conflict, 0},
		{"delete", "1", given{"if_seq_no", "1", "if_primary_term", "1"}, fine, 3},
		{"delete", "1", given{"if_seq_no", "0", "if_primary_term", "1"}, conflict, 0},
		{"delete", "2", given{"if_seq_no", "0", "if_primary_term", "1"}, conflict, 0},
		{"delete", "2", given{"version", "7", "version_type", "external"}, fine, 7},
		{"delete", "1", given{"version", "7", "version_type", "external"}, fine, 7},
		{"update", "1", given{"if_seq_no", "1", "if_primary_term", "1"}, fine, 3},
		{"update", "1", given{"if_seq_no", "0", "if_primary_term", "1"}, conflict, 0},
		{"update", "1", given{"version", "7", "version_type", "external"}, invalid, 0},
		{"upsert", "1", given{"if_seq_no", "1", "if_primary_term", "1"}, invalid, 0},
		{"get", "1", given{"version", "2"}, fine, 2},
		{"get", "1", given{"version", "1"}, conflict, 0},
		{"get", "1", given{"version", "0"}, invalid, 0},
		{"get", "1", given{"version", "-1", "version_type", "external"}, invalid, 0},
		{"get", "1", given{"version_type", "external"}, fine, 2},
		{"get", "2", given{"version", "2"}, fine, 0},
	} {
		f := newFixture(t)
		f.index("a", 1, "")
		f.put("a", "1", `{"n":1}`)
		f.put("a", "1", `{"n":2}`)
		when := condition(t, c.given...)
		var r stub.DocumentResult
		var err error
		switch c.what {
		case "put", "create":
			r, err = f.engine.PutDocument("a", c.id, []byte(`{"n":3}`), c.what == "create", when)
		case "delete":
			r, err = f.engine.DeleteDocument("a", c.id, when)
		case "update":
			r, err = f.engine.UpdateDocument("a", c.id, []byte(`{"doc":{"n":3}}`), when)
		case "upsert":
			r, err = f.engine.UpdateDocument("a", c.id, []byte(`{"doc":{"n":3},"doc_as_upsert":true}`), when)
		case "get":
			var d stub.Document
			d, err = f.engine.Document("a", c.id, when)
			r.Version = d.Version
		}
		got := fine
		if e, ok := errors.AsType[*stub.VersionConflictError](err); ok && e.Reason != "" {
			got = conflict
		} else if _, ok := errors.AsType[*search.ValidationError](err); ok {
			got = invalid
		} else if err != nil {
			got = err.Error()
		}
		if got != c.want || got == fine && r.Version != c.version {
			t.Errorf("%s %s when %v: %q, version %d; want %q, version %d", c.what, c.id, c.given, got, r.Version, c.want, c.version)
		}
		if d, err := f.engine.Document("a", "1"); got != fine && (err != nil || string(d.Source) != `{"n":2}`) {
			t.Errorf("%s %s when %v: refused, and the document is %s (%v)", c.what, c.id, c.given, d.Source, err)
		}
	}
}

func TestConditionsThatCannotBeRead(t *testing.T) {
	for _, c := range [][2]string{{"version", "x"}, {"version_type", "bogus"}, {"version_type", ""}, {"if_seq_no", "-1"}, {"if_primary_term", "-1"}, {"if_seq_no", ""}, {"require_alias", "x"}} {
		var when stub.Condition
		if _, ok := errors.AsType[*search.InvalidError](when.Set(c[0], c[1])); !ok {
			t.Errorf("%s=%s is taken", c[0], c[1])
		}
	}
}

// TestConditionsOfBulkActions: each action has its own; what makes no sense refuses the whole request.
func TestConditionsOfBulkActions(t *testing.T) {
	f := newFixture(t)
	f.index("a", 1, "")
	f.put("a", "1", `{}`)
	r, err := f.engine.Bulk("a", []byte(`{"index":{"_id":"1","if_seq_no":5,"if_primary_term":1}}
{}
{"index":{"_id":"1","version":9,"version_type":"external"}}
{}
{"delete":{"_id":"1","version":4,"version_type":"external"}}
{"index":{"_id":"1","require_alias":true}}
{}
`))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := errors.AsType[*stub.VersionConflictError](r.Items[0].Err); !ok {
		t.Errorf("another sequence number: %v", r.Items[0].Err)
	}
	if r.Items[1].Err != nil || r.Items[1].Result.Version != 9 {
		t.Errorf("a newer version: %+v", r.Items[1])
	}
	if e, ok := errors.AsType[*stub.VersionConflictError](r.Items[2].Err); !ok || e.Version != 9 {
		t.Errorf("an older version: %v", r.Items[2].Err)
	}
	if _, ok := errors.AsType[*stub.AliasMissingError](r.Items[3].Err); !ok {
		t.Errorf("an alias: %v", r.Items[3].Err)
	}
	for _, meta := range []string{`"version":1`, `"if_seq_no":1`, `"version":"x"`, `"pipeline":"x"`} {
		if _, err := f.engine.Bulk("a", []byte(`{"index":{"_id":"1",`+meta+"}}\n{}\n")); err == nil {
			t.Errorf("{%s} is taken", meta)
		}
	}
	if _, err := f.engine.Bulk("a", []byte(`{"update":{"_id":"1","version":1,"version_type":"external"}}`+"\n{\"doc\":{}}\n")); err == nil {
		t.Error("an update with a version is taken")
	}
	if _, err := f.engine.Bulk("a", []byte(`{"update":{"_id":"1","if_seq_no":1,"if_primary_term":1}}`+"\n{\"doc\":{},\"doc_as_upsert\":true}\n")); err == nil {
		t.Error("an upsert of what has been changed is taken")
	}
	if r, err := f.engine.Bulk("a", []byte("{\"index\":{\"_id\":\"7\"}}\n{}\n"), condition(t, "require_alias", "true")); err != nil || r.Items[0].Err == nil {
		t.Errorf("an alias is asked for all: %+v %v", r, err)
	}
}
