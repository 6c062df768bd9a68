package settings

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/wlmserver/wlmserver/internal/nearest"
)

// Keys of the settings that have an effect today.
const (
	// WLMMode says what workload management does: enabled, monitor_only or disabled.
	WLMMode = "wlm.workload_group.mode"
	// MaxGroups is the largest number of workload groups.
	MaxGroups = "node.workload_group.max_count"
	// MaxRules is the largest number of rules that give searches their group.
	MaxRules = "wlm.autotagging.max_rules"
	// CancelAfter is how long a search may take, its time in the queue included, before it is
	// cancelled; -1 is no limit.
	CancelAfter = "search.cancel_after_time_interval"
	// DefaultSearchTimeout is after how long a search that names no timeout returns what it has; -1
	// is no limit.
	DefaultSearchTimeout = "search.default_search_timeout"
	// AllowPartialResults says whether a search that does not say it itself may answer although
	// some of its shards failed.
	AllowPartialResults = "search.default_allow_partial_results"
	// MaxShards is how many shards one search may ask.
	MaxShards = "action.search.shard_count.limit"
	// MaxOpenScrolls is how many scrolls may be open on a node.
	MaxOpenScrolls = "search.max_open_scroll_context"
	// MaxScrollKeepAlive is the longest time for which a scroll may be kept open between two of its
	// pages; -1 is no limit.
	MaxScrollKeepAlive = "search.max_keep_alive"
)

// Type is the kind of value that a setting takes.
type Type string

const (
	Boolean Type = "boolean" // true or false
	Integer Type = "integer" // a whole number of 32 bits
	Long    Type = "long"    // a whole number of 64 bits
	Double  Type = "double"  // a finite decimal number
	Time    Type = "time"    // a duration with its unit, "300ms"; "-1" is no limit
	Bytes   Type = "bytes"   // a size with its unit, "64mb"
	Enum    Type = "enum"    // one of a list of words
	Text    Type = "text"    // any text
)

// readAs is the type that stands for all those whose values are read in the same way.
func (t Type) readAs() Type {
	switch t {
	case Integer, Bytes:
		return Long
	default:
		return t
	}
}

// Setting describes one entry of the catalogue.
type Setting struct {
	Key string
	// Default is printed as OpenSearch prints it. It is empty where the server works the value out
	// when it starts, such as the size of a thread pool.
	Default string
	Type    Type
	// Bounds says in words which values of the type are allowed; empty where all are.
	Bounds string
	// Dynamic settings can be changed while the server runs; the others only in the configuration file.
	Dynamic bool
	// Acts is false for a dynamic setting that is stored and checked but has no effect yet.
	Acts bool
	// Fallback is the deprecated key whose value stands in where this one is not set; mostly empty.
	Fallback string
}

// Catalogue lists every known setting, sorted by key.
func Catalogue() []Setting {
	c := newCatalogue()
	all := make([]Setting, len(c.definitions))
	for i, d := range c.definitions {
		all[i] = d.Setting
	}
	return all
}

// definition is a setting and the parser of its values.
type definition struct {
	Setting
	parse parser
}

// acting marks a setting that has an effect today.
func (d definition) acting() definition {
	d.Acts = true
	return d
}

// static marks a setting that only the configuration file can change; it always has its effect.
func (d definition) static() definition {
	d.Dynamic, d.Acts = false, true
	return d
}

// instead marks a setting that replaces a deprecated one.
func (d definition) instead(deprecated string) definition {
	d.Fallback = deprecated
	return d
}

// order is a dependency: the value of low must not be above the value of high.
type order struct{ low, high string }

// catalogue is the set of known settings, immutable.
type catalogue struct {
	definitions []definition   // sorted by key
	index       map[string]int // position in definitions by key
	orders      []order
}

