package sharedtier_test

import (
	"fmt"
	"slices"

	"github.com/wlmserver/wlmserver/internal/sharedtier"
)

// world is a small instance of the shared tier: coordinators with their queues, two members of which the ring makes one the owner of
// the one bucket, and what is under way between them. Its machines are the real ones; everything around them, the streams and the
// queues, is played here.
type world struct {
	*instance
	published int8 // epoch that the ring has
	coords    []coordinator
	owners    [2]*owning
	all       []search
	sessions  uint64 // begun so far

	cancels, cuts, pauses int8 // that may still come
	limitSaw              int8 // what the owners know of the limit: 0 the first, 1 none, 2 the first again
}

// instance says how small, what may happen, and which fault is planted.
type instance struct {
	coords, searches      int // searches of each coordinator
	limit, size           int
	node                  int    // limit of the node tier; 0: there is none
	ring                  string // the owner of the bucket by epoch, "0" or "1" each
	cancels, cuts, pauses int8   // at most
	tries                 bool   // every second search may not wait
	toggles               bool   // the limit goes and comes back, as the owners see it
	blinks                bool   // the limit goes and comes back, as each coordinator sees it
	early                 bool   // searches come and go between what a session begins with and its Done
	fault                 fault
}

// fault is one that the exploration has to find.
type fault string

const (
	noFault      fault = ""
	noRuleR      fault = "waiters that no owner knows of are not announced"
	noGeneration fault = "a denial from before the owner was told to forget us is believed"
	movedOnly    fault = "only buckets whose owner moved are announced"
	noAnnounce   fault = "an owner grants before all have announced"
	noResync     fault = "a stream that lost messages goes on"
	noLease      fault = "permits are used after the lease's end"
	noRemember   fault = "waiters are not remembered while there is no limit"
	dropEmpty    fault = "a bucket without waiters and permits is dropped at once"
)

type coordinator struct {
	epoch   int8
	tier    int8 // what it knows of the limit, as world.limitSaw
	counts  sharedtier.Coordinator
	queue   []int8 // searches, oldest first
	now     *stream
	old     []*stream // closed by the coordinator; what it had sent may still arrive
	undone  bool      // it has not said in its session that it has announced all
	paused  bool
	expired bool // the owner ended its lease meanwhile
}

// stream is one session between a coordinator and an owner.
type stream struct {
	number   uint64
	owner    int8
	epoch    int8
	cut      bool // nothing goes through any more
	cutHeard bool // the owner knows
	opened   bool // the owner knows of it
	up, down []flight
}

// flight is a message under way. Its epoch is the stream's, but for one planted fault.
type flight struct {
	sharedtier.Message
	epoch int8
	open  bool // not a message: the stream's beginning
}

// owning is a member that may own the bucket.
type owning struct {
	epoch  int8
	tenure *sharedtier.Tenure[bucket]
}

// bucket is the key of the only one there is.
type bucket struct{}

type search struct {
	state  byte // see the constants
	try    bool // it may not wait
	local  bool // it runs under a permit of the node tier
	lapsed bool // the owner has ended the lease of its permit
	permit sharedtier.PermitID
}

const (
	isNew     byte = 'n'
	isPending byte = 'p'
	isWaiting byte = 'w'
	isTrying  byte = 't'
	runs      byte = 'r'
	isDone    byte = 'd'
	cancelled byte = 'c'
	isRefused byte = 'f'
)

func newWorld(of *instance) *world {
	w := &world{instance: of, coords: make([]coordinator, of.coords), cancels: of.cancels, cuts: of.cuts, pauses: of.pauses}
	for i := range w.all0() {
		w.all = append(w.all, search{state: isNew, try: of.tries && i/of.coords%2 == 1})
	}
	for o := range w.owners {
		w.owners[o] = &owning{}
		w.begin(int8(o), 0)
	}
	for c := range w.coords {
		k := &w.coords[c]
		k.counts.On, k.counts.Size = true, of.size
		w.open(int8(c))
	}
	return w
}

func (w *world) all0() int { return w.instance.coords * w.searches }

func (w *world) clone() *world {
	n := *w
	n.all = slices.Clone(w.all)
	n.coords = slices.Clone(w.coords)
	for i := range n.coords {
		c := &n.coords[i]
		c.queue = slices.Clone(c.queue)
		c.now = c.now.clone()
		c.old = slices.Clone(c.old)
		for j := range c.old {
			c.old[j] = c.old[j].clone()
		}
	}
	for o := range n.owners {
		n.owners[o] = &owning{epoch: w.owners[o].epoch, tenure: w.owners[o].tenure.Clone()}
	}
	return &n
}

