package node

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/wlmserver/wlmserver/internal/units"
)

// A Key is one key of the configuration.
type Key struct {
	Name    string // dotted, as in the file
	Kind    string // what a value is: text, number, boolean, time, bytes, list, or the choices
	Default string // as one would write it; "" when there is none or when it is worked out at the start
	Derived string // how a default is worked out that cannot be written down; "" for the others
	Doc     string // one or two sentences

	set func(c *Config, value string) error // an error is the reason alone: the caller adds source, key and value
}

// Environment is the name of the environment variable that gives the key.
func (k Key) Environment() string { return environmentName(k.Name) }

// Keys returns the table of all keys but the dynamic cluster settings, in the order in which documentation shows them.
func Keys() []Key {
	return []Key{
		{"cluster.name", "text", "wlmserver", "", "Name of the cluster, as answers show it.",
			text(func(c *Config) *string { return &c.ClusterName })},
		{"cluster.etcd.endpoints", "list", "", "",
			"Where etcd is reached, such as http://10.0.0.1:2379. With it the node is a member of a cluster, which keeps groups, rules and settings there.",
			list(func(c *Config) *[]string { return &c.Cluster.Endpoints })},
		{"cluster.etcd.prefix", "text", "", "/wlmserver/ and cluster.name", "What the names of the cluster's keys in etcd begin with.",
			text(func(c *Config) *string { return &c.Cluster.Prefix })},
		{"cluster.etcd.username", "text", "", "", "User of etcd, where it asks for one.",
			text(func(c *Config) *string { return &c.Cluster.Username })},
		{"cluster.etcd.password", "text", "", "", "That user's password. Better given by the environment than in a file.",
			text(func(c *Config) *string { return &c.Cluster.Password })},
		{"cluster.etcd.ssl.certificate", "text", "", "", "PEM file of the certificate that this node shows to etcd. Read again when it changes.",
			text(func(c *Config) *string { return &c.Cluster.EtcdCertificate })},
		{"cluster.etcd.ssl.key", "text", "", "", "PEM file of that certificate's private key.",
			text(func(c *Config) *string { return &c.Cluster.EtcdKey })},
		{"cluster.etcd.ssl.certificate_authorities", "text", "", "", "PEM file of the authorities that etcd's certificate must be of.",
			text(func(c *Config) *string { return &c.Cluster.EtcdAuthorities })},
		{"cluster.member_ttl", "time", "15s", "",
			"How long a node that etcd does not hear of stays a member; what it shared out waits for so long. Whole seconds.",
			positive(func(c *Config) *time.Duration { return &c.Cluster.MemberTTL })},
		{"cluster.session_lease", "time", "15s", "",
			"How long permits of shared limits stay with a node that their owner does not hear of. The same on all nodes.",
			positive(func(c *Config) *time.Duration { return &c.Cluster.Lease })},
		{"node.compatibility_version", "text", "", "the version of the API",
			"Version that the node behaves as during a rolling upgrade: below 3.7.0 it shares out no permits, and no group may have a queue while it is there.",
			version(func(c *Config) *string { return &c.Compatibility })},
		{"node.name", "text", "", "the host's name", "Name of this node, as answers show it.",
			text(func(c *Config) *string { return &c.NodeName })},
		{"node.heap_size", "bytes", "", "the memory limit of the cgroup, else the machine's memory",
			"What fractions of memory (resource_limits.memory) refer to; reported as jvm.mem.heap_max_in_bytes. Nothing is reserved.",
			size(func(c *Config) *int64 { return &c.HeapSize })},
		{"node.shutdown_timeout", "time", "10s", "",
			"How long running searches may go on once the server was told to stop. What runs longer is cancelled.",
			duration(func(c *Config) *time.Duration { return &c.ShutdownTimeout })},
		{"path.data", "text", "data", "", "Folder of what is kept: workload groups, cluster settings, the node's id; of a member of a cluster, what it saw last. One process at a time.",
			text(func(c *Config) *string { return &c.DataPath })},

		{"http.host", "text", "127.0.0.1", "",
			"Address to listen on. One that other machines reach needs auth.users_file, a trusted proxy, or auth.allow_anonymous.",
			text(func(c *Config) *string { return &c.HTTP.Host })},
		{"http.port", "number", "9200", "", "Port to listen on; 0 is any free one.",
			number(func(c *Config) *int { return &c.HTTP.Port }, 0, 65535)},
		{"http.address_file", "text", "", "",
			"File that gets the bound address (host:port) once the server answers, written whole or not at all; removed at a clean stop.",
			text(func(c *Config) *string { return &c.HTTP.AddressFile })},
		{"http.max_content_length", "bytes", "100mb", "", "Largest request body; a larger one is answered 413.",
			size(func(c *Config) *int64 { return &c.HTTP.MaxContentLength })},
		{"http.max_header_size", "bytes", "16kb", "", "Largest sum of a request's headers; larger ones are answered 400.",
			size(func(c *Config) *int64 { return &c.HTTP.MaxHeaderSize })},
		{"http.max_initial_line_length", "bytes", "4kb", "", "Longest request line; a longer one is answered 400.",
			size(func(c *Config) *int64 { return &c.HTTP.MaxInitialLineLength })},
		{"http.max_in_flight_bytes", "bytes", "", "a tenth of node.heap_size",
			"What all request bodies together may hold, those of waiting searches too; beyond it requests are answered 429.",
			size(func(c *Config) *int64 { return &c.HTTP.MaxInFlightBytes })},

		{"http.ssl.certificate", "text", "", "",
			"PEM file of the certificate and its chain: with it and http.ssl.key the server speaks HTTPS, and nothing else. Read again when it changes.",
			text(func(c *Config) *string { return &c.HTTP.Certificate })},
		{"http.ssl.key", "text", "", "", "PEM file of the certificate's private key, without a passphrase. Read again when it changes.",
			text(func(c *Config) *string { return &c.HTTP.Key })},

		{"transport.host", "text", "127.0.0.1", "",
			"Name or address to listen on for other nodes, which is also what they connect to, so not 0.0.0.0. One that other machines reach needs transport.ssl.*.",
			text(func(c *Config) *string { return &c.Transport.Host })},
		{"transport.port", "number", "9300", "", "Port for other nodes; 0 is any free one.",
			number(func(c *Config) *int { return &c.Transport.Port }, 0, 65535)},
		{"transport.ssl.certificate", "text", "", "",
			"PEM file of the certificate that nodes show to one another, for servers and clients alike. Read again when it changes.",
			text(func(c *Config) *string { return &c.Transport.Certificate })},
		{"transport.ssl.key", "text", "", "", "PEM file of that certificate's private key.",
			text(func(c *Config) *string { return &c.Transport.Key })},
		{"transport.ssl.certificate_authorities", "text", "", "", "PEM file of the authorities that other nodes' certificates must be of.",
			text(func(c *Config) *string { return &c.Transport.Authorities })},

		{"auth.users_file", "text", "", "",
			"YAML file of users with bcrypt hashes and roles. Without it everyone is anonymous and may do everything.",
			text(func(c *Config) *string { return &c.Auth.UsersFile })},
		{"auth.admin_roles", "list", "admin", "", "Roles whose users may change groups and settings and see and cancel what others run.",
			list(func(c *Config) *[]string { return &c.Auth.AdminRoles })},
		{"auth.allow_anonymous", "boolean", "false", "", "Lets everyone in on an address that other machines reach.",
			boolean(func(c *Config) *bool { return &c.AllowAnonymous })},
		{"auth.proxy.user_header", "text", "", "", "Header in which a trusted proxy names the user.",
			text(func(c *Config) *string { return &c.Auth.Proxy.UserHeader })},
		{"auth.proxy.roles_header", "text", "", "", "Header in which a trusted proxy names the user's roles, comma-separated.",
			text(func(c *Config) *string { return &c.Auth.Proxy.RolesHeader })},
		{"auth.proxy.allowed_peers", "list", "", "", "Addresses or networks (CIDR) of trusted proxies; from all others those headers are refused.",
			networks(func(c *Config) *[]netip.Prefix { return &c.Auth.Proxy.AllowedPeers })},

		{"logger.level", "trace|debug|info|warn|error|off", "info", "", "Least important log lines that are written.",
			level},
		{"logger.format", "console|json", "", "console on a terminal, else json", "How log lines look.",
			choice(func(c *Config) *string { return &c.Log.Format }, "console", "json")},

		{"thread_pool.search.size", "number", "", "processors × 3 / 2 + 1", "Workers of the search stub: how many shards are worked on at once.",
			number(func(c *Config) *int { return &c.SearchPool.Size }, 1, 100_000)},
		{"thread_pool.search.queue_size", "number", "1000", "", "Shards that may wait for a worker; beyond it a shard is refused with 429.",
			number(func(c *Config) *int { return &c.SearchPool.QueueSize }, 0, 1_000_000)},

		{"stub.query_time", "time", "0", "", "How long a shard's query takes where neither the search nor its index says.", cost("stub.query_time")},
		{"stub.query_cpu", "time", "0", "", "Processor time that it burns.", cost("stub.query_cpu")},
		{"stub.query_memory", "bytes", "0", "", "Memory that it holds.", cost("stub.query_memory")},
		{"stub.fetch_time", "time", "0", "", "How long a shard's fetch takes.", cost("stub.fetch_time")},
		{"stub.fetch_cpu", "time", "0", "", "Processor time that it burns.", cost("stub.fetch_cpu")},
		{"stub.fetch_memory", "bytes", "0", "", "Memory that it holds.", cost("stub.fetch_memory")},
		{"stub.hits", "number", "", "the documents that there are", "How many documents of a shard match.", cost("stub.hits")},
		{"stub.fail_shards", "number", "0", "", "How many shards of an index fail.", cost("stub.fail_shards")},
		{"stub.ignore_cancel", "boolean", "false", "", "Whether shards work on when their search is cancelled.", cost("stub.ignore_cancel")},
		{"stub.jitter", "number", "0", "", "By how much of itself each of these amounts may vary, from 0 to 1.", cost("stub.jitter")},
		{"stub.seed", "number", "", "another at each search", "Makes that variation the same every time.", cost("stub.seed")},
		{"stub.control", "boolean", "false", "",
			"Routes under /_stub with which tests of clients script faults, read what was sent, and reset the server. Never where others rely on it.",
			boolean(func(c *Config) *bool { return &c.StubControl })},
	}
}

