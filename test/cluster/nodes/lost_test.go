package nodes_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/wlmserver/wlmserver/internal/cluster/peer/clusterpb"
	"github.com/wlmserver/wlmserver/test/cluster/trap"
	"github.com/wlmserver/wlmserver/test/faultproxy"
)

// loss is of one message of a kind, between a coordinator and an owner.
type loss struct {
	name string
	way  faultproxy.Way // Up to the owner
	kind clusterpb.Kind
	// under begins a load under which the coordinator and the owner say such a message again and again, or say one as it begins.
	under func(s *scene, coordinator *node) (end func())
	// begin has a session begin anew while there is the load, and lose all that it begins with: that is one batch.
	begin bool
	// queueless is a group without a queue: searches are tried, and refused.
	queueless bool
}

// TestLostMessage: exactly one message of the shared tier is lost, of each kind, and the connection with it, as connections are. Nobody is
// left behind by that, no permit is lost, and no more searches run than the limit; without the leases having to help, since nodes find one
// another again at once. There is no sweep: nothing else would find who was forgotten.
func TestLostMessage(t *testing.T) {
	for _, x := range []loss{
		{name: "acquire", way: faultproxy.Up, kind: clusterpb.Kind_KIND_ACQUIRE, under: (*scene).oneAtATime},
		{name: "denied", way: faultproxy.Down, kind: clusterpb.Kind_KIND_DENIED, under: (*scene).oneAtATime},
		{name: "granted", way: faultproxy.Down, kind: clusterpb.Kind_KIND_GRANTED, under: (*scene).room},
		{name: "grant", way: faultproxy.Down, kind: clusterpb.Kind_KIND_GRANT, under: (*scene).crowd},
		{name: "release", way: faultproxy.Up, kind: clusterpb.Kind_KIND_RELEASE, under: (*scene).crowd},
		{name: "want", way: faultproxy.Up, kind: clusterpb.Kind_KIND_WANT, under: (*scene).crowd},
		{name: "unused", way: faultproxy.Up, kind: clusterpb.Kind_KIND_UNUSED, under: (*scene).leaving},
		{name: "beat", way: faultproxy.Up, kind: clusterpb.Kind_KIND_BEAT, under: (*scene).crowd},
		{name: "echo of a beat", way: faultproxy.Down, kind: clusterpb.Kind_KIND_BEAT, under: (*scene).crowd},
		{name: "announce, and done", way: faultproxy.Up, kind: clusterpb.Kind_KIND_ANNOUNCE, under: (*scene).crowd, begin: true},
		{name: "try", way: faultproxy.Up, kind: clusterpb.Kind_KIND_TRY, under: (*scene).tries, queueless: true},
		{name: "granted to a try", way: faultproxy.Down, kind: clusterpb.Kind_KIND_GRANTED, under: (*scene).tries, queueless: true},
		{name: "denied to a try", way: faultproxy.Down, kind: clusterpb.Kind_KIND_DENIED, under: (*scene).tries, queueless: true},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			s := &scene{cluster: prepare(t, keeperOnly()), random: rand.New(rand.NewPCG(seed(t), 0))}
			s.sweepless = true
			traps := make(map[*faultproxy.Proxy]*trap.Trap)
			for _, l := range s.links {
				traps[l] = new(trap.Trap)
				l.Watch(traps[l].Watch)
			}
			for _, name := range names[:3] {
				s.add(name).start()
			}
			s.settled()
			size := 100
			if x.queueless {
				size = 0
			}
			s.group = s.create("g", shared(limit, size))
			attempts, beside := 0, 0
			for s.number = range *rounds {
				s.owner, s.others = s.cluster.owner(s.group)
				coordinator := s.others[s.random.IntN(len(s.others))]
				link := s.links[[2]string{coordinator.name, s.owner.name}]
				n, envelopes := x.round(s, coordinator, link, traps[link])
				attempts += n
				beside += envelopes - 1
				if x.queueless {
					s.refuses(s.group, limit)
				} else {
					s.quiet(s.group, limit)
				}
			}
			for _, l := range traps {
				if err := l.Err(); err != nil {
					t.Error(err)
				}
			}
			got := s.finish()[bucketOf(s.group)]
			t.Logf("lost in each of %d rounds, of %d attempts, with %d envelopes beside; %+v", *rounds, attempts, beside, got)
			if got.Most < limit {
				t.Errorf("at most %d ran at once: the limit was never reached", got.Most)
			}
			if got.LongestIdle > grace { // a lease would free it no sooner
				t.Errorf("a permit that somebody waited for was free for %v, since %v", got.LongestIdle, got.IdleSince)
			}
		})
	}
}

const (
	mostAttempts = 5               // of a round
	comes        = 4 * time.Second // how long an attempt waits for a message to come; a beat comes every third of a lease
)

// round loses one message under load, in as many attempts as it takes. It gives their number, and that of the envelopes in the message.
func (x loss) round(s *scene, coordinator *node, link *faultproxy.Proxy, set *trap.Trap) (attempts, envelopes int) {
	s.Helper()
	for attempts = 1; attempts <= mostAttempts; attempts++ {
		if envelopes = x.attempt(s, coordinator, link, set); envelopes > 0 {
			return attempts, envelopes
		}
		s.still()
	}
	s.Fatalf("round %d: no %s of node %s came in %d attempts of %v", s.number, x.name, coordinator.name, mostAttempts, comes)
	return 0, 0
}

