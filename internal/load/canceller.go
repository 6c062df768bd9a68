package load

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// canceller cancels searches through the task API: it finds the tasks of all that are due in one listing, as a listing is
// the dear part on a server where thousands wait.
type canceller struct {
	api  *api
	wake chan struct{} // holds one when something is due

	mu  sync.Mutex
	due []string // X-Opaque-Ids
	did cancels
}

// cancels counts what became of the wishes to cancel a search that had no answer by then. The others came too late: the
// search ended meanwhile.
type cancels struct {
	asked, done, failed int64
	err                 error // the first failure of the task API
}

// Listings are at least this far apart.
const listingPause = 20 * time.Millisecond

func newCanceller(a *api) *canceller { return &canceller{api: a, wake: make(chan struct{}, 1)} }

// ask has the search cancelled soon. It does not block.
func (c *canceller) ask(opaqueID string) {
	c.mu.Lock()
	c.due = append(c.due, opaqueID)
	c.did.asked++
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run cancels until ctx ends.
func (c *canceller) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		c.round(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(listingPause):
		}
	}
}

func (c *canceller) round(ctx context.Context) {
	c.mu.Lock()
	due := c.due
	c.due = nil
	c.mu.Unlock()
	if len(due) == 0 {
		return
	}
	var (
		done, failed int64
		first        error
	)
	tasks, err := c.api.searchTasks(ctx)
	if err != nil {
		failed, first = int64(len(due)), err
	}
	for _, id := range due {
		task, there := tasks[id]
		if !there {
			continue
		}
		cancelled, err := c.api.cancel(ctx, task)
		switch {
		case err != nil:
			failed++
			first = cmp.Or(first, err)
		case cancelled:
			done++
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.did.done += done
	if ctx.Err() != nil { // the load is over, and so is each of these searches
		return
	}
	c.did.failed += failed
	c.did.err = cmp.Or(c.did.err, first)
}

func (c *canceller) counted() cancels {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.did
}
