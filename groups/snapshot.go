package groups

import (
	"cmp"
	"fmt"
	"slices"
)

// A Snapshot is the set of groups at one moment. It never changes, and so is safe for
// concurrent use. The zero Snapshot is empty.
type Snapshot struct {
	revision uint64
	all      []*Group // by id
	byID     map[string]*Group
	byName   map[string]*Group
}

// NewSnapshot returns a snapshot of the groups given. It panics when two have the same
// id or name: a Registry never lets that happen.
func NewSnapshot(revision uint64, groups ...*Group) *Snapshot {
	s, err := newSnapshot(revision, slices.Clone(groups))
	if err != nil {
		panic(err)
	}
	return s
}

// newSnapshot takes the slice over.
func newSnapshot(revision uint64, all []*Group) (*Snapshot, error) {
	slices.SortFunc(all, func(a, b *Group) int { return cmp.Compare(a.ID, b.ID) })
	s := &Snapshot{
		revision: revision,
		all:      all,
		byID:     make(map[string]*Group, len(all)),
		byName:   make(map[string]*Group, len(all)),
	}
	for _, g := range all {
		if other := s.byID[g.ID]; other != nil {
			return nil, fmt.Errorf("groups [%s] and [%s] have the same id [%s]", other.Name, g.Name, g.ID)
		}
		if other := s.byName[g.Name]; other != nil {
			return nil, fmt.Errorf("groups [%s] and [%s] have the same name [%s]", other.ID, g.ID, g.Name)
		}
		s.byID[g.ID], s.byName[g.Name] = g, g
	}
	return s, nil
}

// Revision counts the changes of this process; it grows by 1 with each.
func (s *Snapshot) Revision() uint64 { return s.revision }

// ByID returns the group with the id, or nil.
func (s *Snapshot) ByID(id string) *Group { return s.byID[id] }

// ByName returns the group with exactly that name, or nil.
func (s *Snapshot) ByName(name string) *Group { return s.byName[name] }

// All returns the groups in the order of their ids. The slice is the caller's.
func (s *Snapshot) All() []*Group { return slices.Clone(s.all) }

// Len returns how many groups there are.
func (s *Snapshot) Len() int { return len(s.all) }

// except returns the groups without the one of that name, in a new slice.
func (s *Snapshot) except(name string) []*Group {
	return slices.DeleteFunc(s.All(), func(g *Group) bool { return g.Name == name })
}
