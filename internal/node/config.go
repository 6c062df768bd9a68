package node

import (
	"context"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"github.com/wlmserver/wlmserver/auth"
	"github.com/wlmserver/wlmserver/internal/stub"
	"github.com/wlmserver/wlmserver/internal/units"
	"github.com/wlmserver/wlmserver/settings"
	"github.com/wlmserver/wlmserver/wlm"
)

// Config is what one node is made of. The zero value is not usable: begin with [Load], or with [Default] in a test.
type Config struct {
	ClusterName     string
	NodeName        string
	HeapSize        int64 // bytes
	ShutdownTimeout time.Duration
	DataPath        string

	Cluster       ClusterConfig
	Compatibility string // version that the node behaves as; "" = that of the API

	HTTP           HTTPConfig
	Transport      TransportConfig
	Auth           auth.Config
	AllowAnonymous bool // on an address that is not the machine's own
	Log            LogConfig
	SearchPool     PoolConfig
	Stub           stub.Cost // of searches on indices that say nothing
	StubControl    bool      // routes under /_stub, for tests of clients

	// Settings are start values of dynamic cluster settings; a stored value wins over them.
	Settings map[string]string

	// Admission holds further options of the admission, such as a recorder or verification. They come from the program
	// that embeds the node, never from a file.
	Admission []wlm.Option
	// Sweepless leaves out the admission's backstop sweep, so that a test shows that nothing depends on it. It comes from the program too.
	Sweepless bool
}

// HTTPConfig says where the node listens and what a request may weigh; sizes are bytes.
type HTTPConfig struct {
	Host                 string
	Port                 int    // 0 = any free one
	AddressFile          string // "" = none
	MaxContentLength     int64
	MaxHeaderSize        int64
	MaxInitialLineLength int64
	MaxInFlightBytes     int64
	Certificate, Key     string // PEM files; "" for both = no TLS
}

// ClusterConfig says where the metadata of a cluster are. Without endpoints the node is alone.
type ClusterConfig struct {
	Endpoints          []string // of etcd
	Prefix             string   // "" = by the cluster's name
	Username, Password string
	// PEM files for TLS with etcd; "" for all = no TLS.
	EtcdCertificate, EtcdKey, EtcdAuthorities string

	MemberTTL time.Duration
	Lease     time.Duration // of sessions between nodes
}

// TransportConfig says where other nodes reach this one.
type TransportConfig struct {
	Host                          string
	Port                          int    // 0 = any free one
	Certificate, Key, Authorities string // PEM files; "" for all = no TLS, and only this machine

	// Dial connects to another node's address; nil = over TCP. It comes from the program that embeds the node, never from a file.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// LogConfig says what is logged and how.
type LogConfig struct {
	Level  zerolog.Level
	Format string    // "console", "json", or "" = console when Output is a terminal
	Output io.Writer // nil = standard error; never from a file
}

// PoolConfig bounds a pool of workers.
type PoolConfig struct {
	Size      int
	QueueSize int
}

// Default returns the configuration of a node about which nothing was said.
func Default() Config {
	c, err := Load(Sources{})
	if err != nil {
		panic("node: a default of the table of keys does not pass its own check: " + err.Error())
	}
	return c
}

// startSettings are the start values of all settings, the static ones too, so that GET _cluster/settings tells what holds.
func (c Config) startSettings() map[string]string {
	start := map[string]string{
		"cluster.name":                  c.ClusterName,
		"node.name":                     c.NodeName,
		"node.heap_size":                units.FormatBytes(c.HeapSize),
		"node.shutdown_timeout":         units.FormatTime(c.ShutdownTimeout),
		"path.data":                     c.DataPath,
		"http.host":                     c.HTTP.Host,
		"http.port":                     strconv.Itoa(c.HTTP.Port),
		"http.max_content_length":       units.FormatBytes(c.HTTP.MaxContentLength),
		"http.max_header_size":          units.FormatBytes(c.HTTP.MaxHeaderSize),
		"http.max_initial_line_length":  units.FormatBytes(c.HTTP.MaxInitialLineLength),
		"http.max_in_flight_bytes":      units.FormatBytes(c.HTTP.MaxInFlightBytes),
		"thread_pool.search.size":       strconv.Itoa(c.SearchPool.Size),
		"thread_pool.search.queue_size": strconv.Itoa(c.SearchPool.QueueSize),
		"logger.level":                  c.Log.Level.String(),
	}
	if c.Log.Level == zerolog.Disabled {
		start["logger.level"] = levelOff
	}
	if c.Log.Format != "" {
		start["logger.format"] = c.Log.Format
	}
	maps.Copy(start, c.Settings)
	return start
}

// shown is the configuration as GET _nodes shows it, by key.
func (c Config) shown() []settings.KV {
	start := c.startSettings()
	all := make([]settings.KV, 0, len(start))
	for _, key := range slices.Sorted(maps.Keys(start)) {
		all = append(all, settings.KV{Key: key, Value: start[key]})
	}
	return all
}
