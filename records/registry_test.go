package records_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/records/recordstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// number is a kind of records that hold a number; what must hold is that they add up to 10 at most.
type number struct{ value int }

const most = 10

type sum struct {
	changes uint64
	total   int
	all     map[string]*number
}

func kind() records.Kind[*number, *sum] {
	return records.Kind[*number, *sum]{
		Name:   "the numbers",
		Encode: func(n *number) ([]byte, error) { return []byte(strconv.Itoa(n.value)), nil },
		Decode: func(_ string, record []byte) (*number, error) {
			n, err := strconv.Atoi(string(record))
			return &number{n}, err
		},
		Snapshot: func(changes uint64, all map[string]*number) (*sum, error) {
			s := &sum{changes: changes, all: all}
			for _, n := range all {
				s.total += n.value
			}
			if s.total > most {
				return nil, fmt.Errorf("they add up to %d", s.total)
			}
			return s, nil
		},
	}
}

type registry = records.Registry[*number, *sum]

func open(t *testing.T, r records.Repository) *registry {
	t.Helper()
	opened, err := records.Open(t.Context(), r, kind())
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

var errFull = errors.New("full")

// add puts a number, if the sum allows it.
func add(ctx context.Context, r *registry, id string, value int) error {
	return r.Change(ctx, func(now *sum) (records.Edit[*number], error) {
		if now.total+value > most {
			return records.Edit[*number]{}, errFull
		}
		return records.Edit[*number]{Put: map[string]*number{id: {value}}}, nil
	})
}

func remove(ctx context.Context, r *registry, ids ...string) error {
	return r.Change(ctx, func(*sum) (records.Edit[*number], error) { return records.Edit[*number]{Delete: ids}, nil })
}

// A registry that decides on an older set reads it anew, tells its listeners of what it has missed, and decides again.
func TestDecidesAnewWhenOthersWereFaster(t *testing.T) {
	m := &recordstest.Repository{}
	r := open(t, m)
	var heard []string
	r.OnChange(func(old, now *sum) {
		heard = append(heard, fmt.Sprint(old.changes, "→", now.changes, " ", old.total, "→", now.total))
		if r.Snapshot() != now {
			t.Error("a listener is called before the change is there to be read")
		}
	})
	if err := add(t.Context(), r, "a", 3); err != nil {
		t.Fatal(err)
	}
	before := r.Snapshot().all["a"]
	m.Write(map[string]string{"b": "5"})
	if err := add(t.Context(), r, "c", 1); err != nil {
		t.Fatal(err)
	}
	m.Write(map[string]string{"d": "1"})
	if err := add(t.Context(), r, "e", 1); !errors.Is(err, errFull) {
		t.Errorf("error %v: it was decided on an older set", err)
	}
	if want := []string{"1→2 0→3", "2→3 3→8", "3→4 8→9", "4→5 9→10"}; !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
	if r.Snapshot().all["a"] != before {
		t.Error("a value that nobody changed is another one")
	}
	if got := m.Stored(); len(got) != 4 || got["e"] != "" {
		t.Errorf("stored %v", got)
	}
}

func TestReload(t *testing.T) {
	m := recordstest.Of(map[string]string{"a": "1"})
	r := open(t, m)
	calls := 0
	r.OnChange(func(_, _ *sum) { calls++ })
	if err := r.Reload(t.Context()); err != nil || calls != 0 {
		t.Errorf("nothing has changed: error %v, %d calls", err, calls)
	}
	m.Write(map[string]string{"b": "2"}, "a")
	if err := r.Reload(t.Context()); err != nil || calls != 1 || r.Snapshot().total != 2 || r.Snapshot().changes != 2 {
		t.Errorf("error %v, %d calls, %+v", err, calls, r.Snapshot())
	}
	last := r.Snapshot()
	for what, write := range map[string]string{"a record that is none": "x", "a set that breaks a rule": "11"} {
		m.Write(map[string]string{"b": write})
		if err := r.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "the numbers") || r.Snapshot() != last {
			t.Errorf("%s: error %v, %+v", what, err, r.Snapshot())
		}
		// Nor is anything decided on it.
		if err := add(t.Context(), r, "c", 1); err == nil || r.Snapshot() != last {
			t.Errorf("%s: a change is made: %+v", what, r.Snapshot())
		}
	}
	m.Write(map[string]string{"b": "3"})
	if err := add(t.Context(), r, "c", 1); err != nil || r.Snapshot().total != 4 || calls != 3 {
		t.Errorf("once it can be read again: error %v, %d calls, %+v", err, calls, r.Snapshot())
	}
	m.Fault = errors.New("out of reach")
	if err := r.Reload(t.Context()); !errors.Is(err, m.Fault) {
		t.Errorf("error %v", err)
	}
}