// attempt gives the number of the envelopes in the message that was lost; 0: none came.
func (x loss) attempt(s *scene, coordinator *node, link *faultproxy.Proxy, set *trap.Trap) (envelopes int) {
	s.Helper()
	end := x.under(s, coordinator)
	time.Sleep(afterward/2 + time.Duration(s.random.Int64N(int64(afterward))))
	lost := set.Set(func(m trap.Message) bool { return m.Way == x.way && x.in(s.envelopes(m)) })
	defer set.Clear()
	if x.begin {
		link.Break()
	}
	select {
	case m := <-lost:
		envelopes = len(s.envelopes(m))
		if m.Beside > 0 {
			s.Errorf("round %d: %d messages were lost before it", s.number, m.Beside)
		}
	case <-time.After(comes):
		s.Logf("round %d: no %s of node %s came", s.number, x.name, coordinator.name)
	}
	// Either more searches come then, or none: those that are there have to be answered all the same.
	if !x.queueless && s.random.IntN(2) == 0 {
		s.during(s.live(), func() {})
	}
	end()
	return envelopes
}

// in reports whether a batch is one to lose: it has such a message, and no other unless a session begins with it.
func (x loss) in(batch []*clusterpb.Envelope) bool {
	return (x.begin || len(batch) == 1) && slices.ContainsFunc(batch, func(e *clusterpb.Envelope) bool { return e.GetKind() == x.kind })
}

// envelopes are those of a message that is a session's batch. It is safe for concurrent use.
func (s *scene) envelopes(m trap.Message) []*clusterpb.Envelope {
	if m.Method != clusterpb.Peer_Session_FullMethodName {
		return nil
	}
	var f clusterpb.SessionFrame
	if err := proto.Unmarshal(m.Body, &f); err != nil {
		s.Error(err)
	}
	return f.GetBatch().GetEnvelopes()
}

// crowd has as many searches come as under other kinds of trouble.
func (s *scene) crowd(*node) (end func()) { return s.load(s.live(), each, s.group, took).end }

// oneAtATime has the coordinator ask the owner for each of its searches, since no other waits there, while those of other nodes wait.
func (s *scene) oneAtATime(coordinator *node) (end func()) {
	others := s.load(slices.DeleteFunc(s.live(), func(n *node) bool { return n == coordinator }), each, s.group, took)
	own := s.load([]*node{coordinator}, 1, s.group, took)
	return func() {
		own.end()
		others.end()
	}
}

// room has fewer searches come than may run.
func (s *scene) room(*node) (end func()) { return s.load(s.live(), 1, s.group, took).end }

// leaving has a grant come to the coordinator when nobody is there any more: its clients leave soon, and the owner does not hear of that.
func (s *scene) leaving(coordinator *node) (end func()) {
	const stays, pause = took / 8, took
	others := s.load(slices.DeleteFunc(s.live(), func(n *node) bool { return n == coordinator }), each, s.group, took)
	stop := repeat(1, pause, func() {
		ctx, cancel := context.WithTimeout(s.Context(), stays)
		defer cancel()
		if a := coordinator.search(ctx, s.group, took); a.Err == nil {
			others.take(coordinator, a)
		}
	})
	return func() {
		stop()
		others.end()
	}
}

// tries has searches come that may not wait, on all nodes, and more than may run.
func (s *scene) tries(*node) (end func()) {
	const pause = took / 4
	var all answers
	var stops []func()
	for _, n := range s.live() {
		stops = append(stops, repeat(2, pause, func() { all.take(n, n.searchSoon(s.group, took), http.StatusTooManyRequests) }))
	}
	return func() {
		s.Helper()
		for _, stop := range stops {
			stop()
		}
		for _, b := range all.bad {
			s.Error(b)
		}
		if all.by[http.StatusOK] == 0 || all.by[http.StatusTooManyRequests] == 0 {
			s.Errorf("answers by status: %v", all.by)
		}
	}
}

// repeat has so many goroutines do something again and again, with a pause after each time. What it gives ends them.
func repeat(goroutines int, pause time.Duration, do func()) (end func()) {
	stop := make(chan struct{})
	var running sync.WaitGroup
	for range goroutines {
		running.Go(func() {
			for {
				do()
				select {
				case <-stop:
					return
				case <-time.After(pause):
				}
			}
		})
	}
	return func() {
		close(stop)
		running.Wait()
	}
}

// refuses is quiet for a group without a queue: as many searches as the limit can run at once, on any nodes, and no more.
func (c *cluster) refuses(group string, limit int) {
	c.Helper()
	c.still()
	live := c.live()
	var releases []func()
	for i := range limit {
		releases = append(releases, live[i%len(live)].begin(group, 1))
	}
	c.awaitChecked(0, limit)
	for _, n := range live {
		if a := n.searchSoon(group, time.Millisecond); a.Status != http.StatusTooManyRequests {
			c.Errorf("beside %d that run, node %s answers %d %v: %s", limit, n.name, a.Status, a.Err, a.Body)
		}
	}
	for _, release := range releases {
		release()
	}
	c.awaitChecked(0, 0)
}
