package stub_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/internal/stub"
)

func TestWhatIsWrittenIsFoundThroughAnyNode(t *testing.T) {
	for _, replicas := range []int{0, 1, 2} {
		t.Run(itoa(replicas), func(t *testing.T) {
			clustered(t, 3, func(c *cluster) {
				c.node("a").create("logs", fmt.Sprintf(`{"settings":{"number_of_shards":5,"number_of_replicas":%d}}`, replicas))
				for i, n := range c.all() {
					n.bulk("logs", n.self.ID, 20)
					c.everywhere("logs", 20*(i+1))
				}
				// Made as it is written to.
				c.node("c").bulk("auto", "x", 3)
				c.everywhere("auto", 3)

				a, b := c.node("a"), c.node("b")
				r := a.put("logs", "b7", `{"n":"again"}`)
				if r.Version != 2 || r.Result != stub.Updated || r.Shards != (stub.WriteShards{Total: 1 + replicas, Successful: 1 + replicas}) {
					c.Errorf("a second version is %+v", r)
				}
				if r, err := b.engine.UpdateDocument("logs", "b7", []byte(`{"doc":{"m":1}}`)); err != nil || r.Version != 3 {
					c.Errorf("an update: %+v, %v", r, err)
				}
				if r, err := b.engine.UpdateDocument("logs", "b7", []byte(`{"doc":{"m":1}}`)); err != nil || r.Result != stub.Noop || r.Shards != (stub.WriteShards{}) {
					c.Errorf("an update of nothing: %+v, %v", r, err)
				}
				if r, err := b.engine.DeleteDocument("logs", "a1"); err != nil || r.Result != stub.Deleted || r.Version != 2 {
					c.Errorf("a deletion: %+v, %v", r, err)
				}
				if r, err := a.engine.DeleteDocument("logs", "a1"); err != nil || r.Result != stub.NotFound {
					c.Errorf("a second deletion: %+v, %v", r, err)
				}
				c.everywhere("logs", 59)
				for _, n := range c.all() {
					d, err := n.engine.Document("logs", "b7")
					if err != nil || !d.Found || d.Version != 3 || string(d.Source) != `{"n":"again","m":1}` {
						c.Errorf("%s has %+v %s, %v", n.self.ID, d, d.Source, err)
					}
					if d, err := n.engine.Document("logs", "a1"); err != nil || d.Found {
						c.Errorf("%s still has %+v, %v", n.self.ID, d, err)
					}
					_, err = n.engine.PutDocument("logs", "b7", []byte(`{}`), true)
					if e, ok := errors.AsType[*stub.VersionConflictError](err); !ok || e.ID != "b7" || e.Version != 3 {
						c.Errorf("%s creates it once more: %v", n.self.ID, err)
					}
					_, err = n.engine.UpdateDocument("logs", "nosuch", []byte(`{"doc":{}}`))
					if _, ok := errors.AsType[*stub.DocumentMissingError](err); !ok {
						c.Errorf("%s updates what is not there: %v", n.self.ID, err)
					}
				}
			})
		})
	}
}

func TestAChangeWaitsForThePrimary(t *testing.T) {
	clustered(t, 3, func(c *cluster) {
		a := c.node("a")
		a.create("logs", `{"settings":{"number_of_shards":3,"number_of_replicas":1}}`)
		c.isolate("b", true)
		time.AfterFunc(10*time.Second, func() { c.leave("b") })
		begun := time.Now()
		a.bulk("logs", "x", 30)
		if took := time.Since(begun); took < 10*time.Second || took > 11*time.Second {
			c.Errorf("documents of a shard without a primary were stored after %v, want when there is one again", took)
		}
		c.everywhere("logs", 30)

		c.isolate("c", true)
		begun = time.Now()
		r, err := a.engine.Bulk("logs", []byte(strings.Repeat(`{"index":{}}`+"\n{}\n", 30)))
		refused := 0
		for _, item := range r.Items {
			if _, ok := errors.AsType[*stub.UnavailableShardError](item.Err); ok {
				refused++
			} else if item.Err != nil {
				c.Errorf("%+v", item.Err)
			}
		}
		if took := time.Since(begun); err != nil || refused == 0 || refused == 30 || took > 31*time.Second {
			c.Errorf("without the primaries of some shards, %d of 30 documents are refused after %v, %v", refused, took, err)
		}
	})
}

