package stub_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/internal/stub"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
)

func TestCopiesAreSpread(t *testing.T) {
	clustered(t, 3, func(c *cluster) {
		c.node("b").create("logs", `{"settings":{"number_of_shards":6,"number_of_replicas":1}}`)
		c.quiet()
		for _, n := range c.all() {
			x := n.info("logs")
			if x.Active() != 12 || x.ActivePrimaries() != 6 || x.Unassigned() != 0 || x.Initializing() != 0 {
				c.Fatalf("%s sees %d active copies, %d primaries, %d unassigned: %v", n.self.ID, x.Active(), x.ActivePrimaries(), x.Unassigned(), x.Copies)
			}
			copies, primaries := make(map[string]int), make(map[string]int)
			for number, of := range x.Copies {
				if len(of) != 2 || of[0].Node == of[1].Node {
					c.Errorf("the copies of the shard %d: %v", number, of)
				}
				primaries[of[0].Node]++
				for _, copy := range of {
					copies[copy.Node]++
				}
			}
			for _, id := range []string{"a", "b", "c"} {
				if copies[id] != 4 || primaries[id] != 2 {
					c.Errorf("%s has %d copies and %d primaries: %v", id, copies[id], primaries[id], x.Copies)
				}
			}
		}
	})
}

func TestIndicesAreTheSameEverywhere(t *testing.T) {
	clustered(t, 3, func(c *cluster) {
		a, b := c.node("a"), c.node("b")
		a.create("logs", `{"settings":{"number_of_shards":2,"number_of_replicas":0,"index.stub.query_time":"5ms","analysis":{"x":"<&>"}},
			"mappings":{"_meta":{"x":"<b>"},"properties":{"n":{"type":"long"}}}}`)
		same := func(what string) {
			c.Helper()
			want := fmt.Sprint(a.info("logs"))
			for _, n := range c.all() {
				if got := fmt.Sprint(n.info("logs")); got != want {
					c.Errorf("%s: %s has\n%s, want\n%s", what, n.self.ID, got, want)
				}
			}
		}
		same("made")
		if _, err := b.engine.PutDocument("logs", "1", []byte(`{"n":"no number"}`), false); err == nil {
			c.Error("what is mapped to numbers took another text")
		}
		err := b.engine.CreateIndex("logs", nil)
		if e, ok := errors.AsType[*stub.IndexExistsError](err); !ok || e.UUID != a.info("logs").UUID {
			c.Errorf("made once more: %v", err)
		}
		begun := time.Now()
		b.search("logs", "")
		if took := time.Since(begun); took < 5*time.Millisecond {
			c.Errorf("a search took %v, though the index says more", took)
		}
		if err := b.engine.ChangeSettings("logs", stub.Expansion{}, []byte(`{"number_of_replicas":2,"index.stub.query_time":null}`)); err != nil {
			c.Fatal(err)
		}
		c.quiet()
		same("changed")
		if x := a.info("logs"); x.Active() != 6 {
			c.Errorf("of two shards with two replicas each, %d copies are active", x.Active())
		}
		if err := b.engine.ChangeSettings("logs", stub.Expansion{}, []byte(`{"number_of_replicas":0}`)); err != nil {
			c.Fatal(err)
		}
		same("without replicas")
		if x := a.info("logs"); x.Active() != 2 {
			c.Errorf("of two shards without replicas, %d copies are active", x.Active())
		}
		if _, err := b.engine.SetClosed("logs", stub.Expansion{}, true); err != nil {
			c.Fatal(err)
		}
		for _, n := range c.all() {
			if _, ok := errors.AsType[*stub.IndexClosedError](n.searchFails("logs", "")); !ok {
				c.Errorf("a search through %s of a closed index works", n.self.ID)
			}
		}
		if err := b.engine.DeleteIndex("logs"); err != nil {
			c.Fatal(err)
		}
		for _, n := range c.all() {
			if !isIndexNotFound(n.searchFails("logs", ""), "logs") {
				c.Errorf("a search through %s of a deleted index works", n.self.ID)
			}
		}
	})
}

func TestANodeThatIsGoneMeansAnotherCopy(t *testing.T) {
	clustered(t, 3, func(c *cluster) {
		c.node("a").create("logs", `{"settings":{"number_of_shards":3,"number_of_replicas":1}}`)
		c.node("b").bulk("logs", "x", 50)
		c.isolate("b", true)
		c.everywhere("logs", 50) // nobody has noticed yet
		c.leave("b")
		c.quiet()
		c.everywhere("logs", 50)
		if x := c.node("a").info("logs"); x.Active() != 6 || x.Unassigned() != 0 {
			c.Fatalf("of three shards on two nodes, %d copies are active: %v", x.Active(), x.Copies)
		}
		c.node("c").bulk("logs", "y", 50)
		c.kill("a")
		c.quiet()
		c.everywhere("logs", 100)
		if x := c.node("c").info("logs"); x.Active() != 3 || x.Unassigned() != 3 {
			c.Errorf("of three shards on one node, %d copies are active, %d missing: %v", x.Active(), x.Unassigned(), x.Copies)
		}
		c.node("c").bulk("logs", "z", 50)
		// Another node of the name of one that was there before.
		c.join("a")
		c.quiet()
		c.everywhere("logs", 150)
		c.kill("c")
		c.quiet()
		c.everywhere("logs", 150)
	})
}

