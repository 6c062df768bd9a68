package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/cluster/meta"
	"github.com/wlmserver/wlmserver/internal/cluster/ring"
)

// names lists the members of a ring.
func names(r *ring.Ring) string {
	var all []string
	for _, m := range r.Members() {
		all = append(all, m.ID)
	}
	return strings.Join(all, " ")
}

// agree waits until all nodes know one ring of these members, and returns it.
func (c *cluster) agree(members string, nodes ...*meta.Client) *ring.Ring {
	c.Helper()
	eventually(c, "the ring is of "+members, func() bool {
		return !slices.ContainsFunc(nodes, func(n *meta.Client) bool {
			return names(n.Ring()) != members || n.Ring().Epoch() != nodes[0].Ring().Epoch()
		})
	})
	return nodes[0].Ring()
}

// rings lists the epochs of the ring that a node has heard of.
type rings struct {
	mu  sync.Mutex
	all []*ring.Ring
}

func listen(n *meta.Client) *rings {
	r := &rings{}
	n.OnRing(func(now *ring.Ring) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = append(r.all, now)
	})
	return r
}

func (r *rings) heard() []*ring.Ring {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

// history is what the ring's key held at each of its revisions since etcd was started.
func (c *cluster) history(from int64) map[uint64]string {
	c.Helper()
	keys := c.keys()
	key := c.prefix + "/ring"
	now, err := keys.Get(c.Context(), key)
	if err != nil {
		c.Fatal(err)
	}
	all := make(map[uint64]string)
	if len(now.Kvs) == 0 || now.Kvs[0].ModRevision < from {
		return all
	}
	for answer := range keys.Watch(c.Context(), key, clientv3.WithRev(from)) {
		for _, e := range answer.Events {
			all[uint64(e.Kv.ModRevision)] = string(e.Kv.Value)
		}
		if _, ok := all[uint64(now.Kvs[0].ModRevision)]; ok {
			break
		}
	}
	return all
}

// Every coming and going of a member is a new epoch, of which all hear, and what a node takes for a ring stood in the key.
func TestEveryChangeOfMembersIsAnEpoch(t *testing.T) {
	c := newCluster(t)
	a := c.join("a")
	heard := []*rings{listen(a)}
	last := c.agree("a", a)
	next := func(what, members string, nodes ...*meta.Client) {
		t.Helper()
		now := c.agree(members, nodes...)
		if now.Epoch() <= last.Epoch() {
			t.Errorf("%s: epoch %d after %d", what, now.Epoch(), last.Epoch())
		}
		last = now
	}
	b := c.join("b")
	heard = append(heard, listen(b))
	next("b joins", "a b", a, b)
	d := c.join("d")
	heard = append(heard, listen(d))
	next("d joins", "a b d", a, b, d)

	before, _ := b.Ring(), b.Close()
	if b.Live() {
		t.Error("a closed node is live")
	}
	next("b crashes", "a d", a, d)
	if !before.Has(a.Ring().Members()[0]) {
		t.Error("a became another member as b crashed")
	}

	again := c.join("d") // while the lease of the first d lives
	next("d restarts", "a d", a, again)
	if m := last.Members()[1]; m.ID != "d" || last.Has(d.Ring().Members()[0]) && m == d.Ring().Members()[0] {
		t.Errorf("members %v", last.Members())
	}
	eventually(t, "the first d knows that it has been replaced", func() bool { return !d.Live() })

	e := c.join("e")
	next("e joins", "a d e", a, again, e)
	if err := e.Leave(within(t)); err != nil {
		t.Fatal(err)
	}
	if e.Live() {
		t.Error("who has left is live")
	}
	if r := e.Ring(); names(r) != "a d" {
		t.Errorf("as e has left, its ring is of %s", names(r))
	}
	next("e leaves", "a d", a, again)

	history := c.history(1)
	for i, r := range heard {
		all := r.heard()
		if !slices.IsSortedFunc(all, func(x, y *ring.Ring) int { return int(x.Epoch()) - int(y.Epoch()) }) {
			t.Errorf("node %d heard epochs out of order", i)
		}
		for _, ring := range all {
			var stored struct{ Members []json.RawMessage }
			if err := json.Unmarshal([]byte(history[ring.Epoch()]), &stored); err != nil {
				t.Errorf("node %d heard of epoch %d, which never was: %v", i, ring.Epoch(), err)
				continue
			}
			var own []string
			for _, m := range ring.Members() {
				b, err := json.Marshal(m)
				if err != nil {
					t.Fatal(err)
				}
				own = append(own, string(b))
			}
			if got, want := strings.Join(own, ","), string(mustJoin(stored.Members)); got != want {
				t.Errorf("node %d took epoch %d for %s; it is %s", i, ring.Epoch(), got, want)
			}
		}
	}
	if all := heard[0].heard(); len(all) < 7 || names(all[0]) != "a" {
		t.Errorf("the first node heard of %d rings", len(all))
	}
}

func mustJoin(all []json.RawMessage) []byte {
	var out []byte
	for i, m := range all {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, m...)
	}
	return out
}

