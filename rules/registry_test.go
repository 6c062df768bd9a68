package rules_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/records/recordstest"
	"github.com/wlmserver/wlmserver/rules"
)

const (
	logs = `{"description":"logs","index_pattern":["logs-*"],"workload_group":"A"}`
	devs = `{"description":"devs","principal":{"username":["dev*"],"role":["dev"]},"workload_group":"B"}`
)

func TestCreateIsKept(t *testing.T) {
	r, m := open(t)
	made := mustCreate(t, r, logs)
	s := r.Snapshot()
	if s.ByID(made.ID) != made || s.Len() != 1 || s.Revision() != 2 || s.ByID("x") != nil {
		t.Errorf("snapshot %+v", s)
	}
	if group, ok := s.Match(request("i:logs-1")); !ok || group != "A" {
		t.Errorf("group %q, %t", group, ok)
	}
	again, err := rules.Open(t.Context(), m, twoGroups)
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Snapshot().ByID(made.ID); got == nil || text(t, got) != text(t, made) {
		t.Errorf("read back %+v, want %+v", got, made)
	}
}

func TestIDFollowsFromWhatTheRuleSays(t *testing.T) {
	one, _ := open(t)
	two, _ := open(t)
	a := mustCreate(t, one, `{"description":"d","index_pattern":["a","b"],"workload_group":"A"}`)
	b := mustCreate(t, two, `{"workload_group":"A","index_pattern":["b","a"],"description":"d"}`)
	if a.ID != b.ID || len(a.ID) != 36 {
		t.Errorf("ids %s and %s", a.ID, b.ID)
	}
	seen := map[string]string{a.ID: "first"}
	for _, body := range []string{
		`{"description":"e","index_pattern":["a1"],"workload_group":"A"}`,
		`{"description":"e","index_pattern":["b1"],"workload_group":"A"}`,
		`{"description":"e","principal":{"username":["a1"]},"workload_group":"A"}`,
		`{"description":"e","principal":{"role":["a1"]},"workload_group":"A"}`,
		`{"description":"e","principal":{"role":["b1"]},"workload_group":"B"}`,
	} {
		made := mustCreate(t, one, body)
		if other, ok := seen[made.ID]; ok {
			t.Errorf("%s has the id of %s", body, other)
		}
		seen[made.ID] = body
	}

	// A rule keeps its id when it changes; what it said before may be said anew.
	if _, err := update(t, one, a.ID, `{"index_pattern":["c"]}`); err != nil {
		t.Fatal(err)
	}
	anew := mustCreate(t, one, `{"description":"d","index_pattern":["a","b"],"workload_group":"A"}`)
	if anew.ID == a.ID || one.Snapshot().ByID(a.ID).Indices[0] != "c" {
		t.Errorf("the changed rule was overwritten by one with the id %s", anew.ID)
	}
}

func TestDuplicates(t *testing.T) {
	for body, duplicate := range map[string]bool{
		`"index_pattern":["x","b*"]`:                                true,
		`"index_pattern":["b"]`:                                     false, // b* is another pattern
		`"index_pattern":["a*"]`:                                    false,
		`"principal":{"username":["u","v"]}`:                        true,
		`"principal":{"username":["v"],"role":["r"]}`:               true,
		`"principal":{"username":["r"],"role":["u"]}`:               false,
		`"index_pattern":["a"],"principal":{"role":["s","r"]}`:      true,
		`"index_pattern":["a"],"principal":{"role":["s"]}`:          false,
		`"index_pattern":["c"],"principal":{"role":["r"]}`:          false,
		`"index_pattern":["a"],"principal":{"username":["u"]}`:      false,
		`"index_pattern":["a","a*"],"principal":{"username":["r"]}`: false,
	} {
		r, _ := open(t)
		first := mustCreate(t, r, `{"description":"i","index_pattern":["a","b*"],"workload_group":"A"}`)
		mustCreate(t, r, `{"description":"p","principal":{"username":["u"],"role":["r"]},"workload_group":"A"}`)
		mustCreate(t, r, `{"description":"ip","index_pattern":["a"],"principal":{"role":["r"]},"workload_group":"A"}`)
		made, err := create(t, r, `{"description":"n","workload_group":"B",`+body+`}`)
		e, invalid := errors.AsType[*rules.InvalidError](err)
		if invalid != duplicate || err != nil && !invalid {
			t.Errorf("%s: error %v, want a duplicate %t", body, err, duplicate)
			continue
		}
		if duplicate {
			named := false
			for _, other := range r.Snapshot().After("") {
				named = named || strings.Contains(e.Error(), other.ID)
			}
			if !named {
				t.Errorf("%s: %v names no rule", body, e)
			}
			continue
		}
		// An update meets the others, never itself.
		if _, err := update(t, r, made.ID, `{"description":"still"}`); err != nil {
			t.Errorf("%s: update: %v", body, err)
		}
		if len(made.Indices) > 0 && made.Usernames == nil && made.Roles == nil {
			_, err := update(t, r, made.ID, `{"index_pattern":["b*"]}`)
			if err == nil || !strings.Contains(err.Error(), first.ID) {
				t.Errorf("%s: update into a duplicate: %v", body, err)
			}
		}
	}
}