func (s *stream) clone() *stream {
	n := *s
	n.up, n.down = slices.Clone(s.up), slices.Clone(s.down)
	return &n
}

func member(c int8) sharedtier.Member    { return sharedtier.Member(rune('a' + c)) }
func index(m sharedtier.Member) (c int8) { return int8(m[0] - 'a') }

func (w *world) members() (out []sharedtier.Member) {
	for c := range w.coords {
		out = append(out, member(int8(c)))
	}
	return out
}

func (w *world) ownerIn(epoch int8) int8 { return int8(w.ring[epoch] - '0') }

// home is the coordinator of a search.
func (w *world) home(i int) int8 { return int8(i % len(w.coords)) }

// move is one thing that can happen next.
type move struct {
	do     func(*world)
	format string
	args   []any
}

func (m move) String() string { return fmt.Sprintf(m.format, m.args...) }

// moves lists what can happen next.
func (w *world) moves() (out []move) {
	add := func(do func(*world), format string, args ...any) {
		out = append(out, move{do, format, args})
	}
	for i, s := range w.all {
		c := w.home(i)
		if w.coords[c].paused {
			continue
		}
		switch {
		case s.state == isNew && (i < len(w.coords) || w.all[i-len(w.coords)].state != isNew):
			add(func(w *world) { w.arrive(i) }, "search %d arrives at %d", i, c)
		case (s.state == isPending || s.state == isWaiting || s.state == isTrying) && w.cancels > 0:
			add(func(w *world) { w.cancel(i) }, "search %d is cancelled", i)
		case s.state == runs:
			add(func(w *world) { w.end(i) }, "search %d ends", i)
		}
	}
	for i := range w.coords {
		c, k := int8(i), &w.coords[i]
		for j, s := range append([]*stream{k.now}, k.old...) {
			if w.heard(s) {
				add(func(w *world) { w.hear(c, j) }, "owner %d hears %v of %d, session %d", s.owner, s.up[0], c, s.number)
			}
			if s.cut && s.opened && !s.cutHeard && w.owners[s.owner].epoch == s.epoch {
				add(func(w *world) { w.hearCut(c, j) }, "owner %d sees that the stream of %d is cut", s.owner, c)
			}
		}
		if s := k.now; len(s.down) > 0 && !k.paused {
			add(func(w *world) { w.take(c) }, "%d hears %v", c, s.down[0])
		}
		w.coordMoves(c, add)
	}
	for o := range w.owners {
		for e := w.owners[o].epoch + 1; e <= w.published; e++ {
			add(func(w *world) { w.begin(int8(o), e) }, "owner %d learns of epoch %d", o, e)
		}
		if t := w.owners[o].tenure; !t.Ready() && t.Tries(bucket{}) > 0 {
			add(func(w *world) {
				w.post(w.owners[o].tenure.GiveUp(nil))
			}, "owner %d has kept a try waiting", o)
		}
	}
	if w.toggles && w.limitSaw < 2 {
		add(func(w *world) {
			w.limitSaw++
			for _, o := range w.owners {
				w.post(o.tenure.SetLimit(bucket{}, w.ownersLimit(), nil))
			}
		}, "the owners' limit changes")
	}
	if int(w.published) < len(w.ring)-1 {
		add(func(w *world) { w.published++ }, "the ring has epoch %d", w.published+1)
	}
	return out
}

// coordMoves lists what can happen to a coordinator as a whole.
func (w *world) coordMoves(c int8, add func(func(*world), string, ...any)) {
	k := &w.coords[c]
	if k.paused {
		add(func(w *world) { w.resume(c) }, "%d runs again", c)
		if o := w.owners[k.now.owner]; len(k.now.up) == 0 && o.epoch == k.now.epoch && o.tenure.Knows(member(c), k.now.number) {
			add(func(w *world) { w.expire(c) }, "owner %d ends the lease of %d", k.now.owner, c)
		}
		return
	}
	for e := k.epoch + 1; e <= w.published; e++ {
		add(func(w *world) { w.learn(c, e) }, "%d learns of epoch %d", c, e)
	}
	if k.undone {
		add(func(w *world) {
			w.coords[c].undone = false
			w.send(c, sharedtier.Message{Kind: sharedtier.Done})
		}, "%d has announced all", c)
	}
	if k.now.cut {
		add(func(w *world) { w.open(c) }, "%d sees that its stream is cut", c)
	} else if w.cuts > 0 {
		add(func(w *world) {
			w.cuts--
			s := w.coords[c].now
			s.up, s.down = nil, nil
			s.cut = w.fault != noResync
		}, "the stream of %d is cut", c)
	}
	if w.pauses > 0 {
		add(func(w *world) { w.pauses--; w.coords[c].paused = true }, "%d stands still", c)
	}
	if w.blinks && k.tier < 2 {
		add(func(w *world) {
			k := &w.coords[c]
			k.tier++
			w.apply(c, k.counts.SetOn(k.tier == 2, nil))
		}, "%d sees the limit change", c)
	}
}