// A key of a member is no ring, and a ring is one though no key stands behind it: the key of the ring alone counts.
func TestRingIsReadFromItsKey(t *testing.T) {
	c := newCluster(t)
	watcher := c.open("w") // knows the metadata, but is no member, so it writes no ring
	keys := c.keys()
	put := func(key, value string) uint64 {
		t.Helper()
		answer, err := keys.Put(t.Context(), c.prefix+key, value)
		if err != nil {
			t.Fatal(err)
		}
		if err := watcher.Await(within(t), uint64(answer.Header.Revision)); err != nil {
			t.Fatal(err)
		}
		return uint64(answer.Header.Revision)
	}
	put("/members/x", `{"id":"x","incarnation":"1","version":"3.7.0"}`)
	if r := watcher.Ring(); r.Epoch() != 0 || len(r.Members()) != 0 || len(watcher.Members()) != 1 {
		t.Errorf("epoch %d of %s by a member's key", r.Epoch(), names(r))
	}
	epoch := put("/ring", `{"members":[{"id":"y","incarnation":"1","version":"3.7.0","of the future":1},{"id":"z","incarnation":"2","version":"3.6.0"}]}`)
	r := watcher.Ring()
	if owner, ok := r.Owner("k"); r.Epoch() != epoch || names(r) != "y z" || !ok || owner.ID != "y" {
		t.Errorf("epoch %d of %s, owner %s", r.Epoch(), names(r), owner.ID)
	}
	// A member sets it right, with what it does not know.
	put("/members/x", `{"id":"x","incarnation":"1","version":"3.7.0","of the future":2}`)
	member := c.join("m")
	c.agree("m x", member, watcher)
	for _, value := range c.history(int64(epoch) + 1) {
		if !strings.Contains(value, `"of the future":2`) {
			t.Errorf("the ring was written without what its writer does not know: %s", value)
		}
	}
}

