package rest

import (
	"context"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/wlmserver/wlmserver/internal/units"
)

func (s *Server) nodesRoutes() []route {
	const params = "timeout flat_settings"
	return []route{
		{methods: "GET", pattern: "/_nodes", params: params, view: true, prepare: s.nodes},
		{methods: "GET", pattern: "/_nodes/{first}", params: params, view: true, prepare: s.nodes},
		{methods: "GET", pattern: "/_nodes/{first}/{metrics}", params: params, view: true, prepare: s.nodes},
		{methods: "GET", pattern: "/_nodes/{first}/info/{metrics}", params: params, view: true, prepare: s.nodes},
	}
}

// nodesDTO tells how many nodes were asked and answered.
type nodesDTO struct {
	Total      int        `json:"total"`
	Successful int        `json:"successful"`
	Failed     int        `json:"failed"`
	Failures   []*failure `json:"failures,omitempty"`
}

type nodesInfoDTO struct {
	Count       nodesDTO `json:"_nodes"`
	ClusterName string   `json:"cluster_name"`
	Nodes       members  `json:"nodes"`
}

type nodeInfoDTO struct {
	Name             string            `json:"name"`
	TransportAddress string            `json:"transport_address"`
	Host             string            `json:"host"`
	IP               string            `json:"ip"`
	Version          string            `json:"version"`
	BuildType        string            `json:"build_type"`
	BuildHash        string            `json:"build_hash"`
	Roles            []string          `json:"roles"`
	Attributes       map[string]string `json:"attributes"`
	Settings         members           `json:"settings,omitzero"`
	OS               *osDTO            `json:"os,omitempty"`
	Process          *processDTO       `json:"process,omitempty"`
	JVM              *jvmDTO           `json:"jvm,omitempty"`
	ThreadPool       members           `json:"thread_pool,omitzero"`
	Transport        *transportDTO     `json:"transport,omitempty"`
	HTTP             *httpDTO          `json:"http,omitempty"`
}

type osDTO struct {
	RefreshMillis       int    `json:"refresh_interval_in_millis"`
	Name                string `json:"name"`
	PrettyName          string `json:"pretty_name"`
	Arch                string `json:"arch"`
	AvailableProcessors int    `json:"available_processors"`
	AllocatedProcessors int    `json:"allocated_processors"`
}

type processDTO struct {
	RefreshMillis int  `json:"refresh_interval_in_millis"`
	ID            int  `json:"id"`
	Mlockall      bool `json:"mlockall"`
}

// jvmDTO has no virtual machine to tell of; clients size what they do by the heap.
type jvmDTO struct {
	PID         int   `json:"pid"`
	StartMillis int64 `json:"start_time_in_millis"`
	Mem         struct {
		HeapMax      string `json:"heap_max,omitempty"`
		HeapMaxBytes int64  `json:"heap_max_in_bytes"`
	} `json:"mem"`
}

type poolDTO struct {
	Type      string `json:"type"`
	Size      int    `json:"size"`
	QueueSize int    `json:"queue_size"`
}

type transportDTO struct {
	BoundAddress   []string `json:"bound_address"`
	PublishAddress string   `json:"publish_address"`
	Profiles       members  `json:"profiles"`
}

type httpDTO struct {
	BoundAddress     []string `json:"bound_address"`
	PublishAddress   string   `json:"publish_address"`
	MaxContentLength string   `json:"max_content_length,omitempty"`
	MaxContentBytes  int64    `json:"max_content_length_in_bytes"`
}

// nodeMetrics are the parts of a node's description that may be asked for. Those that this server has nothing to tell
// of are known all the same, so that they are not taken for names of nodes.
var nodeMetrics = [...]string{"settings", "os", "process", "jvm", "thread_pool", "transport", "http",
	"plugins", "ingest", "aggregations", "indices", "search_pipelines", "_all", "_none"}

// notInfo are what OpenSearch has below _nodes beside descriptions, and this server does not.
var notInfo = [...]string{"stats", "usage", "hot_threads", "hotthreads", "reload_secure_settings"}