func newCatalogue() *catalogue {
	c := &catalogue{
		definitions: slices.Concat(workloadSettings(), searchSettings(), backpressureSettings(), staticSettings()),
		index:       make(map[string]int),
	}
	for _, resource := range []string{"cpu", "memory"} {
		c.orders = append(c.orders, order{rejectionThreshold(resource), cancellationThreshold(resource)})
	}
	slices.SortFunc(c.definitions, func(a, b definition) int { return strings.Compare(a.Key, b.Key) })
	for i, d := range c.definitions {
		c.index[d.Key] = i
	}
	for _, o := range c.orders {
		c.describe(o.low, "at most "+o.high)
		c.describe(o.high, "at least "+o.low)
	}
	return c
}

// nearest is the known key that key most likely means; empty when none is near.
func (c *catalogue) nearest(key string) string {
	return nearest.Of(key, func(yield func(string) bool) {
		for _, d := range c.definitions {
			if !yield(d.Key) {
				return
			}
		}
	})
}

// describe adds a dependency to the bounds text of a setting.
func (c *catalogue) describe(key, dependency string) {
	d := &c.definitions[c.index[key]]
	d.Bounds += ", " + dependency
}

// lookup finds a setting by its exact key.
func (c *catalogue) lookup(key string) (definition, bool) {
	i, ok := c.index[key]
	if !ok {
		return definition{}, false
	}
	return c.definitions[i], true
}

func rejectionThreshold(resource string) string {
	return "wlm.workload_group.node." + resource + "_rejection_threshold"
}

func cancellationThreshold(resource string) string {
	return "wlm.workload_group.node." + resource + "_cancellation_threshold"
}

func workloadSettings() []definition {
	all := []definition{
		enum(WLMMode, "enabled", "enabled", "monitor_only", "disabled").acting(),
		integer("wlm.workload_group.duress_streak", "3", 3, math.MaxInt32),
		long("wlm.workload_group.enforcement_interval", "1000", 1000, math.MaxInt64),
		integer(MaxGroups, "100", 1, 100).acting(),
		integer(MaxRules, "200", 10, 500).acting(),
		long("wlm.rule.sync_refresh_interval_ms", "5000", 1000, math.MaxInt64),
	}
	for _, resource := range []string{"cpu", "memory"} {
		all = append(all,
			double(rejectionThreshold(resource), "0.8", upTo(0.9)),
			double(cancellationThreshold(resource), "0.9", upTo(0.95)))
	}
	return all
}

func searchSettings() []definition {
	return []definition{
		duration(CancelAfter, "-1").acting(),
		duration(DefaultSearchTimeout, "-1").acting(),
		boolean(AllowPartialResults, "true").acting(),
		long(MaxShards, "9223372036854775807", 1, math.MaxInt64).acting(),
		integer(MaxOpenScrolls, "500", 0, math.MaxInt32).acting(),
		duration(MaxScrollKeepAlive, "24h").acting(),
		integer("search.max_buckets", "65535", 0, math.MaxInt32),
		boolean("task_cancellation.enabled", "true"),
		long("task_cancellation.duration_millis", "10000", 0, math.MaxInt64),
		boolean("task_resource_tracking.enabled", "true"),
		enum("admission_control.transport.mode", "disabled", "disabled", "shadow", "enforced"),
		long("admission_control.search.cpu_usage.limit", "95", 0, 100),
		long("admission_control.search.io_usage.limit", "95", 0, 100),
	}
}

