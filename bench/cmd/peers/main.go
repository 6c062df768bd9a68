// Command peers measures admission in process beside other limiters of the Go world: the same operations, in rounds in which each
// has its turn.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/wlmserver/wlmserver/bench/internal/report"
)

type options struct {
	rounds int
	budget time.Duration // of one of the five runs of a measurement of operations
	times  int           // of one measurement of hand-overs
	crowds []int
}

func main() {
	var (
		o        = options{budget: 25 * time.Millisecond, times: 500, crowds: []int{1_000, 10_000, 100_000}}
		quick    = flag.Bool("quick", false, "few rounds, short, and no crowd of 100,000: to see that it runs, not to believe its figures")
		markdown = flag.Bool("markdown", false, "print Markdown")
		file     = flag.String("json", "", "write the sample of every round to this `file`")
		only     = flag.String("only", "", "measure what these `names` say: free, saturated, handover, idle, crowd; comma-separated")
	)
	flag.IntVar(&o.rounds, "rounds", 5, "how often everything is measured")
	flag.Parse()
	if *quick {
		o = options{rounds: min(o.rounds, 3), budget: 5 * time.Millisecond, times: 100, crowds: []int{1_000, 10_000}}
	}
	r := report.New("peers", o.rounds)
	if err := measure(r, o, *only); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
	if *markdown {
		r.Markdown(os.Stdout)
	} else {
		r.Text(os.Stdout)
	}
	if *file != "" {
		if err := r.Write(*file); err != nil {
			fmt.Fprintln(os.Stderr, "peers:", err)
			os.Exit(1)
		}
	}
}

// experiment measures one subject once and adds what it found to its tables.
type experiment struct {
	name   string
	tables []*report.Table
	run    func(s subject) error
	more   int // times as many rounds, of what is soon measured; 0 = once
}

