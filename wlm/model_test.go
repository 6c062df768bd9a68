package wlm_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/wlm"
)

// naive says in the plainest way what has to happen. It knows nothing of locks, plans, owners or messages.
type naive struct {
	mode    wlm.Mode
	groups  map[string]*naiveGroup // by id
	buckets map[wlm.BucketKey]*naiveBucket
}

type naiveGroup struct {
	name, attribute          string // attribute "" = throttling is off
	node, shared, size       int    // limits; 0 = no tier
	monitor                  bool
	throttled, would, queued uint64
	rejected, evicted, waits uint64
	peak                     uint64
}

type naiveBucket struct {
	node, shared int
	queue        []*modelSearch
}

// modelSearch is a search as the model expects it, beside the real one.
type modelSearch struct {
	*search
	id     int
	group  *naiveGroup // nil: a group that nobody knows
	key    wlm.BucketKey
	state  string // running, parked, refused, evicted, gone
	permit string // of a running one: node, shared, none
}

func (m *naive) throttles(g *naiveGroup) bool {
	return g != nil && m.mode == wlm.ModeEnabled && g.attribute != "" && g.node+g.shared > 0
}

// live are the limits that hold for a bucket now.
func (m *naive) live(k wlm.BucketKey) (node, shared int) {
	g := m.groups[k.Group]
	if !m.throttles(g) || string(k.Attribute) != g.attribute {
		return 0, 0
	}
	return g.node, g.shared
}

func (m *naive) bucket(k wlm.BucketKey) *naiveBucket {
	if m.buckets[k] == nil {
		m.buckets[k] = &naiveBucket{}
	}
	return m.buckets[k]
}

func (m *naive) arrive(s *modelSearch, id, user string) {
	g := m.groups[id]
	s.group = g
	if !m.throttles(g) || g.attribute != "group" && user == "" {
		s.state, s.permit = "running", "none"
		return
	}
	s.key = wlm.BucketKey{Group: id, Attribute: groups.Attribute(g.attribute)}
	if g.attribute != "group" {
		s.key.Value = user
	}
	b := m.bucket(s.key)
	switch {
	case g.node > b.node && len(b.queue) == 0:
		b.node++
		s.state, s.permit = "running", "node"
	case g.shared > b.shared && len(b.queue) == 0:
		b.shared++
		s.state, s.permit = "running", "shared"
	case g.monitor:
		g.would++
		s.state, s.permit = "running", "none"
	case len(b.queue) >= g.size:
		g.throttled++
		if g.size > 0 {
			g.rejected++
		}
		s.state = "refused"
	default:
		g.queued++
		s.state = "parked"
		b.queue = append(b.queue, s)
		g.peak = max(g.peak, m.parked(g))
	}
}

func (m *naive) parked(g *naiveGroup) (n uint64) {
	for k, b := range m.buckets {
		if m.groups[k.Group] == g {
			n += uint64(len(b.queue))
		}
	}
	return n
}

func (m *naive) end(s *modelSearch) {
	b := m.bucket(s.key)
	switch s.permit {
	case "node":
		b.node--
	case "shared":
		b.shared--
	}
	s.state = "gone"
	m.drain(s.key)
}

func (m *naive) cancel(s *modelSearch) {
	if s.state != "parked" {
		return // a running one ends when its executor sees it
	}
	b := m.bucket(s.key)
	b.queue = slices.DeleteFunc(b.queue, func(x *modelSearch) bool { return x == s })
	s.state = "evicted"
	s.group.evicted++
}

// drain admits what the bucket's limits allow, the node tier first.
func (m *naive) drain(k wlm.BucketKey) {
	b := m.bucket(k)
	node, shared := m.live(k)
	for len(b.queue) > 0 {
		s := b.queue[0]
		switch g := m.groups[k.Group]; {
		case node == 0 && shared == 0 || g.monitor:
			s.permit = "none"
		case node > b.node:
			b.node++
			s.permit = "node"
		case shared > b.shared:
			b.shared++
			s.permit = "shared"
		default:
			return
		}
		b.queue = b.queue[1:]
		s.state = "running"
		s.group.waits++
	}
}

