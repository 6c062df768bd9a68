package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/cluster/meta"
	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/rules"
	"github.com/wlmserver/wlmserver/settings"
	"github.com/wlmserver/wlmserver/store/contract"
)

func TestContract(t *testing.T) {
	for name, of := range map[string]func(*meta.Client) *meta.Set{
		"groups": (*meta.Client).Groups, "rules": (*meta.Client).Rules, "settings": (*meta.Client).Settings, "indices": (*meta.Client).Indices,
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			var last *meta.Client
			contract.Repository(t, func() records.Repository {
				if last != nil {
					c.close(last)
				}
				last = c.open("n1")
				return of(last)
			})
		})
	}
}

// repositories are a node's, which catches up with another node.
func repositories(c, other *meta.Client) contract.Repositories {
	return contract.Repositories{Groups: c.Groups(), Rules: c.Rules(), Settings: c.Settings(), CatchUp: func(ctx context.Context) error {
		return c.Await(ctx, max(c.Committed(), other.Committed()))
	}}
}

func TestWriters(t *testing.T) {
	c := newCluster(t)
	one, two := c.open("n1"), c.open("n2")
	contract.Writers(t, repositories(one, two), repositories(two, one))
}

// node is a node's registries, fed by its client.
type node struct {
	*meta.Client
	groups   *groups.Registry
	rules    *rules.Registry
	settings *settings.Registry
}

func (c *cluster) node(client *meta.Client, start map[string]string) *node {
	c.Helper()
	n := &node{Client: client}
	var err error
	if n.settings, err = settings.Open(c.Context(), client.Settings(), start, settings.OfCluster()); err != nil {
		c.Fatal(err)
	}
	if n.groups, err = groups.Open(c.Context(), client.Groups()); err != nil {
		c.Fatal(err)
	}
	if n.rules, err = rules.Open(c.Context(), client.Rules(), n.groups.Snapshot); err != nil {
		c.Fatal(err)
	}
	client.Settings().OnChange(n.settings.Reload)
	client.Groups().OnChange(n.groups.Reload)
	client.Rules().OnChange(n.rules.Reload)
	return n
}