// A node that stops takes no changes any more; they wait for the next primary.
func TestAChangeDoesNotEndOnANodeThatStops(t *testing.T) {
	clustered(t, 3, func(c *cluster) {
		a := c.node("a")
		a.create("logs", `{"settings":{"number_of_shards":3,"number_of_replicas":1}}`)
		c.node("b").engine.Close()
		time.AfterFunc(3*time.Second, func() { c.leave("b") })
		begun := time.Now()
		a.bulk("logs", "x", 30)
		if took := time.Since(begun); took < 3*time.Second || took > 4*time.Second {
			c.Errorf("documents were stored after %v, want when the node has left", took)
		}
		c.isolate("b", true)
		c.everywhere("logs", 30)
	})
}

func TestAReplicaThatMissesAChangeIsGivenUp(t *testing.T) {
	clustered(t, 3, func(c *cluster) {
		a := c.node("a")
		a.create("logs", `{"settings":{"number_of_replicas":2}}`)
		c.quiet()
		primary := c.node(a.info("logs").Copies[0][0].Node)
		replica := a.info("logs").Copies[0][1].Node
		c.isolate(replica, true)
		r := primary.put("logs", "1", `{}`)
		if r.Shards != (stub.WriteShards{Total: 3, Successful: 2, Failed: 1}) {
			c.Errorf("a change that one of two replicas did not take: %+v", r.Shards)
		}
		c.everywhere("logs", 1)
		c.isolate(replica, false)
		if err := c.node(replica).engine.Reload(c.Context()); err != nil {
			c.Fatal(err)
		}
		c.quiet()
		c.everywhere("logs", 1)
		if x := a.info("logs"); x.Active() != 3 {
			c.Errorf("once it is back there are %d copies: %v", x.Active(), x.Copies)
		}
	})
}

// A change that nobody waits for any more reaches the replicas all the same: they are not given up for that.
func TestAChangeOutlivesWhoAskedForIt(t *testing.T) {
	clustered(t, 2, func(c *cluster) {
		a := c.node("a")
		a.create("logs", `{"settings":{"number_of_replicas":1}}`)
		x := a.info("logs")
		c.mu.Lock()
		c.lag = time.Second
		c.mu.Unlock()
		ctx, cancel := context.WithTimeout(c.Context(), time.Second/2)
		defer cancel()
		w, err := c.node(x.Copies[0][0].Node).engine.Holder().Write(ctx, &shard.WriteRequest{
			Copy: shard.Copy{Shard: shard.ID{Index: "logs"}, UUID: x.UUID, Number: 1}, Operations: []shard.Operation{{Kind: shard.Index, ID: "1", Source: []byte("{}")}},
		})
		if err != nil || w.Taken != 2 || ctx.Err() == nil {
			c.Errorf("%+v, %v", w, err)
		}
		if x := a.info("logs"); x.Active() != 2 {
			c.Errorf("there are the copies %v", x.Copies)
		}
		c.everywhere("logs", 1)
	})
}

func TestAPrimaryThatWasReplacedTakesNothing(t *testing.T) {
	clustered(t, 3, func(c *cluster) {
		c.node("a").create("logs", `{"settings":{"number_of_replicas":1}}`)
		c.quiet()
		old := c.node(c.node("a").info("logs").Copies[0][0].Node)
		c.isolate(old.self.ID, true)
		c.leave(old.self.ID)
		c.quiet()
		next := c.all()[0]
		next.put("logs", "1", `{}`)
		c.isolate(old.self.ID, false)
		// It has not heard of anything, and others may still take it for what it was.
		x := next.info("logs")
		_, err := old.engine.Holder().Write(c.Context(), &shard.WriteRequest{
			Copy: shard.Copy{Shard: shard.ID{Index: "logs"}, UUID: x.UUID, Number: 1}, Operations: []shard.Operation{{Kind: shard.Index, ID: "2", Source: []byte("{}")}},
		})
		if _, ok := errors.AsType[*stub.StaleCopyError](err); !ok {
			c.Errorf("a primary that is none any more: %v", err)
		}
		if got := next.found("logs"); got != 1 {
			c.Errorf("then there are %d documents", got)
		}
	})
}

