// Package stats is one reading of everything that is counted on a node, for
// the statistics API and for Prometheus.
//
// It holds no counters of its own: each one moves where what it counts is
// decided, and is only read here.
package stats

import (
	"runtime"
	"time"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/tasks"
	"github.com/wlmserver/wlmserver/wlm"
)

// Source is where the numbers come from.
type Source struct {
	Admission *wlm.Admission
	Tasks     *tasks.Manager
	// Groups gives the names of the groups in metrics; without it they go by
	// their ids.
	Groups func() *groups.Snapshot

	HeapSize   int64 // bytes that a memory usage of 1 means; 0 where unknown, and then it reads 0
	Processors int   // processors that a CPU usage of 1 means; 0 stands for those that Go uses

	Version string    // of this build
	Started time.Time // of the process; zero stands for the call of New
}

// Reader reads the numbers. It is safe for concurrent use.
type Reader struct {
	source Source
}

// New makes a reader.
func New(s Source) *Reader {
	if s.Started.IsZero() {
		s.Started = time.Now()
	}
	return &Reader{source: s}
}

// GroupStats is what is counted of one workload group, and what its tasks use
// now.
type GroupStats struct {
	wlm.GroupCounters
	Name string

	CPUUsage    float64 // of the node's processors, since each task started; 1 is all of them, all the time
	MemoryUsage float64 // of the node's heap; 1 is all of it
}

// Groups reads every group, the default group too, in the order of their ids.
// The tasks of a group that is gone count in the default group.
func (r *Reader) Groups() []GroupStats {
	names := r.names()
	counters := r.source.Admission.Counters()
	all := make([]GroupStats, len(counters))
	index := make(map[string]int, len(counters))
	for i, c := range counters {
		all[i] = GroupStats{GroupCounters: c, Name: c.Group}
		if name, ok := names[c.Group]; ok {
			all[i].Name = name
		}
		index[c.Group] = i
	}
	processors := float64(r.source.Processors)
	if processors == 0 {
		processors = float64(runtime.GOMAXPROCS(0))
	}
	for id, used := range r.source.Tasks.GroupUsage() {
		i, ok := index[id]
		if !ok {
			i = index[groups.DefaultID]
		}
		all[i].CPUUsage += used.CPU / processors
		if r.source.HeapSize > 0 {
			all[i].MemoryUsage += float64(used.Memory) / float64(r.source.HeapSize)
		}
	}
	return all
}

// names gives the groups' names by their ids.
func (r *Reader) names() map[string]string {
	names := make(map[string]string)
	if r.source.Groups == nil {
		return names
	}
	for _, g := range r.source.Groups().All() {
		names[g.ID] = g.Name
	}
	return names
}
