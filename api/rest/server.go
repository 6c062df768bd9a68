package rest

import (
	"cmp"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"github.com/wlmserver/wlmserver/auth"
	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/stub"
	"github.com/wlmserver/wlmserver/rules"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/settings"
	"github.com/wlmserver/wlmserver/stats"
	"github.com/wlmserver/wlmserver/tasks"
	"github.com/wlmserver/wlmserver/wlm"
)

const (
	// Version is the OpenSearch version that the API speaks, as clients read it from GET /.
	Version = "3.7.0"
	// versionID is Version as indices carry the version that made them: two digits a part, and a mark that tells the family.
	versionID = "137287827"
	// Distribution tells clients which family of servers the API belongs to.
	Distribution = "opensearch"
)

// Config is what a [Server] works with. All of it is required, but for what says otherwise.
type Config struct {
	Search    *search.Service
	Stats     *stats.Reader
	Groups    *groups.Registry
	Rules     *rules.Registry
	Settings  *settings.Registry
	Tasks     *tasks.Manager
	Auth      *auth.Authenticator
	Admission *wlm.Admission
	Stub      *stub.Engine
	Node      NodeInfo
	Limits    Limits
	Log       zerolog.Logger
	// Cluster is what the node knows of the others; nil for a node alone.
	Cluster Cluster
	// Permits reads what permits of shared limits this node has given out to nodes of the cluster; nil where nobody does. It may be
	// called at any time, by any goroutine.
	Permits func() Permits
	// Control adds the routes under /_stub, with which tests of clients script faults, read what came in, and reset the server. It
	// keeps a copy of each request.
	Control bool
}

// NodeInfo is what the node tells about itself. It does not change while the server runs.
type NodeInfo struct {
	ID, Name                 string
	ClusterName, ClusterUUID string

	// TransportAddress (host:port), Host and IP are printed as they are. HTTPAddress (host:port) is where clients reach
	// this server.
	TransportAddress, Host, IP string
	HTTPAddress                string

	Roles      []string
	Attributes map[string]string
	// Settings is the configuration as GET _nodes shows it, without secrets.
	Settings []settings.KV

	Build      Build
	Started    time.Time
	HeapSize   int64 // bytes
	Processors int
	// SearchThreads and SearchQueue are the size of the search thread pool and of its queue.
	SearchThreads, SearchQueue int
}

// Build says which build of this program runs. What is empty is not known.
type Build struct {
	Version string // of this program, not of the API; printed as the hash where there is none
	Hash    string
	Date    string // RFC 3339
}

func (b Build) hash() string { return cmp.Or(b.Hash, b.Version, unknownBuild) }

// Limits bound what one request, and all of them together, may take. All are in bytes; zero stands for OpenSearch's
// default, and for MaxInFlightBytes for no limit.
type Limits struct {
	MaxContentLength     int64
	MaxHeaderSize        int64
	MaxInitialLineLength int64
	MaxInFlightBytes     int64
}

func (l Limits) withDefaults() Limits {
	def := func(v *int64, d int64) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&l.MaxContentLength, 100<<20)
	def(&l.MaxHeaderSize, 16<<10)
	def(&l.MaxInitialLineLength, 4<<10)
	return l
}

// Server answers OpenSearch's REST API. It is safe for concurrent use.
type Server struct {
	cfg Config

	table  *routeTable
	bodies *budget

	// Values of headers that are always the same. Nobody changes them.
	sayVersion, sayJSON []string

	compressor  *compressor
	watch       *watch
	connections connections
	control     *control // nil without control routes
}

// New makes a server that is ready to answer. Close it after the http.Server that it serves has been shut down.
func New(c Config) *Server {
	c.Limits = c.Limits.withDefaults()
	s := &Server{
		cfg:    c,
		bodies: &budget{limit: c.Limits.MaxInFlightBytes},

		sayVersion: []string{"OpenSearch/" + Version + " (" + Distribution + ")"},
		sayJSON:    []string{jsonType},

		compressor: newCompressor(),
		watch:      newWatch(),
	}
	if c.Control {
		s.control = &control{}
	}
	s.table = newTable(s.routes())
	return s
}

// Configure sets what the HTTP server around the handler needs: the handler, the hooks that let the server notice
// clients that have gone and count connections, and header limits loose enough for this package to answer them itself,
// in OpenSearch's shape. It sets no timeout.
func (s *Server) Configure(h *http.Server) {
	h.Handler = s.Handler()
	h.ConnContext = s.ConnContext
	h.ConnState = s.connections.follow(h.ConnState)
	h.MaxHeaderBytes = int(max(http.DefaultMaxHeaderBytes, 4*(s.cfg.Limits.MaxHeaderSize+s.cfg.Limits.MaxInitialLineLength)))
}

// Handler answers every request.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// Close ends the watch for clients that have gone. Requests that are still being served are no longer watched.
func (s *Server) Close() { s.watch.close() }