// What would lead to a set that cannot be read is not stored, whatever decide thinks of it.
func TestEditThatBreaksARule(t *testing.T) {
	m := &recordstest.Repository{}
	r := open(t, m)
	last := r.Snapshot()
	err := r.Change(t.Context(), func(*sum) (records.Edit[*number], error) {
		return records.Edit[*number]{Put: map[string]*number{"a": {11}}}, nil
	})
	if err == nil || m.Writes() != 0 || r.Snapshot() != last {
		t.Errorf("error %v, %d writes", err, m.Writes())
	}
}

func TestEmptyEdit(t *testing.T) {
	m := &recordstest.Repository{}
	r := open(t, m)
	r.OnChange(func(_, _ *sum) { t.Error("a listener hears of nothing") })
	if err := remove(t.Context(), r); err != nil || m.Writes() != 0 {
		t.Errorf("error %v, %d writes", err, m.Writes())
	}
}

// A reload waits its turn behind a change, and can give up.
func TestReloadWaitsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &recordstest.Repository{During: func(context.Context) error {
			time.Sleep(time.Minute)
			return nil
		}}
		r := open(t, m)
		var slow sync.WaitGroup
		slow.Go(func() {
			if err := add(t.Context(), r, "a", 1); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		late := errors.New("too late")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, late)
		defer cancel()
		if err := r.Reload(ctx); !errors.Is(err, late) {
			t.Errorf("error %v", err)
		}
		start := time.Now()
		if err := r.Reload(t.Context()); err != nil || time.Since(start) != time.Minute-time.Second {
			t.Errorf("error %v after %v", err, time.Since(start))
		}
		slow.Wait()
		if r.Snapshot().total != 1 {
			t.Errorf("%+v", r.Snapshot())
		}
	})
}

// Many registries over one repository never break the rule, and all end with the same set.
func TestManyRegistries(t *testing.T) {
	m := new(records.Memory)
	var (
		all   sync.WaitGroup
		nodes []*registry
	)
	for range 4 {
		r := open(t, m)
		nodes = append(nodes, r)
		r.OnChange(func(old, now *sum) {
			if now.changes != old.changes+1 || now.total > most {
				t.Errorf("%+v after %+v", now, old)
			}
		})
	}
	for i := range 16 {
		all.Go(func() {
			r := nodes[i%len(nodes)]
			for j := range 30 {
				id := fmt.Sprint(i, "-", j)
				err := add(t.Context(), r, id, 1+j%3)
				if err == nil {
					err = remove(t.Context(), r, id)
				}
				if err != nil && !errors.Is(err, errFull) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for _, r := range nodes {
		if err := r.Reload(t.Context()); err != nil || len(r.Snapshot().all) != 0 {
			t.Errorf("error %v, left %v", err, r.Snapshot().all)
		}
	}
}

func TestUnavailableError(t *testing.T) {
	cause := errors.New("no leader")
	for unknown, says := range map[bool]string{false: "nothing was changed", true: "not known"} {
		err := error(&records.UnavailableError{Unknown: unknown, Cause: cause})
		if !errors.Is(err, cause) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "no leader") || !strings.Contains(err.Error(), "try again") {
			t.Errorf("%v", err)
		}
	}
}

func TestNextUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := records.NextUpdate(time.Time{})
		if !first.Equal(time.Now().Truncate(time.Millisecond)) || first.Location() != time.UTC {
			t.Errorf("first %v at %v", first, time.Now())
		}
		for _, last := range []time.Time{first, first.Add(time.Hour)} {
			if next := records.NextUpdate(last); next.Sub(last) != time.Millisecond {
				t.Errorf("%v after %v", next, last)
			}
		}
		time.Sleep(time.Second)
		if next := records.NextUpdate(first); next.Sub(first) != time.Second {
			t.Errorf("%v after %v", next, first)
		}
	})
}