func backpressureSettings() []definition {
	const (
		root  = "search_backpressure."
		ratio = "cancellation_ratio"
		rate  = "cancellation_rate"
		burst = "cancellation_burst"
	)
	all := []definition{
		enum(root+"mode", "monitor_only", "disabled", "monitor_only", "enforced"),
		long(root+"interval_millis", "1000", 1, math.MaxInt64).static(),
		integer(root+"node_duress.num_successive_breaches", "3", 1, math.MaxInt32),
		double(root+"node_duress.cpu_threshold", "0.9", upTo(1)),
		double(root+"node_duress.heap_threshold", "0.7", upTo(1)),
		double(root+"node_duress.native_memory_threshold", "0.85", upTo(1)),
		size(root+"node_duress.native_memory_limit", "0b"),
		double(root+ratio, "0.1", shareAboveZero()),
		double(root+rate, "0.003", aboveZero()),
		double(root+burst, "10.0", atLeast(1)),
	}
	for _, tree := range []struct {
		name                                                    string
		ratio, rate, burst                                      string // deprecated keys that stand in
		burstDefault, cpuMillis, elapsedMillis, heap, totalHeap string
	}{
		{"search_task", "", "", "", "5.0", "30000", "45000", "0.02", "0.05"},
		{"search_shard_task", root + ratio, root + rate, root + burst, "10.0", "15000", "30000", "0.005", "0.05"},
	} {
		prefix := root + tree.name + "."
		all = append(all,
			double(prefix+ratio, "0.1", shareAboveZero()).instead(tree.ratio),
			double(prefix+rate, "0.003", aboveZero()).instead(tree.rate),
			double(prefix+burst, tree.burstDefault, atLeast(1)).instead(tree.burst),
			double(prefix+"heap_percent_threshold", tree.heap, upTo(1)),
			double(prefix+"total_heap_percent_threshold", tree.totalHeap, upTo(1)),
			double(prefix+"heap_variance", "2.0", atLeast(0)),
			integer(prefix+"heap_moving_average_window_size", "100", 0, math.MaxInt32),
			double(prefix+"native_memory_percent_threshold", "0.05", upTo(1)),
			long(prefix+"cpu_time_millis_threshold", tree.cpuMillis, 0, math.MaxInt64),
			long(prefix+"elapsed_time_millis_threshold", tree.elapsedMillis, 0, math.MaxInt64))
	}
	return all
}

// staticSettings are known so that an attempt to change one is answered with what is wrong about it.
func staticSettings() []definition {
	all := []definition{
		freeText("cluster.name", "wlmserver"),
		freeText("node.name", ""),
		freeText("node.heap_size", ""),
		duration("node.shutdown_timeout", "10s"),
		freeText("path.data", "data"),
		freeText("http.host", "127.0.0.1"),
		integer("http.port", "9200", 0, math.MaxUint16),
		size("http.max_content_length", "100mb"),
		size("http.max_header_size", "16384b"),
		size("http.max_initial_line_length", "4096b"),
		freeText("http.max_in_flight_bytes", ""),
		freeText("transport.host", "127.0.0.1"),
		integer("transport.port", "9300", 0, math.MaxUint16),
		integer("thread_pool.search.size", "", 1, math.MaxInt32),
		integer("thread_pool.search.queue_size", "1000", 0, math.MaxInt32),
		freeText("logger.level", "info"),
		freeText("logger.format", ""),
	}
	for i, d := range all {
		all[i] = d.static()
	}
	return all
}

// dynamic starts the definition of a setting that can be changed while the server runs.
func dynamic(key, def string, t Type, bounds string, p parser) definition {
	return definition{Setting: Setting{Key: key, Default: def, Type: t, Bounds: bounds, Dynamic: true}, parse: p}
}

func boolean(key, def string) definition { return dynamic(key, def, Boolean, "", parseBoolean) }

func duration(key, def string) definition { return dynamic(key, def, Time, "", parseTime) }

func size(key, def string) definition { return dynamic(key, def, Bytes, ">= 0", parseSize) }

func freeText(key, def string) definition { return dynamic(key, def, Text, "", parseText) }

func enum(key, def string, words ...string) definition {
	return dynamic(key, def, Enum, strings.Join(words, ", "), parseEnum(words))
}

func integer(key, def string, least, most int64) definition {
	return dynamic(key, def, Integer, wholeBounds(least, most, math.MaxInt32), parseWhole(least, most, 32))
}

func long(key, def string, least, most int64) definition {
	return dynamic(key, def, Long, wholeBounds(least, most, math.MaxInt64), parseWhole(least, most, 64))
}

func double(key, def string, i interval) definition {
	return dynamic(key, def, Double, i.String(), parseDouble(i))
}

// wholeBounds prints a range of whole numbers; unbounded is the largest value of the type.
func wholeBounds(least, most, unbounded int64) string {
	if most == unbounded {
		return fmt.Sprintf(">= %d", least)
	}
	return fmt.Sprintf("%d..%d", least, most)
}
