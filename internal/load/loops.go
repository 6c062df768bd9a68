package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// closedLoop has each client send its next request when the one before has ended, until stop is closed or enough have been
// sent. It returns when the last request has ended.
type closedLoop struct {
	identities []identity // of the clients
	requests   uint64     // 0 is no bound
	think      time.Duration
	sender     func() *sender
	allSent    func() // is called when the last of the requests is about to be sent
}

// After a connection that failed a client tries again later, twice as much later each time.
const (
	firstPause   = 10 * time.Millisecond
	longestPause = time.Second
)

func (l *closedLoop) run(ctx context.Context, stop <-chan struct{}) {
	var (
		wg   sync.WaitGroup
		sent atomic.Uint64
	)
	for i, id := range l.identities {
		wg.Go(func() {
			s := l.sender()
			defer s.disconnect()
			pause := firstPause
			for {
				select {
				case <-stop:
					return
				default:
				}
				number := sent.Add(1) - 1
				if l.requests > 0 && number >= l.requests {
					return
				}
				if number+1 == l.requests {
					l.allSent()
				}
				wait := l.think
				if s.send(ctx, number, id, i, time.Now()) == lost {
					wait = max(wait, pause)
					pause = min(2*pause, longestPause)
				} else {
					pause = firstPause
				}
				if wait > 0 && !sleep(stop, wait) {
					return
				}
			}
		})
	}
	wg.Wait()
}

// sleep waits, and reports false when stop was closed before.
func sleep(stop <-chan struct{}, d time.Duration) bool {
	select {
	case <-stop:
		return false
	case <-time.After(d):
		return true
	}
}

// openLoop sends requests when they are due, whatever has been answered, until stop is closed or enough were due. It
// returns when the last request has ended.
type openLoop struct {
	schedule schedule
	requests uint64        // 0 is no bound
	duration time.Duration // 0 is no bound
	inFlight int
	plan     *plan
	tally    *tally
	sender   func() *sender
	allSent  func() // is called when no more are due
}

func (l *openLoop) run(ctx context.Context, stop <-chan struct{}) {
	c := crew{ctx: ctx, most: l.inFlight, sender: l.sender}
	defer c.leave()
	defer l.allSent()
	start := l.tally.start
	timer := time.NewTimer(0)
	defer timer.Stop()
	for number := uint64(0); l.requests == 0 || number < l.requests; number++ {
		after := l.schedule.at(number)
		if l.duration > 0 && after >= l.duration {
			return
		}
		due := start.Add(after)
		if !l.await(due, timer, stop) {
			return
		}
		if !c.send(arrival{number, l.plan.identity(number), due}) {
			l.tally.notSent()
		}
	}
}

// await waits until a request is due, and reports false when stop was closed. Requests that come fast are sent in small
// batches, late rather than early: a wake-up for each would cost more than the request.
func (l *openLoop) await(due time.Time, timer *time.Timer, stop <-chan struct{}) bool {
	wait := time.Until(due)
	if wait <= 0 {
		select {
		case <-stop:
			return false
		default:
			return true
		}
	}
	timer.Reset(max(wait, shortestWait))
	select {
	case <-stop:
		return false
	case <-timer.C:
		return true
	}
}

const shortestWait = 200 * time.Microsecond

// arrival is a request of an open loop.
type arrival struct {
	number uint64
	id     identity
	due    time.Time
}

// crew are goroutines that each send over a connection of their own. The one that was busy last is asked first, so that no
// more connections are in use than the load needs.
type crew struct {
	ctx    context.Context
	most   int
	sender func() *sender
	wg     sync.WaitGroup

	mu    sync.Mutex
	hands int
	idle  []chan arrival
	left  bool
}

// send has somebody send the request, and reports false when all are busy.
func (c *crew) send(a arrival) bool {
	c.mu.Lock()
	if n := len(c.idle); n > 0 {
		hand := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		hand <- a // has room: its owner waits
		return true
	}
	if c.hands == c.most {
		c.mu.Unlock()
		return false
	}
	c.hands++
	c.mu.Unlock()
	c.wg.Go(func() { c.work(a) })
	return true
}

func (c *crew) work(a arrival) {
	s := c.sender()
	defer s.disconnect()
	orders := make(chan arrival, 1)
	for ok := true; ok; a, ok = <-orders {
		s.send(c.ctx, a.number, a.id, -1, a.due)
		c.mu.Lock()
		if c.left {
			c.mu.Unlock()
			return
		}
		c.idle = append(c.idle, orders)
		c.mu.Unlock()
	}
}

// leave ends the crew when the requests under way have ended.
func (c *crew) leave() {
	c.mu.Lock()
	c.left = true
	idle := c.idle
	c.idle = nil
	c.mu.Unlock()
	for _, orders := range idle {
		close(orders)
	}
	c.wg.Wait()
}
