package groups_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/records/recordstest"
)

func isInvalid(err error, says string) bool {
	var invalid *groups.InvalidError
	return errors.As(err, &invalid) && invalid.Type == "" && strings.Contains(err.Error(), says)
}

// body describes a group of that name with a share of the CPU.
func body(name string, cpu float64) string {
	return fmt.Sprintf(`{"name":%q,"resiliency_mode":"enforced","resource_limits":{"cpu":%v}}`, name, cpu)
}

func TestRegistryLife(t *testing.T) {
	r, m := open(t)
	if s := r.Snapshot(); s.Len() != 0 || s.Revision() != 1 || len(s.All()) != 0 || s.ByID(groups.DefaultID) != nil {
		t.Errorf("a new registry has %d groups at revision %d", s.Len(), s.Revision())
	}
	first := mustCreate(t, r, body("a", 0.4))
	second := mustCreate(t, r, body("b", 0.2))
	if first.ID == second.ID {
		t.Errorf("both have the id %s", first.ID)
	}
	for _, g := range []*groups.Group{first, second} {
		if !regexp.MustCompile(`^[A-Za-z0-9_-]{22}$`).MatchString(g.ID) {
			t.Errorf("id %q", g.ID)
		}
	}
	old := r.Snapshot()
	updated, err := update(t, r, "a", `{"resiliency_mode":"soft"}`)
	if err != nil {
		t.Fatal(err)
	}
	s := r.Snapshot()
	if s.Revision() != old.Revision()+1 || s.ByName("a") != updated || s.ByID(first.ID) != updated || s.ByName("b") != second || s.Len() != 2 {
		t.Errorf("after the update: revision %d, %+v", s.Revision(), s.All())
	}
	if old.ByName("a") != first || first.Mode != groups.Enforced {
		t.Error("the old snapshot changed")
	}
	all := s.All()
	if !slices.IsSortedFunc(all, func(a, b *groups.Group) int { return strings.Compare(a.ID, b.ID) }) {
		t.Errorf("not in the order of ids: %v", all)
	}
	all[0] = nil
	if slices.Contains(s.All(), nil) {
		t.Error("the snapshot's own slice was given away")
	}

	again, err := groups.Open(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range s.All() {
		if got := again.Snapshot().ByID(g.ID); got == nil || !equal(got, g) || !got.UpdatedAt.Equal(g.UpdatedAt) {
			t.Errorf("reopened: %+v, want %+v", got, g)
		}
	}

	if err := r.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if s := r.Snapshot(); s.Len() != 1 || s.ByName("a") != nil || s.ByID(first.ID) != nil || len(m.Dump()) != 1 {
		t.Errorf("after the delete: %+v", s.All())
	}
	if g := mustCreate(t, r, body("a", 0.4)); g.ID == first.ID {
		t.Error("an id came twice")
	}
}

func TestUnknownNames(t *testing.T) {
	r, _ := open(t)
	mustCreate(t, r, body("a", 0.4))
	for _, name := range []string{"nosuch", "A", "a ", "*", "a,b"} {
		var notFound *groups.NotFoundError
		if _, err := update(t, r, name, `{}`); !errors.As(err, &notFound) || notFound.Name != name || !strings.Contains(err.Error(), "["+name+"]") {
			t.Errorf("update %q: %v", name, err)
		}
		if err := r.Delete(t.Context(), name); !errors.As(err, &notFound) || notFound.Name != name {
			t.Errorf("delete %q: %v", name, err)
		}
	}
	long := strings.Repeat("a", 51)
	var notFound *groups.NotFoundError
	if err := r.Delete(t.Context(), long); !errors.As(err, &notFound) {
		t.Errorf("delete of an over-long name: %v", err)
	}
	for _, name := range []string{"", long} {
		if _, err := update(t, r, name, `{}`); !isInvalid(err, "[name]") {
			t.Errorf("update %q: %v", name, err)
		}
		if err := groups.ValidateName(name); !isInvalid(err, "1 to 50") {
			t.Errorf("ValidateName(%q) = %v", name, err)
		}
	}
}

func TestCount(t *testing.T) {
	most := 2
	r, _ := open(t, groups.WithMaxCount(func() int { return most }))
	mustCreate(t, r, body("a", 0.1))
	mustCreate(t, r, body("b", 0.1))
	for _, most = range []int{2, 1} { // lowering the bound below the count lets nobody in
		var tooMany *groups.TooManyError
		if _, err := create(t, r, body("c", 0.1)); !errors.As(err, &tooMany) || tooMany.Max != most ||
			!strings.Contains(err.Error(), "node.workload_group.max_count") {
			t.Errorf("at most %d: %v", most, err)
		}
	}
	if _, err := update(t, r, "a", `{"resiliency_mode":"soft"}`); err != nil {
		t.Errorf("an update over the count: %v", err)
	}
	most = 3
	mustCreate(t, r, body("c", 0.1))
}

func TestDefaultCount(t *testing.T) {
	r, _ := open(t)
	for i := range groups.DefaultMaxCount {
		mustCreate(t, r, body(fmt.Sprint(i), 0.001))
	}
	var tooMany *groups.TooManyError
	if _, err := create(t, r, body("x", 0.001)); !errors.As(err, &tooMany) || tooMany.Max != 100 {
		t.Errorf("error %v", err)
	}
}

// When several things are wrong, the count is told before the name, and the name before
// the sum; what is wrong with the group itself comes before all three.
func TestOrderOfChecks(t *testing.T) {
	most := 1
	r, _ := open(t, groups.WithMaxCount(func() int { return most }))
	mustCreate(t, r, body("a", 0.8))

	if _, err := create(t, r, `{"name":"a","resiliency_mode":"soft","resource_limits":{"cpu":0.8},"queue":{"size_per_bucket":1}}`); !isInvalid(err, "size_per_bucket") {
		t.Errorf("the group itself: %v", err)
	}
	var tooMany *groups.TooManyError
	if _, err := create(t, r, body("a", 0.8)); !errors.As(err, &tooMany) {
		t.Errorf("the count: %v", err)
	}
	most = 2
	if _, err := create(t, r, body("a", 0.8)); !isInvalid(err, "[name]") {
		t.Errorf("the name: %v", err)
	}
	if _, err := create(t, r, body("b", 0.8)); !isInvalid(err, "[resource_limits.cpu]") {
		t.Errorf("the sum: %v", err)
	}
	if _, err := create(t, r, body("A", 0.2)); err != nil {
		t.Errorf("names differ by case: %v", err)
	}
}

func TestSum(t *testing.T) {
	for _, c := range []struct {
		shares []float64
		fits   bool
	}{
		{[]float64{0.41, 0.59}, true},
		{[]float64{0.41, 0.6}, false},
		{[]float64{1}, true},
		{[]float64{1, 0.001}, false},
		{[]float64{1, 1e-300}, true}, // no double lies between
		{[]float64{0.1, 0.2, 0.7}, true},
		{[]float64{0.7, 0.2, 0.1}, true},
		{[]float64{0.1, 0.2, 0.3, 0.4}, true},
		{[]float64{0.33, 0.56, 0.11}, true},
		{[]float64{0.33, 0.56, 0.1100001}, false},
		{slices.Repeat([]float64{0.1}, 10), true},
		{slices.Repeat([]float64{0.05}, 20), true},
		{slices.Repeat([]float64{0.01}, 100), true},
		{append(slices.Repeat([]float64{0.01}, 99), 0.010001), false},
	} {
		r, _ := open(t)
		for i, share := range c.shares {
			_, err := create(t, r, body(fmt.Sprint(i), share))
			if last := i == len(c.shares)-1; err != nil && (!last || c.fits || !isInvalid(err, "[resource_limits.cpu]")) {
				t.Errorf("%v: number %d: %v", c.shares, i, err)
			} else if err == nil && last && !c.fits {
				t.Errorf("%v: accepted", c.shares)
			}
		}
	}
}

func TestSumByResource(t *testing.T) {
	r, _ := open(t)
	mustCreate(t, r, `{"name":"a","resiliency_mode":"soft","resource_limits":{"cpu":0.6,"memory":0.3}}`)
	mustCreate(t, r, `{"name":"b","resiliency_mode":"soft","resource_limits":{"memory":0.7,"native_memory":1}}`)
	before := r.Snapshot()
	for body, says := range map[string]string{
		`{"resource_limits":{"memory":0.31}}`:        "[0.31] of [resource_limits.memory]",
		`{"resource_limits":{"native_memory":1e-9}}`: "[resource_limits.native_memory]",
	} {
		if _, err := update(t, r, "a", body); !isInvalid(err, says) {
			t.Errorf("%s: %v, want %q", body, err, says)
		}
	}
	if r.Snapshot() != before {
		t.Error("a refused update changed something")
	}
	// The group's own former share does not count against it.
	if _, err := update(t, r, "a", `{"resource_limits":{"cpu":1,"memory":0.2}}`); err != nil {
		t.Error(err)
	}
}

func TestUpdatedAtMovesForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := open(t)
		time.Sleep(999 * time.Microsecond)
		g := mustCreate(t, r, body("a", 0.4))
		if want := time.Now().Truncate(time.Millisecond); !g.UpdatedAt.Equal(want) {
			t.Errorf("created at %v, want %v", g.UpdatedAt, want)
		}
		last := g.UpdatedAt
		for range 3 { // the clock of the bubble stands still
			g, err := update(t, r, "a", `{}`)
			if err != nil || !g.UpdatedAt.Equal(last.Add(time.Millisecond)) {
				t.Errorf("updated at %v, %v; want 1 ms after %v", g.UpdatedAt, err, last)
			}
			last = g.UpdatedAt
		}
		time.Sleep(time.Second)
		if g, err := update(t, r, "a", `{}`); err != nil || !g.UpdatedAt.Equal(time.Now().Truncate(time.Millisecond)) {
			t.Errorf("updated at %v, %v; want now", g.UpdatedAt, err)
		}
	})
}

