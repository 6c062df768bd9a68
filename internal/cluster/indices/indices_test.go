package indices_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/internal/cluster/indices"
	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/records/recordstest"
)

func open(t *testing.T, r records.Repository) *indices.Registry {
	t.Helper()
	opened, err := indices.Open(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func logs() indices.Index {
	return indices.Index{
		Name: "logs", UUID: "u1", Created: time.UnixMilli(1_795_000_000_123).UTC(), Body: json.RawMessage(`{"settings":{"a":1.50}}`),
		Shards: [][]string{{"n1", "n2"}, {"n2"}},
	}
}

func show(i *indices.Index) string {
	return fmt.Sprintf("%s %s %d %s %v", i.Name, i.UUID, i.Created.UnixMilli(), i.Body, i.Shards)
}

func TestLife(t *testing.T) {
	m := new(records.Memory)
	a, b := open(t, m), open(t, m)
	if err := a.Create(t.Context(), logs()); err != nil {
		t.Fatal(err)
	}
	err := b.Create(t.Context(), indices.Index{Name: "logs", UUID: "u2"})
	if e, ok := errors.AsType[*indices.ExistsError](err); !ok || e.Name != "logs" || e.UUID != "u1" || !strings.Contains(err.Error(), "[logs/u1]") {
		t.Errorf("error %v", err)
	}
	want := logs()
	for name, r := range map[string]*indices.Registry{"its own": a, "another": b, "a later": open(t, m)} {
		if got := r.Snapshot().ByName("logs"); got == nil || show(got) != show(&want) || !got.On(0, "n2") || got.On(1, "n1") {
			t.Errorf("in %s registry: %+v", name, got)
		}
	}
	heard := 0
	a.OnChange(func(old, now *indices.Snapshot) {
		if old == now || a.Snapshot() != now {
			t.Error("called before the change is there")
		}
		heard++
	})
	err = b.Update(t.Context(), "logs", func(i indices.Index) (indices.Index, error) {
		i.UUID, i.Name = "other", "other" // cannot be
		i.Shards = [][]string{{"n2"}, {"n2"}}
		return i, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Reload(t.Context()); err != nil || heard != 1 {
		t.Fatalf("error %v, %d calls", err, heard)
	}
	want.Shards = [][]string{{"n2"}, {"n2"}}
	if got := a.Snapshot().ByName("logs"); show(got) != show(&want) || len(a.Snapshot().All()) != 1 {
		t.Errorf("%s, want %s", show(got), show(&want))
	}
	no := errors.New("no")
	if err := a.Update(t.Context(), "logs", func(indices.Index) (indices.Index, error) { return indices.Index{}, no }); !errors.Is(err, no) {
		t.Errorf("error %v", err)
	}
	for what, err := range map[string]error{
		"update":                a.Update(t.Context(), "x", nil),
		"delete":                a.Delete(t.Context(), "x", ""),
		"delete of an old one":  a.Delete(t.Context(), "logs", "u0"),
		"delete, then again it": errors.Join(a.Delete(t.Context(), "logs", "u1"), b.Delete(t.Context(), "logs", "u1")),
	} {
		if _, ok := errors.AsType[*indices.MissingError](err); !ok {
			t.Errorf("%s: error %v", what, err)
		}
	}
}

func TestOthersFieldsAndBrokenRecords(t *testing.T) {
	const stored = `{"allocation":"warm","body":{"settings":{"a":1}},"created":5,"name":"i","shards":[["n1"]],"uuid":"u"}`
	m := recordstest.Of(map[string]string{"i": stored})
	r := open(t, m)
	err := r.Update(t.Context(), "i", func(i indices.Index) (indices.Index, error) {
		i.Body = json.RawMessage(`{"settings":{}}`)
		return i, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := m.Stored()["i"], strings.Replace(stored, `{"a":1}`, `{}`, 1); got != want {
		t.Errorf("stored %s, want %s", got, want)
	}
	for _, bad := range []string{`{"name":"j","uuid":"u"}`, `{"name":"i"}`, `{`, `[]`} {
		if _, err := indices.Open(t.Context(), recordstest.Of(map[string]string{"i": bad})); err == nil || !strings.Contains(err.Error(), "[i]") {
			t.Errorf("%s: error %v", bad, err)
		}
	}
}

// Of many that create an index of one name, one does.
func TestNamesAreUnique(t *testing.T) {
	m := new(records.Memory)
	nodes := []*indices.Registry{open(t, m), open(t, m)}
	var (
		all  sync.WaitGroup
		mu   sync.Mutex
		made = map[string]int{}
	)
	for i := range 40 {
		all.Go(func() {
			name := fmt.Sprint("i", i/4)
			err := nodes[i%2].Create(t.Context(), indices.Index{Name: name, UUID: fmt.Sprint(i)})
			if _, exists := errors.AsType[*indices.ExistsError](err); err != nil && !exists {
				t.Error(err)
			}
			if err == nil {
				mu.Lock()
				made[name]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for i := range 10 {
		if n := made[fmt.Sprint("i", i)]; n != 1 {
			t.Errorf("i%d was made %d times", i, n)
		}
	}
}

func TestSpread(t *testing.T) {
	members := []string{"c", "a", "b"}
	for _, c := range []struct{ shards, replicas, members, copies int }{
		{1, 0, 3, 1}, {5, 1, 3, 2}, {6, 2, 3, 3}, {4, 5, 3, 3}, {3, 1, 1, 1}, {2, 1, 0, 0},
	} {
		placed := indices.Spread("logs", c.shards, c.replicas, members[:c.members])
		load := map[string]int{}
		firsts := map[string]int{}
		for shard, copies := range placed {
			if len(copies) != c.copies {
				t.Errorf("%+v: shard %d has copies on %v", c, shard, copies)
			}
			if len(copies) > 0 {
				firsts[copies[0]]++
			}
			for _, m := range copies {
				load[m]++
			}
			if sorted := slices.Compact(slices.Sorted(slices.Values(copies))); len(sorted) != len(copies) {
				t.Errorf("%+v: shard %d has two copies on one member: %v", c, shard, copies)
			}
		}
		for _, counts := range []map[string]int{load, firsts} {
			for _, m := range members[:c.members] {
				for _, o := range members[:c.members] {
					if counts[m]-counts[o] > c.copies {
						t.Errorf("%+v: uneven: %v", c, counts)
					}
				}
			}
		}
		if len(placed) != c.shards {
			t.Errorf("%+v: %d shards", c, len(placed))
		}
	}
	if a, b := fmt.Sprint(indices.Spread("x", 4, 1, []string{"a", "b", "c"})), fmt.Sprint(indices.Spread("x", 4, 1, []string{"c", "b", "a"})); a != b {
		t.Errorf("the order of members counts: %s and %s", a, b)
	}
	first := map[string]bool{}
	for i := range 50 {
		first[indices.Spread(fmt.Sprint("i", i), 1, 0, members)[0][0]] = true
	}
	if len(first) != 3 {
		t.Errorf("indices of one shard lie on %v only", first)
	}
}
