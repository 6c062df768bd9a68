package rules_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wlmserver/wlmserver/rules"
)

// rule makes a rule for a group out of words: i: an index pattern, u: a username, r: a role.
func rule(group string, words ...string) *rules.Rule {
	r := &rules.Rule{Group: group, ID: group + strings.Join(words, " ")}
	for _, w := range words {
		to := map[string]*[]string{"i:": &r.Indices, "u:": &r.Usernames, "r:": &r.Roles}[w[:2]]
		*to = append(*to, w[2:])
	}
	return r
}

// request makes a request out of such words.
func request(words string) rules.Request {
	r := rule("", strings.Fields(words)...)
	q := rules.Request{Indices: r.Indices, Roles: r.Roles}
	if r.Usernames != nil {
		q.Username = r.Usernames[0]
	}
	return q
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules []*rules.Rule
		want  map[string]string // group by request
	}{
		{"no rules", nil, map[string]string{"": "", "i:a u:b r:c": ""}},
		{"a plain name is that name alone", []*rules.Rule{rule("A", "i:logs-a"), rule("B", "i:logs-a*")}, map[string]string{
			"i:logs-a": "A", "i:logs-a-1": "B", "i:logs-ab": "B", "i:xlogs-a": "", "i:logs": "", "": "",
		}},
		{"beginnings of users and roles", []*rules.Rule{rule("A", "u:dev*"), rule("B", "r:ops*")}, map[string]string{
			"u:dev": "A", "u:dev_j": "A", "u:xdev": "", "u:de": "", "r:ops": "B", "r:ops-2": "B", "r:xops": "", "u:dev r:ops": "A",
		}},
		{"nobody has no name", []*rules.Rule{rule("A", "u:*")}, map[string]string{"": "", "i:a": "", "u:x": "A"}},
		{"a longer beginning", []*rules.Rule{rule("A", "i:l*"), rule("B", "i:logs*")}, map[string]string{"i:logs": "B", "i:lo": "A", "i:*": ""}},
		{"values are alternatives", []*rules.Rule{rule("A", "i:a", "i:b*")}, map[string]string{"i:a": "A", "i:bc": "A", "i:c": ""}},
		{"attributes are all needed", []*rules.Rule{rule("A", "i:a", "u:ann")}, map[string]string{"i:a u:ann": "A", "i:a": "", "u:ann": "", "i:a u:bob": ""}},
		{"username and role are alternatives", []*rules.Rule{rule("A", "u:ann", "r:dev")}, map[string]string{
			"u:ann": "A", "r:dev": "A", "u:bob r:dev": "A", "u:ann r:ops": "A", "u:bob r:ops": "",
		}},
		{"every index of the request", []*rules.Rule{rule("A", "i:a", "i:b*")}, map[string]string{"i:a i:b1 i:b2": "A", "i:a i:c": "", "i:c i:a": ""}},
		{"all indices", []*rules.Rule{rule("A", "i:*"), rule("B", "i:_all")}, map[string]string{"": "B", "i:_all": "B", "i:*": "A", "i:x": "A"}},
		{"patterns in the request", []*rules.Rule{rule("A", "i:logs-*")}, map[string]string{
			"i:logs-*": "A", "i:logs-a*": "A", "i:logs*": "", "i:logs-* i:-logs-old": "A", "i:-logs-old": "",
		}},
		{"user before role before index", []*rules.Rule{rule("A", "u:a*"), rule("B", "r:dev"), rule("C", "i:logs")}, map[string]string{
			"u:ann r:dev i:logs": "A", "u:bob r:dev i:logs": "B", "u:bob i:logs": "C",
		}},
		{"a rule that says more", []*rules.Rule{rule("A", "u:ann"), rule("B", "u:ann", "i:logs*")}, map[string]string{"u:ann i:logs": "B", "u:ann i:x": "A"}},
		{"a user that fits worse loses in spite of the index", []*rules.Rule{rule("A", "u:ann"), rule("B", "u:a*", "i:logs")}, map[string]string{"u:ann i:logs": "A"}},
		{"roles add up", []*rules.Rule{rule("A", "r:x", "r:y"), rule("B", "r:x")}, map[string]string{"r:x r:y": "A", "r:x": "", "r:x r:x": "", "r:y": "A"}},
		{"an exact role is worth more than a beginning", []*rules.Rule{rule("A", "r:x"), rule("B", "r:yyyyyyyyyy*")}, map[string]string{"r:x r:yyyyyyyyyyy": "A"}},
		{"indices add up", []*rules.Rule{rule("A", "i:a1", "i:b*"), rule("B", "i:a*", "i:b*")}, map[string]string{"i:a1 i:b1": "A", "i:a2 i:b1": "B"}},
		{"only the best pattern of a rule counts", []*rules.Rule{rule("A", "i:a*", "i:ab*", "i:*"), rule("B", "i:abc*")}, map[string]string{"i:abcd": "B", "i:abd": "A"}},
		{"a tie of two groups", []*rules.Rule{rule("A", "u:ann"), rule("B", "u:ann", "r:none")}, map[string]string{"u:ann": ""}},
		{"a tie of one group", []*rules.Rule{rule("A", "u:ann"), rule("A", "u:ann", "r:none")}, map[string]string{"u:ann": "A"}},
		{"a tie that a better rule ends", []*rules.Rule{rule("A", "i:a*"), rule("B", "i:a*"), rule("C", "i:ab*")}, map[string]string{"i:ab": "C", "i:ac": ""}},
		{"a tie of three", []*rules.Rule{rule("A", "i:a*"), rule("B", "i:a*"), rule("A", "i:a*", "i:b")}, map[string]string{"i:ac": ""}},
		{"letters of several bytes", []*rules.Rule{rule("A", "i:é*"), rule("B", "u:東")}, map[string]string{"i:éa": "A", "i:e": "", "u:東": "B", "u:東京": ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			// The order in which rules were made has no say.
			for _, order := range [][]*rules.Rule{c.rules, reversed(c.rules)} {
				for i, r := range order {
					r.ID = fmt.Sprint(i)
				}
				s := rules.NewSnapshot(1, order...)
				for q, want := range c.want {
					if got, ok := s.Match(request(q)); got != want || ok != (want != "") {
						t.Errorf("[%s]: group %q, %t; want %q", q, got, ok, want)
					}
				}
			}
		})
	}
}

