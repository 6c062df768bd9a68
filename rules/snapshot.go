package rules

import (
	"cmp"
	"fmt"
	"slices"
)

// A Snapshot is the set of rules at one moment, ready to match. It never changes, and
// so is safe for concurrent use. The zero Snapshot is empty.
type Snapshot struct {
	revision uint64
	all      []*Rule // by id
	matcher  *matcher
}

// NewSnapshot returns a snapshot of the rules given. It panics when two have the same
// id: a Registry never lets that happen.
func NewSnapshot(revision uint64, rules ...*Rule) *Snapshot {
	s, err := newSnapshot(revision, slices.Clone(rules))
	if err != nil {
		panic(err)
	}
	return s
}

// newSnapshot takes the slice over.
func newSnapshot(revision uint64, all []*Rule) (*Snapshot, error) {
	slices.SortFunc(all, func(a, b *Rule) int { return cmp.Compare(a.ID, b.ID) })
	for i := 1; i < len(all); i++ {
		if all[i-1].ID == all[i].ID {
			return nil, fmt.Errorf("two rules have the same id [%s]", all[i].ID)
		}
	}
	return &Snapshot{revision: revision, all: all, matcher: newMatcher(all)}, nil
}

// Revision counts the changes of this process; it grows by 1 with each.
func (s *Snapshot) Revision() uint64 { return s.revision }

// ByID returns the rule with the id, or nil.
func (s *Snapshot) ByID(id string) *Rule {
	i, found := s.find(id)
	if !found {
		return nil
	}
	return s.all[i]
}

// After returns the rules that come after an id in the order of ids; after "" all of
// them. The slice is not the caller's to change.
func (s *Snapshot) After(id string) []*Rule {
	i, found := s.find(id)
	if found {
		i++
	}
	return s.all[i:len(s.all):len(s.all)]
}

// Len returns how many rules there are.
func (s *Snapshot) Len() int { return len(s.all) }

func (s *Snapshot) find(id string) (int, bool) {
	return slices.BinarySearchFunc(s.all, id, func(r *Rule, id string) int { return cmp.Compare(r.ID, id) })
}

// except returns the rules without the one with that id, in a new slice.
func (s *Snapshot) except(id string) []*Rule {
	return slices.DeleteFunc(slices.Clone(s.all), func(r *Rule) bool { return r.ID == id })
}
