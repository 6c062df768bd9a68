package stub_test

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/internal/stub"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
)

// shardUsage collects what the shard tasks of a fixture's engine have used when
// they end.
type shardUsage struct {
	mu    sync.Mutex
	usage []tasks.Usage
}

func withUsage(c *stub.Config, u *shardUsage) {
	c.Tasks = tasks.NewManager(node, tasks.WithOnEnd(func(t *tasks.Task) {
		if t.Type() == tasks.Direct {
			u.mu.Lock()
			defer u.mu.Unlock()
			u.usage = append(u.usage, t.Usage())
		}
	}))
}

// usageFixture is a fixture that also tells what shards have used.
func usageFixture(t *testing.T) (*fixture, *shardUsage) {
	t.Helper()
	u := &shardUsage{}
	var manager *tasks.Manager
	f := newFixture(t, func(c *stub.Config) {
		withUsage(c, u)
		manager = c.Tasks
	})
	f.tasks = manager
	return f, u
}

func processCPU(t *testing.T) time.Duration {
	t.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func TestProcessorTimeIsReallyBurnt(t *testing.T) {
	f, u := usageFixture(t)
	f.index("a", 2, "")
	const each = 40 * time.Millisecond
	before := processCPU(t)
	f.search("a", `{"size":0,"ext":{"stub":{"query_cpu":"40ms"}}}`)
	if burnt := processCPU(t) - before; burnt < 2*each {
		t.Errorf("the process has burnt %v, want 40ms on each of two shards", burnt)
	}
	if len(u.usage) != 2 {
		t.Fatalf("%d shards, want 2", len(u.usage))
	}
	for _, s := range u.usage {
		// Above it lie the last step, a fifth of a millisecond, and what the
		// runtime does on the same thread meanwhile: a collection of garbage
		// takes a few milliseconds at most with a heap as small as this.
		if cpu := s.Total.CPU; cpu < each || cpu > each+20*time.Millisecond {
			t.Errorf("a shard's task has used %v, want 40ms and little more", cpu)
		}
		if s.Executions != 1 || s.Active != 0 || s.Total.Memory != 0 {
			t.Errorf("usage %+v, want one execution without memory", s)
		}
	}
}

// To wait costs no processor time, and what little a phase costs is counted for
// the phase alone, though several take turns on the same threads.
func TestWaitingBurnsNothing(t *testing.T) {
	f, u := usageFixture(t)
	f.index("a", 3, "")
	f.search("a", `{"size":0,"ext":{"stub":{"query_time":"30ms"}}}`)
	f.search("a", `{"size":0,"ext":{"stub":{"query_cpu":"30ms","shard":0}}}`)
	idle := 0
	for _, s := range u.usage {
		if s.Total.CPU < 10*time.Millisecond { // a third of the others', and a hundred times what it takes
			idle++
		}
	}
	if len(u.usage) != 6 || idle != 5 {
		t.Errorf("%d of %d shards burnt nothing, want 5 of 6: %+v", idle, len(u.usage), u.usage)
	}
}

// The phase lasts as long as its time says, its processor time within it.
func TestTheTimeIncludesTheBurning(t *testing.T) {
	f := newFixture(t)
	f.index("a", 1, "")
	start := time.Now()
	f.search("a", `{"size":0,"ext":{"stub":{"query_time":"60ms","query_cpu":"20ms"}}}`)
	// The lower bound is exact. The upper one would be 80ms if one came after the
	// other; on a busy machine nothing can be said of it.
	if took := time.Since(start); took < 60*time.Millisecond {
		t.Errorf("the search takes %v, want 60ms", took)
	}
}

func TestMemoryIsReallyHeld(t *testing.T) {
	const each = 32 << 20
	f, u := usageFixture(t)
	f.index("a", 2, "")
	c, err := f.prepare(request("a", `{"size":0,"ext":{"stub":{"query_memory":"32mb","query_time":"1h"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := c.run(search.Limits{})
		done <- err
	}()
	// Each page is touched before it is counted.
	for held := int64(0); held < 2*each; {
		runtime.Gosched()
		held = 0
		for _, child := range c.task.Children() {
			held += child.Usage().Total.Memory
		}
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapAlloc < 2*each {
		t.Errorf("after a collection the heap has %d MiB, want the 64 that are held", m.HeapAlloc>>20)
	}
	if resident := residentBytes(t); resident < 2*each {
		t.Errorf("%d MiB are resident, want the 64 that are touched", resident>>20)
	}
	c.task.Cancel(tasks.UserCause())
	if err := <-done; err == nil {
		t.Error("the cancelled search is answered")
	}
	c.end()
	runtime.GC()
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > each { // everything else in this process is far below
		t.Errorf("%d MiB are left when the search has ended", m.HeapAlloc>>20)
	}
	for _, s := range u.usage {
		if s.Total.Memory != each {
			t.Errorf("a shard's task has taken %d bytes, want 32 MiB", s.Total.Memory)
		}
	}
}

// residentBytes is how much memory of the process is really there, or the most
// there is where that cannot be asked.
func residentBytes(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if errors.Is(err, os.ErrNotExist) {
		return 1 << 62
	}
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

func TestMemoryOfRunningSearchesIsBounded(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.index("a", 2, "")
		holder := f.start(request("a", `{"ext":{"stub":{"query_memory":"6mb","query_time":"1s","shard":0}}}`), search.Limits{})
		synctest.Wait()
		o := f.start(request("a", `{"ext":{"stub":{"query_memory":"6mb","shard":0}}}`), search.Limits{})
		<-o.done
		a := parse(f, o.body)
		if o.err != nil || a.Shards.Failed != 1 || a.Shards.Failures[0].Reason.Type != "circuit_breaking_exception" || !strings.Contains(o.body, `"bytes_wanted":12582912,"bytes_limit":10485760,"durability":"TRANSIENT"`) {
			f.Errorf("12 MiB of 10: %v, %s", o.err, o.body)
		}
		o = f.start(request("a", `{"ext":{"stub":{"query_memory":"11mb"}}}`), search.Limits{})
		<-o.done
		e, ok := errors.AsType[*search.PhaseError](o.err)
		if !ok {
			f.Fatalf("22 MiB of 10: %v", o.err)
		}
		if _, ok := e.Cause.(*stub.FullError); !ok {
			f.Errorf("22 MiB of 10: cause %v, want a FullError", e.Cause)
		}
		<-holder.done
		o = f.start(request("a", `{"ext":{"stub":{"query_memory":"10mb","shard":1}}}`), search.Limits{})
		<-o.done
		if a := parse(f, o.body); o.err != nil || a.Shards.Failed != 0 {
			f.Errorf("10 MiB of 10 when all is given back: %v, %s", o.err, o.body)
		}
	}, func(c *stub.Config) { c.MaxWorkBytes = 10 << 20 })
}

// A phase that burns or takes memory looks every 5 ms of processor time at most
// whether to go on. On a busy machine nothing can be said of the time on the wall.
func TestWorkStopsWithinFiveMilliseconds(t *testing.T) {
	for name, cost := range map[string]string{
		"burning": `"query_cpu":"1h"`,
		// Two hundred steps of a mebibyte take some 100 ms; the test cancels in
		// the first of them.
		"taking memory": `"query_memory":"200mb","query_cpu":"1h"`,
	} {
		t.Run(name, func(t *testing.T) {
			f, u := usageFixture(t)
			f.index("a", 1, "")
			c, err := f.prepare(request("a", `{"size":0,"ext":{"stub":{`+cost+`}}}`))
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error)
			go func() {
				_, err := c.run(search.Limits{})
				done <- err
			}()
			var child *tasks.Task
			for child == nil || child.Usage().Total.CPU == 0 {
				runtime.Gosched()
				if children := c.task.Children(); len(children) == 1 {
					child = children[0]
				}
			}
			c.task.Cancel(tasks.UserCause())
			before := child.Usage().Total.CPU
			if err := <-done; err == nil {
				t.Error("the cancelled search is answered")
			}
			c.end()
			// A task hears of its usage every 2 ms of it, so that much may have
			// passed before the cancellation; and there is one garbage collection's
			// share to allow for.
			after := u.usage[0].Total.CPU
			if went := after - before; went > (2+5+5)*time.Millisecond {
				t.Errorf("it goes on for %v of processor time", went)
			}
		})
	}
}

func TestBurningLooksAtTheTimeout(t *testing.T) {
	f, u := usageFixture(t)
	f.index("a", 1, "")
	body := f.search("a?timeout=20ms", `{"ext":{"stub":{"query_cpu":"1h"}}}`)
	if a := parse(t, body); !a.TimedOut || a.Shards.Failed != 0 {
		t.Errorf("answer %s", body)
	}
	// By the wall 20 ms have passed; of processor time it can not be more, but for
	// a step and what a collection takes.
	if cpu := u.usage[0].Total.CPU; cpu > 40*time.Millisecond {
		t.Errorf("it has burnt %v", cpu)
	}
}

// With ignore_cancel all the work is done, and only then the cancellation seen.
func TestWorkThatDoesNotLook(t *testing.T) {
	f, u := usageFixture(t)
	f.index("a", 1, "")
	c, err := f.prepare(request("a", `{"size":0,"ext":{"stub":{"query_cpu":"40ms","query_memory":"2mb","ignore_cancel":true}}}`))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := c.run(search.Limits{})
		done <- err
	}()
	for len(c.task.Children()) == 0 {
		runtime.Gosched()
	}
	c.task.Cancel(tasks.UserCause())
	err = <-done
	c.end()
	e, ok := errors.AsType[*search.PhaseError](err)
	if !ok || e.Reason != "all shards failed" || !cancelledBy(e.Cause, tasks.ByUser) {
		t.Errorf("%v, want the cancellation", err)
	}
	if got := u.usage[0].Total; got.CPU < 40*time.Millisecond || got.Memory != 2<<20 {
		t.Errorf("it has used %+v, want all of 40ms and 2 MiB", got)
	}
}

// Many searches on real goroutines: nothing is lost, nothing is left, whatever is
// cancelled when. It proves most under the race detector.
func TestManySearchesAtOnce(t *testing.T) {
	f := newFixture(t, func(c *stub.Config) { c.PoolSize, c.QueueSize = 3, 5 })
	f.golden()
	var all sync.WaitGroup
	for w := range 16 {
		all.Go(func() {
			for i := range 40 {
				body := ``
				if i%3 == 0 {
					body = `{"ext":{"stub":{"query_time":"200micros","query_cpu":"50micros","query_memory":"4kb","fetch_time":"100micros"}}}`
				}
				c, err := f.prepare(request("golden", body))
				if err != nil {
					t.Error(err)
					return
				}
				if (w+i)%4 == 0 {
					go c.task.Cancel(tasks.UserCause())
				}
				answer, err := c.run(search.Limits{})
				c.end()
				if err == nil {
					if a := parse(t, answer); a.Shards.Successful+a.Shards.Failed != 2 {
						t.Errorf("answer %s", answer)
					}
					continue
				}
				e, ok := errors.AsType[*search.PhaseError](err)
				if !ok {
					t.Errorf("%v (%T), want a PhaseError", err, err)
					continue
				}
				_, full := e.Cause.(*search.PoolFullError)
				if !full && !cancelledBy(e.Cause, tasks.ByUser) {
					t.Errorf("cause %v, want a full pool or the cancellation", e.Cause)
				}
			}
		})
	}
	all.Wait()
}
