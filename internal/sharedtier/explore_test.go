package sharedtier_test

import (
	"flag"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/internal/sharedtier"
)

var products = flag.Bool("model", false, "explore the products of fault kinds too: minutes")

// key encodes what decides about the world's future. Coordinators are alike, so the smallest encoding over their orders stands for all.
func (w *world) key(perms [][]int8) (best []byte) {
	for _, order := range perms {
		b := w.encode(order)
		if best == nil || slices.Compare(b, best) < 0 {
			best = b
		}
	}
	return best
}

// encode writes the world with its coordinators in an order of choice. Sessions and permits get numbers in the order in which they
// are met, since only which is which matters.
func (w *world) encode(order []int8) []byte {
	place := make([]byte, len(order))
	for i, c := range order {
		place[c] = byte(i)
	}
	var permits []sharedtier.PermitID
	names := sharedtier.Names{
		Member: func(m sharedtier.Member) byte { return place[index(m)] },
		Session: func(m sharedtier.Member, n uint64) byte {
			k := &w.coords[index(m)]
			for i, s := range append([]*stream{k.now}, k.old...) {
				if s.number == n {
					return byte(i + 1)
				}
			}
			return 0 // none, or one that is over
		},
		Permit: func(p sharedtier.PermitID) byte {
			if p == (sharedtier.PermitID{}) {
				return 0
			}
			i := slices.Index(permits, p)
			if i < 0 {
				i, permits = len(permits), append(permits, p)
			}
			return byte(i + 1)
		},
	}
	b := make([]byte, 0, 256)
	b = append(b, byte(w.published), byte(w.cancels), byte(w.cuts), byte(w.pauses), byte(w.limitSaw))
	for _, c := range order {
		k := &w.coords[c]
		b = append(b, byte(k.epoch), byte(k.tier), flagOf(k.undone), flagOf(k.paused), flagOf(k.expired))
		b = k.counts.AppendState(b)
		for i := int(c); i < len(w.all); i += len(w.coords) {
			s := &w.all[i]
			b = append(b, s.state, flagOf(s.local), flagOf(s.lapsed), names.Permit(s.permit))
		}
		b = append(b, byte(len(k.queue)))
		for _, x := range k.queue {
			b = append(b, byte(int(x)/len(w.coords)))
		}
		b = append(b, byte(len(k.old)))
		for _, s := range append([]*stream{k.now}, k.old...) {
			b = append(b, byte(s.owner), byte(s.epoch), flagOf(s.cut), flagOf(s.cutHeard), flagOf(s.opened))
			for _, flights := range [][]flight{s.up, s.down} {
				b = append(b, byte(len(flights)))
				for _, f := range flights {
					m := f.Message
					if m.Try != 0 {
						m.Try = 1 + (m.Try-1)/uint64(len(w.coords))
					}
					b = sharedtier.AppendMessage(append(b, byte(f.epoch), flagOf(f.open)), m, names)
				}
			}
		}
	}
	members := make([]sharedtier.Member, len(order))
	for i, c := range order {
		members[i] = member(c)
	}
	for _, o := range w.owners {
		b = o.tenure.AppendState(append(b, byte(o.epoch)), bucket{}, members, names)
	}
	return b
}