func reversed(all []*rules.Rule) []*rules.Rule {
	all = slices.Clone(all)
	slices.Reverse(all)
	return all
}

// TestMatchModel compares with a matcher that looks at every pattern of every rule.
func TestMatchModel(t *testing.T) {
	name := rapid.StringMatching(`[ab]{1,3}`)
	pattern := rapid.Custom(func(t *rapid.T) string {
		return rapid.OneOf(name, rapid.Map(rapid.StringMatching(`[ab]{0,3}`), func(s string) string { return s + "*" })).Draw(t, "pattern")
	})
	rapid.Check(t, func(t *rapid.T) {
		var all []*rules.Rule
		for i := range rapid.IntRange(0, 12).Draw(t, "rules") {
			all = append(all, &rules.Rule{
				ID:        fmt.Sprint(i),
				Group:     rapid.SampledFrom([]string{"A", "B", "C"}).Draw(t, "group"),
				Indices:   rapid.SliceOfNDistinct(pattern, 0, 3, rapid.ID).Draw(t, "indices"),
				Usernames: rapid.SliceOfNDistinct(pattern, 0, 2, rapid.ID).Draw(t, "usernames"),
				Roles:     rapid.SliceOfNDistinct(pattern, 0, 3, rapid.ID).Draw(t, "roles"),
			})
		}
		s := rules.NewSnapshot(1, all...)
		for range 10 {
			q := rules.Request{
				Indices:  rapid.SliceOfN(pattern, 0, 3).Draw(t, "asked indices"),
				Username: rapid.OneOf(rapid.Just(""), name).Draw(t, "user"),
				Roles:    rapid.SliceOfN(name, 0, 3).Draw(t, "their roles"),
			}
			want := naive(all, q)
			if got, ok := s.Match(q); got != want || ok != (want != "") {
				t.Fatalf("%+v: group %q, %t; want %q", q, got, ok, want)
			}
		}
	})
}

// naive finds the group by sorting the rules that match by how well they do.
func naive(all []*rules.Rule, q rules.Request) string {
	// best is 0 where no pattern matches.
	best := func(patterns []string, value string) (weight int) {
		for _, p := range patterns {
			switch beginning, cut := strings.CutSuffix(p, "*"); {
			case !cut && p == value:
				weight = max(weight, 1_000_000)
			case cut && strings.HasPrefix(value, beginning):
				weight = max(weight, 1+len(beginning))
			}
		}
		return weight
	}
	type fit struct {
		weights []int
		group   string
	}
	var fits []fit
	indices := q.Indices
	if len(indices) == 0 {
		indices = []string{"_all"}
	}
	roles := slices.Compact(slices.Sorted(slices.Values(q.Roles)))
	for _, r := range all {
		user, role, index := 0, 0, 0
		if q.Username != "" {
			user = best(r.Usernames, q.Username)
		}
		for _, x := range roles {
			role += best(r.Roles, x)
		}
		matches := len(r.Usernames)+len(r.Roles) == 0 || user+role > 0
		for _, x := range indices {
			w := best(r.Indices, x)
			index += w
			matches = matches && (len(r.Indices) == 0 || w > 0)
		}
		if matches {
			fits = append(fits, fit{[]int{user, role, index}, r.Group})
		}
	}
	slices.SortFunc(fits, func(a, b fit) int { return slices.Compare(b.weights, a.weights) })
	if len(fits) == 0 {
		return ""
	}
	for _, f := range fits {
		if slices.Equal(f.weights, fits[0].weights) && f.group != fits[0].group {
			return ""
		}
	}
	return fits[0].group
}

// many is as many rules as there may be, and a request that has much in common with them.
func many() (*rules.Snapshot, rules.Request) {
	var all []*rules.Rule
	for i := range 500 {
		r := rule("A", fmt.Sprintf("i:logs-%d*", i), fmt.Sprintf("i:%s*", strings.Repeat("x", i%90)), fmt.Sprintf("u:user-%d", i), fmt.Sprintf("r:role-%d", i%50))
		r.ID = fmt.Sprint(i)
		all = append(all, r)
	}
	return rules.NewSnapshot(1, all...), rules.Request{Indices: []string{"logs-17-a", "logs-17-b"}, Username: "user-17", Roles: []string{"role-3", "role-17"}}
}

func BenchmarkMatch(b *testing.B) {
	full, q := many()
	for _, c := range []struct {
		name string
		s    *rules.Snapshot
	}{{"rules=0", rules.NewSnapshot(1)}, {"rules=1", rules.NewSnapshot(1, rule("A", "i:logs-*"))}, {"rules=500", full}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.s.Match(q)
			}
		})
	}
}
