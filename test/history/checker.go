package history

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/wlm"
)

const (
	// windowSize is how many events of the bucket a violation shows: a few steps.
	windowSize = 16
	// mostViolations is how many are kept: the first ones tell the most, and one fault brings many.
	mostViolations = 20
	// ceilingSlack is how far a group's waiters, as the history counts them, may be from what the group counts: its count moves
	// before the event is written, in as many buckets as goroutines are at it.
	ceilingSlack = 1000
)

// Check checks a whole history, at whose end all searches have left. The error joins its [Violation]s.
func Check(events []wlm.Event) (*Checker, error) {
	var c Checker
	for _, e := range events {
		c.Add(e)
	}
	c.Finish()
	return &c, c.Err()
}

// Checker follows a history event by event. The zero value is at its beginning. It is not safe for concurrent use.
type Checker struct {
	buckets map[string]*bucket
	parked  map[string]int // by group
	found   []*Violation
	count   int
}

// Tally is what happened in a bucket.
type Tally struct {
	Parked, Admitted, Refused, Denied, Evicted, Closed int

	MostTracked int // permits out at once
	MostWaiting int // waiting searches at once, without the pending ones
}

// Buckets is what happened in each bucket so far.
func (c *Checker) Buckets() map[string]Tally {
	tallies := make(map[string]Tally, len(c.buckets))
	for name, b := range c.buckets {
		tallies[name] = b.Tally
	}
	return tallies
}

// Violations are what was found so far, the first twenty of it.
func (c *Checker) Violations() []*Violation { return c.found }