// heard reports whether the owner can read from the stream: not what is of an epoch that it does not know yet.
func (w *world) heard(s *stream) bool {
	return len(s.up) > 0 && (s.epoch <= w.owners[s.owner].epoch || w.fault == movedOnly)
}

func (w *world) ownersLimit() int {
	if w.limitSaw == 1 {
		return 0
	}
	return w.limit
}

// begin lets an owner know of an epoch.
func (w *world) begin(o, epoch int8) {
	own := w.owners[o]
	if w.fault == movedOnly && own.tenure != nil && w.ownerIn(own.epoch) == w.ownerIn(epoch) {
		own.epoch = epoch
		own.tenure.Renumber(uint64(epoch))
		return
	}
	own.epoch = epoch
	own.tenure = sharedtier.NewTenure[bucket](uint64(epoch), w.members(), 0, 0)
	if w.fault == noAnnounce && epoch > 0 {
		own.tenure.Trusting()
	}
}

// learn lets a coordinator know of an epoch.
func (w *world) learn(c, epoch int8) {
	k := &w.coords[c]
	moved := w.ownerIn(k.epoch) != w.ownerIn(epoch)
	k.epoch = epoch
	if w.fault == movedOnly && !moved {
		k.now.epoch = epoch
		return
	}
	w.open(c)
}

// open begins a new session of a coordinator with its owner.
func (w *world) open(c int8) {
	k := &w.coords[c]
	if s := k.now; s != nil {
		s.down = nil
		k.old = append(k.old, s)
	}
	w.sessions++
	k.now = &stream{number: w.sessions, owner: w.ownerIn(k.epoch), epoch: k.epoch, up: []flight{{epoch: k.epoch, open: true}}}
	w.applyQuietly(c, k.counts.Renew(true, nil))
	var held []sharedtier.PermitID
	for i, s := range w.all {
		if w.home(i) == c && s.state == runs && !s.local {
			held = append(held, s.permit)
		}
	}
	if len(held) > 0 || k.counts.Advertised > 0 {
		w.send(c, sharedtier.Message{Kind: sharedtier.Announce, Held: held, Depth: k.counts.Advertised})
	}
	for i, s := range w.all {
		if w.home(i) == c && s.state == isTrying {
			w.send(c, sharedtier.Message{Kind: sharedtier.Try, Try: uint64(i + 1)})
		}
	}
	if k.undone = w.early; !k.undone {
		w.send(c, sharedtier.Message{Kind: sharedtier.Done})
	}
}

func (w *world) send(c int8, m sharedtier.Message) {
	k := &w.coords[c]
	if !k.now.cut {
		k.now.up = append(k.now.up, flight{Message: m, epoch: k.epoch})
	}
}

func (w *world) post(posts []sharedtier.Post[bucket]) {
	for _, p := range posts {
		if s := w.coords[index(p.To)].now; s.number == p.Session && !s.cut {
			s.down = append(s.down, flight{Message: p.Message, epoch: s.epoch})
		}
	}
}

func (w *world) stream(c int8, j int) *stream {
	if j == 0 {
		return w.coords[c].now
	}
	return w.coords[c].old[j-1]
}

// hear lets an owner read one message of a stream.
func (w *world) hear(c int8, j int) {
	s := w.stream(c, j)
	m := s.up[0]
	s.up = s.up[1:]
	o := w.owners[s.owner]
	if m.epoch > o.epoch {
		w.begin(s.owner, m.epoch) // only with a planted fault: the stream then goes on in another epoch
	}
	switch {
	case m.epoch < o.epoch:
	case m.open:
		s.opened = true
		o.tenure.Open(member(c), s.number, 0)
	default:
		w.post(o.tenure.Receive(member(c), s.number, bucket{}, m.Message, w.ownersLimit(), 0, nil))
		if w.fault == noRemember && m.Kind == sharedtier.Acquire && w.ownersLimit() == 0 {
			w.post(o.tenure.Receive(member(c), s.number, bucket{}, sharedtier.Message{Kind: sharedtier.Want}, 0, 0, nil))
		}
	}
}