func environmentName(key string) string {
	return environmentPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// The setters: each takes where a value goes and returns how its text is read.

type setter = func(c *Config, value string) error

func text(at func(*Config) *string) setter {
	return func(c *Config, value string) error {
		if value == "" {
			return fmt.Errorf("must not be empty")
		}
		*at(c) = value
		return nil
	}
}

func choice(at func(*Config) *string, choices ...string) setter {
	return func(c *Config, value string) error {
		if !slices.Contains(choices, value) {
			return fmt.Errorf("must be one of %s", strings.Join(choices, ", "))
		}
		*at(c) = value
		return nil
	}
}

func number(at func(*Config) *int, least, most int) setter {
	return func(c *Config, value string) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < least || n > most {
			return fmt.Errorf("must be a whole number from %d to %d", least, most)
		}
		*at(c) = n
		return nil
	}
}

func boolean(at func(*Config) *bool) setter {
	return func(c *Config, value string) error {
		switch value {
		case "true", "false":
			*at(c) = value == "true"
			return nil
		}
		return fmt.Errorf("must be true or false")
	}
}

func size(at func(*Config) *int64) setter {
	return func(c *Config, value string) error {
		n, err := units.ParseBytes("", value)
		if err != nil || n <= 0 {
			return fmt.Errorf("must be a size above 0 with its unit, such as 512b, 16kb, 100mb or 2gb")
		}
		*at(c) = n
		return nil
	}
}