func TestWithoutReplicasANodeTakesItsShardsAlong(t *testing.T) {
	clustered(t, 3, func(c *cluster) {
		c.node("a").create("logs", `{"settings":{"number_of_shards":3,"number_of_replicas":0}}`)
		a := c.node("a")
		a.bulk("logs", "x", 60)
		c.isolate("b", true)
		got := parse(c, a.search("logs", ""))
		if got.Shards.Total != 3 || got.Shards.Failed != 1 || len(got.Shards.Failures) != 1 || got.Shards.Failures[0].Node != "b" {
			c.Errorf("a search without one of three nodes: %+v", got.Shards)
		}
		p, ok := errors.AsType[*search.PhaseError](a.searchFails("logs?allow_partial_search_results=false", ""))
		if !ok || len(p.Failures) != 1 || p.Failures[0].Node != "b" || !errors.Is(p.Failures[0].Err, errUnreachable) {
			c.Errorf("a search that takes nothing less than all: %+v", p)
		}
		left := a.info("logs").Documents
		c.leave("b")
		c.quiet()
		if x := a.info("logs"); x.Active() != 3 || x.Documents != left || left == 60 {
			c.Errorf("then there are %d copies with %d documents, want the %d of two shards", x.Active(), x.Documents, left)
		}
		c.everywhere("logs", left)
		a.bulk("logs", "x", 60)
		c.everywhere("logs", 60)
	})
}

// A shard that is too slow on another node is told of with that node.
func TestATimeoutNamesTheNode(t *testing.T) {
	clustered(t, 2, func(c *cluster) {
		a := c.node("a")
		a.create("logs", `{"settings":{"number_of_replicas":0}}`)
		holder := a.info("logs").Copies[0][0].Node
		for _, n := range c.all() {
			err := n.searchFails("logs?allow_partial_search_results=false", `{"timeout":"5ms","ext":{"stub":{"query_time":"1s"}}}`)
			if p, ok := errors.AsType[*search.PhaseError](err); !ok || p.Failures[0].Node != holder {
				c.Errorf("through %s: %+v, want a failure of %s", n.self.ID, err, holder)
			}
		}
	})
}

func TestCancelStopsTheWorkOnOtherNodes(t *testing.T) {
	clustered(t, 3, func(c *cluster) {
		a := c.node("a")
		a.create("logs", `{"settings":{"number_of_shards":6,"number_of_replicas":0}}`)
		o := a.start(request("logs?max_concurrent_shard_requests=6", `{"ext":{"stub":{"query_time":"1h"}}}`), search.Limits{})
		time.Sleep(time.Second)
		synctest.Wait()
		parent := o.task.ID()
		for _, n := range c.all() {
			below := n.tasks.List(tasks.Filter{Parent: parent})
			if len(below) != 2 || below[0].Parent().String() != parent.String() || below[0].Parent().Node != "a" {
				c.Errorf("%s has the tasks %v of the search %v", n.self.ID, below, parent)
			}
		}
		begun := time.Now()
		o.task.Cancel(tasks.UserCause())
		<-o.done
		if took := time.Since(begun); took > time.Second || o.err == nil {
			c.Errorf("ends after %v with %v", took, o.err)
		}
		for _, n := range c.all() {
			if left := n.tasks.Len(); left != 0 {
				c.Errorf("%d tasks go on at %s", left, n.self.ID)
			}
		}
	})
}

// A node that has not heard of new members does not undo what the others have made of them.
func TestOldMembersUndoNothing(t *testing.T) {
	clustered(t, 2, func(c *cluster) {
		a, b := c.node("a"), c.node("b")
		old := a.Members()
		a.create("logs", `{"settings":{"number_of_shards":2,"number_of_replicas":2}}`)
		a.bulk("logs", "x", 20)
		b.cluster.mu.Lock()
		b.frozen = &old
		b.cluster.mu.Unlock()
		c.join("c")
		c.quiet()
		want := fmt.Sprint(a.info("logs").Copies)
		b.engine.MembersChanged()
		c.quiet()
		if got := fmt.Sprint(a.info("logs").Copies); got != want || a.info("logs").Active() != 6 {
			c.Errorf("the copies are %s, were %s", got, want)
		}
		c.everywhere("logs", 20)
	})
}

func TestAScrollStaysWhereItBegan(t *testing.T) {
	clustered(t, 2, func(c *cluster) {
		a := c.node("a")
		a.create("logs", `{"settings":{"number_of_shards":2,"number_of_replicas":0}}`)
		a.bulk("logs", "x", 20)
		r := request("logs?size=7", `{"sort":"n"}`)
		r.ScrollKeepAlive, r.ScrollID = time.Hour, "the-scroll"
		s, err := a.prepare(r)
		if err != nil {
			c.Fatal(err)
		}
		defer s.end()
		var ids []string
		for range 4 {
			page, err := s.run(search.Limits{})
			if err != nil {
				c.Fatal(err)
			}
			ids = append(ids, parse(c, page).ids()...)
			a.bulk("logs", "y", 20) // what comes later is not seen
		}
		slices.Sort(ids)
		if len(ids) != 20 || len(slices.Compact(ids)) != 20 || strings.Contains(strings.Join(ids, ","), "y") {
			c.Errorf("pages of %v", ids)
		}
	})
}