func (s *Server) nodes(c *call) (action, error) {
	first, metrics := splitList(c.param("first")), splitTrimmed(c.param("metrics"))
	for part := range strings.SplitSeq(c.path, "/") { // as it was sent: with an escape in it, it is the name of a node
		if slices.Contains(notInfo[:], part) {
			return nil, noHandler(c.r)
		}
	}
	ids := first
	asMetrics := splitTrimmed(c.param("first"))
	if metrics == nil && len(first) > 0 && !slices.ContainsFunc(asMetrics, func(m string) bool { return !slices.Contains(nodeMetrics[:], m) }) {
		ids, metrics = nil, asMetrics
	}
	flat, err := c.flag("flat_settings", false)
	if err != nil {
		return nil, err
	}
	wait, err := c.nodeTimeout()
	if err != nil {
		return nil, err
	}
	return func() (*answer, error) {
		return show(c, view[any]{
			action: "cluster:monitor/nodes/info", members: c.named(ids), wait: wait,
			own:  func(context.Context) (any, error) { return s.nodeInfo(metrics, flat, c.human), nil },
			read: verbatim, merge: s.byNode,
		})
	}, nil
}

// nodeTimeout is how long other nodes have for their answers.
func (c *call) nodeTimeout() (time.Duration, error) {
	if err := c.checkTimeouts(); err != nil {
		return 0, err
	}
	return c.duration("timeout", nodeWait)
}

// byNode puts what nodes tell below their ids.
func (s *Server) byNode(parts []part[any]) (*answer, error) {
	d := nodesInfoDTO{Count: tally(parts), ClusterName: s.cfg.Node.ClusterName, Nodes: members{}}
	for _, p := range parts {
		if p.failed == nil {
			d.Nodes = append(d.Nodes, member{p.member.ID, p.value})
		}
	}
	return ok(d)
}

// nodeInfo describes this node; without metrics, all of it.
func (s *Server) nodeInfo(metrics []string, flat, human bool) nodeInfoDTO {
	n := s.cfg.Node
	d := nodeInfoDTO{
		Name: n.Name, TransportAddress: n.TransportAddress, Host: n.Host, IP: n.IP,
		Version: Version, BuildType: buildType, BuildHash: n.Build.hash(),
		Roles: n.roles(), Attributes: n.attributes(),
	}
	wanted := func(m string) bool {
		return len(metrics) == 0 || slices.Contains(metrics, m) || slices.Contains(metrics, "_all")
	}
	if wanted("settings") {
		d.Settings = settingsTree(n.Settings, flat)
	}
	if wanted("os") {
		d.OS = &osDTO{RefreshMillis: 1000, Name: runtime.GOOS, PrettyName: runtime.GOOS, Arch: runtime.GOARCH,
			AvailableProcessors: runtime.NumCPU(), AllocatedProcessors: n.Processors}
	}
	if wanted("process") {
		d.Process = &processDTO{RefreshMillis: 1000, ID: os.Getpid()}
	}
	if wanted("jvm") {
		d.JVM = &jvmDTO{PID: os.Getpid(), StartMillis: n.Started.UnixMilli()}
		d.JVM.Mem.HeapMaxBytes = n.HeapSize
		if human {
			d.JVM.Mem.HeapMax = units.HumanBytes(n.HeapSize)
		}
	}
	if wanted("thread_pool") {
		d.ThreadPool = members{{"search", poolDTO{Type: "resizable", Size: n.SearchThreads, QueueSize: n.SearchQueue}}}
	}
	if wanted("transport") {
		d.Transport = &transportDTO{BoundAddress: []string{n.TransportAddress}, PublishAddress: n.TransportAddress, Profiles: members{}}
	}
	if wanted("http") {
		most := s.cfg.Limits.MaxContentLength
		d.HTTP = &httpDTO{BoundAddress: []string{n.HTTPAddress}, PublishAddress: n.HTTPAddress, MaxContentBytes: most}
		if human {
			d.HTTP.MaxContentLength = units.HumanBytes(most)
		}
	}
	return d
}

// roles and attributes are never null: strict clients want them.
func (n NodeInfo) roles() []string { return append([]string{}, n.Roles...) }

func (n NodeInfo) attributes() map[string]string {
	if n.Attributes == nil {
		return map[string]string{}
	}
	return n.Attributes
}
