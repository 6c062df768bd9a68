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
	limit    int
	size     int
	cancels  int
	owner    sharedtier.Owner
	coords   []coordinator
	searches []search
}

type coordinator struct {
	counts   sharedtier.Coordinator
	queue    []int // searches, oldest first
	up, down []sharedtier.Message
}

type search struct {
	coord  int
	state  byte // 'n'ew, 'p'ending, 'w'aiting, 'r'unning, 'd'one, 'c'ancelled, 'f'ull
	permit sharedtier.PermitID
}

func newWorld(coords, searches, limit, size, cancels int) *world {
	w := &world{limit: limit, size: size, cancels: cancels, coords: make([]coordinator, coords)}
	w.owner.Limit = limit
	for i := range w.coords {
		w.coords[i].counts.On = true
		w.coords[i].counts.Size = size
	}
	for i := range coords * searches {
		w.searches = append(w.searches, search{coord: i % coords, state: 'n'})
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
	for i := range w.searches {
		s := &w.searches[i]
		c := &w.coords[s.coord]
		switch {
		case s.state == 'n' && (i < len(w.coords) || w.searches[i-len(w.coords)].state != 'n'):
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
	for i := range w.coords {
		c := &w.coords[i]
		if len(c.up) > 0 {
			out = append(out, move{fmt.Sprintf("the owner hears %d", i), func() {
				m := c.up[0]
				c.up = c.up[1:]
				for _, o := range w.owner.Receive(member(i), m, nil) {
					to := &w.coords[index(o.To)]
					to.down = append(to.down, o.Message)
				}
			}})
		}
		if len(c.down) > 0 {
			out = append(out, move{fmt.Sprintf("coordinator %d hears", i), func() {
				m := c.down[0]
				c.down = c.down[1:]
				head := len(c.queue) > 0 && w.searches[c.queue[0]].state == 'w'
				w.apply(i, c.counts.Receive(m, head, nil))
			}})
		}
	}
	return out
}

func member(i int) sharedtier.Member    { return sharedtier.Member(rune('a' + i)) }
func index(m sharedtier.Member) (i int) { return int(m[0] - 'a') }

func (w *world) arrive(i int) {
	s := &w.searches[i]
	c := &w.coords[s.coord]
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
			s := &w.searches[c.queue[0]]
			c.queue = slices.Delete(c.queue, 0, 1)
			s.state, s.permit = 'r', e.Permit
		case sharedtier.PromoteOldestPending:
			i := slices.IndexFunc(c.queue, func(x int) bool { return w.searches[x].state == 'p' })
			w.searches[c.queue[i]].state = 'w'
		case sharedtier.RefuseNewestPending:
			for i := len(c.queue) - 1; i >= 0; i-- {
				if s := &w.searches[c.queue[i]]; s.state == 'p' {
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
	fmt.Fprintf(&b, "%d %+v|", w.cancels, w.owner)
	for i := range w.coords {
		fmt.Fprintf(&b, "%+v|", w.coords[i])
	}
	fmt.Fprintf(&b, "%v", w.searches)
	return b.String()
}

// fault says what is wrong with the world, if anything.
func (w *world) fault() string {
	running, waitings := 0, make([]int, len(w.coords))
	for _, s := range w.searches {
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
	for i, s := range w.searches {
		if s.state == 'p' || s.state == 'w' {
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
	for _, c := range []struct{ coords, searches, limit, size, cancels int }{
		{1, 3, 1, 3, 2},
		{1, 4, 1, 2, 1},
		{2, 2, 1, 2, 1},
		{2, 2, 2, 1, 0},
		{3, 1, 1, 1, 1},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			t.Parallel()
			start := func() *world { return newWorld(c.coords, c.searches, c.limit, c.size, c.cancels) }
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