// Nodes come and go while documents are written through all that are there. What was acknowledged stays.
func TestDocumentsStayWhileNodesComeAndGo(t *testing.T) {
	clustered(t, 3, func(c *cluster) {
		c.node("a").create("logs", `{"settings":{"number_of_shards":4,"number_of_replicas":1}}`)
		c.quiet()
		stop := make(chan struct{})
		var mu sync.Mutex
		stored := make(map[string]int64)
		var writing sync.WaitGroup
		for w := range 6 {
			writing.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					case <-time.After(time.Millisecond):
					}
					all := c.all()
					n := all[(w+i)%len(all)]
					id := fmt.Sprintf("w%d-%d", w, i%200)
					if i%7 == 3 {
						if _, err := n.engine.DeleteDocument("logs", id); err == nil {
							mu.Lock()
							delete(stored, id)
							mu.Unlock()
						}
						continue
					}
					r, err := n.engine.PutDocument("logs", id, fmt.Appendf(nil, `{"i":%d}`, i), false)
					mu.Lock()
					if err == nil {
						stored[id] = int64(i)
					} else {
						delete(stored, id) // not known
					}
					_ = r
					mu.Unlock()
				}
			})
		}
		for round := range 6 {
			gone := string(rune('a' + round%3))
			if round%2 == 0 {
				c.leave(gone) // it still answers
			} else {
				c.kill(gone)
			}
			c.quiet()
			c.isolate(gone, true)
			c.quiet()
			c.isolate(gone, false)
			c.mu.Lock()
			for n, m := range c.nodes {
				if n.ID == gone {
					delete(c.nodes, n)
					c.watching.Go(func() { m.engine.Close() })
				}
			}
			c.mu.Unlock()
			c.join(gone)
			c.quiet()
		}
		close(stop)
		writing.Wait()
		c.quiet()
		if x := c.node("a").info("logs"); x.Active() != 8 {
			c.Errorf("in the end there are %d copies: %v", x.Active(), x.Copies)
		}
		for _, n := range c.all() {
			for id, i := range stored {
				d, err := n.engine.Document("logs", id)
				if err != nil || !d.Found || string(d.Source) != fmt.Sprintf(`{"i":%d}`, i) {
					c.Fatalf("%s: %s was stored with %d; there is %+v %s, %v", n.self.ID, id, i, d, d.Source, err)
				}
			}
		}
		if len(stored) < 300 {
			c.Errorf("only %d documents were stored", len(stored))
		}
	})
}

// A copy is filled in several pages. What changes meanwhile, on pages that were read and on those that were not, is in it in the end.
func TestACopyIsFilledWhileDocumentsChange(t *testing.T) {
	clustered(t, 1, func(c *cluster) {
		a := c.node("a")
		a.create("logs", `{"settings":{"number_of_replicas":1}}`)
		const documents = 40
		large := strings.Repeat("x", 1<<20)
		for i := range documents {
			a.put("logs", itoa(i), fmt.Sprintf(`{"large":%q}`, large))
		}
		c.mu.Lock()
		c.lag = 100 * time.Millisecond
		c.mu.Unlock()
		c.join("b")
		for a.info("logs").Initializing() == 0 {
			time.Sleep(time.Millisecond)
		}
		begun := time.Now()
		changed := 0
		for i := 0; a.info("logs").Active() < 2; i = (i + 1) % 6 { // so that they are on the first page, and again on the last
			if i%2 == 0 {
				a.put("logs", itoa(i), fmt.Sprintf(`{"n":%d}`, i))
			} else if changed < 6 { // once each: another deletion would make good what the first had missed
				if _, err := a.engine.DeleteDocument("logs", itoa(i)); err != nil {
					c.Fatal(err)
				}
			}
			changed++
			time.Sleep(20 * time.Millisecond)
		}
		if took := time.Since(begun); took < 9*c.lag || changed < 5 {
			c.Errorf("filled after %v and %d changes, want several pages", took, changed)
		}
		want := a.search("logs?size=100&version=true&seq_no_primary_term=true", "")
		c.kill("a")
		c.quiet()
		if got := c.node("b").search("logs?size=100&version=true&seq_no_primary_term=true", ""); got != want {
			c.Errorf("the copy answers %.2000s, want %.2000s", strings.ReplaceAll(got, large, "x"), strings.ReplaceAll(want, large, "x"))
		}
	})
}