func TestUpdateMerges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := open(t)
		made := mustCreate(t, r, `{"description":"d","index_pattern":["a","b"],"principal":{"username":["u"],"role":["r"]},"workload_group":"A"}`)
		last := made
		for _, c := range []struct{ body, want string }{
			{`{}`, `"d" [a b] [u] [r] A`},
			{`{"description":"e"}`, `"e" [a b] [u] [r] A`},
			{`{"index_pattern":["c*"]}`, `"e" [c*] [u] [r] A`},
			{`{"principal":{"username":["v","w"]}}`, `"e" [c*] [v w] [r] A`},
			{`{"principal":{"role":["s"]},"workload_group":"B"}`, `"e" [c*] [v w] [s] B`},
		} {
			now, err := update(t, r, made.ID, c.body)
			if err != nil {
				t.Fatalf("%s: %v", c.body, err)
			}
			if got := fmt.Sprintf("%q %v %v %v %s", now.Description, now.Indices, now.Usernames, now.Roles, now.Group); got != c.want {
				t.Errorf("%s: %s, want %s", c.body, got, c.want)
			}
			if now.ID != made.ID || !now.UpdatedAt.After(last.UpdatedAt) || r.Snapshot().ByID(made.ID) != now {
				t.Errorf("%s: %+v after %+v", c.body, now, last)
			}
			last = now
		}
		if made.Description != "d" || len(made.Indices) != 2 {
			t.Errorf("the first one was changed: %+v", made)
		}
		for _, body := range []string{`{"description":""}`, `{"index_pattern":[]}`, `{"workload_group":"C"}`, `{"x":1}`} {
			if _, err := update(t, r, made.ID, body); err == nil {
				t.Errorf("%s is taken", body)
			}
		}
	})
}