func duration(at func(*Config) *time.Duration) setter {
	return func(c *Config, value string) error {
		d, err := units.ParseTime("", value)
		if err != nil || d < 0 {
			return fmt.Errorf("must be a time with its unit, such as 500ms, 10s or 2m, or 0")
		}
		*at(c) = d
		return nil
	}
}

func positive(at func(*Config) *time.Duration) setter {
	return func(c *Config, value string) error {
		d, err := units.ParseTime("", value)
		if err != nil || d < time.Second {
			return fmt.Errorf("must be a time of at least 1s with its unit, such as 5s or 1m")
		}
		*at(c) = d
		return nil
	}
}

func version(at func(*Config) *string) setter {
	return func(c *Config, value string) error {
		if !versions.MatchString(value) {
			return fmt.Errorf("must be a version such as 3.6.0")
		}
		*at(c) = value
		return nil
	}
}

var versions = regexp.MustCompile(`^\d{1,4}\.\d{1,4}\.\d{1,4}$`)

func list(at func(*Config) *[]string) setter {
	return func(c *Config, value string) error {
		items := strings.Split(value, ",")
		for i, item := range items {
			if items[i] = strings.TrimSpace(item); items[i] == "" {
				return fmt.Errorf("must be a list of names, none of them empty: [a, b] in the file, a,b elsewhere")
			}
		}
		*at(c) = items
		return nil
	}
}

func networks(at func(*Config) *[]netip.Prefix) setter {
	return func(c *Config, value string) error {
		var prefixes []netip.Prefix
		for item := range strings.SplitSeq(value, ",") {
			item = strings.TrimSpace(item)
			if a, err := netip.ParseAddr(item); err == nil {
				prefixes = append(prefixes, netip.PrefixFrom(a, a.BitLen()))
				continue
			}
			p, err := netip.ParsePrefix(item)
			if err != nil {
				return fmt.Errorf("%q is neither an address nor a network such as 10.0.0.0/8", item)
			}
			prefixes = append(prefixes, p.Masked())
		}
		*at(c) = prefixes
		return nil
	}
}

// cost sets a default of the search stub, which reads its values itself.
func cost(key string) setter {
	return func(c *Config, value string) error {
		err := c.Stub.Set(key, value)
		if p, ok := errors.AsType[*units.ParseError](err); ok {
			return errors.New(p.Reason)
		}
		return err
	}
}

// levelOff is the logger.level that writes nothing.
const levelOff = "off"

func level(c *Config, value string) error {
	if value == levelOff {
		c.Log.Level = zerolog.Disabled
		return nil
	}
	switch l, err := zerolog.ParseLevel(value); {
	case err == nil && l >= zerolog.TraceLevel && l <= zerolog.ErrorLevel && value != "":
		c.Log.Level = l
		return nil
	}
	return fmt.Errorf("must be one of trace, debug, info, warn, error, off")
}