func (w *world) hearCut(c int8, j int) {
	s := w.stream(c, j)
	s.cutHeard = true
	w.owners[s.owner].tenure.Broken(member(c), s.number)
}

// take lets a coordinator read one message of its owner.
func (w *world) take(c int8) {
	k := &w.coords[c]
	m := k.now.down[0]
	k.now.down = k.now.down[1:]
	if m.epoch != k.epoch {
		return // only with a planted fault
	}
	if m.Try != 0 {
		w.answer(c, m.Message)
		return
	}
	if w.dropped(c) {
		if m.Kind != sharedtier.Denied {
			w.send(c, sharedtier.Message{Kind: sharedtier.Unused, Permit: m.Permit})
		}
		return
	}
	if w.fault == noGeneration {
		m.Generation = k.counts.Generation
	}
	head := len(k.queue) > 0 && w.all[k.queue[0]].state == isWaiting
	w.apply(c, k.counts.Receive(m.Message, head, nil))
}

// answer takes in the answer to a try. One that has left meanwhile gives the permit back.
func (w *world) answer(c int8, m sharedtier.Message) {
	s := &w.all[m.Try-1]
	switch {
	case s.state != isTrying && m.Kind == sharedtier.Granted:
		w.send(c, sharedtier.Message{Kind: sharedtier.Release, Permit: m.Permit})
	case s.state != isTrying:
	case m.Kind == sharedtier.Granted:
		s.state, s.permit = runs, m.Permit
	default:
		s.state = isRefused
	}
}

func (w *world) locals(c int8) (n int) {
	for i, s := range w.all {
		if w.home(i) == c && s.state == runs && s.local {
			n++
		}
	}
	return n
}

func (w *world) arrive(i int) {
	s, c := &w.all[i], w.home(i)
	k := &w.coords[c]
	switch {
	case w.locals(c) < w.node && len(k.queue) == 0:
		s.state, s.local = runs, true
		return
	case k.tier == 1 && w.node == 0:
		s.state = isDone // no limit: it runs untracked
		return
	case s.try && len(k.queue) > 0:
		s.state = isRefused // it must not overtake
		return
	case s.try:
		s.state = isTrying
		w.send(c, sharedtier.Message{Kind: sharedtier.Try, Try: uint64(i + 1)})
		return
	}
	outcome, fx := k.counts.Arrive(nil)
	switch outcome {
	case sharedtier.Full:
		s.state = isRefused
		return
	case sharedtier.BecomesPending:
		s.state = isPending
	case sharedtier.BecomesWaiting:
		s.state = isWaiting
	}
	k.queue = append(k.queue, int8(i))
	w.apply(c, fx)
}

func (w *world) cancel(i int) {
	s, c := &w.all[i], w.home(i)
	k := &w.coords[c]
	w.cancels--
	if s.state != isTrying {
		k.queue = slices.DeleteFunc(k.queue, func(x int8) bool { return int(x) == i })
		k.counts.Cancel(s.state == isWaiting)
	}
	s.state = cancelled
	w.apply(c, k.counts.Settle(nil))
}

func (w *world) end(i int) {
	s, c := &w.all[i], w.home(i)
	k := &w.coords[c]
	s.state = isDone
	var fx []sharedtier.Effect
	if s.local {
		if len(k.queue) > 0 {
			head := &w.all[k.queue[0]]
			fx = k.counts.Admit(head.state == isWaiting, nil)
			head.state, head.local = runs, true
			k.queue = slices.Delete(k.queue, 0, 1)
		}
	} else {
		w.send(c, sharedtier.Message{Kind: sharedtier.Release, Permit: s.permit})
	}
	s.local, s.permit = false, sharedtier.PermitID{}
	w.apply(c, fx)
	w.apply(c, k.counts.Settle(nil))
}

// resume lets a coordinator run again. It knows by its own clock when its lease is over; then the session is void.
func (w *world) resume(c int8) {
	k := &w.coords[c]
	k.paused = false
	if k.expired {
		for w.fault == noLease && len(k.now.down) > 0 {
			w.take(c)
		}
		w.open(c)
	}
	k.expired = false
}

