package stats_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/stats"
	"github.com/wlmserver/wlmserver/tasks"
	"github.com/wlmserver/wlmserver/wlm"
)

// checked is an admission with one group of one permit, and tasks beside it.
type checked struct {
	*testing.T
	*wlm.Admission
	tasks  *tasks.Manager
	reader *stats.Reader
}

func newChecked(t *testing.T) *checked {
	t.Helper()
	a := wlm.New()
	limit, size := 1, 5
	a.GroupsChanged(groups.NewSnapshot(1, &groups.Group{
		ID: "g", Name: "reports", Mode: groups.Enforced,
		Throttling: groups.Throttling{Attribute: groups.ByGroup, NodeLimit: &limit}, Queue: groups.Queue{SizePerBucket: &size},
	}))
	m := tasks.NewManager("n")
	return &checked{T: t, Admission: a, tasks: m, reader: stats.New(stats.Source{Admission: a, Tasks: m})}
}

// enter sends a search, with a task that shows its ticket.
func (c *checked) enter() (*wlm.Ticket, *tasks.Task) {
	c.Helper()
	t, err := c.tasks.Register(c.Context(), tasks.Spec{Action: "search", Type: tasks.Transport, Cancellable: true})
	if err != nil {
		c.Fatal(err)
	}
	ticket, err := c.Enter(c.Context(), wlm.Request{Group: "g"})
	if err != nil {
		c.Fatal(err)
	}
	t.SetStatus(ticket)
	return ticket, t
}

func (c *checked) permit(t *wlm.Ticket) *wlm.Permit {
	c.Helper()
	p, err := t.Wait(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	return p
}

func TestCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChecked(t)
		expect := func(what string, took time.Duration, disagreements ...string) {
			t.Helper()
			start := time.Now()
			got := c.reader.Check(t.Context())
			if d := time.Since(start); d != took {
				t.Errorf("%s: took %v, want %v", what, d, took)
			}
			if len(got.Disagreements) != len(disagreements) {
				t.Fatalf("%s: %q", what, got.Disagreements)
			}
			for i, part := range disagreements {
				if !strings.Contains(got.Disagreements[i], part) {
					t.Errorf("%s: %q does not say %q", what, got.Disagreements[i], part)
				}
			}
		}
		expect("nothing runs", 0)
		running, runningTask := c.enter()
		parked, parkedTask := c.enter()
		p := c.permit(running)
		expect("one runs, one is parked", 0)
		if got := c.reader.Check(t.Context()); got.Buckets != 1 || got.Running != 1 || got.Waiting != 1 {
			t.Errorf("figures %+v", got)
		}

		runningTask.End()
		expect("a task has left its permit behind", time.Second, "a permit of bucket [g:group] has no task")
		parkedTask.End()
		expect("and one its waiter", time.Second, "a parked search of bucket [g:group] has no task", "a permit of bucket [g:group]")

		p.Close()
		q := c.permit(parked)
		q.Close()
		third, thirdTask := c.enter()
		c.permit(third).Close()
		expect("a permit has ended and its task has not", time.Second, "is neither parked nor under a permit")
		thirdTask.End()
		expect("nothing is left", 0)

		q.Close()
		expect("a permit was closed twice", 0, "closed twice")
	})
}

// TestCheckForgivesAnInstant: what disagrees only while it is looked at the first time is no disagreement.
func TestCheckForgivesAnInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChecked(t)
		ticket, task := c.enter()
		p := c.permit(ticket)
		task.End()
		time.AfterFunc(500*time.Millisecond, p.Close)
		if got := c.reader.Check(t.Context()); len(got.Disagreements) != 0 {
			t.Errorf("%q", got.Disagreements)
		}
	})
}

func TestCheckWaitsNoLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChecked(t)
		ticket, task := c.enter()
		p := c.permit(ticket)
		defer p.Close()
		task.End()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if got := c.reader.Check(ctx); len(got.Disagreements) != 0 {
			t.Errorf("%q", got.Disagreements)
		}
	})
}
