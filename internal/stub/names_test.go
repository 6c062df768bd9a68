package stub_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/search"
)

func TestIndexNames(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"a", "logs-2026.11.29", "1", "a_b", "a+b", ".hidden", "ä", strings.Repeat("a", 255)} {
		if err := f.engine.CreateIndex(name, nil); err != nil {
			t.Errorf("index %q: %v", name, err)
		}
	}
	for _, name := range []string{"", ".", "..", "_a", "-a", "+a", "Logs", "a b", "a,b", "a/b", `a\b`, "a*", "a?", `a"`, "a<", "a>", "a|", "a#", "a:b", "a\nb", "a\xff", strings.Repeat("a", 256)} {
		err := f.engine.CreateIndex(name, nil)
		if e, ok := errors.AsType[*search.InvalidIndexNameError](err); !ok || e.Index != name || e.Reason == "" {
			t.Errorf("index %q: %v, want an InvalidIndexNameError that says why", name, err)
		}
	}
}

func TestSelectingIndices(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"a1", "a2", "b1", "c"} {
		f.index(name, 1, "")
		f.put(name, "x", `{}`)
	}
	for _, c := range []struct {
		path    string
		want    []string
		missing string // of the IndexNotFoundError
	}{
		{"", []string{"a1", "a2", "b1", "c"}, ""},
		{"_all", []string{"a1", "a2", "b1", "c"}, ""},
		{"*", []string{"a1", "a2", "b1", "c"}, ""},
		{"c,a1", []string{"c", "a1"}, ""},
		{"a*", []string{"a1", "a2"}, ""},
		{"*1", []string{"a1", "b1"}, ""},
		{"a*,a1", []string{"a1", "a2"}, ""},
		{"*,-a*", []string{"b1", "c"}, ""},
		{"-a1,a*", nil, "-a1"},
		{"a*,-a1,c", []string{"a2", "c"}, ""},
		{"a*,-a*", nil, ""},
		{"Upper", nil, "Upper"},
		{"nosuch", nil, "nosuch"},
		{"a1,nosuch", nil, "nosuch"},
		{"a1,nosuch?ignore_unavailable=true", []string{"a1"}, ""},
		{"nosuch*", nil, ""},
		{"nosuch*?allow_no_indices=false", nil, "nosuch*"},
		{"nosuch?ignore_unavailable&allow_no_indices=false", nil, "nosuch"},
		{"a*?expand_wildcards=open,hidden", []string{"a1", "a2"}, ""},
		{"a*?expand_wildcards=none", nil, ""},
		{"a*,c?expand_wildcards=closed", []string{"c"}, ""},
	} {
		t.Run(c.path, func(t *testing.T) {
			body, err := f.try(request(c.path, ""))
			if e, ok := errors.AsType[*search.IndexNotFoundError](err); ok != (c.missing != "") || ok && e.Index != c.missing {
				t.Fatalf("error %v, want one for the index %q", err, c.missing)
			}
			if err != nil {
				return
			}
			var got []string
			for _, h := range parse(t, body).Hits.Hits {
				got = append(got, h.Index)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("searched %v, want %v", got, c.want)
			}
		})
	}
}

// An index that is missing is found out when the search runs, one that cannot be
// before: only the first is a search that took place.
func TestAMissingIndexFailsTheExecution(t *testing.T) {
	f := newFixture(t)
	x, err := f.engine.Prepare(request("nosuch", ""))
	if err != nil {
		t.Fatalf("Prepare: %v", err)
	}
	x.Close()
	_, err = f.engine.Prepare(request("a,_bad", ""))
	if e, ok := errors.AsType[*search.InvalidIndexNameError](err); !ok || e.Index != "_bad" {
		t.Errorf("Prepare: %v, want an InvalidIndexNameError", err)
	}
}

func TestPatternsTakeNoTimeOutOfProportion(t *testing.T) {
	f := newFixture(t)
	f.index(strings.Repeat("a", 255), 1, "")
	pattern := strings.Repeat("*a", 2000) + "b" // a naive matcher would never come back
	if body := f.search(pattern, ""); parse(t, body).Shards.Total != 0 {
		t.Errorf("%s matches: %s", pattern, body)
	}
}
