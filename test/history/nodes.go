package history

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wlmserver/wlmserver/wlm"
)

// Run is the history of one process of a node.
type Run struct {
	Node   string
	Events []wlm.Event
	// Killed is from when on it is not known what it did, since it was killed: what is told of it later does not count. Zero: it was
	// stopped in order.
	Killed time.Time
	Cuts   []Cut // while it could not be heard, or did not run
}

// Cut is a time in which a node could not be heard by all the others, or by what keeps its membership.
type Cut struct{ From, To time.Time }

func (c Cut) longer(d time.Duration) bool { return c.To.Sub(c.From) > d }

// Shared is what happened in a bucket's shared tier, over all nodes.
type Shared struct {
	Most        int            // permits out at once, as [CheckNodes] counts them
	Idle        float64        // share of the permits that somebody waited for, and that nobody had
	LongestIdle time.Duration  // how long such a permit was free at most
	IdleSince   time.Time      // when that began
	Admitted    map[string]int // with a shared permit, by node
	Handovers   int            // parked searches that followed one that had ended on another node
}

// CheckNodes checks the histories of all nodes of a cluster, on one machine's clock: each by itself as [Check] does, and that all together
// never ran more searches under shared permits than the limit.
//
// What counts is what live nodes run. A killed node's searches end with it. Of a node that was cut off for longer than grace, those that it
// had been given before count no more from then on: others may have been given their permits, since its last sign of life may have been
// some time before the cut. If it was not, the node itself may use permits until a lease after the cut: what it begins between grace and
// lease does not count either. What it begins later counts.
func CheckNodes(runs []Run, grace, lease time.Duration) (map[string]Shared, error) {
	var errs []error
	n := nodes{grace: grace, lease: lease, buckets: make(map[string]*sharedBucket)}
	for i := range runs {
		r := &runs[i]
		var c Checker
		for _, e := range r.Events {
			c.Add(e)
			if r.Killed.IsZero() || e.At.Before(r.Killed) {
				n.moments = append(n.moments, moment{at: e.At, run: r, event: e, what: happened})
			}
		}
		if r.Killed.IsZero() {
			c.Finish()
		} else {
			n.moments = append(n.moments, moment{at: r.Killed, run: r, what: killed})
		}
		if err := c.Err(); err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", r.Node, err))
		}
		for _, c := range r.Cuts {
			if c.longer(grace) {
				n.moments = append(n.moments, moment{at: c.From.Add(grace), run: r, what: excused})
			}
		}
	}
	slices.SortStableFunc(n.moments, func(a, b moment) int { return a.at.Compare(b.at) })
	for _, m := range n.moments {
		n.take(m)
	}
	out := make(map[string]Shared, len(n.buckets))
	for name, b := range n.buckets {
		if b.wanted > 0 {
			b.Idle = b.idle / b.wanted
		}
		out[name] = b.Shared
	}
	if n.found.count > 0 {
		errs = append(errs, n.found.Err())
	}
	return out, errors.Join(errs...)
}

// moment is one thing that happened to a run.
type moment struct {
	at    time.Time
	run   *Run
	what  what
	event wlm.Event // of happened
}

type what uint8

const (
	happened what = iota
	killed        // its searches are over
	excused       // its searches so far count no more
)

// nodes follows all runs at once.
type nodes struct {
	grace, lease time.Duration
	moments      []moment
	buckets      map[string]*sharedBucket
	found        Checker // only for what it finds
}

// place names a search over all runs.
type place struct {
	run    *Run
	search uint64
}

// sharedBucket is what is known of a bucket over all runs.
type sharedBucket struct {
	Shared
	name    string
	limit   int            // the highest that it has had
	now     int            // the limit told last
	running map[place]bool // true: it counts
	counted int
	parked  map[place]bool
	ended   *Run // of the search that ended last

	last         time.Time
	idleSince    time.Time // zero: no permit is free that somebody waits for
	idle, wanted float64   // permits × seconds
	window       []wlm.Event
	windowNodes  []string
}

