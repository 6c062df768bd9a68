package rest

import (
	"context"
	"runtime/debug"
	"slices"
	"time"

	"github.com/wlmserver/wlmserver/internal/units"
)

func (s *Server) nodeStatsRoutes() []route {
	return []route{
		{methods: "GET", pattern: "/_nodes/stats", params: "timeout", view: true, prepare: s.nodeStats},
		{methods: "GET", pattern: "/_nodes/stats/{metrics}", params: "timeout", view: true, prepare: s.nodeStats},
		{methods: "GET", pattern: "/_nodes/{nodes}/stats", params: "timeout", view: true, prepare: s.nodeStats},
		{methods: "GET", pattern: "/_nodes/{nodes}/stats/{metrics}", params: "timeout", view: true, prepare: s.nodeStats},
	}
}

// statsMetrics are the parts of a node's statistics that may be asked for. Those from os on are OpenSearch's, of which this
// server has nothing to tell.
var statsMetrics = [...]string{"indices", "process", "jvm", "thread_pool", "http", "search_backpressure", "task_cancellation",
	"os", "fs", "transport", "breaker", "script", "discovery", "ingest", "adaptive_selection", "script_cache", "indexing_pressure",
	"shard_indexing_pressure", "cluster_manager_throttling", "weighted_routing", "file_cache", "search_pipeline",
	"resource_usage_stats", "segment_replication_backpressure", "repositories", "admission_control", "caches", "remote_store"}

// everyMetric asks for all that there is.
const everyMetric = "_all"

type nodeStatsDTO struct {
	Timestamp          int64             `json:"timestamp"`
	Name               string            `json:"name"`
	TransportAddress   string            `json:"transport_address"`
	Host               string            `json:"host"`
	IP                 string            `json:"ip"` // with the port, as OpenSearch prints it here
	Roles              []string          `json:"roles"`
	Attributes         map[string]string `json:"attributes"`
	Indices            *indicesStatsDTO  `json:"indices,omitempty"`
	Process            *processStatsDTO  `json:"process,omitempty"`
	JVM                *jvmStatsDTO      `json:"jvm,omitempty"`
	ThreadPool         members           `json:"thread_pool,omitzero"`
	HTTP               *httpStatsDTO     `json:"http,omitempty"`
	SearchBackpressure *backpressureDTO  `json:"search_backpressure,omitempty"`
	TaskCancellation   *lateTasksDTO     `json:"task_cancellation,omitempty"`
	NativeMemory       nativeMemoryDTO   `json:"native_memory"`
}

type indicesStatsDTO struct {
	Docs struct {
		Count   int `json:"count"`
		Deleted int `json:"deleted"`
	} `json:"docs"`
}

type processStatsDTO struct {
	Timestamp int64 `json:"timestamp"`
	OpenFiles int   `json:"open_file_descriptors"`
	MaxFiles  int64 `json:"max_file_descriptors"`
	CPU       struct {
		Percent     int    `json:"percent"` // -1: not measured
		Total       string `json:"total,omitempty"`
		TotalMillis int64  `json:"total_in_millis"`
	} `json:"cpu"`
	Mem struct {
		TotalVirtual      string `json:"total_virtual,omitempty"`
		TotalVirtualBytes int64  `json:"total_virtual_in_bytes"`
	} `json:"mem"`
}

// jvmStatsDTO tells of Go's heap, as part of the heap size that the node was given.
type jvmStatsDTO struct {
	Timestamp    int64  `json:"timestamp"`
	Uptime       string `json:"uptime,omitempty"`
	UptimeMillis int64  `json:"uptime_in_millis"`
	Mem          struct {
		HeapUsed        string `json:"heap_used,omitempty"`
		HeapUsedBytes   int64  `json:"heap_used_in_bytes"`
		HeapUsedPercent int    `json:"heap_used_percent"`
		HeapMax         string `json:"heap_max,omitempty"`
		HeapMaxBytes    int64  `json:"heap_max_in_bytes"`
		// Pools is empty: the heap is one. Benchmarks go through it, and read both collectors.
		Pools struct{} `json:"pools"`
	} `json:"mem"`
	GC struct {
		Collectors struct {
			Young collectorDTO `json:"young"` // always zero: the collector has no generations
			Old   collectorDTO `json:"old"`
		} `json:"collectors"`
	} `json:"gc"`
}

// collectorDTO counts collections, and how long they had everything stand still.
type collectorDTO struct {
	Count  int64  `json:"collection_count"`
	Time   string `json:"collection_time,omitempty"`
	Millis int64  `json:"collection_time_in_millis"`
}

