package rules_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
	"github.com/wlmserver/wlmserver/rules"
)

func TestReadingKeepsPatternsAsWritten(t *testing.T) {
	r, _ := open(t)
	made := mustCreate(t, r, `{"id":"x","updated_at":"2026-01-01T00:00:00.000Z","description":"d","workload_group":"A",
		"index_pattern":["b*","a","b*","*"],"principal":{"username":["dev*","Ann"],"role":["r"]}}`)
	if !slices.Equal(made.Indices, []string{"b*", "a", "*"}) || !slices.Equal(made.Usernames, []string{"dev*", "Ann"}) || !slices.Equal(made.Roles, []string{"r"}) {
		t.Errorf("%+v", made)
	}
	if made.ID == "x" || made.Description != "d" || made.Group != "A" {
		t.Errorf("%+v", made)
	}
}

// TestWrongKinds has bodies that cannot be read as a change at all.
func TestWrongKinds(t *testing.T) {
	for body, want := range map[string]string{
		`[]`:                             "the body",
		`"x"`:                            "the body",
		`{"description":5}`:              "[5] of [description]",
		`{"description":null}`:           "[description]",
		`{"workload_group":{}}`:          "[{…}] of [workload_group]",
		`{"index_pattern":"logs"}`:       "[logs] of [index_pattern]",
		`{"index_pattern":null}`:         "[index_pattern]",
		`{"index_pattern":["a",5]}`:      "[5] of [index_pattern]",
		`{"index_pattern":[["a"]]}`:      "[[…]] of [index_pattern]",
		`{"principal":["ann"]}`:          "[[…]] of [principal]",
		`{"principal":{"username":"a"}}`: "[a] of [principal.username]",
		`{"principal":{"role":{}}}`:      "[{…}] of [principal.role]",
		`{"principal":{"group":["a"]}}`:  "[group] is no part of [principal]",
		`{"id":{}}`:                      "leave it out",
	} {
		_, err := rules.ParsePatch([]byte(body))
		e, ok := errors.AsType[*rules.InvalidError](err)
		if !ok || e.Line != 1 || e.Column < 1 || !strings.Contains(e.Error(), want) {
			t.Errorf("%s: error %v, want %q", body, err, want)
		}
	}
	for _, body := range []string{``, `{`, `{"description":"a","description":"b"}`, `{} {}`} {
		if _, err := rules.ParsePatch([]byte(body)); err == nil {
			t.Errorf("%s: no error", body)
		} else if _, ok := errors.AsType[*jsondoc.SyntaxError](err); !ok {
			t.Errorf("%s: error %T %v", body, err, err)
		}
	}
}

// TestAllProblemsAtOnce has bodies that can be read and make no rule.
func TestAllProblemsAtOnce(t *testing.T) {
	r, m := open(t)
	long := strings.Repeat("é", 101)
	eleven := `["1","2","3","4","5","6","7","8","9","10","11"]`
	for body, want := range map[string][]string{
		`{}`: {"[description]", "no attribute", "[workload_group]"},
		`{"description":"` + strings.Repeat("é", 257) + `","index_pattern":["a"],"workload_group":"A"}`: {"257 characters"},
		`{"description":"","principal":{},"workload_group":"","tenant":["a"]}`:                          {"[tenant]", "[description]", "no attribute", "[workload_group]"},
		`{"description":"d","index_pattern":[],"workload_group":"a"}`:                                   {"[] of [index_pattern]", "no attribute", "[a] of [workload_group]"},
		`{"description":"d","index_pattern":["a"],"workload_group":"DEFAULT_WORKLOAD_GROUP"}`:           {"[DEFAULT_WORKLOAD_GROUP] of [workload_group]"},
		`{"description":"d","index_pattern":["a*b","**","*a",""],"principal":{"role":["` + long + `"]},"workload_group":"A"}`: {
			"[a*b]", "[**]", "[*a]", "[] of [index_pattern]", "101 characters",
		},
		`{"description":"d","principal":{"username":` + eleven + `,"role":` + eleven + `},"workload_group":"A"}`: {
			"[principal.username] has more than 10", "[principal.role] has more than 10",
		},
	} {
		_, err := create(t, r, body)
		e, ok := errors.AsType[*rules.InvalidError](err)
		if !ok || len(e.Problems) != len(want) || e.Line != 0 {
			t.Errorf("%s: error %v, want %d problems", body, err, len(want))
			continue
		}
		for i, part := range want {
			if !strings.Contains(e.Problems[i], part) || !strings.Contains(e.Error(), e.Problems[i]) {
				t.Errorf("%s: problem %d is %q, want %q in it", body, i, e.Problems[i], part)
			}
		}
	}
	if r.Snapshot().Len() != 0 || m.Dump() != nil {
		t.Errorf("something was created: %v", m.Dump())
	}
}

