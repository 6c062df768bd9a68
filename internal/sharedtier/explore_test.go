package sharedtier_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/internal/sharedtier"
)

// world is a small instance of the shared tier: coordinators with their queues, one owner, and what is under way between them.
// The tests below visit every order in which its events can happen.
type world struct {
	instance
	owner    sharedtier.Owner
	coords   []coordinator
	all      []search
	ownerSaw int // of the toggled limit, as a coordinator's tier
}

// instance says how small.
type instance struct {
	coords, searches int // searches of each coordinator
	limit, size      int
	cancels          int  // at most
	tries            bool // every second search may not wait
	toggles          bool // the limit goes and comes back, seen by each side at its own time
}

type coordinator struct {
	tier     int // 0: not yet gone, 1: gone, 2: back
	counts   sharedtier.Coordinator
	queue    []int // searches, oldest first
	up, down []sharedtier.Message
}

type search struct {
	coord  int
	state  byte // 'n'ew, 'p'ending, 'w'aiting, 't'rying, 'r'unning, 'd'one, 'c'ancelled, 'f'ull
	try    bool // it may not wait
	permit sharedtier.PermitID
}

func newWorld(of instance) *world {
	w := &world{instance: of, coords: make([]coordinator, of.coords)}
	w.owner = sharedtier.NewOwner()
	w.owner.Limit = of.limit
	for i := range w.coords {
		w.coords[i].counts.On, w.coords[i].counts.Linked = true, true
		w.coords[i].counts.Size = of.size
	}
	for i := range of.coords * of.searches {
		w.all = append(w.all, search{coord: i % of.coords, state: 'n', try: of.tries && i/of.coords%2 == 1})
	}
	return w
}

// replay makes the world that a list of moves leads to.
func replay(start func() *world, moves []string) *world {
	w := start()
	for _, m := range moves {
		for _, move := range w.moves() {
			if move.name == m {
				move.do()
				break
			}
		}
	}
	return w
}

type move struct {
	name string
	do   func()
}

// moves are the events that can happen next.
func (w *world) moves() []move {
	var out []move
	for i := range w.all {
		s := &w.all[i]
		c := &w.coords[s.coord]
		switch {
		case s.state == 'n' && (i < len(w.coords) || w.all[i-len(w.coords)].state != 'n'):
			out = append(out, move{fmt.Sprintf("search %d arrives", i), func() { w.arrive(i) }})
		case (s.state == 'p' || s.state == 'w') && w.cancels > 0:
			out = append(out, move{fmt.Sprintf("search %d is cancelled", i), func() {
				w.cancels--
				c.queue = slices.DeleteFunc(c.queue, func(x int) bool { return x == i })
				c.counts.Cancel(s.state == 'w')
				s.state = 'c'
				w.apply(s.coord, c.counts.Settle(nil))
			}})
		case s.state == 'r':
			out = append(out, move{fmt.Sprintf("search %d ends", i), func() {
				s.state = 'd'
				c.up = append(c.up, sharedtier.Message{Kind: sharedtier.Release, Permit: s.permit})
				w.apply(s.coord, c.counts.Settle(nil))
			}})
		}
	}
	if w.toggles && w.ownerSaw < 2 {
		out = append(out, move{"the owner's limit changes", func() {
			w.ownerSaw++
			w.owner.Limit = []int{0, w.limit}[w.ownerSaw-1]
			w.send(w.owner.Push(nil))
		}})
	}
	for i := range w.coords {
		c := &w.coords[i]
		if w.toggles && c.tier < 2 {
			out = append(out, move{fmt.Sprintf("coordinator %d sees the limit change", i), func() {
				c.tier++
				w.apply(i, c.counts.SetOn(c.tier == 2, nil))
			}})
		}
		if len(c.up) > 0 {
			out = append(out, move{fmt.Sprintf("the owner hears %d", i), func() {
				m := c.up[0]
				c.up = c.up[1:]
				w.send(w.owner.Receive(member(i), m, nil))
			}})
		}
		if len(c.down) > 0 {
			out = append(out, move{fmt.Sprintf("coordinator %d hears", i), func() {
				m := c.down[0]
				c.down = c.down[1:]
				if m.Try != 0 {
					w.answer(i, m)
					return
				}
				head := len(c.queue) > 0 && w.all[c.queue[0]].state == 'w'
				w.apply(i, c.counts.Receive(m, head, nil))
			}})
		}
	}
	return out
}

func member(i int) sharedtier.Member    { return sharedtier.Member(rune('a' + i)) }
func index(m sharedtier.Member) (i int) { return int(m[0] - 'a') }

func (w *world) send(out []sharedtier.Outgoing) {
	for _, o := range out {
		to := &w.coords[index(o.To)]
		to.down = append(to.down, o.Message)
	}
}

// answer takes in the answer to a try. A search that was let go meanwhile gives the permit back.
func (w *world) answer(coord int, m sharedtier.Message) {
	s := &w.all[m.Try-1]
	switch {
	case m.Kind == sharedtier.Granted:
		s.state, s.permit = 'r', m.Permit
	default:
		s.state = 'f'
	}
}

