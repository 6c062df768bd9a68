package tier_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/internal/cluster/tier/tiertest"
	"github.com/wlmserver/wlmserver/internal/sharedtier"
)

// TestTroubleOverNodes lets searches arrive, end and be cancelled on nodes that die and join, learn of rings at times of their own, skip
// some, and whose streams break, lose messages and stand still for less than a lease. Never more searches run on nodes that live than the
// limit allows, and in the end nobody is stranded and no permit is out.
func TestTroubleOverNodes(t *testing.T) {
	const rounds, steps = 60, 400
	s := seed(t)
	for round := range rounds {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { trouble(t, rand.New(rand.NewPCG(s, uint64(round))), steps) })
		})
	}
}

func trouble(t *testing.T, r *rand.Rand, steps int) {
	t.Helper()
	limit := 1 + r.IntN(3)
	c := newCluster(t, "a", "b", "c")
	defer c.done()
	group := c.create("g", shared(limit, []int{0, 2, 20}[r.IntN(3)]))
	var history []string
	note := func(format string, args ...any) { history = append(history, fmt.Sprintf(format, args...)) }
	ids := func() []string { return slices.Sorted(maps.Keys(c.nodes)) }
	any2 := func() (string, string) {
		all := ids()
		i := r.IntN(len(all))
		return all[i], all[(i+1+r.IntN(max(len(all)-1, 1)))%len(all)]
	}
	busy := 0
	var all []*search
	publish := func() {
		next := c.ring()
		for _, id := range ids() {
			n := c.nodes[id]
			switch r.IntN(12) {
			case 0:
				note("%s will not see epoch %d", id, next.Epoch()) // until the next
			case 1, 2, 3:
				time.AfterFunc(time.Duration(r.IntN(50))*time.Millisecond, func() { n.learn(next) })
			default:
				n.learn(next)
			}
		}
	}
	for range steps {
		switch k := r.IntN(100); {
		case k < 35:
			a, _ := any2()
			all = append(all, c.nodes[a].start(group))
		case k < 70 && len(all) > 0:
			if x := all[r.IntN(len(all))]; x.runs.Load() {
				x.stop()
			}
		case k < 80 && len(all) > 0:
			all[r.IntN(len(all))].cancel(errUser)
		case k < 85:
			a, b := any2()
			note("streams of %s and %s break", a, b)
			c.network.Break(a, b)
		case k < 88:
			a, b := any2()
			kind := []sharedtier.Kind{sharedtier.Acquire, sharedtier.Grant, sharedtier.Granted, sharedtier.Denied, sharedtier.Release, sharedtier.Want, sharedtier.Announce, sharedtier.Done}[r.IntN(8)]
			note("%s and %s lose a %v", a, b, kind)
			c.lose(kind, a, b, 0)
		case k < 91:
			a, b := any2()
			note("%s and %s are held up", a, b)
			c.network.Set(a, b, tiertest.Faults{Hold: true})
			time.AfterFunc(time.Duration(r.IntN(int(lease/3))), func() { c.network.Set(a, b, tiertest.Faults{Delay: time.Millisecond}) })
		case k < 93 && len(c.nodes) > 1:
			a, _ := any2()
			n := c.nodes[a]
			gone := 0
			for _, x := range all {
				if x.node == n && x.runs.Load() {
					gone++
				}
			}
			note("%s dies with %d running", a, gone)
			c.kill(a)
			for _, x := range all {
				if x.node == n {
					if x.runs.Load() {
						c.running.Add(-1)
					}
					x.cancel(errUser)
					x.stop()
				}
			}
			publish()
		case k < 95 && len(c.nodes) < 4:
			for _, id := range []string{"a", "b", "c", "d"} {
				if c.nodes[id] == nil {
					note("%s joins", id)
					c.add(id)
					break
				}
			}
			publish()
		}
		time.Sleep(time.Duration(r.IntN(int(100 * time.Millisecond))))
		synctest.Wait()
		busy += int(c.running.Load())
		if n := int(c.running.Load()); n > limit {
			t.Fatalf("%d searches run under a limit of %d after:\n%v", n, limit, history)
		}
	}

	t.Logf("%.0f %% of the permits were used, in %d epochs", 100*float64(busy)/float64(steps*limit), c.epoch)

	for _, a := range ids() {
		for _, b := range ids() {
			if a < b {
				c.network.Heal(a, b)
			}
		}
	}
	c.publish()
	for waits := 0; ; {
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := int(c.running.Load()); n > limit {
			t.Fatalf("%d searches run under a limit of %d at the end of:\n%v", n, limit, history)
		}
		before := len(all)
		all = slices.DeleteFunc(all, func(x *search) bool {
			if x.runs.Load() {
				x.stop()
				<-x.end
			}
			return x.over()
		})
		if len(all) == 0 {
			break
		}
		if waits++; len(all) < before {
			waits = 0
		}
		if waits > 15 { // half a minute: two leases
			t.Fatalf("%d searches are stranded at the end of:\n%v", len(all), history)
		}
	}
}