// Err joins the violations; nil when there are none.
func (c *Checker) Err() error {
	if c.count == 0 {
		return nil
	}
	var errs []error
	for _, v := range c.found {
		errs = append(errs, v)
	}
	if more := c.count - len(c.found); more > 0 {
		errs = append(errs, fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}

// Violation is a promise that a history breaks.
type Violation struct {
	Rule   string // one of those that the package's comment lists
	Bucket string
	Text   string
	Window []wlm.Event // of the bucket, up to where it was found
	Nodes  []string    // where each of the window's events happened; empty when all did on one node
}

func (v *Violation) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: bucket %s: %s", v.Rule, v.Bucket, v.Text)
	for i, e := range v.Window {
		b.WriteString("\n\t")
		if len(v.Nodes) > 0 {
			fmt.Fprintf(&b, "node %s: ", v.Nodes[i])
		}
		b.WriteString(describe(e))
	}
	return b.String()
}

func describe(e wlm.Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %-8s", e.At.Format("15:04:05.000000"), e.Kind)
	if l := e.Limits; l != nil {
		fmt.Fprintf(&b, " node %d, shared %d, size %d", l.Node, l.Shared, l.Size)
		if !l.Parks {
			b.WriteString(", nobody may wait")
		}
		return b.String()
	}
	fmt.Fprintf(&b, " search %d", e.Search)
	if e.Seq != 0 {
		fmt.Fprintf(&b, ", number %d in line", e.Seq)
	}
	if e.Pending {
		b.WriteString(", pending")
	}
	if e.Tier != "" {
		fmt.Fprintf(&b, ", permit of the %s tier", e.Tier)
	}
	return b.String()
}

func groupOf(bucket string) string {
	group, _, _ := strings.Cut(bucket, ":")
	return group
}

type state uint8

const (
	unknown state = iota
	asked
	pending
	waiting
	running
)

func (s state) String() string {
	return [...]string{"is not there", "has asked the owner", "is parked and pending", "is parked", "runs"}[s]
}

type search struct {
	id    uint64
	state state
	tier  wlm.Tier // of its permit
}

func (s *search) parked() bool { return s.state == pending || s.state == waiting }

// bucket is what the history says so far.
type bucket struct {
	Tally
	name       string
	limits     wlm.Limits
	mostShared int // the highest shared limit that it has had
	lastSeq    uint64

	searches            map[uint64]*search
	line                []*search // in the order of parking; those that have left are skipped
	waiting, pending    int
	node, shared        int
	waitingBeforeAdmits int // how many waited when the admission that was the last event came; 0 when it was another event

	window      []wlm.Event
	windowNodes []string // of a bucket on several nodes
}

// head is the oldest parked search, nil when there is none.
func (b *bucket) head() *search {
	for len(b.line) > 0 && !b.line[0].parked() {
		b.line = b.line[1:]
	}
	if len(b.line) == 0 {
		return nil
	}
	return b.line[0]
}

func (b *bucket) queued() int { return b.waiting + b.pending }

// free reports whether a search that comes now would run at once.
func (b *bucket) free() bool { return b.queued() == 0 && b.node < b.limits.Node }

// owes says what the step that is under way has yet to do; empty when it may end.
func (b *bucket) owes() string {
	switch {
	case b.queued() == 0:
		return ""
	case !b.limits.Parks:
		return fmt.Sprintf("%d searches are parked with nothing to wait for", b.queued())
	case b.node < b.limits.Node:
		return fmt.Sprintf("%d searches are parked while %d of %d node permits are free", b.queued(), b.limits.Node-b.node, b.limits.Node)
	}
	return ""
}

// Add takes in the next event.
func (c *Checker) Add(e wlm.Event) {
	b := c.buckets[e.Bucket]
	if b == nil {
		b = &bucket{name: e.Bucket, searches: make(map[uint64]*search)}
		if c.buckets == nil {
			c.buckets, c.parked = make(map[string]*bucket), make(map[string]int)
		}
		c.buckets[e.Bucket] = b
	}
	if len(b.window) == windowSize {
		b.window = append(b.window[:0], b.window[1:]...)
	}
	b.window = append(b.window, e)

	if owed := b.owes(); owed != "" && !pays(e) {
		c.fail(b, "idle", "%s when the next step begins", owed)
	}
	before := b.queued()
	c.follow(b, e)
	c.parked[groupOf(b.name)] += b.queued() - before
	b.MostTracked = max(b.MostTracked, b.node+b.shared)
	b.MostWaiting = max(b.MostWaiting, b.waiting)
}

// pays reports whether an event can belong to a step that owes something to those who are parked.
func pays(e wlm.Event) bool {
	switch e.Kind {
	case wlm.Admitted, wlm.Evicted:
		return e.Seq != 0
	case wlm.Waiting:
		return true
	}
	return false
}

func (c *Checker) fail(b *bucket, rule, format string, args ...any) {
	c.count++
	if len(c.found) < mostViolations {
		c.found = append(c.found, &Violation{
			Rule: rule, Bucket: b.name, Text: fmt.Sprintf(format, args...),
			Window: append([]wlm.Event(nil), b.window...), Nodes: append([]string(nil), b.windowNodes...),
		})
	}
}

func (c *Checker) follow(b *bucket, e wlm.Event) {
	if e.Kind == wlm.Changed {
		b.waitingBeforeAdmits = 0
		b.limits = *e.Limits
		b.mostShared = max(b.mostShared, e.Limits.Shared)
		return
	}
	s := b.searches[e.Search]
	if s == nil {
		s = &search{id: e.Search}
	}
	if !allowed(s.state, e) {
		c.fail(b, "once", "search %d is %s, but it %v", e.Search, e.Kind, s.state)
		return // what follows from it would only hide it
	}
	waitedBefore := b.waitingBeforeAdmits
	b.waitingBeforeAdmits = 0
	switch e.Kind {
	case wlm.Asked:
		if n := b.queued(); n > 0 {
			c.fail(b, "order", "search %d asks the owner past %d parked ones", s.id, n)
		}
		s.state = asked
		b.searches[s.id] = s
	case wlm.Parked:
		c.park(b, s, e)
	case wlm.Waiting:
		if first := b.oldestPending(); first != s {
			c.fail(b, "order", "search %d begins to wait before search %d", s.id, first.id)
		}
		b.pending--
		s.state = waiting
		b.waiting++
		if most := max(b.limits.Size, waitedBefore); b.waiting > most {
			c.fail(b, "bound", "%d searches wait, the size is %d", b.waiting, b.limits.Size)
		}
	case wlm.Admitted:
		c.admit(b, s, e)
	case wlm.Tracked:
		if s.tier != "" {
			c.fail(b, "once", "search %d has a permit of the %s tier already", s.id, s.tier)
		}
		b.shared++
		s.tier = wlm.SharedTier
		c.checkShared(b)
	case wlm.Refused, wlm.Denied:
		c.refuse(b, s, e)
	case wlm.Evicted:
		b.Evicted++
		b.leave(s)
	case wlm.Closed:
		b.Closed++
		if s.tier != e.Tier {
			c.fail(b, "once", "search %d closes a permit of tier %q, it was given one of %q", s.id, e.Tier, s.tier)
		}
		switch s.tier {
		case wlm.NodeTier:
			b.node--
		case wlm.SharedTier:
			b.shared--
		}
		b.leave(s)
	}
}

// allowed reports whether the event can follow for a search in the state.
func allowed(s state, e wlm.Event) bool {
	switch e.Kind {
	case wlm.Asked, wlm.Parked:
		return s == unknown
	case wlm.Waiting:
		return s == pending
	case wlm.Admitted:
		if e.Seq != 0 {
			return s == pending || s == waiting
		}
		return s == unknown || s == asked
	case wlm.Refused:
		return s == unknown || s == asked || s == pending
	case wlm.Denied:
		return s == unknown || s == asked
	case wlm.Evicted:
		return s == asked || s == pending || s == waiting
	case wlm.Tracked, wlm.Closed:
		return s == running
	}
	return false
}

func (b *bucket) oldestPending() *search {
	for _, s := range b.line {
		if s.state == pending {
			return s
		}
	}
	return nil
}

func (b *bucket) newestPending() *search {
	for _, s := range slices.Backward(b.line) {
		if s.state == pending {
			return s
		}
	}
	return nil
}

// leave forgets a search.
func (b *bucket) leave(s *search) {
	switch s.state {
	case pending:
		b.pending--
	case waiting:
		b.waiting--
	}
	s.state = unknown
	delete(b.searches, s.id)
	b.head() // lets go of those that have left
}

func (c *Checker) park(b *bucket, s *search, e wlm.Event) {
	b.Parked++
	if e.Seq <= b.lastSeq {
		c.fail(b, "order", "search %d parks as number %d, behind number %d", s.id, e.Seq, b.lastSeq)
	}
	b.lastSeq = e.Seq
	b.searches[s.id] = s
	b.line = append(b.line, s)
	if e.Pending {
		s.state = pending
		b.pending++
		return
	}
	s.state = waiting
	if b.waiting >= b.limits.Size {
		c.fail(b, "bound", "search %d parks beside %d that wait, the size is %d", s.id, b.waiting, b.limits.Size)
	}
	b.waiting++
}

func (c *Checker) admit(b *bucket, s *search, e wlm.Event) {
	b.Admitted++
	head := b.head()
	switch {
	case s.parked() && s != head:
		c.fail(b, "order", "search %d is admitted before search %d", s.id, head.id)
	case s.state == unknown && head != nil:
		c.fail(b, "order", "search %d, which has just come, is admitted before search %d", s.id, head.id)
	}
	if s.parked() {
		b.waitingBeforeAdmits = b.waiting
	}
	switch s.state {
	case pending:
		b.pending--
	case waiting:
		b.waiting--
	}
	switch e.Tier {
	case wlm.NodeTier:
		b.node++
		if b.node > b.limits.Node {
			c.fail(b, "limit", "search %d is the %d. to run, the node limit is %d", s.id, b.node, b.limits.Node)
		}
	case wlm.SharedTier:
		if s.state == unknown {
			c.fail(b, "limit", "search %d has a shared permit without having asked for one", s.id)
		}
		b.shared++
		c.checkShared(b)
	default:
		if b.limits.Parks {
			c.fail(b, "limit", "search %d is admitted without a permit, while limits hold", s.id)
		}
	}
	s.state, s.tier = running, e.Tier
	b.searches[s.id] = s
	b.head()
}

func (c *Checker) checkShared(b *bucket) {
	if b.shared > b.mostShared {
		c.fail(b, "limit", "%d run under shared permits, the shared limit was %d at most", b.shared, b.mostShared)
	}
}

func (c *Checker) refuse(b *bucket, s *search, e wlm.Event) {
	if e.Kind == wlm.Denied {
		b.Denied++
	} else {
		b.Refused++
	}
	switch {
	case s.state == pending:
		if newest := b.newestPending(); newest != s {
			c.fail(b, "order", "search %d is refused before search %d, which parked later", s.id, newest.id)
		}
		if b.waiting < b.limits.Size {
			c.fail(b, "idle", "search %d is refused, although %d wait and the size is %d", s.id, b.waiting, b.limits.Size)
		}
	case s.state == unknown && b.free():
		c.fail(b, "idle", "search %d is refused, although %d of %d node permits are out and nobody waits", s.id, b.node, b.limits.Node)
	case s.state == unknown && e.Kind == wlm.Refused && b.waiting < b.limits.Size && c.parked[groupOf(b.name)] < groups.MaxQueued-ceilingSlack:
		c.fail(b, "idle", "search %d is refused, although %d wait and the size is %d", s.id, b.waiting, b.limits.Size)
	}
	b.leave(s)
}

// Finish ends the history: all searches must have left.
func (c *Checker) Finish() {
	for _, b := range c.buckets {
		if owed := b.owes(); owed != "" {
			c.fail(b, "idle", "%s at the end", owed)
		}
		for _, s := range b.searches {
			c.fail(b, "once", "at the end search %d %v", s.id, s.state)
		}
	}
}
