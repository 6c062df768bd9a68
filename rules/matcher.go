package rules

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// A Request is what rules know of a search.
type Request struct {
	Indices  []string // as they stand in the request; none = all
	Username string   // empty = nobody, whom no pattern matches
	Roles    []string
}

// Match returns the id of the workload group of the rule that the request follows, and
// whether there is one. There may be no group with the id any more. It allocates
// nothing, and costs a few look-ups for each index and role.
func (s *Snapshot) Match(r Request) (group string, ok bool) {
	if len(s.all) == 0 {
		return "", false
	}
	return s.matcher.match(s.all, r)
}

// allIndices is the index that a search of all of them counts as one of.
const allIndices = "_all"

// exactly is the weight of a name, more than that of any number of beginnings that one
// request can match in practice.
const exactly = 1 << 20

// matcher has the patterns of a set of rules in the form in which they are found fast.
// Rules are numbered by their place in the set.
type matcher struct {
	indices, usernames, roles patterns
	scores                    sync.Pool // of *[]score, one for each rule
}

// score is how well a request fits a rule: by attribute, 0 where it does not, or where
// the rule says nothing of it.
type score struct {
	username, role, index int

	matched int // indices of the request that matched
	value   int // the last value that matched, counted over all attributes from 1
}

func newMatcher(all []*Rule) *matcher {
	m := &matcher{
		indices:   newPatterns(all, IndexPattern),
		usernames: newPatterns(all, Username),
		roles:     newPatterns(all, Role),
	}
	m.scores.New = func() any {
		scores := make([]score, len(all))
		return &scores
	}
	return m
}

func (m *matcher) match(all []*Rule, r Request) (group string, ok bool) {
	pooled := m.scores.Get().(*[]score)
	defer m.scores.Put(pooled)
	scores := *pooled
	clear(scores)
	indices := m.score(scores, r)

	var best score
	for i, rule := range all {
		now := scores[i]
		if rule.named() && now.username+now.role == 0 || len(rule.Indices) > 0 && now.matched != indices {
			continue
		}
		switch c := now.compare(best); {
		case group == "" || c > 0:
			best, group, ok = now, rule.Group, true
		case c == 0 && rule.Group != group:
			ok = false // until a better one comes
		}
	}
	if !ok {
		return "", false
	}
	return group, true
}

// compare tells which of two rules that match is followed, by attribute in their order
// of priority.
func (s score) compare(other score) int {
	return cmp.Or(cmp.Compare(s.username, other.username), cmp.Compare(s.role, other.role), cmp.Compare(s.index, other.index))
}

// score weighs all rules for a request, and returns how many indices it has.
func (m *matcher) score(scores []score, r Request) (indices int) {
	value := 0
	if r.Username != "" {
		value++
		m.usernames.each(r.Username, func(rule int32, weight int) {
			if s := &scores[rule]; s.value != value { // else a better pattern of the rule has matched
				s.value = value
				s.username += weight
			}
		})
	}
	for i, role := range r.Roles {
		if role == "" || slices.Contains(r.Roles[:i], role) {
			continue
		}
		value++
		m.roles.each(role, func(rule int32, weight int) {
			if s := &scores[rule]; s.value != value {
				s.value = value
				s.role += weight
			}
		})
	}
	asked := func(index string) {
		value++
		indices++
		m.indices.each(index, func(rule int32, weight int) {
			if s := &scores[rule]; s.value != value {
				s.value = value
				s.index += weight
				s.matched++
			}
		})
	}
	if len(r.Indices) == 0 {
		asked(allIndices)
	}
	for i, index := range r.Indices {
		if i == 0 || !strings.HasPrefix(index, "-") { // that takes away from what stands before
			asked(index)
		}
	}
	return indices
}

// patterns finds the rules that have a pattern for a value, in one attribute.
type patterns struct {
	names      map[string][]int32
	beginnings map[string][]int32
	lengths    []int // of the beginnings in bytes, longest first, each once
}

func newPatterns(all []*Rule, attribute string) patterns {
	p := patterns{names: make(map[string][]int32), beginnings: make(map[string][]int32)}
	for i, rule := range all {
		for _, value := range rule.Values(attribute) {
			to := p.names
			beginning, cut := strings.CutSuffix(value, wildcard)
			if cut {
				to = p.beginnings
				p.lengths = append(p.lengths, len(beginning))
			}
			to[beginning] = append(to[beginning], int32(i))
		}
	}
	slices.SortFunc(p.lengths, func(a, b int) int { return cmp.Compare(b, a) })
	p.lengths = slices.Compact(p.lengths)
	return p
}

// each calls f for every pattern that matches the value, the best first.
func (p *patterns) each(value string, f func(rule int32, weight int)) {
	for _, rule := range p.names[value] {
		f(rule, exactly)
	}
	for _, n := range p.lengths {
		if n > len(value) {
			continue
		}
		for _, rule := range p.beginnings[value[:n]] {
			f(rule, n+1)
		}
	}
}
