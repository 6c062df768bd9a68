package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// cost is what an operation takes.
type cost struct{ ns, allocs, bytes float64 }

// operations has goroutines acquire, work and release over and over, twice for about as long as the budget says. The faster
// time counts: what else the machine does can only add to it.
func operations(l limiter, goroutines int, budget time.Duration, work func()) (cost, error) {
	const times = 2
	var (
		each = 16
		best cost
	)
	for done := 0; done < times; {
		c, took, err := repeat(l, goroutines, each, work)
		if err != nil {
			return cost{}, err
		}
		if took < budget*3/4 && done == 0 { // too short yet to say anything
			each = int(float64(each) * min(20, max(1.5, float64(budget)/float64(took))))
			continue
		}
		if done == 0 || c.ns < best.ns {
			best = c
		}
		done++
	}
	return best, nil
}

// repeat has each goroutine do that many operations under a cancellable context of its own, as each request of a server has one.
func repeat(l limiter, goroutines, each int, work func()) (cost, time.Duration, error) {
	all, cancelAll := context.WithCancelCause(context.Background())
	defer cancelAll(nil)
	var (
		wg            sync.WaitGroup
		before, after runtime.MemStats
	)
	start := make(chan struct{})
	for range goroutines {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(all)
			defer cancel()
			<-start
			for range each {
				if err := l.Do(ctx, work); err != nil {
					cancelAll(fmt.Errorf("an operation that nobody cancelled: %w", err))
					return
				}
			}
		})
	}
	runtime.GC()
	runtime.ReadMemStats(&before)
	begun := time.Now()
	close(start)
	wg.Wait()
	took := time.Since(begun)
	runtime.ReadMemStats(&after)
	n := float64(goroutines * each)
	return cost{
		ns: float64(took.Nanoseconds()) / n, allocs: float64(after.Mallocs-before.Mallocs) / n, bytes: float64(after.TotalAlloc-before.TotalAlloc) / n,
	}, took, context.Cause(all)
}

// handOver is the time from the release of the one permit until the goroutine that waits for it runs, in microseconds.
func handOver(l limiter, times int) (p50, p99 float64, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	all := make([]float64, 0, times)
	for range times {
		var released, running time.Time
		held, release := make(chan struct{}), make(chan struct{})
		errs := make(chan error, 2)
		go func() {
			errs <- l.Do(ctx, func() {
				close(held)
				<-release
				released = time.Now()
			})
		}()
		<-held
		go func() { errs <- l.Do(ctx, func() { running = time.Now() }) }()
		time.Sleep(100 * time.Microsecond) // nobody outside can see that a goroutine is parked; this is ample
		close(release)
		for range 2 {
			if err := <-errs; err != nil {
				return 0, 0, err
			}
		}
		all = append(all, float64(running.Sub(released).Nanoseconds())/1000)
	}
	slices.Sort(all)
	return all[len(all)/2], all[len(all)*99/100], nil
}

// idle is the share of the permits' time in which nobody works under them, as long as somebody waits.
func idle(l limiter, limit, goroutines, each int, work time.Duration) (float64, error) {
	type span struct{ from, to time.Time }
	var (
		wg    sync.WaitGroup
		spans = make([][]span, goroutines)
		errs  = make(chan error, goroutines)
	)
	for i := range goroutines {
		wg.Go(func() {
			for range each {
				err := l.Do(context.Background(), func() {
					from := time.Now()
					time.Sleep(work)
					spans[i] = append(spans[i], span{from, time.Now()})
				})
				if err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	if err := <-errs; err != nil {
		return 0, err
	}
	all := slices.Concat(spans...)
	slices.SortFunc(all, func(a, b span) int { return a.from.Compare(b.from) })
	from, to := all[limit-1].from, all[len(all)-1].from
	var busy time.Duration
	for _, s := range all {
		begin, end := s.from, s.to
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		busy += max(0, end.Sub(begin))
	}
	return 1 - float64(busy)/float64(limit)/float64(to.Sub(from)), nil
}

// crowd is many goroutines that wait behind permits which are all held.
type crowd struct {
	cancels []context.CancelFunc // one for each waiter, as each connection has its own
	waiting sync.WaitGroup
	ran     atomic.Int64
	failed  atomic.Int64

	release chan struct{} // closed, it lets the holders go
	holders sync.WaitGroup
	memory  usage // of one waiter
}

// gather parks n waiters behind limiters of the limit 1.
func gather(limiters []limiter, n int) *crowd {
	c := &crowd{cancels: make([]context.CancelFunc, n), release: make(chan struct{})}
	for _, l := range limiters {
		held := make(chan struct{})
		c.holders.Go(func() {
			_ = l.Do(context.Background(), func() { // cannot fail: nobody else is there yet
				close(held)
				<-c.release
			})
		})
		<-held
	}
	contexts := make([]context.Context, n)
	for i := range n {
		contexts[i], c.cancels[i] = context.WithCancel(context.Background())
	}
	before := memory()
	var begun atomic.Int64
	work := func() { c.ran.Add(1) }
	for i := range n {
		c.waiting.Go(func() {
			begun.Add(1)
			if limiters[i%len(limiters)].Do(contexts[i], work) != nil {
				c.failed.Add(1)
			}
		})
	}
	for begun.Load() < int64(n) {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(10*time.Millisecond + time.Duration(n)*2*time.Microsecond) // for the last to park
	after := memory()
	c.memory = usage{(after.heap - before.heap) / float64(n), (after.stack - before.stack) / float64(n)}
	return c
}

// cancel cancels the waiters one by one and gives the milliseconds until the last has left.
func (c *crowd) cancel() (float64, error) {
	begun := time.Now()
	for _, cancel := range c.cancels {
		cancel()
	}
	c.waiting.Wait()
	took := milliseconds(begun)
	close(c.release)
	c.holders.Wait()
	if n := c.failed.Load(); n != int64(len(c.cancels)) {
		return 0, fmt.Errorf("%d of %d waiters were cancelled", n, len(c.cancels))
	}
	return took, nil
}

// drain lets the holders go and gives the milliseconds until all waiters have run, one after the other.
func (c *crowd) drain() (float64, error) {
	begun := time.Now()
	close(c.release)
	c.waiting.Wait()
	took := milliseconds(begun)
	c.holders.Wait()
	for _, cancel := range c.cancels {
		cancel()
	}
	if n := c.ran.Load(); n != int64(len(c.cancels)) {
		return 0, fmt.Errorf("%d of %d waiters ran", n, len(c.cancels))
	}
	return took, nil
}

func milliseconds(since time.Time) float64 { return float64(time.Since(since).Nanoseconds()) / 1e6 }

// usage is memory in bytes.
type usage struct{ heap, stack float64 }

// memory is what heap and stacks take after a collection.
func memory() usage {
	runtime.GC()
	runtime.GC() // what the first has only unlinked
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{float64(m.HeapAlloc), float64(m.StackInuse)}
}

// growRuntime starts as many goroutines as will ever be there at once. Their descriptors are never freed, so that afterwards no
// waiter's memory contains one, whoever is measured first.
func growRuntime(n int) {
	var wg sync.WaitGroup
	end := make(chan struct{})
	for range n {
		wg.Go(func() { <-end })
	}
	close(end)
	wg.Wait()
}