func (m *naive) drainAll() {
	for k := range m.buckets {
		m.drain(k)
	}
}

// modelRun drives an admission and the naive model with the same random steps.
type modelRun struct {
	*harness
	naive   naive
	rand    *rand.Rand
	live    []*modelSearch // running or parked, in the order of arrival
	sent    int
	history []string
}

func (r *modelRun) note(format string, args ...any) {
	r.history = append(r.history, fmt.Sprintf(format, args...))
}

func (r *modelRun) pick(is func(*modelSearch) bool) *modelSearch {
	var of []*modelSearch
	for _, s := range r.live {
		if is(s) {
			of = append(of, s)
		}
	}
	if len(of) == 0 {
		return nil
	}
	return of[r.rand.IntN(len(of))]
}

func (r *modelRun) pickGroup() (id string, g *naiveGroup) {
	ids := slices.Sorted(maps.Keys(r.naive.groups))
	slices.SortFunc(ids, func(a, b string) int { return strings.Compare(r.naive.groups[a].name, r.naive.groups[b].name) })
	if len(ids) == 0 {
		return "", nil
	}
	id = ids[r.rand.IntN(len(ids))]
	return id, r.naive.groups[id]
}

var attributes = []string{"group", "username", "role"}

// randomLimits changes what throttles a group, as a body and in the model.
func (r *modelRun) randomLimits(g *naiveGroup) string {
	if r.rand.IntN(6) == 0 {
		g.attribute, g.node, g.shared, g.size = "", 0, 0, 0
		return unlimited
	}
	if g.attribute == "" || r.rand.IntN(4) == 0 {
		g.attribute = attributes[r.rand.IntN(len(attributes))]
	}
	g.node, g.shared = r.rand.IntN(4), r.rand.IntN(3)
	if g.node+g.shared == 0 {
		g.node = 1
	}
	g.size = []int{0, 1, 3, 8}[r.rand.IntN(4)]
	return "{" + limits(g.attribute, g.node, g.shared, g.size) + "}"
}

func (r *modelRun) step() {
	m := &r.naive
	switch n := r.rand.IntN(100); {
	case n < 42:
		id, g := r.pickGroup()
		if r.rand.IntN(20) == 0 {
			id, g = "nosuch", nil
		}
		user := []string{"", "ann", "bob"}[min(r.rand.IntN(8), 2)]
		who := wlm.Principal{User: user}
		if user != "" {
			who.Roles = []string{"z", user}
		}
		s := &modelSearch{id: r.sent}
		r.sent++
		m.arrive(s, id, user)
		name := "nosuch"
		if g != nil {
			name = g.name
		}
		r.note("search %d of %q arrives in %s: %s %s", s.id, user, name, s.state, s.permit)
		s.search = r.start(wlm.Request{Group: id, Principal: who})
		r.live = append(r.live, s)
	case n < 74:
		if s := r.pick(func(s *modelSearch) bool { return s.state == "running" }); s != nil {
			r.note("search %d ends", s.id)
			s.finish()
			m.end(s)
		}
	case n < 84:
		if s := r.pick(func(*modelSearch) bool { return true }); s != nil {
			r.note("search %d (%s) is cancelled", s.id, s.state)
			s.cancel(errUser)
			m.cancel(s)
		}
	case n < 94:
		if _, g := r.pickGroup(); g != nil {
			body := r.randomLimits(g)
			r.note("%s: %s", g.name, body)
			r.update(g.name, body)
			m.drainAll()
		}
	case n < 96:
		if _, g := r.pickGroup(); g != nil {
			g.monitor = !g.monitor
			mode := "enforced"
			if g.monitor {
				mode = "monitor"
			}
			r.note("%s: %s", g.name, mode)
			r.update(g.name, fmt.Sprintf(`{"resiliency_mode":%q}`, mode))
			m.drainAll()
		}
	case n < 98:
		if id, g := r.pickGroup(); g != nil && r.rand.IntN(2) == 0 {
			r.note("%s is deleted", g.name)
			r.remove(g.name)
			delete(m.groups, id)
			m.drainAll()
			r.addGroup(g.name)
		}
	default:
		m.mode = []wlm.Mode{wlm.ModeEnabled, wlm.ModeEnabled, wlm.ModeMonitorOnly, wlm.ModeDisabled}[r.rand.IntN(4)]
		r.note("mode %s", m.mode)
		r.SetMode(m.mode)
		m.drainAll()
	}
}

