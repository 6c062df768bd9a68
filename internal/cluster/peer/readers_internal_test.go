package peer

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/shard"
)

// A reader ends when it was not used for as long as was agreed, counted from its last use.
func TestReadersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReaders()
		a, b := identity("a/1"), identity("b/1")
		id, other := shard.ID{Index: "i", Number: 1}, shard.ID{Index: "i", Number: 2}
		n := r.add(a, id, "state", time.Minute)
		m := r.add(a, id, "another", time.Hour)
		if n == 0 || m == 0 || n == m {
			t.Errorf("numbers %d and %d", n, m)
		}
		for name, gone := range map[string]func() (shard.Reader, bool){
			"of another caller": func() (shard.Reader, bool) { return r.use(b, n, id, 0) },
			"of another shard":  func() (shard.Reader, bool) { return r.use(a, n, other, 0) },
			"never given":       func() (shard.Reader, bool) { return r.use(a, 77, id, 0) },
		} {
			if got, ok := gone(); ok || got != nil {
				t.Errorf("%s: %v", name, got)
			}
		}
		for range 5 {
			time.Sleep(59 * time.Second)
			if got, ok := r.use(a, n, id, 0); !ok || got != "state" {
				t.Fatalf("got %v, %t", got, ok)
			}
		}
		if _, ok := r.use(a, n, id, 2*time.Minute); !ok {
			t.Error("gone")
		}
		time.Sleep(119 * time.Second)
		if _, ok := r.use(a, n, id, 0); !ok {
			t.Error("gone before its new time")
		}
		time.Sleep(121 * time.Second)
		if _, ok := r.use(a, n, id, 0); ok {
			t.Error("there after its time")
		}
		r.close(b, []uint64{m})
		if _, ok := r.use(a, m, id, 0); !ok {
			t.Error("closed by another")
		}
		r.close(a, []uint64{m, n, 77})
		if _, ok := r.use(a, m, id, 0); ok {
			t.Error("there after it was closed")
		}
		r.add(a, id, "1", time.Hour)
		keep := r.add(b, id, "2", time.Hour)
		r.only([]ring.Member{{ID: "b", Incarnation: "1"}, {ID: "a", Incarnation: "2"}})
		if _, ok := r.use(b, keep, id, 0); !ok || len(r.open) != 1 {
			t.Errorf("%d are left when all but one caller have left", len(r.open))
		}
		r.only(nil)
	})
}
