package history_test

import (
	"strings"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/test/history"
)

// second is a moment of the stories below, in which each line is a second later than the one before.
func second(n int) time.Time { return time.Unix(0, 0).Add(time.Duration(n) * time.Second) }

// run makes the history of a node from lines that begin with the second in which they happen.
func run(t *testing.T, node string, begin int, lines ...string) history.Run {
	t.Helper()
	events := story(t, lines...)
	for i := range events {
		events[i].At = events[i].At.Add(time.Duration(begin) * time.Second)
	}
	return history.Run{Node: node, Events: events}
}

func TestNodesTogether(t *testing.T) {
	const grace, lease = 2 * time.Second, 3 * time.Second
	long := []string{"changed 0 1 5", "parked 1 #1 pending", "admitted 1 #1 shared", "changed 0 1 5", "changed 0 1 5", "changed 0 1 5", "changed 0 1 5", "closed 1 shared"} // runs from 2 to 7
	one := []string{"changed 0 1 5", "parked 1 #1 pending", "admitted 1 #1 shared", "closed 1 shared"}
	for _, c := range []struct {
		name  string
		other history.Run // beside one that runs from second 2 to second 7
		long  func(*history.Run)
		want  string // "" = nothing is wrong
	}{
		{name: "one after the other", other: run(t, "b", 6, one...)},
		{name: "both at once", other: run(t, "b", 3, one...), want: "2 run under shared permits on all nodes, the shared limit was 1 at most: 1 on a, 1 on b"},
		{name: "after a kill", other: run(t, "b", 3, one...), long: func(r *history.Run) {
			r.Events, r.Killed = r.Events[:4], second(4)
		}},
		{name: "told after a kill", other: run(t, "b", 3, one...), long: func(r *history.Run) {
			r.Killed = second(1)
		}},
		{name: "before a kill", other: run(t, "b", 1, one...), long: func(r *history.Run) {
			r.Events, r.Killed = r.Events[:4], second(4)
		}, want: "2 run"},
		{name: "past the grace of a cut", other: run(t, "b", 3, one...), long: func(r *history.Run) {
			r.Cuts = []history.Cut{{From: second(3), To: second(6)}}
		}},
		{name: "within the grace of a cut", other: run(t, "b", 2, one...), long: func(r *history.Run) {
			r.Cuts = []history.Cut{{From: second(3), To: second(6)}}
		}, want: "2 run"},
		{name: "a cut shorter than the grace", other: run(t, "b", 3, one...), long: func(r *history.Run) {
			r.Cuts = []history.Cut{{From: second(3), To: second(4)}}
		}, want: "2 run"},
		{name: "begun within the lease of a cut", other: run(t, "b", 3, one...), long: func(r *history.Run) {
			r.Cuts = []history.Cut{{From: second(-1), To: second(5)}}
		}},
		{name: "begun after the lease of a cut", other: run(t, "b", 3, one...), long: func(r *history.Run) {
			r.Cuts = []history.Cut{{From: second(-2), To: second(5)}}
		}, want: "2 run"},
		{name: "given after the grace of a cut", other: run(t, "b", 3, one...), long: func(r *history.Run) {
			r.Cuts = []history.Cut{{From: second(-2), To: second(1)}}
		}, want: "2 run"},
		{name: "one node's own fault", other: run(t, "b", 6, "changed 0 1 5", "closed 1 shared"), want: "node b: once"},
		{name: "what is left at the end", other: run(t, "b", 6, one[:3]...), want: "at the end search 1 runs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := run(t, "a", 0, long...)
			if c.long != nil {
				c.long(&a)
			}
			got, err := history.CheckNodes([]history.Run{a, c.other}, grace, lease)
			switch {
			case c.name == "one after the other" && got[bucketName].Handovers != 1:
				t.Errorf("%+v", got)
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("found %v, want %q", err, c.want)
			}
		})
	}
}

func TestIdlePermitsOfNodes(t *testing.T) {
	a := run(t, "a", 0, "changed 0 2 5", "parked 1 #1 pending", "admitted 1 #1 shared", "changed 0 2 5", "changed 0 2 5", "changed 0 2 5", "closed 1 shared")
	b := run(t, "b", 2, "changed 0 2 5", "parked 1 #1 pending", "changed 0 2 5", "admitted 1 #1 shared", "changed 0 2 5", "closed 1 shared")
	got, err := history.CheckNodes([]history.Run{a, b}, time.Second, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	// Somebody waits from second 1 to 2, alone, and from 3 to 5 beside one that runs: 3 permits × seconds of 5 were free.
	s := got[bucketName]
	if s.Idle != 3.0/5 || s.LongestIdle != 2*time.Second || s.Most != 2 || s.Admitted["a"] != 1 || s.Admitted["b"] != 1 || s.Handovers != 0 {
		t.Errorf("%+v", s)
	}
}