func patch(t testing.TB, body string) groups.Patch {
	t.Helper()
	p, err := groups.ParsePatch([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// body is a group of that name.
func body(name string, more string) string {
	return fmt.Sprintf(`{"name":%q,"resiliency_mode":"enforced","resource_limits":{"cpu":0.01}%s}`, name, more)
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// What one node has written, another has applied once it has awaited the revision.
func TestChangesAreAwaited(t *testing.T) {
	c := newCluster(t)
	a, b := c.node(c.open("a"), nil), c.node(c.open("b"), nil)
	for i := range 100 {
		from, to := a, b
		if i%2 == 1 {
			from, to = b, a
		}
		name := fmt.Sprintf("g%d", i)
		g, err := from.groups.Create(t.Context(), patch(t, body(name, "")))
		if err != nil {
			t.Fatal(err)
		}
		p, err := rules.ParsePatch(fmt.Appendf(nil, `{"description":"d","index_pattern":["i%d"],"workload_group":%q}`, i, g.ID))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := from.rules.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if err := to.Await(within(t), from.Committed()); err != nil {
			t.Fatal(err)
		}
		if to.Revision() < from.Committed() {
			t.Fatalf("revision %d, awaited %d", to.Revision(), from.Committed())
		}
		group, ok := to.rules.Snapshot().Match(rules.Request{Indices: []string{fmt.Sprintf("i%d", i)}})
		if !ok || to.groups.Snapshot().ByID(group) == nil || to.groups.Snapshot().ByID(group).Name != name {
			t.Fatalf("change %d: group %q", i, group)
		}
	}
}

func TestAwaitEndsWithTheContext(t *testing.T) {
	c := newCluster(t)
	a := c.open("a")
	late := errors.New("too late")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, late)
	defer cancel()
	if err := a.Await(ctx, a.Revision()+1_000_000); !errors.Is(err, late) {
		t.Errorf("error %v", err)
	}
}

// A listener that fails holds the revision back, and is called again.
func TestWhatCannotBeUsedIsNotApplied(t *testing.T) {
	c := newCluster(t)
	var log journal
	a := c.node(c.open("a"), nil)
	b := c.node(c.open("b", func(m *meta.Config) { m.Log = m.Log.Output(&log).Level(0) }), nil)
	if _, err := a.groups.Create(t.Context(), patch(t, body("good", ""))); err != nil {
		t.Fatal(err)
	}
	if err := b.Await(within(t), a.Committed()); err != nil {
		t.Fatal(err)
	}
	set, err := a.Groups().Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	revision, err := a.Groups().Commit(t.Context(), set.Revision, records.Change{Put: map[string][]byte{"x": []byte(`{"_id":"x","name":"n","resiliency_mode":"of the future"}`)}})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the log names the group", func() bool { return strings.Contains(log.String(), "[n] with the id [x]") })
	if b.Revision() >= revision {
		t.Errorf("revision %d counts as applied", b.Revision())
	}
	if b.groups.Snapshot().ByName("good") == nil {
		t.Error("what was there before is lost")
	}
	if _, err := a.Groups().Commit(t.Context(), revision, records.Change{Delete: []string{"x"}}); err != nil {
		t.Fatal(err)
	}
	if err := b.Await(within(t), a.Committed()); err != nil {
		t.Fatal(err)
	}
}

func TestSettingsOfTheCluster(t *testing.T) {
	c := newCluster(t)
	const key, other = settings.DefaultSearchTimeout, "search.max_buckets"
	a := c.node(c.open("a"), map[string]string{key: "1s", "node.name": "a"})
	b := c.node(c.open("b"), map[string]string{key: "2s", other: "7", "node.name": "b"})
	if err := a.Await(within(t), b.Committed()); err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]*node{"a": a, "b": b} {
		s := n.settings.Snapshot()
		if s.String(key) != "1s" || s.String(other) != "7" || s.String("node.name") != name {
			t.Errorf("%s: %s, %s, %s", name, s.String(key), s.String(other), s.String("node.name"))
		}
	}
	if p := a.settings.Problems(); len(p) != 0 {
		t.Errorf("problems of the first: %v", p)
	}
	p := b.settings.Problems()
	if len(p) != 1 {
		t.Fatalf("problems of the second: %v", p)
	}
	if e, ok := errors.AsType[*settings.StandingError](p[0]); !ok || e.Key != key || e.Value != "2s" || e.Standing != "1s" {
		t.Errorf("problem %v", p[0])
	}

	u, err := settings.ParseUpdate([]byte(`{"transient":{"search.max_buckets":8},"persistent":{"search.default_search_timeout":"3s"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.settings.Apply(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	if err := a.Await(within(t), b.Committed()); err != nil {
		t.Fatal(err)
	}
	// A restart of either node keeps them, transient ones too: they are the cluster's.
	for name, n := range map[string]*node{"a": a, "later": c.node(c.open("later"), nil)} {
		s := n.settings.Snapshot()
		if s.String(key) != "3s" || s.String(other) != "8" || len(s.Transient()) != 1 {
			t.Errorf("%s: %s, %s, transient %v", name, s.String(key), s.String(other), s.Transient())
		}
	}
}

// The watch is behind what etcd has forgotten; the node reads all and goes on.
func TestCompactionUnderAWatch(t *testing.T) {
	c := ownCluster(t)
	a := c.node(c.open("a"), nil)
	b := c.node(c.open("b"), nil)
	keys := c.keys()
	compact := func() {
		answer, err := keys.Get(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := keys.Compact(t.Context(), answer.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		if _, err := a.groups.Create(t.Context(), patch(t, body(fmt.Sprintf("g%d", i), ""))); err != nil {
			t.Fatal(err)
		}
		compact()
	}
	if err := b.Await(within(t), a.Committed()); err != nil {
		t.Fatal(err)
	}
	// While the node cannot follow, revisions go by that are then compacted. Its watch must begin where nothing is left.
	c.etcd.Stop()
	eventually(t, "b sees that etcd has gone", func() bool { return b.Reachable() != nil || changeFails(t, b) })
	c.start()
	before := b.Revision()
	for i := range 20 {
		if _, err := keys.Put(t.Context(), c.prefix+"/sets/rules", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	compact()
	eventually(t, "b can write again", func() bool { return b.Reachable() == nil })
	if err := b.groups.Delete(within(t), "g0"); err != nil {
		t.Fatal(err)
	}
	if err := b.Await(within(t), b.Committed()); err != nil {
		t.Fatal(err)
	}
	if b.Revision() < before+20 || b.groups.Snapshot().Len() != 19 {
		t.Errorf("revision %d after %d, %d groups", b.Revision(), before, b.groups.Snapshot().Len())
	}
}

// changeFails tells whether a change is refused since etcd does not answer.
func changeFails(t testing.TB, n *node) bool {
	t.Helper()
	_, err := n.groups.Create(t.Context(), patch(t, body("try", "")))
	if err == nil {
		t.Fatal("a change was made without etcd")
	}
	_, unavailable := errors.AsType[*records.UnavailableError](err)
	if !unavailable {
		t.Fatalf("without etcd: error %v", err)
	}
	return unavailable
}

// Many nodes change the same set, and each hears of every state in order.
func TestListenersHearInOrder(t *testing.T) {
	c := newCluster(t)
	nodes := []*node{c.node(c.open("a"), nil), c.node(c.open("b"), nil), c.node(c.open("c"), nil)}
	for _, n := range nodes {
		last := n.groups.Snapshot()
		var inside sync.Mutex
		n.groups.OnChange(func(old, now *groups.Snapshot) {
			if !inside.TryLock() {
				t.Error("two listeners at once")
				return
			}
			defer inside.Unlock()
			if old != last || now.Revision() != old.Revision()+1 {
				t.Errorf("revision %d after %d, heard of %d last", now.Revision(), old.Revision(), last.Revision())
			}
			last = now
		})
	}
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() {
			for j := range 15 {
				if _, err := n.groups.Create(t.Context(), patch(t, body(fmt.Sprintf("g%d-%d", i, j), ""))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for _, n := range nodes {
		for _, from := range nodes {
			if err := n.Await(within(t), from.Committed()); err != nil {
				t.Fatal(err)
			}
		}
		if got := n.groups.Snapshot().Len(); got != 45 {
			t.Errorf("%d groups, want 45", got)
		}
	}
}

// The binary of the server knows etcd as a client only.
func TestServerDoesNotLinkEtcdsServer(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/wlmserver", "./internal/cluster/...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Fields(string(out))
	found := map[string]bool{}
	for _, p := range all {
		for _, part := range []string{"go.etcd.io/etcd/client/v3", "go.etcd.io/etcd/server", "go.etcd.io/raft"} {
			found[part] = found[part] || strings.HasPrefix(p, part)
		}
	}
	if !found["go.etcd.io/etcd/client/v3"] || found["go.etcd.io/etcd/server"] || found["go.etcd.io/raft"] {
		t.Errorf("linked: %v", found)
	}
}
