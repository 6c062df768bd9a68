package stub

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/wlmserver/wlmserver/internal/shard"
)

// world is the indices of a cluster that nodes enter and leave.
type world struct {
	catalog
	members Members
	starts  int
}

func (w *world) enter() {
	w.starts++
	id := string(rune('a' + w.starts%7)) // names come again
	if slices.ContainsFunc(w.members.Nodes, func(n shard.Node) bool { return n.ID == id }) {
		return
	}
	w.members.Nodes = append(slices.Clone(w.members.Nodes), shard.Node{ID: id, Incarnation: string(rune('0' + w.starts%64))})
	w.members.Epoch++
}

func (w *world) leave(i int) {
	w.members.Nodes = slices.Delete(slices.Clone(w.members.Nodes), i, i+1)
	w.members.Epoch++
}

// layOut lays all indices out for the members, and again.
func (w *world) layOut(t *rapid.T) {
	changed := w.replaced(w.members)
	backwards := w.members
	backwards.Nodes = slices.Clone(w.members.Nodes)
	slices.Reverse(backwards.Nodes)
	for name, d := range w.replaced(backwards) {
		if !sameCopies(d.copies, changed[name].copies) {
			t.Fatalf("%s is laid out as %v by one node and as %v by another", name, changed[name].copies, d.copies)
		}
	}
	for name, d := range changed {
		w.check(t, w.all[name], d)
		w.all[name] = d
	}
	if again := w.replaced(w.members); len(again) != 0 {
		t.Fatalf("laid out for the same members, %v would move", slices.Collect(maps.Keys(again)))
	}
}

// check compares the layout of an index before and after.
func (w *world) check(t *rapid.T, before, d *definition) {
	for n, copies := range d.copies {
		if want := min(1+d.replicas, len(w.members.Nodes)); len(copies) != want {
			t.Fatalf("%s has %d copies of a shard, want %d", d.name, len(copies), want)
		}
		seen := make(map[string]bool)
		for i, c := range copies {
			if seen[c.node.ID] || !slices.Contains(w.members.Nodes, c.node) {
				t.Fatalf("%s has copies on %v of the members %v", d.name, copies, w.members.Nodes)
			}
			seen[c.node.ID] = true
			if i == 0 && !c.started {
				t.Fatalf("the primary of %s is not started: %v", d.name, copies)
			}
		}
		if before == nil {
			continue
		}
		lives := func(c placed) bool { return slices.Contains(w.members.Nodes, c.node) }
		var primary *placed // who has to be it
		for _, c := range before.copies[n] {
			if lives(c) && c.started {
				primary = &c
				break
			}
		}
		if primary != nil && copies[0] != *primary {
			t.Fatalf("%s: of %v, the primary became %v", d.name, before.copies[n], copies[0])
		}
		for _, c := range before.copies[n] {
			if primary != nil && lives(c) && !slices.Contains(copies, c) {
				t.Fatalf("%s: the copy %v moved without need: %v", d.name, c, copies)
			}
		}
		for _, c := range copies {
			if !slices.Contains(before.copies[n], c) && (c.number <= before.last || c.started != (primary == nil && c == copies[0])) {
				t.Fatalf("%s: the new copy %v after %d, with the primary %v", d.name, c, before.last, primary)
			}
		}
	}
}

func TestLayouts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{catalog: catalog{all: make(map[string]*definition)}}
		for range rapid.IntRange(1, 4).Draw(t, "nodes") {
			w.enter()
		}
		t.Repeat(map[string]func(*rapid.T){
			"create": func(t *rapid.T) {
				name := string(rune('a' + len(w.all)))
				d := &definition{identity: &identity{name: name, shards: rapid.IntRange(1, 6).Draw(t, "shards")}}
				d.replicas = rapid.IntRange(0, 3).Draw(t, "replicas")
				d.layout = new(layout).place(d.shards, d.replicas, w.members, loadsOf(w.all, w.members))
				w.check(t, nil, d)
				w.all[name] = d
			},
			"fill": func(*rapid.T) {
				for name, d := range w.all {
					next := *d
					for n := range d.copies {
						next.layout = next.with(n, func(copies []placed) []placed {
							for i := range copies {
								copies[i].started = true
							}
							return copies
						})
					}
					w.all[name] = &next
				}
			},
			"enter": func(t *rapid.T) { w.enter(); w.layOut(t) },
			"leave": func(t *rapid.T) {
				if len(w.members.Nodes) < 2 {
					t.Skip("one stays")
				}
				w.leave(rapid.IntRange(0, len(w.members.Nodes)-1).Draw(t, "who"))
				w.layOut(t)
			},
		})
	})
}

// New indices are spread as evenly as can be over members that hold nothing else.
func TestNewIndicesAreSpreadEvenly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{catalog: catalog{all: make(map[string]*definition)}}
		for range rapid.IntRange(1, 6).Draw(t, "nodes") {
			w.enter()
		}
		for i := range rapid.IntRange(1, 5).Draw(t, "indices") {
			d := &definition{identity: &identity{name: string(rune('a' + i)), shards: rapid.IntRange(1, 9).Draw(t, "shards")}}
			d.replicas = rapid.IntRange(0, 2).Draw(t, "replicas")
			d.layout = new(layout).place(d.shards, d.replicas, w.members, loadsOf(w.all, w.members))
			w.all[d.name] = d
		}
		loads := loadsOf(w.all, w.members)
		least, most := 1<<30, 0
		for _, l := range loads {
			least, most = min(least, l.copies), max(most, l.copies)
		}
		if most-least > 1 {
			t.Fatalf("spread as %v", loads)
		}
	})
}

// Replicas that are too many go: first those that are being filled, then the newest.
func TestTooManyReplicas(t *testing.T) {
	members := Members{Epoch: 1}
	var copies []placed
	for i, started := range []bool{true, true, false, true} {
		n := shard.Node{ID: string(rune('a' + i))}
		members.Nodes = append(members.Nodes, n)
		copies = append(copies, placed{n, int64(i + 1), started})
	}
	for replicas, want := range [][]int64{{1}, {1, 2}, {1, 2, 4}, {1, 2, 3, 4}} {
		l := layout{last: 4, copies: [][]placed{copies}}
		next := l.place(1, replicas, members, loadsOf(nil, members))
		var got []int64
		for _, c := range next.copies[0] {
			got = append(got, c.number)
		}
		if !slices.Equal(got, want) {
			t.Errorf("with %d replicas there remain the copies %v, want %v", replicas, got, want)
		}
	}
}