// expire ends the lease of a coordinator that stands still.
func (w *world) expire(c int8) {
	k := &w.coords[c]
	k.expired = true
	held := w.owners[k.now.owner].tenure.Permits()
	for i := range w.all {
		s := &w.all[i]
		if w.home(i) == c && s.state == runs && !s.local && slices.ContainsFunc(held, func(h sharedtier.Held[bucket]) bool { return h.Permit == s.permit }) {
			s.lapsed = true
		}
	}
	w.post(w.owners[k.now.owner].tenure.Expire(member(c), nil))
}

// dropped reports whether the bucket was dropped too early, where that is planted.
func (w *world) dropped(c int8) bool {
	if w.fault != dropEmpty || len(w.coords[c].queue) > 0 {
		return false
	}
	for i, s := range w.all {
		if w.home(i) == c && s.state == runs {
			return false
		}
	}
	return true
}

// apply does what a coordinator's machine asks.
func (w *world) apply(c int8, fx []sharedtier.Effect) {
	w.applyQuietly(c, fx)
	k := &w.coords[c]
	if w.dropped(c) {
		k.counts.Advertised, k.counts.Outstanding = 0, 0
	}
	if k.tier == 1 && w.node == 0 { // nothing to wait for: all go
		for _, i := range k.queue {
			k.counts.Cancel(w.all[i].state == isWaiting)
			w.all[i].state = isDone
		}
		k.queue = nil
	}
}

func (w *world) applyQuietly(c int8, fx []sharedtier.Effect) {
	k := &w.coords[c]
	for _, e := range fx {
		switch e.Kind {
		case sharedtier.Send:
			if w.fault == noRuleR && e.Message.Kind == sharedtier.Want && e.Message.Depth > 0 {
				k.counts.Advertised = 0
				continue
			}
			w.send(c, e.Message)
		case sharedtier.RunOldest:
			s := &w.all[k.queue[0]]
			k.queue = slices.Delete(k.queue, 0, 1)
			s.state, s.permit = runs, e.Permit
		case sharedtier.PromoteOldestPending:
			i := slices.IndexFunc(k.queue, func(x int8) bool { return w.all[x].state == isPending })
			w.all[k.queue[i]].state = isWaiting
		case sharedtier.RefuseNewestPending:
			for i, x := range slices.Backward(k.queue) {
				if s := &w.all[x]; s.state == isPending {
					s.state = isRefused
					k.queue = slices.Delete(k.queue, i, i+1)
					break
				}
			}
		}
	}
}

// tidy takes out what has no future: closed streams that nothing is under way on, or that are of an epoch that is over.
func (w *world) tidy() {
	for i := range w.coords {
		k := &w.coords[i]
		k.old = slices.DeleteFunc(k.old, func(s *stream) bool {
			return (len(s.up) == 0 || s.epoch < w.owners[s.owner].epoch) && (!s.cut || !s.opened || s.cutHeard || s.epoch < w.owners[s.owner].epoch)
		})
	}
}

// wrong says what is wrong with the world, if anything. quiet tells that nothing can happen any more.
func (w *world) wrong(quiet bool) string {
	running := 0
	for i := range w.coords {
		c, k := int8(i), &w.coords[i]
		if n := w.locals(c); n > w.node {
			return fmt.Sprintf("%d searches run under the node limit of %d", n, w.node)
		}
		waitings := 0
		for _, x := range k.queue {
			if w.all[x].state == isWaiting {
				waitings++
			}
		}
		if w.fault != dropEmpty && (waitings != k.counts.Waiting || len(k.queue) != k.counts.Waiters()) {
			return fmt.Sprintf("coordinator %d has %d waiting in a queue of %d, counts %+v", i, waitings, len(k.queue), k.counts)
		}
	}
	for _, s := range w.all {
		if s.state == runs && !s.local && !s.lapsed {
			running++
		}
	}
	if running > w.limit {
		return fmt.Sprintf("%d searches run under a limit of %d", running, w.limit)
	}
	if !quiet {
		return ""
	}
	for i, s := range w.all {
		if s.state == isPending || s.state == isWaiting || s.state == isTrying {
			return fmt.Sprintf("all is quiet and search %d is stranded", i)
		}
	}
	own := w.owners[w.ownerIn(w.published)]
	if held := own.tenure.Permits(); len(held) > 0 {
		return fmt.Sprintf("all is quiet and the owner holds %v", held)
	}
	if o := own.tenure.OwnerOf(bucket{}); o != nil {
		return fmt.Sprintf("all is quiet and the owner keeps %+v", *o)
	}
	return ""
}