func measure(r *report.Report, o options, only string) error {
	growRuntime(o.crowds[len(o.crowds)-1])
	begun := time.Now()
	all := subjects()
	for _, e := range []experiment{o.free(), o.saturated(), o.handOvers(), o.idle(), o.crowd()} {
		if only != "" && !strings.Contains(","+only+",", ","+e.name+",") {
			continue
		}
		rounds := o.rounds * max(1, e.more)
		err := report.Rotate(rounds, all, func(round int, s subject) error {
			fmt.Fprintf(os.Stderr, "%4.0f s  %-9s  round %d of %d  %s\n", time.Since(begun).Seconds(), e.name, round+1, rounds, s.name)
			if err := e.run(s); err != nil {
				return fmt.Errorf("%s, %s: %w", s.name, e.name, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, t := range e.tables {
			for _, s := range all {
				t.Subjects = append(t.Subjects, s.name)
			}
		}
		r.Tables = append(r.Tables, e.tables...)
	}
	return nil
}

// What counts of the runs of a round, for the tables' notes.
const (
	faster       = "In each round the faster of two runs counts."
	fastestCrowd = "In each round the fastest counts of five runs with 1,000, of three with 10,000, and the one with 100,000."
)

// free is admission that need not wait.
func (o options) free() experiment {
	t := &report.Table{
		ID: "admission-free", Title: "Admission without contention",
		Columns: []report.Column{
			{Head: "ns, 1 goroutine", Metric: "1", Digits: 1}, {Head: "x x/sync", Metric: "1", Digits: 2, Over: semaphor},
			{Head: "ns, 8 goroutines", Metric: "8", Digits: 1}, {Head: "x x/sync", Metric: "8", Digits: 2, Over: semaphor},
			{Head: "allocations", Metric: "allocs", Digits: 1}, {Head: "bytes", Metric: "bytes"},
		},
		Notes: []string{
			faster, "One operation acquires a permit and releases it; the limit, 1,000, is never reached. Each goroutine has a cancellable context of its own.",
			"wlmserver does more in that time than a semaphore: it finds the group and its plan, then the bucket, and counts. A user's bucket " +
				"exists only while somebody is in it, so that with one goroutine each operation makes it and takes it away again.",
		},
	}
	return experiment{name: "free", tables: []*report.Table{t}, more: 4, run: func(s subject) error {
		for _, goroutines := range []int{1, 8} {
			limiters := s.build(1000, 0)
			c, err := operations(limiters[0], goroutines, o.budget, func() {})
			if err != nil {
				return err
			}
			t.Add(s.name, fmt.Sprint(goroutines), c.ns)
			if goroutines == 1 {
				t.Add(s.name, "allocs", c.allocs)
				t.Add(s.name, "bytes", c.bytes)
			}
		}
		return nil
	}}
}

// saturated is admission where nearly everybody has to wait.
func (o options) saturated() experiment {
	t := &report.Table{
		ID: "admission-saturated", Title: "A saturated bucket",
		Notes: []string{faster, "The limit is 2, and who holds a permit yields the processor once, so that nearly every operation parks and is granted. " +
			"Nanoseconds for one operation of all goroutines together; allocations and bytes are those of 64 goroutines."},
	}
	for _, goroutines := range []string{"8", "64", "1024"} {
		t.Columns = append(t.Columns,
			report.Column{Head: "ns, " + goroutines + " goroutines", Metric: goroutines},
			report.Column{Head: "x x/sync", Metric: goroutines, Digits: 2, Over: semaphor})
	}
	t.Columns = append(t.Columns, report.Column{Head: "allocations", Metric: "allocs", Digits: 1}, report.Column{Head: "bytes", Metric: "bytes"})
	return experiment{name: "saturated", tables: []*report.Table{t}, more: 4, run: func(s subject) error {
		for _, goroutines := range []int{8, 64, 1024} {
			limiters := s.build(2, goroutines)
			c, err := operations(limiters[0], goroutines, o.budget, runtime.Gosched)
			if err != nil {
				return err
			}
			t.Add(s.name, fmt.Sprint(goroutines), c.ns)
			if goroutines == 64 {
				t.Add(s.name, "allocs", c.allocs)
				t.Add(s.name, "bytes", c.bytes)
			}
		}
		return nil
	}}
}

// handOvers is the way of a permit from one goroutine to the next.
func (o options) handOvers() experiment {
	t := &report.Table{
		ID: "admission-handover", Title: "Hand-over of a permit",
		Columns: []report.Column{
			{Head: "p50 µs", Metric: "p50", Digits: 1}, {Head: "x x/sync", Metric: "p50", Digits: 2, Over: semaphor},
			{Head: "p99 µs", Metric: "p99", Digits: 1}, {Head: "x x/sync", Metric: "p99", Digits: 2, Over: semaphor},
		},
		Notes: []string{fmt.Sprintf("From the release of the only permit until the goroutine that was parked for it runs; %d times a round.", o.times)},
	}
	return experiment{name: "handover", tables: []*report.Table{t}, run: func(s subject) error {
		limiters := s.build(1, 1)
		p50, p99, err := handOver(limiters[0], o.times)
		if err != nil {
			return err
		}
		t.Add(s.name, "p50", p50)
		t.Add(s.name, "p99", p99)
		return nil
	}}
}

// idle is what permits lose while somebody waits for one.
func (o options) idle() experiment {
	const (
		limit      = 8
		goroutines = 32
		each       = 3
		work       = 50 * time.Millisecond
	)
	t := &report.Table{
		ID: "admission-idle", Title: "Permits that nobody has while somebody waits",
		Columns: []report.Column{{Head: "share of the time, %", Metric: "idle", Digits: 3}},
		Notes: []string{fmt.Sprintf("%d goroutines share %d permits, each %d times for %d ms. Counted is from the moment when all permits are out until the last goroutine begins, "+
			"and a permit is idle from the end of the work under it until the next work begins.", goroutines, limit, each, work.Milliseconds())},
	}
	return experiment{name: "idle", tables: []*report.Table{t}, run: func(s subject) error {
		limiters := s.build(limit, goroutines)
		share, err := idle(limiters[0], limit, goroutines, each, work)
		if err != nil {
			return err
		}
		t.Add(s.name, "idle", share*100)
		return nil
	}}
}

// crowd is many waiters at once: all cancelled, all let run, and their memory.
func (o options) crowd() experiment {
	groups := "wlmserver keeps at most 10,000 waiters in a group, so its 100,000 wait in ten groups, each with a permit of its own; " +
		"everybody else's wait for one permit."
	cancel := &report.Table{
		ID: "admission-cancel", Title: "Cancelling all waiters",
		Notes: []string{"Each waiter has a context of its own; they are cancelled one by one. Milliseconds until the last has left.", fastestCrowd, groups},
	}
	drain := &report.Table{
		ID: "admission-drain", Title: "Letting all waiters run",
		Notes: []string{"The holder of the only permit leaves, and all waiters run in turn. Milliseconds until the last has run.", fastestCrowd, groups},
	}
	memory := &report.Table{
		ID: "admission-memory", Title: "Memory of a waiter",
		Columns: []report.Column{{Head: "bytes", Metric: "bytes"}, {Head: "x x/sync", Metric: "bytes", Digits: 2, Over: semaphor},
			{Head: "of them heap", Metric: "heap"}, {Head: "stack", Metric: "stack"}},
		Notes: []string{"One of 10,000 parked goroutines after a garbage collection; without its descriptor, which the runtime " +
			"keeps and uses again, and without its context. Stacks come in powers of two, from 2,048 bytes. A server's goroutine " +
			"has grown its own long before, so that there only the heap is added."},
	}
	const memoryOf = 10_000
	const most = 100_000 // whose time is compared with that of memoryOf
	for _, n := range o.crowds {
		metric := fmt.Sprint(n)
		columns := []report.Column{
			{Head: fmt.Sprintf("ms, %d,000", n/1000), Metric: metric, Digits: 1},
			{Head: "x x/sync", Metric: metric, Digits: 2, Over: semaphor},
		}
		cancel.Columns = append(cancel.Columns, columns...)
		drain.Columns = append(drain.Columns, columns...)
	}
	for _, t := range []*report.Table{cancel, drain} {
		t.Columns = append(t.Columns, report.Column{Head: "100,000 : 10,000", Metric: "growth", Digits: 1})
	}
	return experiment{name: "crowd", tables: []*report.Table{cancel, drain, memory}, run: func(s subject) error {
		before := make(map[*report.Table]float64) // the time of memoryOf in this round
		for _, n := range o.crowds {
			for _, way := range []struct {
				table *report.Table
				end   func(*crowd) (float64, error)
			}{{cancel, (*crowd).cancel}, {drain, (*crowd).drain}} {
				var took []float64
				for i := range min(5, max(1, 30_000/n)) { // one hiccup is as long as what is over soon
					c := gather(s.build(1, n), n)
					ms, err := way.end(c)
					if err != nil {
						return err
					}
					took = append(took, ms)
					if i == 0 && n == memoryOf && way.table == cancel {
						memory.Add(s.name, "bytes", c.memory.heap+c.memory.stack)
						memory.Add(s.name, "heap", c.memory.heap)
						memory.Add(s.name, "stack", c.memory.stack)
					}
				}
				ms := slices.Min(took)
				way.table.Add(s.name, fmt.Sprint(n), ms)
				switch n {
				case memoryOf:
					before[way.table] = ms
				case most:
					way.table.Add(s.name, "growth", ms/before[way.table])
				}
			}
		}
		return nil
	}}
}
