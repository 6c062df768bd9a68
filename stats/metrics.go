package stats

import (
	"io"
	"maps"
	"runtime"
	"runtime/metrics"
	"slices"

	"github.com/wlmserver/wlmserver/tasks"
)

// WriteMetrics writes all numbers in Prometheus' text format, then the extra
// ones of the caller. Groups are labelled with their names, and with their
// ids, which are new when a name is used again; users and roles never show.
func (r *Reader) WriteMetrics(w io.Writer, extra ...Metric) error {
	all := slices.Concat(groupMetrics(r.Groups()), r.nodeMetrics(), extra)
	var text []byte
	for _, m := range all {
		text = m.appendText(text)
	}
	_, err := w.Write(text)
	return err
}

// groupMetrics gives each number of the groups as one metric with a sample per
// group.
func groupMetrics(all []GroupStats) []Metric {
	per := func(name, help string, k Kind, value func(*GroupStats) float64) Metric {
		m := Metric{Name: "wlmserver_group_" + name, Help: help, Kind: k}
		for i := range all {
			m.Samples = append(m.Samples, Sample{Labels: groupLabels(&all[i]), Value: value(&all[i])})
		}
		return m
	}
	running := Metric{Name: "wlmserver_group_running", Kind: Gauge,
		Help: "Searches that run now. A tracked one counts against a limit of its group."}
	for i := range all {
		g := &all[i]
		running.Samples = append(running.Samples,
			Sample{Labels: append(groupLabels(g), tracked(true)), Value: float64(g.RunningTracked)},
			Sample{Labels: append(groupLabels(g), tracked(false)), Value: float64(g.RunningUntracked)})
	}
	return []Metric{
		per("admitted_total", "Searches that were let run, at once or after a wait.", Counter,
			func(g *GroupStats) float64 { return float64(g.Admitted) }),
		per("refused_total", "Searches that were refused, by a limit or because the node stops.", Counter,
			func(g *GroupStats) float64 { return float64(g.Refused) }),
		per("cancelled_total", "Searches that were cancelled before they were admitted.", Counter,
			func(g *GroupStats) float64 { return float64(g.Cancelled) }),
		per("completions_total", "Tasks of searches that ran and ended: the search's own, one per shard query, one per separate fetch.", Counter,
			func(g *GroupStats) float64 { return float64(g.Completions) }),
		per("rejections_total", "Searches refused for what their group uses.", Counter,
			func(g *GroupStats) float64 { return float64(g.Rejections) }),
		per("cancellations_total", "Searches cancelled for what their group uses.", Counter,
			func(g *GroupStats) float64 { return float64(g.Cancellations) }),
		per("throttled_total", "Searches refused by a throttle limit, with a queue or without.", Counter,
			func(g *GroupStats) float64 { return float64(g.Throttled) }),
		per("would_throttle_total", "Searches that a monitoring group let run over its limit.", Counter,
			func(g *GroupStats) float64 { return float64(g.WouldThrottle) }),
		per("queued_total", "Searches that started to wait.", Counter,
			func(g *GroupStats) float64 { return float64(g.Queued) }),
		per("queue_rejections_total", "Throttled searches that found the queue full.", Counter,
			func(g *GroupStats) float64 { return float64(g.QueueRejections) }),
		per("queue_waits_total", "Searches admitted out of the queue.", Counter,
			func(g *GroupStats) float64 { return float64(g.QueueWaits) }),
		per("queue_wait_seconds_total", "Time that searches admitted out of the queue had waited.", Counter,
			func(g *GroupStats) float64 { return seconds(g.QueueWaitMillis) }),
		per("queue_wait_seconds_max", "The longest wait of a search admitted out of the queue.", Gauge,
			func(g *GroupStats) float64 { return seconds(g.MaxQueueWaitMillis) }),
		per("evictions_total", "Searches that left the queue without being admitted.", Counter,
			func(g *GroupStats) float64 { return float64(g.Evicted) }),
		per("queued", "Searches that wait now, without those whose question to the bucket's owner is under way.", Gauge,
			func(g *GroupStats) float64 { return float64(g.QueuedCurrent) }),
		per("queued_peak", "The most searches that have waited at once.", Gauge,
			func(g *GroupStats) float64 { return float64(g.QueuePeak) }),
		per("waiters", "Searches that are parked now, with those whose question to the bucket's owner is under way.", Gauge,
			func(g *GroupStats) float64 { return float64(g.Waiters) }),
		running,
		per("cpu_usage_ratio", "Share of the node's processors that the running tasks have used since they started.", Gauge,
			func(g *GroupStats) float64 { return g.CPUUsage }),
		per("memory_usage_ratio", "Share of the node's heap that the running tasks have taken since they started.", Gauge,
			func(g *GroupStats) float64 { return g.MemoryUsage }),
	}
}