func flagOf(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// permutations lists all orders of n things.
func permutations(n int) (out [][]int8) {
	var grow func([]int8)
	grow = func(p []int8) {
		if len(p) == n {
			out = append(out, slices.Clone(p))
			return
		}
		for i := range int8(n) {
			if !slices.Contains(p, i) {
				grow(append(p, i))
			}
		}
	}
	grow(nil)
	return out
}

// found is what an exploration ends with.
type found struct {
	states, ends int
	wrong        string // empty: nothing is
	path         []string
}

// explore visits every state that an instance can reach, by the shortest ways, until something is wrong. States are told apart by
// two hashes of 64 bits each: that two of a few million fall together by chance is out of the question.
func explore(of instance) found {
	type node struct {
		from int32
		how  move
	}
	seeds := [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	perms := permutations(of.coords)
	seen := make(map[[2]uint64]struct{})
	fresh := func(w *world) bool {
		w.tidy()
		k := w.key(perms)
		h := [2]uint64{maphash.Bytes(seeds[0], k), maphash.Bytes(seeds[1], k)}
		if _, known := seen[h]; known {
			return false
		}
		seen[h] = struct{}{}
		return true
	}
	start := newWorld(&of)
	fresh(start)
	nodes, todo := []node{{from: -1}}, []*world{start}
	var f found
	for at := 0; at < len(todo); at++ {
		w := todo[at]
		todo[at] = nil
		moves := w.moves()
		if len(moves) == 0 {
			f.ends++
		}
		if f.wrong = w.wrong(len(moves) == 0); f.wrong != "" {
			for i := int32(at); i > 0; i = nodes[i].from {
				f.path = append(f.path, nodes[i].how.String())
			}
			slices.Reverse(f.path)
			break
		}
		for _, m := range moves {
			next := w.clone()
			m.do(next)
			if fresh(next) {
				nodes, todo = append(nodes, node{int32(at), m}), append(todo, next)
			}
		}
	}
	f.states = len(nodes)
	return f
}

// TestEveryOrder visits every state that small instances can reach, with each kind of trouble alone: never more searches run than the
// limit allows, and when all is quiet nobody waits and no permit is out.
func TestEveryOrder(t *testing.T) {
	instances := []instance{
		{coords: 1, searches: 3, limit: 1, size: 3, cancels: 2, ring: "0"},
		{coords: 1, searches: 4, limit: 1, size: 2, cancels: 1, ring: "0"},
		{coords: 2, searches: 2, limit: 1, size: 2, cancels: 1, ring: "0"},
		{coords: 2, searches: 2, limit: 2, size: 1, ring: "0"},
		{coords: 3, searches: 1, limit: 1, size: 1, cancels: 1, ring: "0"},
		{coords: 1, searches: 4, limit: 1, size: 2, cancels: 1, tries: true, ring: "0"},
		{coords: 2, searches: 2, limit: 1, size: 1, tries: true, ring: "0"},
		{coords: 1, searches: 3, limit: 1, size: 2, cancels: 1, blinks: true, ring: "0"},
		{coords: 2, searches: 1, limit: 1, size: 1, blinks: true, ring: "0"},
		{coords: 2, searches: 1, limit: 1, size: 1, toggles: true, ring: "0"},
		{coords: 2, searches: 2, limit: 1, size: 2, node: 1, ring: "0"},
		{coords: 2, searches: 1, limit: 1, size: 1, ring: "00"},
		{coords: 2, searches: 1, limit: 1, size: 1, ring: "01"},
		{coords: 1, searches: 2, limit: 1, size: 1, ring: "010"},
		{coords: 1, searches: 3, limit: 1, size: 2, tries: true, ring: "01"},
		{coords: 2, searches: 1, limit: 1, size: 1, cuts: 1, ring: "0"},
		{coords: 1, searches: 3, limit: 1, size: 2, cuts: 2, tries: true, ring: "0"},
		{coords: 1, searches: 4, limit: 2, size: 1, cuts: 1, early: true, ring: "0"},
		{coords: 2, searches: 1, limit: 1, size: 1, pauses: 1, cuts: 1, ring: "0"},
		{coords: 2, searches: 2, limit: 1, size: 2, pauses: 1, ring: "0"},
		{coords: 2, searches: 2, limit: 1, size: 2, cuts: 1, ring: "0"},
	}
	if *products {
		instances = append(instances,
			instance{coords: 2, searches: 1, limit: 1, size: 1, ring: "010"},
			instance{coords: 2, searches: 2, limit: 1, size: 2, ring: "01", cancels: 1},
			instance{coords: 2, searches: 2, limit: 1, size: 2, cuts: 1, cancels: 1, tries: true, ring: "0"},
			instance{coords: 2, searches: 2, limit: 1, size: 2, cuts: 1, pauses: 1, ring: "0"},
			instance{coords: 2, searches: 1, limit: 1, size: 1, cuts: 1, ring: "01"},
			instance{coords: 2, searches: 1, limit: 1, size: 1, cuts: 1, ring: "00"},
			instance{coords: 2, searches: 1, limit: 1, size: 1, pauses: 1, ring: "01"},
			instance{coords: 2, searches: 2, limit: 1, size: 2, cancels: 1, toggles: true, blinks: true, ring: "0"},
			instance{coords: 3, searches: 1, limit: 1, size: 1, ring: "01"},
			instance{coords: 3, searches: 1, limit: 2, size: 1, cuts: 1, pauses: 1, ring: "0"},
			instance{coords: 2, searches: 2, limit: 1, size: 2, cancels: 2, node: 1, cuts: 1, ring: "0"},
			instance{coords: 1, searches: 3, limit: 1, size: 3, cancels: 1, cuts: 1, pauses: 1, ring: "010"},
		)
	}
	for _, of := range instances {
		t.Run(of.String(), func(t *testing.T) {
			t.Parallel()
			f := explore(of)
			t.Logf("%d states, %d ends", f.states, f.ends)
			if f.wrong != "" {
				t.Errorf("%s after:\n  %s", f.wrong, strings.Join(f.path, "\n  "))
			} else if f.ends == 0 {
				t.Error("no end was reached: the exploration proves nothing")
			}
		})
	}
}

// TestPlantedFaults shows that the exploration can find something: each rule of the protocol is left out, and is missed.
func TestPlantedFaults(t *testing.T) {
	for _, of := range []instance{
		{fault: noRuleR, coords: 2, searches: 2, limit: 1, size: 2, ring: "0"},
		{fault: noGeneration, coords: 1, searches: 5, limit: 1, size: 3, cancels: 3, ring: "0"},
		{fault: movedOnly, coords: 2, searches: 2, limit: 1, size: 2, ring: "00"},
		{fault: movedOnly, coords: 2, searches: 1, limit: 1, size: 1, ring: "010"},
		{fault: noAnnounce, coords: 2, searches: 2, limit: 1, size: 2, ring: "01"},
		{fault: noResync, coords: 2, searches: 2, limit: 1, size: 2, cuts: 1, ring: "0"},
		{fault: noLease, coords: 2, searches: 2, limit: 1, size: 2, pauses: 1, ring: "0"},
		{fault: noRemember, coords: 1, searches: 2, limit: 1, size: 2, toggles: true, ring: "0"},
		{fault: dropEmpty, coords: 1, searches: 5, limit: 1, size: 3, cancels: 3, ring: "0"},
	} {
		t.Run(of.String(), func(t *testing.T) {
			t.Parallel()
			f := explore(of)
			if f.wrong == "" {
				t.Fatalf("%d states, and nothing is wrong", f.states)
			}
			t.Logf("%d states: %s after %d steps", f.states, f.wrong, len(f.path))
		})
	}
}

func (i instance) String() string {
	s := fmt.Sprintf("%d coordinators with %d searches, limit %d, size %d, ring %s", i.coords, i.searches, i.limit, i.size, i.ring)
	for _, more := range []struct {
		n    int
		what string
	}{{i.node, "node"}, {int(i.cancels), "cancels"}, {int(i.cuts), "cuts"}, {int(i.pauses), "pauses"}} {
		if more.n > 0 {
			s += fmt.Sprintf(", %s %d", more.what, more.n)
		}
	}
	for _, more := range []struct {
		on   bool
		what string
	}{{i.tries, "tries"}, {i.toggles, "the owner's limit comes and goes"}, {i.blinks, "the coordinators' limit comes and goes"}, {i.early, "searches before the end of announcements"}} {
		if more.on {
			s += ", " + more.what
		}
	}
	if i.fault != noFault {
		s += ": " + string(i.fault)
	}
	return s
}
