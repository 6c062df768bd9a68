package contract

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/rules"
	"github.com/wlmserver/wlmserver/settings"
)

// Repositories are those that one node has, of sets that it shares with others.
type Repositories struct {
	Groups, Rules, Settings records.Repository

	// CatchUp returns when the node sees all that was changed before on either; nil where it always does.
	CatchUp func(context.Context) error
}

// catchUp has each node see all that was changed.
func catchUp(t *testing.T, all ...Repositories) {
	t.Helper()
	for _, r := range all {
		if r.CatchUp == nil {
			continue
		}
		if err := r.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

const (
	writers   = 64
	mostGroup = 9  // with shares of 0.1 and 0.2 the sum is the closer bound at times, the count at others
	mostRules = 20 // of 64 that are tried
)

// Writers has 64 clients change the same sets on two nodes at once, and checks after each change on either node, and at
// the end, what must hold for the set as a whole. The sets are empty at first.
func Writers(t *testing.T, one, two Repositories) {
	t.Helper()
	t.Run("groups", func(t *testing.T) { groupWriters(t, one, two) })
	t.Run("rules", func(t *testing.T) { ruleWriters(t, one, two) })
	t.Run("settings", func(t *testing.T) { settingWriters(t, one, two) })
}

// crowd runs the writers, half of them on each node.
func crowd(write func(node, writer int)) {
	var all sync.WaitGroup
	for writer := range writers {
		all.Go(func() { write(writer%2, writer) })
	}
	all.Wait()
}

func groupWriters(t *testing.T, one, two Repositories) {
	t.Helper()
	var (
		nodes [2]*groups.Registry
		mu    sync.Mutex
		alive = map[string]bool{} // the names of groups whose creation was answered and not undone
	)
	check := func(s *groups.Snapshot) {
		sum := 0.0
		names := map[string]bool{}
		for _, g := range s.All() {
			sum += *g.Limits.CPU
			names[g.Name] = true
		}
		if s.Len() > mostGroup || sum > 1+1e-9 || len(names) != s.Len() {
			t.Errorf("%d groups with %d names, their limits add up to %v", s.Len(), len(names), sum)
		}
	}
	for i, r := range []Repositories{one, two} {
		registry, err := groups.Open(t.Context(), r.Groups, groups.WithMaxCount(func() int { return mostGroup }))
		if err != nil {
			t.Fatal(err)
		}
		registry.OnChange(func(_, now *groups.Snapshot) { check(now) })
		nodes[i] = registry
	}
	refused := map[string]int{}
	note := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if _, ok := errors.AsType[*groups.TooManyError](err); ok {
			refused["count"]++
		} else if _, ok := errors.AsType[*groups.InvalidError](err); ok {
			refused["name or sum"]++
		} else if _, ok := errors.AsType[*groups.NotFoundError](err); ok {
			refused["missing"]++
		} else if err != nil {
			t.Error(err)
		}
	}
	patch := func(text string) groups.Patch {
		p, err := groups.ParsePatch([]byte(text))
		if err != nil {
			t.Error(err)
		}
		return p
	}
	crowd(func(node, writer int) {
		r := nodes[node]
		name := fmt.Sprintf("group-%d", writer/4) // four want each name
		g, err := r.Create(t.Context(), patch(fmt.Sprintf(`{"name":%q,"resiliency_mode":"enforced","resource_limits":{"cpu":%v}}`, name, 0.1+0.1*float64(writer%2))))
		note(err)
		if err != nil {
			return
		}
		mu.Lock()
		if alive[name] {
			t.Errorf("two groups with the name %s were created", name)
		}
		alive[name] = true
		mu.Unlock()
		if _, err := r.Update(t.Context(), name, patch(`{"resource_limits":{"cpu":0.2}}`)); err != nil {
			note(err)
		}
		if writer%3 == 0 {
			// The mark goes first: once it is deleted, anybody may create it again.
			mu.Lock()
			delete(alive, name)
			mu.Unlock()
			if err := r.Delete(t.Context(), name); err != nil {
				t.Errorf("deleting %s with the id %s: %v", name, g.ID, err)
			}
		}
	})
	catchUp(t, one, two)
	for i, r := range nodes {
		if err := r.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := r.Snapshot()
		check(s)
		for name := range alive {
			if s.ByName(name) == nil {
				t.Errorf("node %d: the group %s is lost", i, name)
			}
		}
		if s.Len() != len(alive) {
			t.Errorf("node %d: %d groups, want %d", i, s.Len(), len(alive))
		}
	}
	if refused["count"]+refused["name or sum"] == 0 {
		t.Error("nobody was refused: the writers did not meet")
	}
}

func ruleWriters(t *testing.T, one, two Repositories) {
	t.Helper()
	there := groups.NewSnapshot(1, &groups.Group{ID: "A", Name: "a"})
	var nodes [2]*rules.Registry
	for i, r := range []Repositories{one, two} {
		registry, err := rules.Open(t.Context(), r.Rules, func() *groups.Snapshot { return there }, rules.WithMaxCount(func() int { return mostRules }))
		if err != nil {
			t.Fatal(err)
		}
		nodes[i] = registry
	}
	var (
		mu      sync.Mutex
		created = map[string]bool{}
	)
	crowd(func(node, writer int) {
		p, err := rules.ParsePatch(fmt.Appendf(nil, `{"description":"of %d","index_pattern":["i%d"],"workload_group":"A"}`, writer, writer/2)) // two want each pattern
		if err != nil {
			t.Error(err)
			return
		}
		made, err := nodes[node].Create(t.Context(), p)
		_, rival := errors.AsType[*rules.InvalidError](err)
		_, many := errors.AsType[*rules.TooManyError](err)
		if err != nil && !rival && !many {
			t.Error(err)
		}
		if err == nil {
			mu.Lock()
			created[made.ID] = true
			mu.Unlock()
		}
	})
	catchUp(t, one, two)
	for i, r := range nodes {
		if err := r.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		patterns := map[string]bool{}
		all := r.Snapshot().After("")
		for _, rule := range all {
			patterns[rule.Indices[0]] = true
			if !created[rule.ID] {
				t.Errorf("node %d: nobody was told that %s was made", i, rule.ID)
			}
		}
		if len(all) != mostRules || len(created) != mostRules || len(patterns) != mostRules {
			t.Errorf("node %d: %d rules with %d patterns, %d were made; want %d", i, len(all), len(patterns), len(created), mostRules)
		}
	}
}

func settingWriters(t *testing.T, one, two Repositories) {
	t.Helper()
	const (
		reject = "wlm.workload_group.node.cpu_rejection_threshold"
		cancel = "wlm.workload_group.node.cpu_cancellation_threshold"
	)
	var nodes [2]*settings.Registry
	for i, r := range []Repositories{one, two} {
		registry, err := settings.Open(t.Context(), r.Settings, nil, settings.OfCluster())
		if err != nil {
			t.Fatal(err)
		}
		registry.OnChange(func(_, now *settings.Snapshot) {
			if low, high := now.Float(reject), now.Float(cancel); low > high || len(registry.Problems()) > 0 {
				t.Errorf("thresholds %v and %v, problems %v", low, high, registry.Problems())
			}
		})
		nodes[i] = registry
	}
	crowd(func(node, writer int) {
		key, scope := reject, "persistent"
		if writer%4 > 1 {
			key = cancel
		}
		if writer%8 > 3 {
			scope = "transient"
		}
		u, err := settings.ParseUpdate(fmt.Appendf(nil, `{%q:{%q:"0.%d"}}`, scope, key, 1+writer%9))
		if err != nil {
			t.Error(err)
			return
		}
		_, err = nodes[node].Apply(t.Context(), u)
		if _, refused := errors.AsType[*settings.InvalidError](err); err != nil && !refused {
			t.Error(err)
		}
	})
	catchUp(t, one, two)
	for _, r := range nodes {
		if err := r.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	a, b := nodes[0].Snapshot(), nodes[1].Snapshot()
	if fmt.Sprint(a.Persistent(), a.Transient()) != fmt.Sprint(b.Persistent(), b.Transient()) {
		t.Errorf("the nodes differ: %v %v and %v %v", a.Persistent(), a.Transient(), b.Persistent(), b.Transient())
	}
	if len(a.Persistent()) == 0 || len(a.Transient()) == 0 {
		t.Errorf("nothing was set: %v %v", a.Persistent(), a.Transient())
	}
}