type poolStatsDTO struct {
	Threads   int    `json:"threads"`
	Queue     int    `json:"queue"`
	Active    int    `json:"active"`
	Rejected  uint64 `json:"rejected"`
	Largest   int    `json:"largest"`
	Completed uint64 `json:"completed"`
	Wait      string `json:"total_wait_time,omitempty"`
	WaitNanos int64  `json:"total_wait_time_in_nanos"`
}

type httpStatsDTO struct {
	Open   int64 `json:"current_open"`
	Opened int64 `json:"total_opened"`
}

// nativeMemoryDTO ends every node's statistics. There is no memory here that is counted apart from the heap.
type nativeMemoryDTO struct {
	Bytes int64 `json:"total_estimated_bytes"`
}

func (s *Server) nodeStats(c *call) (action, error) {
	ids, metrics := splitList(c.param("nodes")), splitTrimmed(c.param("metrics"))
	if err := c.checkMetricsOf("a node", metrics, statsMetrics[:]); err != nil {
		return nil, err
	}
	wait, err := c.nodeTimeout()
	if err != nil {
		return nil, err
	}
	return func() (*answer, error) {
		return show(c, view[any]{
			action: "cluster:monitor/nodes/stats", members: c.named(ids), wait: wait,
			own:  func(context.Context) (any, error) { return s.statsOfNode(metrics, c.human) },
			read: verbatim, merge: s.byNode,
		})
	}, nil
}

// statsOfNode are the statistics of this node; without metrics, all of them.
func (s *Server) statsOfNode(metrics []string, human bool) (*nodeStatsDTO, error) {
	n, now := s.cfg.Node, time.Now()
	d := &nodeStatsDTO{
		Timestamp: now.UnixMilli(), Name: n.Name, TransportAddress: n.TransportAddress, Host: n.Host, IP: n.TransportAddress,
		Roles: n.roles(), Attributes: n.attributes(),
	}
	wanted := func(m string) bool {
		return len(metrics) == 0 || slices.Contains(metrics, m) || slices.Contains(metrics, everyMetric)
	}
	if wanted("indices") {
		indices, err := s.cfg.Stub.Indices("")
		if err != nil {
			return nil, err
		}
		d.Indices = &indicesStatsDTO{}
		for _, x := range indices {
			d.Indices.Docs.Count += x.Documents
		}
	}
	if wanted("process") {
		d.Process = newProcessStats(now, human)
	}
	if wanted("jvm") {
		d.JVM = newJVMStats(n, now, human)
	}
	if wanted("thread_pool") {
		p := s.cfg.Stub.PoolStats()
		stats := poolStatsDTO{Threads: p.Threads, Queue: p.Queue, Active: p.Active, Rejected: p.Rejected, Largest: p.Largest,
			Completed: p.Completed, WaitNanos: p.Wait.Nanoseconds()}
		if human {
			stats.Wait = units.HumanTime(p.Wait)
		}
		d.ThreadPool = members{{searchPool, stats}}
	}
	if wanted("http") {
		d.HTTP = &httpStatsDTO{Open: s.connections.open.Load(), Opened: s.connections.opened.Load()}
	}
	if wanted("search_backpressure") {
		d.SearchBackpressure = s.backpressure(human)
	}
	if wanted("task_cancellation") {
		d.TaskCancellation = s.lateTasks()
	}
	return d, nil
}

func newProcessStats(now time.Time, human bool) *processStatsDTO {
	m := readMachine()
	d := &processStatsDTO{Timestamp: now.UnixMilli(), OpenFiles: m.openFiles, MaxFiles: m.maxFiles}
	d.CPU.Percent, d.CPU.TotalMillis = -1, m.cpu.Milliseconds()
	d.Mem.TotalVirtualBytes = m.virtualMemory
	if human {
		d.CPU.Total, d.Mem.TotalVirtual = units.HumanTime(m.cpu), units.HumanBytes(m.virtualMemory)
	}
	return d
}

func newJVMStats(n NodeInfo, now time.Time, human bool) *jvmStatsDTO {
	up, used := now.Sub(n.Started), heapUsed()
	d := &jvmStatsDTO{Timestamp: now.UnixMilli(), UptimeMillis: up.Milliseconds()}
	d.Mem.HeapUsedBytes, d.Mem.HeapUsedPercent, d.Mem.HeapMaxBytes = used, percent(used, n.HeapSize), n.HeapSize
	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	young, old := &d.GC.Collectors.Young, &d.GC.Collectors.Old
	old.Count, old.Millis = gc.NumGC, gc.PauseTotal.Milliseconds()
	if human {
		young.Time, old.Time = units.HumanTime(0), units.HumanTime(gc.PauseTotal)
		d.Uptime, d.Mem.HeapUsed, d.Mem.HeapMax = units.HumanTime(up), units.HumanBytes(used), units.HumanBytes(n.HeapSize)
	}
	return d
}
