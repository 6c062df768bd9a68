package stats

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/wlmserver/wlmserver/tasks"
	"github.com/wlmserver/wlmserver/wlm"
)

// settling is how long admission and tasks may disagree about a search. A
// search that parks, runs or ends is for an instant in the one and not yet, or
// no longer, in the other.
const settling = time.Second

// Check is what a node finds when it checks itself.
type Check struct {
	Buckets, Waiting, Running int
	Shared                    []wlm.SharedPermit // that searches run under

	// Disagreements says what is wrong; it is empty unless something is broken.
	Disagreements []string
}

// Check checks the admission against its invariants, and against the tasks:
// each parked search and each permit belongs to a task that is alive, and each
// task that is parked or runs under a permit is known to the admission. What
// disagrees is looked at again a second later and counts if it is still the
// same search. Check waits no longer than ctx.
func (r *Reader) Check(ctx context.Context) Check {
	first := r.compare()
	c := Check{
		Buckets: first.Buckets, Waiting: len(first.Waiting), Running: len(first.Running),
		Shared: first.Shared, Disagreements: first.Violations,
	}
	if len(first.suspects) == 0 {
		return c
	}
	again := time.NewTimer(settling)
	defer again.Stop()
	select {
	case <-again.C:
	case <-ctx.Done():
		return c
	}
	second := r.compare()
	for t, why := range second.suspects {
		if first.suspects[t] == why {
			c.Disagreements = append(c.Disagreements, why)
		}
	}
	slices.Sort(c.Disagreements)
	return c
}

// comparison is one reading of admission and tasks.
type comparison struct {
	wlm.Check
	suspects map[*wlm.Ticket]string // what each seems to be wrong with
}

func (r *Reader) compare() comparison {
	// The tasks are read first: a search that ends meanwhile is then in neither
	// list, or in that of the tasks only, which is looked at once more.
	live := make(map[*wlm.Ticket]*tasks.Task)
	for _, t := range r.source.Tasks.List(tasks.Filter{}) {
		if ticket, ok := t.Status().(*wlm.Ticket); ok {
			live[ticket] = t
		}
	}
	c := comparison{Check: r.source.Admission.Check(), suspects: make(map[*wlm.Ticket]string)}
	for what, tickets := range map[string][]*wlm.Ticket{"a parked search": c.Waiting, "a permit": c.Running} {
		for _, t := range tickets {
			if live[t] == nil {
				c.suspects[t] = fmt.Sprintf("%s of bucket [%s] has no task", what, t.Bucket())
			}
		}
	}
	survey := r.source.Admission.Survey()
	for ticket, t := range live {
		if _, open := survey.Status(ticket); !open {
			c.suspects[ticket] = fmt.Sprintf("task [%s] of bucket [%s] is neither parked nor under a permit", t.ID(), ticket.Bucket())
		}
	}
	return c
}