// nodeMetrics gives the numbers that belong to no group.
func (r *Reader) nodeMetrics() []Metric {
	t := r.source.Admission.Totals()
	evictions := Metric{Name: "wlmserver_evictions_total", Kind: Counter,
		Help: "Searches that left a queue without being admitted, by what ended their wait."}
	for k := tasks.ByUser; k <= tasks.ByShutdown; k++ { // from the start, so that a first one shows as a rise
		t.EvictedBy[k.String()] += 0
	}
	for _, cause := range slices.Sorted(maps.Keys(t.EvictedBy)) {
		evictions.Samples = append(evictions.Samples,
			Sample{Labels: []Label{{"cause", cause}}, Value: float64(t.EvictedBy[cause])})
	}
	goroutines, heap := goRuntime()
	return []Metric{
		single("wlmserver_buckets", "Buckets of throttled searches that are kept now.", Gauge, float64(t.Buckets)),
		single("wlmserver_waiters", "Searches that are parked now, those of deleted groups included.", Gauge, float64(t.Waiters)),
		{Name: "wlmserver_running", Kind: Gauge,
			Help: "Searches that run now, those of deleted groups included. A tracked one counts against a limit.",
			Samples: []Sample{
				{Labels: []Label{tracked(true)}, Value: float64(t.Tracked)},
				{Labels: []Label{tracked(false)}, Value: float64(t.Untracked)},
			}},
		evictions,
		single("wlmserver_unattributed_total", "Searches let run because their group throttles by a user or role that they do not have.", Counter, float64(t.Unattributed)),
		single("wlmserver_unused_permits_total", "Permits of shared limits that came when nobody waited any more, and went back.", Counter, float64(t.Unused)),
		single("wlmserver_sweep_recovered_total", "Waiters that only the backstop sweep found. Anything but 0 is a defect.", Counter, float64(t.Recovered)),
		single("wlmserver_permits_reclosed_total", "Permits that were closed a second time. Anything but 0 is a defect.", Counter, float64(t.Reclosed)),
		single("wlmserver_tasks", "Tasks that run now, parked searches included.", Gauge, float64(r.source.Tasks.Len())),
		single("wlmserver_go_goroutines", "Goroutines of the process.", Gauge, goroutines),
		single("wlmserver_go_heap_bytes", "Bytes that live and not yet collected objects take.", Gauge, heap),
		single("wlmserver_process_start_time_seconds", "When the process started, in seconds since 1970.", Gauge, float64(r.source.Started.UnixMilli())/1000),
		{Name: "wlmserver_build_info", Kind: Gauge, Help: "What was built, in the labels. Always 1.",
			Samples: []Sample{{Labels: []Label{{"version", r.source.Version}, {"go_version", runtime.Version()}}, Value: 1}}},
	}
}

func single(name, help string, k Kind, value float64) Metric {
	return Metric{Name: name, Help: help, Kind: k, Samples: []Sample{{Value: value}}}
}

func groupLabels(g *GroupStats) []Label {
	return []Label{{"group", g.Name}, {"group_id", g.Group}}
}

func tracked(yes bool) Label {
	if yes {
		return Label{"tracked", "true"}
	}
	return Label{"tracked", "false"}
}

func seconds(millis uint64) float64 { return float64(millis) / 1000 }

// goRuntime reads the runtime's own numbers, without stopping it.
func goRuntime() (goroutines, heapBytes float64) {
	samples := []metrics.Sample{{Name: "/sched/goroutines:goroutines"}, {Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(samples)
	return float64(samples[0].Value.Uint64()), float64(samples[1].Value.Uint64())
}
