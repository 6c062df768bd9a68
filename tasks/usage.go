package tasks

import (
	"slices"
	"sync"
	"time"
)

// Resource is what work has used: time on a processor, and memory taken. Memory counts every byte that was taken, also
// what has been given back since: it grows while work runs and never shrinks.
type Resource struct {
	CPU    time.Duration
	Memory int64 // bytes
}

// Usage is what a task has used so far. An execution is one stretch of work of the task on one worker; those under way
// count with what they have used until now. Average, Min and Max are per execution, and each resource has its own: the
// execution with the least time need not be the one with the least memory.
type Usage struct {
	Average, Total, Min, Max Resource

	Executions int64 // those under way included
	Active     int64 // executions under way
}

func (u *Usage) include(r Resource) {
	if u.Executions == 0 {
		u.Min, u.Max = r, r
	}
	u.Executions++
	u.Total.CPU += r.CPU
	u.Total.Memory += r.Memory
	u.Min.CPU, u.Max.CPU = min(u.Min.CPU, r.CPU), max(u.Max.CPU, r.CPU)
	u.Min.Memory, u.Max.Memory = min(u.Min.Memory, r.Memory), max(u.Max.Memory, r.Memory)
}

// account gathers the usage of one task. A task has none until somebody works at it: most wait first, or leave the work to others.
type account struct {
	mu     sync.Mutex
	done   Usage // of the executions that are over; its Average is not kept
	active []*Work

	// Most tasks have one execution at most: that one lies here.
	first Work
	room  [1]*Work
}

func (a *account) read() Usage {
	a.mu.Lock()
	u := a.done
	u.Active = int64(len(a.active))
	for _, w := range a.active {
		u.include(w.used)
	}
	a.mu.Unlock()
	if u.Executions > 0 {
		u.Average = Resource{CPU: u.Total.CPU / time.Duration(u.Executions), Memory: u.Total.Memory / u.Executions}
	}
	return u
}

// Work is one execution of a task on a worker. Its methods are safe for concurrent use.
type Work struct {
	account *account
	used    Resource // guarded by account.mu
}

// StartWork says that a worker takes up the task. Call [Work.Done] when it leaves it, best by defer.
func (t *Task) StartWork() *Work {
	t.mu.Lock()
	if t.account == nil {
		t.account = new(account)
	}
	a := t.account
	t.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.first.account == nil {
		a.first.account, a.active = a, a.room[:0]
		a.active = append(a.active, &a.first)
		return &a.first
	}
	w := &Work{account: a}
	a.active = append(a.active, w)
	return w
}

// Add counts what the worker has used since it last said so: time on the processor, and bytes taken. What is negative
// counts as nothing, and so does what is added after [Work.Done].
func (w *Work) Add(cpu time.Duration, bytes int64) {
	w.account.mu.Lock()
	defer w.account.mu.Unlock()
	w.used.CPU += max(cpu, 0)
	w.used.Memory += max(bytes, 0)
}

// Done ends the execution. A second call changes nothing.
func (w *Work) Done() {
	a := w.account
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.Index(a.active, w); i >= 0 {
		a.active = slices.Delete(a.active, i, i+1)
		a.done.include(w.used)
	}
}

// Usage reads what the task has used so far, also while it works.
func (t *Task) Usage() Usage {
	t.mu.Lock()
	a := t.account
	t.mu.Unlock()
	if a == nil {
		return Usage{}
	}
	return a.read()
}

// GroupUsage is what the tasks of one workload group that are running now use together.
type GroupUsage struct {
	// CPU adds up, for each task, the time it has had on processors as a share of the time since it started. 1 is one
	// processor kept busy all along.
	CPU float64
	// Memory adds up the bytes that the tasks have taken since they started.
	Memory int64
}

// GroupUsage reads the usage of all groups that have tasks now, by group id. Tasks that have not been given a group do not
// count.
func (m *Manager) GroupUsage() map[string]GroupUsage {
	usage := make(map[string]GroupUsage)
	for _, t := range m.live() {
		group := t.Group()
		if group == "" {
			continue
		}
		total, running := t.Usage().Total, t.Running()
		sum := usage[group]
		if running > 0 {
			sum.CPU += float64(total.CPU) / float64(running)
		}
		sum.Memory += total.Memory
		usage[group] = sum
	}
	return usage
}