func (w *world) arrive(i int) {
	s := &w.all[i]
	c := &w.coords[s.coord]
	if s.try {
		if len(c.queue) > 0 {
			s.state = 'f' // it must not overtake
			return
		}
		s.state = 't'
		c.up = append(c.up, sharedtier.Message{Kind: sharedtier.Try, Try: uint64(i + 1)})
		return
	}
	outcome, fx := c.counts.Arrive(nil)
	switch outcome {
	case sharedtier.Full:
		s.state = 'f'
		return
	case sharedtier.BecomesPending:
		s.state = 'p'
	case sharedtier.BecomesWaiting:
		s.state = 'w'
	}
	c.queue = append(c.queue, i)
	w.apply(s.coord, fx)
}

func (w *world) apply(coord int, fx []sharedtier.Effect) {
	c := &w.coords[coord]
	for _, e := range fx {
		switch e.Kind {
		case sharedtier.Send:
			c.up = append(c.up, e.Message)
		case sharedtier.RunOldest:
			s := &w.all[c.queue[0]]
			c.queue = slices.Delete(c.queue, 0, 1)
			s.state, s.permit = 'r', e.Permit
		case sharedtier.PromoteOldestPending:
			i := slices.IndexFunc(c.queue, func(x int) bool { return w.all[x].state == 'p' })
			w.all[c.queue[i]].state = 'w'
		case sharedtier.RefuseNewestPending:
			for i, x := range slices.Backward(c.queue) {
				if s := &w.all[x]; s.state == 'p' {
					s.state = 'f'
					c.queue = slices.Delete(c.queue, i, i+1)
					break
				}
			}
		}
	}
}

// key tells worlds apart: equal keys have equal futures.
func (w *world) key() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %d %+v|", w.cancels, w.ownerSaw, w.owner)
	for i := range w.coords {
		fmt.Fprintf(&b, "%+v|", w.coords[i])
	}
	fmt.Fprintf(&b, "%v", w.all)
	return b.String()
}

// fault says what is wrong with the world, if anything.
func (w *world) fault() string {
	running, waitings := 0, make([]int, len(w.coords))
	for _, s := range w.all {
		switch s.state {
		case 'r':
			running++
		case 'w':
			waitings[s.coord]++
		}
	}
	if running > w.limit {
		return fmt.Sprintf("%d searches run under a limit of %d", running, w.limit)
	}
	for i := range w.coords {
		c := &w.coords[i]
		if waitings[i] > w.size || waitings[i] != c.counts.Waiting || len(c.queue) != c.counts.Waiters() {
			return fmt.Sprintf("coordinator %d has %d waiting in a queue of %d, counts %+v", i, waitings[i], len(c.queue), c.counts)
		}
	}
	if len(w.moves()) > 0 {
		return ""
	}
	for i, s := range w.all {
		if s.state == 'p' || s.state == 'w' || s.state == 't' {
			return fmt.Sprintf("all is quiet and search %d is stranded", i)
		}
	}
	if w.owner.Held() > 0 || !w.owner.Idle() {
		return fmt.Sprintf("all is quiet and the owner holds %+v", w.owner)
	}
	return ""
}

// TestEveryOrder visits every state that small instances can reach: never more searches run than the limit allows, and when all
// is quiet nobody waits and no permit is out.
func TestEveryOrder(t *testing.T) {
	for _, of := range []instance{
		{coords: 1, searches: 3, limit: 1, size: 3, cancels: 2},
		{coords: 1, searches: 4, limit: 1, size: 2, cancels: 1},
		{coords: 2, searches: 2, limit: 1, size: 2, cancels: 1},
		{coords: 2, searches: 2, limit: 2, size: 1},
		{coords: 3, searches: 1, limit: 1, size: 1, cancels: 1},
		{coords: 1, searches: 4, limit: 1, size: 2, cancels: 1, tries: true},
		{coords: 2, searches: 2, limit: 1, size: 1, tries: true},
		{coords: 1, searches: 3, limit: 1, size: 2, cancels: 1, toggles: true},
		{coords: 2, searches: 1, limit: 1, size: 1, toggles: true},
	} {
		t.Run(fmt.Sprintf("%+v", of), func(t *testing.T) {
			t.Parallel()
			start := func() *world { return newWorld(of) }
			states, ends := explore(t, start)
			t.Logf("%d states, %d ends", states, ends)
			if ends == 0 {
				t.Error("no end was reached: the exploration proves nothing")
			}
		})
	}
}

func explore(t *testing.T, start func() *world) (states, ends int) {
	t.Helper()
	seen := map[string]bool{start().key(): true}
	todo := [][]string{nil}
	for len(todo) > 0 {
		path := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		w := replay(start, path)
		states++
		if f := w.fault(); f != "" {
			t.Fatalf("%s after:\n  %s", f, strings.Join(path, "\n  "))
		}
		moves := w.moves()
		if len(moves) == 0 {
			ends++
		}
		for _, m := range moves {
			next := append(slices.Clone(path), m.name)
			if n := replay(start, next); !seen[n.key()] {
				seen[n.key()] = true
				todo = append(todo, next)
			}
		}
	}
	return states, ends
}