// Members come and go all at once, and each of the others writes the ring. Nobody who is in it is put out by one who writes
// what he knew before: each incarnation is in the ring once, without a gap.
func TestNobodyIsWrittenOut(t *testing.T) {
	c := newCluster(t)
	a := c.join("a")
	var all sync.WaitGroup
	for i := range 5 {
		all.Go(func() {
			for range 6 {
				n, err := c.tryOpen(fmt.Sprint("n", i))
				if err != nil {
					t.Error(err)
					return
				}
				if err := errors.Join(n.Join(within(t)), n.Leave(within(t)), n.Close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	c.agree("a", a)
	history := c.history(1)
	seen := map[string]string{} // each incarnation: in, or gone
	for _, epoch := range slices.Sorted(maps.Keys(history)) {
		var stored struct{ Members []ring.Member }
		if err := json.Unmarshal([]byte(history[epoch]), &stored); err != nil {
			t.Fatal(err)
		}
		now := map[string]bool{}
		for _, m := range stored.Members {
			now[m.Incarnation] = true
			if seen[m.Incarnation] == "gone" {
				t.Errorf("epoch %d: %s is back", epoch, m.Incarnation)
			}
			seen[m.Incarnation] = "in"
		}
		for incarnation, state := range seen {
			if state == "in" && !now[incarnation] {
				seen[incarnation] = "gone"
			}
		}
	}
	if len(seen) != 31 {
		t.Errorf("%d incarnations were members, want 31", len(seen))
	}
}

func TestQuickJoinsAreGathered(t *testing.T) {
	c := newCluster(t)
	a := c.join("a")
	keys := c.keys()
	const joins = 10
	for range 20 {
		before := a.Ring().Epoch()
		start := time.Now()
		for i := range joins {
			if _, err := keys.Put(t.Context(), fmt.Sprintf("%s/members/n%d", c.prefix, i), fmt.Sprintf(`{"id":"n%d","incarnation":"1","version":"3.7.0"}`, i)); err != nil {
				t.Fatal(err)
			}
		}
		took := time.Since(start)
		eventually(t, "all are in the ring", func() bool { return len(a.Ring().Members()) == joins+1 })
		written := len(c.history(int64(before) + 1))
		if _, err := keys.Delete(t.Context(), c.prefix+"/members/n", clientv3.WithPrefix()); err != nil {
			t.Fatal(err)
		}
		c.agree("a", a)
		if took > 50*time.Millisecond {
			continue // too slow to be quick joins
		}
		// The ring is written 100 ms after the first join was seen. One more is allowed for a watch that lags.
		if written > 2 {
			t.Errorf("%d joins within %v were %d rings", joins, took, written)
		}
		return
	}
	t.Skip("the machine is too slow for quick joins")
}

// A member that lives stays one, and its ring does not change.
func TestSignsOfLife(t *testing.T) {
	c := newCluster(t)
	a, b := c.join("a"), c.join("b")
	r := c.agree("a b", a, b)
	end := time.After(3 * time.Second) // three leases
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		select {
		case <-tick.C:
			if !a.Live() || !b.Live() || a.Ring().Epoch() != r.Epoch() {
				t.Fatalf("live %t and %t, epoch %d after %d", a.Live(), b.Live(), a.Ring().Epoch(), r.Epoch())
			}
		case <-end:
			tick.Stop()
			return
		}
	}
}

// older makes a node one of a version that knows no queues.
func older(m *meta.Config) { m.Self.Version = "3.6.0" }

const queued = `,"throttling":{"attribute":"group","node_limit":1},"queue":{"size_per_bucket":5}`

func TestQueueNeedsEveryMember(t *testing.T) {
	c := newCluster(t)
	a := c.node(c.join("a"), nil)
	old := c.join("old", older)
	c.agree("a old", a.Client, old)
	beside := c.node(c.open("beside", older), nil) // no member yet
	if _, err := beside.groups.Create(t.Context(), patch(t, body("q", queued))); !errors.As(err, new(*groups.InvalidError)) {
		t.Errorf("an older node makes a queue: error %v", err)
	}
	if owner, ok := a.Ring().Owner("k"); !ok || owner.ID != "a" {
		t.Errorf("owner %v", owner)
	}
	_, err := a.groups.Create(t.Context(), patch(t, body("q", queued)))
	e, ok := errors.AsType[*groups.InvalidError](err)
	if !ok || !strings.Contains(e.Reason, "[q]") || !strings.Contains(e.Reason, "node [old]") || !strings.Contains(e.Reason, "3.6.0") {
		t.Fatalf("a queue beside an older node: error %v", err)
	}
	if _, err := a.groups.Create(t.Context(), patch(t, body("plain", ""))); err != nil {
		t.Fatal(err)
	}
	if err := old.Leave(within(t)); err != nil {
		t.Fatal(err)
	}
	c.agree("a", a.Client)
	if _, err := a.groups.Update(t.Context(), "plain", patch(t, `{`+queued[1:]+`}`)); err != nil {
		t.Fatalf("once the older node has left: %v", err)
	}

	// From then on an older one is not let in, whether it starts or is there already.
	_, err = c.tryOpen("old", older)
	wantVersionError(t, err, "plain")
	wantVersionError(t, old.Join(within(t)), "")
}

func wantVersionError(t *testing.T, err error, group string) {
	t.Helper()
	if group == "" {
		if err == nil {
			t.Error("who has left joins again")
		}
		return
	}
	e, ok := errors.AsType[*meta.VersionError](err)
	if !ok || e.Group != group || e.Version != "3.6.0" || !strings.Contains(err.Error(), "["+group+"]") || !strings.Contains(err.Error(), "node.compatibility_version") {
		t.Fatalf("error %v", err)
	}
}

// An older node joins while a queue is being made: one of them is refused, always.
func TestQueueAndOlderMemberNeverMeet(t *testing.T) {
	c := newCluster(t)
	a := c.node(c.join("a"), nil)
	made, joined := 0, 0
	for round := range 20 {
		old := c.open("old", older)
		var (
			both              sync.WaitGroup
			errJoin, errQueue error
		)
		name := fmt.Sprintf("q%d", round)
		p := patch(t, body(name, queued))
		both.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			errJoin = old.Join(ctx)
		})
		both.Go(func() { _, errQueue = a.groups.Create(t.Context(), p) })
		both.Wait()
		_, refused := errors.AsType[*groups.InvalidError](errQueue)
		_, tooOld := errors.AsType[*meta.VersionError](errJoin)
		if (errJoin == nil) == (errQueue == nil) || errQueue != nil && !refused || errJoin != nil && !tooOld {
			t.Fatalf("round %d: join %v, queue %v", round, errJoin, errQueue)
		}
		if errQueue == nil {
			made++
			if err := a.groups.Delete(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		} else {
			joined++
		}
		if err := old.Leave(within(t)); err != nil {
			t.Fatal(err)
		}
		c.close(old)
		c.agree("a", a.Client)
	}
	t.Logf("%d times the queue, %d times the older node", made, joined)
}

// Two processes with one id: the later one has it, and the earlier one knows.
func TestOneIDTwice(t *testing.T) {
	c := newCluster(t)
	var log journal
	first := c.join("a", func(m *meta.Config) { m.Log = m.Log.Output(&log).Level(0) })
	second := c.join("a")
	eventually(t, "the first gives up", func() bool { return !first.Live() && strings.Contains(log.String(), "path.data") })
	r := c.agree("a", first, second)
	if !second.Live() || len(r.Members()) != 1 {
		t.Errorf("live %t, members %v", second.Live(), r.Members())
	}
	epoch := r.Epoch()
	if err := first.Leave(within(t)); err == nil {
		t.Error("the first left for the second")
	}
	if !second.Live() || second.Ring().Epoch() != epoch {
		t.Error("as the first left, the second was put out")
	}
}

// TestMemberAgainKnowsTheRing: a node whose lease has ended was written out of the ring, and what it owned is another's. When it is
// registered again it is no member before its listeners have heard of that.
func TestMemberAgainKnowsTheRing(t *testing.T) {
	c := newCluster(t)
	a, b := c.join("a", func(m *meta.Config) { m.MemberTTL = time.Minute }), c.join("b")
	keys := c.keys()
	registered := func() *clientv3.GetResponse {
		answer, err := keys.Get(t.Context(), c.prefix+"/members/a")
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	first := registered().Kvs
	if len(first) != 1 {
		t.Fatalf("a is registered as %v", first)
	}
	hold, heard := make(chan struct{}), make(chan struct{}, 100)
	a.OnRing(func(r *ring.Ring) {
		if names(r) == "b" {
			heard <- struct{}{}
			<-hold
		}
	})
	if _, err := keys.Revoke(t.Context(), clientv3.LeaseID(first[0].Lease)); err != nil {
		t.Fatal(err)
	}
	<-heard // the ring without a, of which its listener does not know yet
	eventually(t, "a is registered again", func() bool {
		now := registered().Kvs
		return len(now) == 1 && now[0].Lease != first[0].Lease
	})
	for range 100 {
		if a.Live() {
			t.Error("a counts itself a member, and its listener does not know that it was none")
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	close(hold)
	eventually(t, "a is a member again", func() bool { return a.Live() && len(a.Ring().Members()) == 2 && len(b.Ring().Members()) == 2 })
}