func TestFailedWriteIsNotVisible(t *testing.T) {
	r, m := open(t)
	mustCreate(t, r, body("a", 0.4))
	r.OnChange(func(_, _ *groups.Snapshot) { t.Error("a listener was told of a change that failed") })
	before, stored := r.Snapshot(), m.Dump()
	m.Fault = errors.New("disk full")

	_, createErr := create(t, r, body("b", 0.1))
	_, updateErr := update(t, r, "a", `{"resiliency_mode":"soft"}`)
	for what, err := range map[string]error{"create": createErr, "update": updateErr, "delete": r.Delete(t.Context(), "a")} {
		var invalid *groups.InvalidError
		if !errors.Is(err, m.Fault) || errors.As(err, &invalid) {
			t.Errorf("%s: %v, want the repository's error", what, err)
		}
	}
	if r.Snapshot() != before || before.ByName("a").Mode != groups.Enforced || !slices.Equal(m.Dump(), stored) {
		t.Error("a failed write is visible")
	}
}

func TestListeners(t *testing.T) {
	r, _ := open(t)
	var told []string
	listener := func(name string) func(old, new *groups.Snapshot) {
		return func(old, new *groups.Snapshot) {
			if r.Snapshot() != new || old.Revision()+1 != new.Revision() {
				t.Errorf("%s: told of %d to %d while %d is published", name, old.Revision(), new.Revision(), r.Snapshot().Revision())
			}
			told = append(told, fmt.Sprintf("%s:%d", name, new.Len()))
		}
	}
	r.OnChange(listener("first"))
	mustCreate(t, r, body("a", 0.1))
	r.OnChange(listener("second"))
	mustCreate(t, r, body("b", 0.1))
	if _, err := create(t, r, body("b", 0.1)); err == nil {
		t.Fatal("a duplicate was accepted")
	}
	if err := r.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if want := []string{"first:1", "first:2", "second:2", "first:1", "second:1"}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}