func TestLargestRule(t *testing.T) {
	r, _ := open(t)
	ten := `["` + strings.Repeat("é", 99) + `*","2","3","4","5","6","7","8","9","` + strings.Repeat("x", 100) + `","2"]`
	made := mustCreate(t, r, `{"description":"`+strings.Repeat("é", 256)+`","index_pattern":`+ten+`,"principal":{"username":`+ten+`,"role":`+ten+`},"workload_group":"A"}`)
	if len(made.Indices) != 10 || len(made.Usernames) != 10 || len(made.Roles) != 10 {
		t.Errorf("%+v", made)
	}
}

// FuzzParsePatch throws any body at a registry with a rule that has every part. Whatever
// it says is either refused with a typed error and changes nothing, or leaves a rule
// that can be stored, read back and matched.
func FuzzParsePatch(f *testing.F) {
	for _, seed := range []string{
		`{"description":"d","index_pattern":["a"],"workload_group":"A"}`, `{}`, `null`, `[]`, `{"description":"x",`,
		`{"description":"d","principal":{"username":["dev*"],"role":["x","*"]},"workload_group":"B"} trailing`,
		`{"index_pattern":[]}`, `{"index_pattern":["a*b","**"]}`, `{"principal":{"x":[]}}`, `{"principal":null}`, `{"tenant":"x"}`,
		`{"id":"a","updated_at":5,"description":"é","workload_group":"nosuch"}`, `{"workload_group":"B"}`, `{"index_pattern":["logs-*"]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, m := open(t)
		full := mustCreate(t, r, `{"description":"full","index_pattern":["logs-*","x"],"principal":{"username":["ann"],"role":["dev*"]},"workload_group":"A"}`)
		for what, change := range map[string]func(rules.Patch) (*rules.Rule, error){
			"create": func(p rules.Patch) (*rules.Rule, error) { return r.Create(t.Context(), p) },
			"update": func(p rules.Patch) (*rules.Rule, error) { return r.Update(t.Context(), full.ID, p) },
		} {
			before, stored := r.Snapshot(), m.Dump()
			p, err := rules.ParsePatch(body)
			var made *rules.Rule
			if err == nil {
				made, err = change(p)
			}
			if err != nil {
				_, invalid := errors.AsType[*rules.InvalidError](err)
				_, syntax := errors.AsType[*jsondoc.SyntaxError](err)
				if !invalid && !syntax || !utf8.ValidString(err.Error()) {
					t.Fatalf("%s: error %#v", what, err)
				}
				if r.Snapshot() != before || !slices.Equal(m.Dump(), stored) {
					t.Fatalf("%s: refused, yet something changed", what)
				}
				continue
			}
			if err := made.Validate(); err != nil {
				t.Fatalf("%s: made a rule that breaks a rule: %v", what, err)
			}
			again, err := rules.Open(t.Context(), m, twoGroups)
			if err != nil {
				t.Fatalf("%s: made a rule that cannot be read back: %v", what, err)
			}
			if got := again.Snapshot().ByID(made.ID); got == nil || text(t, got) != text(t, made) {
				t.Fatalf("%s: made %+v, read back %+v", what, made, got)
			}
			r.Snapshot().Match(rules.Request{Indices: made.Indices, Username: "ann", Roles: made.Roles})
		}
	})
}