func (n *nodes) take(m moment) {
	if m.what == happened {
		b := n.bucket(m.event.Bucket)
		b.pass(m.at)
		n.follow(b, m.run, m.event)
		b.look(m.at)
		return
	}
	for _, b := range n.buckets {
		b.pass(m.at)
		for p, counts := range b.running {
			if p.run != m.run {
				continue
			}
			if counts {
				b.counted--
			}
			b.running[p] = false
			if m.what == killed {
				delete(b.running, p)
			}
		}
		if m.what == killed {
			maps.DeleteFunc(b.parked, func(p place, _ bool) bool { return p.run == m.run })
		}
		b.look(m.at)
	}
}

func (n *nodes) bucket(name string) *sharedBucket {
	b := n.buckets[name]
	if b == nil {
		b = &sharedBucket{name: name, running: make(map[place]bool), parked: make(map[place]bool)}
		b.Admitted = make(map[string]int)
		n.buckets[name] = b
	}
	return b
}

// free is how many permits are free that somebody waits for.
func (b *sharedBucket) free() int {
	return max(min(b.now-b.counted, len(b.parked)), 0)
}

// pass lets time go by until a moment.
func (b *sharedBucket) pass(at time.Time) {
	if took := at.Sub(b.last).Seconds(); len(b.parked) > 0 && took > 0 && !b.last.IsZero() {
		free := float64(b.free())
		b.idle += free * took
		b.wanted += (float64(min(b.counted, b.now)) + free) * took
	}
	b.last = at
}

// look sees whether a permit is free that somebody waits for.
func (b *sharedBucket) look(at time.Time) {
	switch {
	case b.free() == 0:
		if took := at.Sub(b.idleSince); !b.idleSince.IsZero() && took > b.LongestIdle {
			b.LongestIdle, b.IdleSince = took, b.idleSince
		}
		b.idleSince = time.Time{}
	case b.idleSince.IsZero():
		b.idleSince = at
	}
}

func (n *nodes) follow(b *sharedBucket, r *Run, e wlm.Event) {
	if len(b.window) == windowSize {
		b.window = append(b.window[:0], b.window[1:]...)
		b.windowNodes = append(b.windowNodes[:0], b.windowNodes[1:]...)
	}
	b.window, b.windowNodes = append(b.window, e), append(b.windowNodes, r.Node)
	p := place{r, e.Search}
	switch e.Kind {
	case wlm.Changed:
		b.now = e.Limits.Shared
		b.limit = max(b.limit, b.now)
	case wlm.Parked:
		b.parked[p] = true
	case wlm.Refused, wlm.Denied, wlm.Evicted:
		delete(b.parked, p)
	case wlm.Admitted, wlm.Tracked:
		delete(b.parked, p)
		if e.Tier == wlm.SharedTier {
			if e.Seq != 0 && b.ended != nil && b.ended.Node != r.Node {
				b.Handovers++
			}
			b.Admitted[r.Node]++
			b.running[p] = n.counts(r, e.At)
			if !b.running[p] {
				return
			}
			b.counted++
			b.Most = max(b.Most, b.counted)
			if b.counted > b.limit {
				n.found.fail(&bucket{name: b.name, window: b.window, windowNodes: b.windowNodes}, "limit",
					"%d run under shared permits on all nodes, the shared limit was %d at most: %s", b.counted, b.limit, b.holders())
			}
		}
	case wlm.Closed:
		if b.running[p] {
			b.counted--
		}
		delete(b.running, p)
		b.ended = r
	}
}

// counts reports whether a search counts that a node begins now.
func (n *nodes) counts(r *Run, at time.Time) bool {
	return !slices.ContainsFunc(r.Cuts, func(c Cut) bool {
		return c.longer(n.grace) && at.After(c.From.Add(n.grace)) && !at.After(c.From.Add(n.lease))
	})
}

// holders says how many run where.
func (b *sharedBucket) holders() string {
	by := make(map[string]int)
	for p, counts := range b.running {
		if counts {
			by[p.run.Node]++
		}
	}
	var text []string
	for _, node := range slices.SortedFunc(maps.Keys(by), cmp.Compare) {
		text = append(text, fmt.Sprintf("%d on %s", by[node], node))
	}
	return strings.Join(text, ", ")
}