func TestMissing(t *testing.T) {
	r, _ := open(t)
	_, errUpdate := update(t, r, "x", `{}`)
	for what, err := range map[string]error{"update": errUpdate, "delete": r.Delete(t.Context(), "x")} {
		if e, ok := errors.AsType[*rules.NotFoundError](err); !ok || e.ID != "x" || !strings.Contains(err.Error(), "[x]") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestDelete(t *testing.T) {
	r, m := open(t)
	a, b := mustCreate(t, r, logs), mustCreate(t, r, devs)
	if err := r.Delete(t.Context(), a.ID); err != nil {
		t.Fatal(err)
	}
	if s := r.Snapshot(); s.Len() != 1 || s.ByID(a.ID) != nil || s.ByID(b.ID) != b || len(m.Dump()) != 1 {
		t.Errorf("left: %v", m.Dump())
	}
	if _, ok := r.Snapshot().Match(request("i:logs-1")); ok {
		t.Error("the deleted rule still matches")
	}
}

func TestMaxCount(t *testing.T) {
	most := 1
	r, _ := open(t, rules.WithMaxCount(func() int { return most }))
	mustCreate(t, r, logs)
	_, err := create(t, r, devs)
	if e, ok := errors.AsType[*rules.TooManyError](err); !ok || e.Max != 1 || !strings.Contains(err.Error(), "wlm.autotagging.max_rules") {
		t.Errorf("error %v", err)
	}
	most = 2
	mustCreate(t, r, devs)
}

// A group may go while rules still name it.
func TestGroupThatIsGone(t *testing.T) {
	m := &recordstest.Repository{}
	there := twoGroups()
	r, err := rules.Open(t.Context(), m, func() *groups.Snapshot { return there })
	if err != nil {
		t.Fatal(err)
	}
	made := mustCreate(t, r, logs)
	there = groups.NewSnapshot(2, there.ByID("B"))
	if group, ok := r.Snapshot().Match(request("i:logs-1")); !ok || group != "A" {
		t.Errorf("group %q, %t", group, ok)
	}
	if _, err := rules.Open(t.Context(), m, func() *groups.Snapshot { return there }); err != nil {
		t.Errorf("open: %v", err)
	}
	if _, err := update(t, r, made.ID, `{"description":"other words"}`); err != nil {
		t.Errorf("update that leaves the group alone: %v", err)
	}
	if _, err := update(t, r, made.ID, `{"workload_group":"A"}`); err == nil {
		t.Error("the group that is gone could be named")
	}
	if _, err := update(t, r, made.ID, `{"workload_group":"B"}`); err != nil {
		t.Errorf("update to another group: %v", err)
	}
	if err := r.Delete(t.Context(), made.ID); err != nil {
		t.Errorf("delete: %v", err)
	}
}

func TestPages(t *testing.T) {
	r, _ := open(t)
	for i := range 5 {
		mustCreate(t, r, fmt.Sprintf(`{"description":"d","index_pattern":["i%d"],"workload_group":"A"}`, i))
	}
	s := r.Snapshot()
	all := s.After("")
	if len(all) != 5 {
		t.Fatalf("%d rules", len(all))
	}
	for i, x := range all {
		if rest := s.After(x.ID); len(rest) != 4-i || i < 4 && rest[0] != all[i+1] || i > 0 && all[i-1].ID >= x.ID {
			t.Errorf("after %s: %d rules", x.ID, len(rest))
		}
		if between := s.After(x.ID + "~"); len(between) != 4-i {
			t.Errorf("after an id that is not there: %d rules", len(between))
		}
	}
}

func TestFailedWriteChangesNothing(t *testing.T) {
	r, m := open(t)
	made := mustCreate(t, r, logs)
	before := r.Snapshot()
	m.Fault = errors.New("the disk is full")
	_, errCreate := create(t, r, devs)
	_, errUpdate := update(t, r, made.ID, `{"description":"x"}`)
	for what, err := range map[string]error{"create": errCreate, "update": errUpdate, "delete": r.Delete(t.Context(), made.ID)} {
		if !errors.Is(err, m.Fault) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if r.Snapshot() != before {
		t.Error("something was published")
	}
	if _, err := rules.Open(t.Context(), m, twoGroups); !errors.Is(err, m.Fault) {
		t.Errorf("open: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, record := range map[string]string{
		"no id":          `{"id":"","description":"d","index_pattern":["a"],"workload_group":"A","updated_at":1}`,
		"no attribute":   `{"id":"x","description":"d","workload_group":"A","updated_at":1}`,
		"another id":     `{"id":"y","description":"d","index_pattern":["a"],"workload_group":"A","updated_at":1}`,
		"bytes after it": `{"id":"x","description":"d","index_pattern":["a"],"workload_group":"A","updated_at":1}{}`,
	} {
		if _, err := rules.Open(t.Context(), recordstest.Of(map[string]string{"x": record}), twoGroups); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// What a newer version has written into a rule outlives changes by this one.
func TestFieldsOfANewerVersion(t *testing.T) {
	m := recordstest.Of(map[string]string{
		"x": `{"description":"d","id":"x","index_pattern":["a"],"priority":{"class":"gold"},"updated_at":1,"workload_group":"A"}`,
	})
	r, err := rules.Open(t.Context(), m, twoGroups)
	if err != nil {
		t.Fatal(err)
	}
	now, err := update(t, r, "x", `{"index_pattern":["b"]}`)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"description":"d","id":"x","index_pattern":["b"],"priority":{"class":"gold"},"updated_at":%d,"workload_group":"A"}`, now.UpdatedAt.UnixMilli())
	if got := m.Dump()[0]; got != want {
		t.Errorf("stored %s, want %s", got, want)
	}
}

func TestListenersInOrder(t *testing.T) {
	r, _ := open(t)
	var told []string
	for i := range 2 {
		r.OnChange(func(old, now *rules.Snapshot) {
			told = append(told, fmt.Sprint(i, old.Revision(), now.Revision(), r.Snapshot() == now))
		})
	}
	made := mustCreate(t, r, logs)
	if _, err := create(t, r, logs); err == nil {
		t.Fatal("a duplicate is taken")
	}
	if err := r.Delete(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(told, ", "); got != "0 1 2 true, 1 1 2 true, 0 2 3 true, 1 2 3 true" {
		t.Errorf("told %s", got)
	}
}

// Who waits behind a slow write can give up.
func TestGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := open(t)
		m.During = func(context.Context) error {
			time.Sleep(time.Minute)
			return nil
		}
		var slow sync.WaitGroup
		slow.Go(func() { mustCreate(t, r, logs) })
		synctest.Wait()
		gone := errors.New("gone")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, gone)
		defer cancel()
		start := time.Now()
		if err := r.Delete(ctx, "x"); !errors.Is(err, gone) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if err := r.Delete(ctx, "x"); !errors.Is(err, gone) {
			t.Errorf("with an ended context: %v", err)
		}
		slow.Wait()
		if r.Snapshot().Len() != 1 {
			t.Error("the slow one is lost")
		}
	})
}

// TestStorm changes rules from many goroutines while others match. Every matcher sees
// one of the states that there were: the rules of a pair come and go, but the group that
// they give is always theirs.
func TestStorm(t *testing.T) {
	r, m := open(t, rules.WithMaxCount(func() int { return 500 }))
	var changing, matching sync.WaitGroup
	stop := make(chan struct{})
	for w := range 4 {
		matching.Go(func() {
			q := rules.Request{Indices: []string{fmt.Sprintf("i%d-x", w)}, Username: "u", Roles: []string{"r"}}
			for {
				select {
				case <-stop:
					return
				default:
				}
				s := r.Snapshot()
				group, ok := s.Match(q)
				if again, _ := s.Match(q); again != group {
					t.Errorf("one snapshot gave %q and %q", group, again)
				}
				if ok && group != "A" && group != "B" {
					t.Errorf("group %q", group)
				}
			}
		})
		changing.Go(func() {
			for i := range 100 {
				made := mustCreate(t, r, fmt.Sprintf(`{"description":"%d","index_pattern":["i%d-*"],"workload_group":"A"}`, i, w))
				if _, err := update(t, r, made.ID, `{"workload_group":"B"}`); err != nil {
					t.Error(err)
				}
				if group, ok := r.Snapshot().Match(request(fmt.Sprintf("i:i%d-x", w))); !ok || group != "B" {
					t.Errorf("after the update is answered: %q, %t", group, ok)
				}
				if i%2 == 0 || w%2 == 0 {
					if err := r.Delete(t.Context(), made.ID); err != nil {
						t.Error(err)
					}
				} else if _, err := update(t, r, made.ID, fmt.Sprintf(`{"index_pattern":["kept-%d-%d"]}`, w, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	changing.Wait()
	close(stop)
	matching.Wait()
	if n := r.Snapshot().Len(); n != 100 || len(m.Dump()) != n {
		t.Errorf("%d rules, %d stored; want 100", n, len(m.Dump()))
	}
	for _, x := range r.Snapshot().After("") {
		if !strings.HasPrefix(x.Indices[0], "kept-") {
			t.Errorf("left: %+v", x)
		}
	}
}