func (r *modelRun) addGroup(name string) {
	g := &naiveGroup{name: name}
	id := r.create(name, "")
	body := r.randomLimits(g)
	r.note("%s is made: %s", name, body)
	r.update(name, body)
	r.naive.groups[id] = g
}

// compare checks the real searches and counters against the model, and forgets who has left.
func (r *modelRun) compare() bool {
	ok := true
	fail := func(format string, args ...any) {
		ok = false
		r.Errorf(format, args...)
	}
	for _, s := range r.live {
		state := "gone"
		switch err := s.failure(); {
		case s.running():
			state = "running"
		case s.parked():
			state = "parked"
		case err != nil && strings.HasPrefix(err.Error(), "Request throttled"):
			state = "refused"
		case err != nil:
			state = "evicted"
		}
		if state != s.state {
			fail("search %d is %s (%v), the model says %s", s.id, state, s.failure(), s.state)
		} else if state == "running" && s.tracked() != (s.permit != "none") {
			fail("search %d: tracked is %v, the model says permit %s", s.id, s.tracked(), s.permit)
		}
	}
	r.live = slices.DeleteFunc(r.live, func(s *modelSearch) bool { return s.state != "running" && s.state != "parked" })
	for _, c := range r.Counters() {
		g := r.naive.groups[c.Group]
		if g == nil {
			continue
		}
		want := c
		want.Throttled, want.WouldThrottle, want.Queued, want.QueueRejections = g.throttled, g.would, g.queued, g.rejected
		want.Evicted, want.QueueWaits, want.QueuePeak = g.evicted, g.waits, g.peak
		want.QueuedCurrent, want.Waiters = r.naive.parked(g), int64(r.naive.parked(g))
		want.RunningTracked, want.RunningUntracked = 0, 0
		for _, s := range r.live {
			switch {
			case s.group != g || s.state != "running":
			case s.permit == "none":
				want.RunningUntracked++
			default:
				want.RunningTracked++
			}
		}
		if c != want {
			fail("group %s counts %+v, the model says %+v", g.name, c, want)
		}
	}
	return ok && !r.Failed()
}

// TestAgainstNaiveModel drives the admission with random arrivals, ends, cancels and changes of everything that can change.
func TestAgainstNaiveModel(t *testing.T) {
	const rounds, steps = 50, 2_500
	s := seed(t)
	for round := range rounds {
		synctest.Test(t, func(t *testing.T) {
			r := &modelRun{harness: newHarness(t), rand: rand.New(rand.NewPCG(s, uint64(round)))}
			r.naive = naive{mode: wlm.ModeEnabled, groups: map[string]*naiveGroup{}, buckets: map[wlm.BucketKey]*naiveBucket{}}
			r.addGroup("one")
			r.addGroup("two")
			for range steps {
				time.Sleep(time.Duration(r.rand.IntN(3)) * time.Millisecond)
				r.step()
				synctest.Wait()
				if !r.compare() {
					r.keepHistory(s, round)
					break
				}
			}
			var left []*search
			for _, s := range r.live {
				left = append(left, s.search)
			}
			finishAll(left)
			r.done()
		})
		if t.Failed() {
			return
		}
	}
}

func (r *modelRun) keepHistory(seed uint64, round int) {
	file := filepath.Join(r.ArtifactDir(), fmt.Sprintf("history-%d-%d.txt", seed, round))
	if err := os.WriteFile(file, []byte(strings.Join(r.history, "\n")+"\n"), 0o644); err != nil {
		r.Error(err)
	}
	from := max(0, len(r.history)-40)
	r.Logf("the last steps of round %d (all are in %s):\n%s", round, file, strings.Join(r.history[from:], "\n"))
}