// Changes from many goroutines are told one at a time, in the order of their revisions,
// each before it is answered; readers meanwhile see whole sets only.
func TestConcurrentChanges(t *testing.T) {
	const writers, changes = 8, 25
	r, m := open(t)
	mustCreate(t, r, `{"name":"pair-a","resiliency_mode":"soft","resource_limits":{"cpu":0.001}}`)

	var telling atomic.Int32
	last := r.Snapshot() // of the listener; the race detector sees to it that it is alone
	r.OnChange(func(old, new *groups.Snapshot) {
		if telling.Add(1) != 1 || old != last {
			t.Errorf("told of %d to %d after %d", old.Revision(), new.Revision(), last.Revision())
		}
		last = new
		telling.Add(-1)
	})
	told := func(revision uint64) bool { return r.Snapshot().Revision() >= revision }

	stop := make(chan struct{})
	var readers, group sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			var seen uint64
			for {
				select {
				case <-stop:
					return
				default:
				}
				s := r.Snapshot()
				if s.Revision() < seen || len(s.All()) != s.Len() || s.ByName("pair-a") == nil {
					t.Errorf("read %d after %d: %v", s.Revision(), seen, s.All())
				}
				seen = s.Revision()
				for _, g := range s.All() {
					if s.ByID(g.ID) != g || s.ByName(g.Name) != g || g.Validate() != nil {
						t.Errorf("read a torn group %+v", g)
					}
				}
			}
		})
	}
	for w := range writers {
		group.Go(func() {
			name := fmt.Sprintf("w%d", w)
			for i := range changes {
				before := r.Snapshot().Revision()
				g, err := create(t, r, body(name, 0.01))
				if err != nil {
					t.Errorf("%s %d: %v", name, i, err)
					return
				}
				if r.Snapshot().ByID(g.ID) != g || !told(before+1) {
					t.Errorf("%s %d: answered before it was published", name, i)
				}
				if _, err := update(t, r, name, `{"resiliency_mode":"monitor"}`); err != nil {
					t.Error(err)
				}
				if err := r.Delete(t.Context(), name); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	close(stop)
	readers.Wait()
	if want := uint64(2 + writers*changes*3); last.Revision() != want || r.Snapshot() != last {
		t.Errorf("revision %d, want %d", last.Revision(), want)
	}
	if len(m.Dump()) != 1 {
		t.Errorf("stored at the end: %v", m.Dump())
	}
}

// Who waits behind a slow write can give up; the write itself ends as it ends.
func TestWaitingForATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := open(t)
		m.During = func(ctx context.Context) error {
			select {
			case <-time.After(time.Minute):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		go func() {
			if _, err := create(t, r, body("slow", 0.1)); err != nil {
				t.Errorf("the slow one: %v", err)
			}
		}()
		synctest.Wait()

		gone := errors.New("client gone")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, gone)
		defer cancel()
		start := time.Now()
		if err := r.Delete(ctx, "slow"); !errors.Is(err, gone) || time.Since(start) != time.Second {
			t.Errorf("after %v: %v, want the cause after 1s", time.Since(start), err)
		}
		if r.Snapshot().Len() != 0 {
			t.Error("visible before it is stored")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if r.Snapshot().ByName("slow") == nil {
			t.Error("the slow one is not there")
		}
		if err := r.Delete(ctx, "slow"); !errors.Is(err, gone) {
			t.Errorf("with an ended context and a free turn: %v", err)
		}

		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Delete(short, "slow"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a write that was given up: %v", err)
		}
		if r.Snapshot().ByName("slow") == nil {
			t.Error("gone though the write failed")
		}
	})
}

func TestPanicsLeaveTheTurn(t *testing.T) {
	r, m := open(t)
	m.During = func(context.Context) error { panic("broken repository") }
	func() {
		defer func() { _ = recover() }()
		_, _ = create(t, r, body("a", 0.1))
	}()
	m.During = nil
	if r.Snapshot().Len() != 0 {
		t.Error("visible though the write failed")
	}
	mustCreate(t, r, body("a", 0.1))
}

func TestOpenRefuses(t *testing.T) {
	good := func(change func(*groups.Group)) *groups.Group {
		g := &groups.Group{ID: "id", Name: "name", Mode: groups.Soft, Limits: groups.ResourceLimits{CPU: new(0.1)}}
		change(g)
		return g
	}
	for what, stored := range map[string][]*groups.Group{
		"no id":       {good(func(g *groups.Group) { g.ID = "" })},
		"reserved id": {good(func(g *groups.Group) { g.ID = groups.DefaultID })},
		"colon":       {good(func(g *groups.Group) { g.ID = "a:b" })},
		"no name":     {good(func(g *groups.Group) { g.Name = "" })},
		"no mode":     {good(func(g *groups.Group) { g.Mode = "" })},
		"no limits":   {good(func(g *groups.Group) { g.Limits = groups.ResourceLimits{} })},
		"bad limit":   {good(func(g *groups.Group) { g.Limits.Memory = new(1.5) })},
		"bad setting": {good(func(g *groups.Group) { g.Settings = map[string]string{"x": "1"} })},
		"bad attribute": {good(func(g *groups.Group) {
			g.Throttling = groups.Throttling{Attribute: "colour", NodeLimit: new(1)}
		})},
		"negative limit": {good(func(g *groups.Group) {
			g.Throttling = groups.Throttling{Attribute: groups.ByGroup, NodeLimit: new(-1), SharedLimit: new(1)}
		})},
		"queue of nothing": {good(func(g *groups.Group) { g.Queue.SizePerBucket = new(5) })},
		"same name":        {good(func(g *groups.Group) {}), good(func(g *groups.Group) { g.ID = "other" })},
	} {
		all := make(map[string]string)
		for _, g := range stored {
			record, err := groups.Encode(g)
			if err != nil {
				t.Fatal(err)
			}
			all[g.ID] = string(record)
		}
		if _, err := groups.Open(t.Context(), recordstest.Of(all)); err == nil || !strings.Contains(err.Error(), "cannot be used") {
			t.Errorf("%s: error %v", what, err)
		}
	}
	for what, record := range map[string]string{
		"another id":  `{"_id":"other","name":"n","resiliency_mode":"soft","resource_limits":{"cpu":0.1},"updated_at":1}`,
		"cut":         `{"_id":"id","name":"n"`,
		"more follow": `{"_id":"id","name":"n","resiliency_mode":"soft","resource_limits":{"cpu":0.1},"updated_at":1}{}`,
	} {
		if _, err := groups.Open(t.Context(), recordstest.Of(map[string]string{"id": record})); err == nil || !strings.Contains(err.Error(), "cannot be used") {
			t.Errorf("%s: error %v", what, err)
		}
	}
	fault := errors.New("disk on fire")
	if _, err := groups.Open(t.Context(), &recordstest.Repository{Fault: fault}); !errors.Is(err, fault) {
		t.Errorf("error %v, want the repository's", err)
	}
}

func TestNewSnapshot(t *testing.T) {
	b, a := &groups.Group{ID: "b", Name: "1"}, &groups.Group{ID: "a", Name: "2"}
	given := []*groups.Group{b, a}
	s := groups.NewSnapshot(7, given...)
	if s.Revision() != 7 || !slices.Equal(s.All(), []*groups.Group{a, b}) || given[0] != b {
		t.Errorf("revision %d, groups %v, given %v", s.Revision(), s.All(), given)
	}
	if empty := new(groups.Snapshot); empty.ByID("a") != nil || empty.ByName("1") != nil || empty.Len() != 0 {
		t.Error("the zero snapshot is not empty")
	}
	defer func() {
		if recover() == nil {
			t.Error("the same id twice was accepted")
		}
	}()
	groups.NewSnapshot(1, a, a)
}
