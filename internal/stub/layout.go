package stub

import (
	"cmp"
	"maps"
	"slices"

	"github.com/wlmserver/wlmserver/internal/shard"
)

// layout says which node holds which copy of which shard of an index. It never changes.
type layout struct {
	epoch  uint64     // of the members that it was decided on
	last   int64      // the number of the copy that was made last
	copies [][]placed // of each shard: the primary first; empty when no node holds one
}

// placed is one copy on its node.
type placed struct {
	node    shard.Node
	number  int64
	started bool // it has all documents, and may be asked
}

// Members are the nodes that may hold copies.
type Members struct {
	// Epoch tells later members from earlier ones. 0: nothing is known of them yet.
	Epoch uint64
	Nodes []shard.Node
}

// primary returns the primary copy of a shard.
func (l *layout) primary(number int) (placed, bool) {
	if len(l.copies[number]) == 0 {
		return placed{}, false
	}
	return l.copies[number][0], true
}

// at returns the copy of a shard that a node holds.
func (l *layout) at(number int, n shard.Node) (placed, bool) {
	for _, c := range l.copies[number] {
		if c.node == n {
			return c, true
		}
	}
	return placed{}, false
}

// has reports whether there is a copy of that number.
func (l *layout) has(number int, copy int64) bool {
	return slices.ContainsFunc(l.copies[number], func(c placed) bool { return c.number == copy })
}

// alone reports whether a node holds the only copy of a shard.
func (l *layout) alone(number int, n shard.Node) bool {
	c := l.copies[number]
	return len(c) == 1 && c[0].node == n
}

// with returns a layout in which f has changed the copies of one shard.
func (l *layout) with(number int, f func([]placed) []placed) layout {
	next := *l
	next.copies = slices.Clone(l.copies)
	next.copies[number] = f(slices.Clone(l.copies[number]))
	return next
}

// loads counts what each node holds.
type loads map[shard.Node]load

type load struct{ copies, primaries int }

// loadsOf counts the copies of all indices on members.
func loadsOf(all map[string]*definition, members Members) loads {
	l := make(loads, len(members.Nodes))
	for _, n := range members.Nodes {
		l[n] = load{}
	}
	for _, d := range all {
		for _, copies := range d.copies {
			for i, c := range copies {
				l.add(c.node, i == 0, 1)
			}
		}
	}
	return l
}

// add counts a copy; of nodes that are no members there is nothing to count.
func (l loads) add(n shard.Node, primary bool, by int) {
	x, ok := l[n]
	if !ok {
		return
	}
	x.copies += by
	if primary {
		x.primaries += by
	}
	l[n] = x
}

// place returns the layout of an index for some members: copies on nodes that are gone are dropped, and so are more than there should
// be; missing ones are given to the members with the least to hold, none beside another copy of its shard. What is placed stays where
// it is. When the primary is dropped, the first of the replicas that is started takes its place; where there is none, the documents
// are lost, and a new copy starts empty, as all copies of a new index do. All nodes come to the same for the same. It counts what it does
// in loads.
func (l *layout) place(shards, replicas int, members Members, loads loads) layout {
	next := layout{epoch: members.Epoch, last: l.last, copies: make([][]placed, shards)}
	var before []placed
	for n := range shards {
		if n < len(l.copies) {
			before = l.copies[n]
		}
		next.copies[n] = next.placeShard(before, l.copies == nil, replicas, members, loads)
	}
	return next
}

func (l *layout) placeShard(before []placed, created bool, replicas int, members Members, loads loads) []placed {
	copies := make([]placed, 0, min(1+replicas, len(members.Nodes)))
	for _, c := range before {
		if _, member := loads[c.node]; member {
			copies = append(copies, c)
		}
	}
	if i := slices.IndexFunc(copies, func(c placed) bool { return c.started }); i > 0 {
		copies[0], copies[i] = copies[i], copies[0]
	} else if i < 0 {
		copies = copies[:0] // they have nobody to be filled from
	}
	if surplus := len(copies) - (1 + replicas); surplus > 0 {
		// Those go first that are not started, then the newest; the primary is the first and stays.
		slices.SortStableFunc(copies[1:], func(a, b placed) int { return cmp.Compare(btoi(b.started), btoi(a.started)) })
		copies = copies[:1+replicas]
	}
	loads.moved(before, copies)
	for len(copies) < 1+replicas {
		n, ok := loads.least(copies)
		if !ok {
			break
		}
		l.last++
		primary := len(copies) == 0
		copies = append(copies, placed{node: n, number: l.last, started: primary || created})
		loads.add(n, primary, 1)
	}
	return copies
}

// moved counts that some copies of a shard have become others.
func (l loads) moved(before, after []placed) {
	for i, c := range before {
		l.add(c.node, i == 0, -1)
	}
	for i, c := range after {
		l.add(c.node, i == 0, 1)
	}
}

// least returns the member that holds the least and no copy of this shard. Of several it is one with few primaries for a primary and
// one with many for a replica, so that both are spread.
func (l loads) least(copies []placed) (best shard.Node, found bool) {
	for n, x := range l {
		if slices.ContainsFunc(copies, func(c placed) bool { return c.node == n }) {
			continue
		}
		primaries := cmp.Compare(x.primaries, l[best].primaries)
		if len(copies) > 0 {
			primaries = -primaries
		}
		if !found || cmp.Or(cmp.Compare(x.copies, l[best].copies), primaries, compareNodes(n, best)) < 0 {
			best, found = n, true
		}
	}
	return best, found
}

func compareNodes(a, b shard.Node) int {
	return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Incarnation, b.Incarnation))
}

// replaced returns the definitions that have to be laid out anew for these members, as they are to be. Those that were laid out for
// later members are left alone.
func (c *catalog) replaced(members Members) map[string]*definition {
	if members.Epoch == 0 || len(members.Nodes) == 0 {
		return nil
	}
	loads := loadsOf(c.all, members)
	changed := make(map[string]*definition)
	for _, name := range slices.Sorted(maps.Keys(c.all)) {
		d := c.all[name]
		if d.epoch > members.Epoch || d.wellPlaced(loads) {
			continue
		}
		next := *d
		next.layout = d.place(d.shards, d.replicas, members, loads)
		if !sameCopies(d.copies, next.copies) {
			changed[name] = &next
		}
	}
	return changed
}

// wellPlaced reports whether all copies are on members, and as many as there are to be.
func (d *definition) wellPlaced(members loads) bool {
	for _, copies := range d.copies {
		if len(copies) != min(1+d.replicas, len(members)) {
			return false
		}
		for _, c := range copies {
			if _, ok := members[c.node]; !ok {
				return false
			}
		}
	}
	return true
}

func sameCopies(a, b [][]placed) bool {
	return slices.EqualFunc(a, b, func(a, b []placed) bool { return slices.Equal(a, b) })
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
