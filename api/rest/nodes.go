package rest

import (
	"net"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/wlmserver/wlmserver/internal/units"
)

func (s *Server) nodesRoutes() []route {
	const params = "timeout flat_settings"
	return []route{
		{methods: "GET", pattern: "/_nodes", params: params, prepare: s.nodes},
		{methods: "GET", pattern: "/_nodes/{first}", params: params, prepare: s.nodes},
		{methods: "GET", pattern: "/_nodes/{first}/{metrics}", params: params, prepare: s.nodes},
		{methods: "GET", pattern: "/_nodes/{first}/info/{metrics}", params: params, prepare: s.nodes},
	}
}

// nodesDTO tells how many nodes were asked and answered.
type nodesDTO struct {
	Total      int        `json:"total"`
	Successful int        `json:"successful"`
	Failed     int        `json:"failed"`
	Failures   []*failure `json:"failures,omitempty"`
}

// answered is the count of an answer that only this node, or none, has given.
func answered(nodes int) nodesDTO { return nodesDTO{Total: nodes, Successful: nodes} }

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
	first, metrics := splitList(c.param("first")), splitList(c.param("metrics"))
	for _, part := range slices.Concat(first, metrics) {
		if slices.Contains(notInfo[:], part) {
			return nil, noHandler(c.r)
		}
	}
	ids := first
	if metrics == nil && len(first) > 0 && !slices.ContainsFunc(first, func(m string) bool { return !slices.Contains(nodeMetrics[:], m) }) {
		ids, metrics = nil, first
	}
	flat, err := c.flag("flat_settings", false)
	if err != nil {
		return nil, err
	}
	if err := c.checkTimeouts(); err != nil {
		return nil, err
	}
	return func() (*answer, error) {
		return c.asTask("cluster:monitor/nodes/info", true, func() (*answer, error) {
			d := nodesInfoDTO{ClusterName: s.cfg.Node.ClusterName, Nodes: members{}}
			if s.isThisNode(ids) {
				d.Count = answered(1)
				d.Nodes = members{{s.cfg.Node.ID, s.nodeInfo(metrics, flat, c.human)}}
			}
			return ok(d)
		})
	}, nil
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

// isThisNode says whether a list of node expressions means this node: its id, name, address, a pattern of one of those,
// a role or attribute such as data:true, or _all, _local, _cluster_manager. One such as data:false takes the node out
// again. No expression at all means every node.
func (s *Server) isThisNode(expressions []string) bool {
	if len(expressions) == 0 {
		return true
	}
	n := s.cfg.Node
	in := false
	for _, x := range expressions {
		switch x {
		case "_all", "_local", "_cluster_manager", "_master":
			in = true
			continue
		}
		if key, value, ok := strings.Cut(x, ":"); ok && net.ParseIP(x) == nil && x != n.TransportAddress {
			switch {
			case value == "true" && n.hasRole(key), value != "" && n.Attributes[key] == value:
				in = true
			case value == "false" && n.hasRole(key):
				in = false
			}
			continue
		}
		for _, name := range [...]string{n.ID, n.Name, n.Host, n.IP, n.TransportAddress} {
			if matched, err := path.Match(x, name); err == nil && matched {
				in = true
			}
		}
	}
	return in
}

func (n NodeInfo) hasRole(role string) bool {
	return slices.Contains(n.Roles, role) || role == "master" && slices.Contains(n.Roles, "cluster_manager")
}

// roles and attributes are never null: strict clients want them.
func (n NodeInfo) roles() []string { return append([]string{}, n.Roles...) }

func (n NodeInfo) attributes() map[string]string {
	if n.Attributes == nil {
		return map[string]string{}
	}
	return n.Attributes
}
