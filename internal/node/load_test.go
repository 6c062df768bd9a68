package node_test

import (
	"errors"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/wlmserver/wlmserver/internal/node"
	"github.com/wlmserver/wlmserver/settings"
)

func yaml(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "wlmserver.yml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestKeysTakeTheirValues gives each key a value other than its default, in each of the three places, and looks where
// it arrives.
func TestKeysTakeTheirValues(t *testing.T) {
	values := map[string]struct {
		text string
		got  func(node.Config) any
		want any
	}{
		"cluster.name":                             {"staging", func(c node.Config) any { return c.ClusterName }, "staging"},
		"node.name":                                {"n1", func(c node.Config) any { return c.NodeName }, "n1"},
		"node.heap_size":                           {"2gb", func(c node.Config) any { return c.HeapSize }, int64(2 << 30)},
		"node.shutdown_timeout":                    {"0", func(c node.Config) any { return c.ShutdownTimeout }, time.Duration(0)},
		"path.data":                                {"/var/lib/x", func(c node.Config) any { return c.DataPath }, "/var/lib/x"},
		"http.host":                                {"::1", func(c node.Config) any { return c.HTTP.Host }, "::1"},
		"http.port":                                {"0", func(c node.Config) any { return c.HTTP.Port }, 0},
		"http.address_file":                        {"a.txt", func(c node.Config) any { return c.HTTP.AddressFile }, "a.txt"},
		"http.max_content_length":                  {"1mb", func(c node.Config) any { return c.HTTP.MaxContentLength }, int64(1 << 20)},
		"http.max_header_size":                     {"1kb", func(c node.Config) any { return c.HTTP.MaxHeaderSize }, int64(1 << 10)},
		"http.max_initial_line_length":             {"2kb", func(c node.Config) any { return c.HTTP.MaxInitialLineLength }, int64(2 << 10)},
		"http.max_in_flight_bytes":                 {"3mb", func(c node.Config) any { return c.HTTP.MaxInFlightBytes }, int64(3 << 20)},
		"http.ssl.certificate":                     {"c.pem", func(c node.Config) any { return c.HTTP.Certificate }, "c.pem"},
		"http.ssl.key":                             {"k.pem", func(c node.Config) any { return c.HTTP.Key }, "k.pem"},
		"cluster.etcd.endpoints":                   {"http://a:2379, http://b:2379", func(c node.Config) any { return c.Cluster.Endpoints }, []string{"http://a:2379", "http://b:2379"}},
		"cluster.etcd.prefix":                      {"/x", func(c node.Config) any { return c.Cluster.Prefix }, "/x"},
		"cluster.etcd.username":                    {"u", func(c node.Config) any { return c.Cluster.Username }, "u"},
		"cluster.etcd.password":                    {"p", func(c node.Config) any { return c.Cluster.Password }, "p"},
		"cluster.etcd.ssl.certificate":             {"c.pem", func(c node.Config) any { return c.Cluster.EtcdCertificate }, "c.pem"},
		"cluster.etcd.ssl.key":                     {"k.pem", func(c node.Config) any { return c.Cluster.EtcdKey }, "k.pem"},
		"cluster.etcd.ssl.certificate_authorities": {"a.pem", func(c node.Config) any { return c.Cluster.EtcdAuthorities }, "a.pem"},
		"cluster.member_ttl":                       {"3s", func(c node.Config) any { return c.Cluster.MemberTTL }, 3 * time.Second},
		"cluster.session_lease":                    {"4s", func(c node.Config) any { return c.Cluster.Lease }, 4 * time.Second},
		"node.compatibility_version":               {"3.6.0", func(c node.Config) any { return c.Compatibility }, "3.6.0"},
		"transport.host":                           {"::1", func(c node.Config) any { return c.Transport.Host }, "::1"},
		"transport.port":                           {"0", func(c node.Config) any { return c.Transport.Port }, 0},
		"transport.ssl.certificate":                {"c.pem", func(c node.Config) any { return c.Transport.Certificate }, "c.pem"},
		"transport.ssl.key":                        {"k.pem", func(c node.Config) any { return c.Transport.Key }, "k.pem"},
		"transport.ssl.certificate_authorities":    {"a.pem", func(c node.Config) any { return c.Transport.Authorities }, "a.pem"},
		"auth.users_file":                          {"users.yml", func(c node.Config) any { return c.Auth.UsersFile }, "users.yml"},
		"auth.admin_roles":                         {"ops, root", func(c node.Config) any { return c.Auth.AdminRoles }, []string{"ops", "root"}},
		"auth.allow_anonymous":                     {"true", func(c node.Config) any { return c.AllowAnonymous }, true},
		"auth.proxy.user_header":                   {"X-User", func(c node.Config) any { return c.Auth.Proxy.UserHeader }, "X-User"},
		"auth.proxy.roles_header":                  {"X-Roles", func(c node.Config) any { return c.Auth.Proxy.RolesHeader }, "X-Roles"},
		"auth.proxy.allowed_peers":                 {"10.1.2.3/8,::1", func(c node.Config) any { return c.Auth.Proxy.AllowedPeers }, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}},
		"logger.level":                             {"off", func(c node.Config) any { return c.Log.Level }, zerolog.Disabled},
		"logger.format":                            {"json", func(c node.Config) any { return c.Log.Format }, "json"},
		"thread_pool.search.size":                  {"3", func(c node.Config) any { return c.SearchPool.Size }, 3},
		"stub.query_time":                          {"1s", func(c node.Config) any { return c.Stub.QueryTime }, time.Second},
		"stub.query_cpu":                           {"2s", func(c node.Config) any { return c.Stub.QueryCPU }, 2 * time.Second},
		"stub.query_memory":                        {"1mb", func(c node.Config) any { return c.Stub.QueryMemory }, int64(1 << 20)},
		"stub.fetch_time":                          {"3s", func(c node.Config) any { return c.Stub.FetchTime }, 3 * time.Second},
		"stub.fetch_cpu":                           {"4s", func(c node.Config) any { return c.Stub.FetchCPU }, 4 * time.Second},
		"stub.fetch_memory":                        {"2mb", func(c node.Config) any { return c.Stub.FetchMemory }, int64(2 << 20)},
		"stub.hits":                                {"5", func(c node.Config) any { return *c.Stub.Hits }, 5},
		"stub.fail_shards":                         {"1", func(c node.Config) any { return c.Stub.FailShards }, 1},
		"stub.ignore_cancel":                       {"true", func(c node.Config) any { return c.Stub.IgnoreCancel }, true},
		"stub.jitter":                              {"0.5", func(c node.Config) any { return c.Stub.Jitter }, 0.5},
		"stub.seed":                                {"7", func(c node.Config) any { return *c.Stub.Seed }, int64(7)},
		"stub.control":                             {"true", func(c node.Config) any { return c.StubControl }, true},
		"thread_pool.search.queue_size":            {"0", func(c node.Config) any { return c.SearchPool.QueueSize }, 0},
	}
	for _, k := range node.Keys() {
		v, ok := values[k.Name]
		if !ok {
			t.Errorf("this test has no value for %s", k.Name)
			continue
		}
		delete(values, k.Name)
		for place, s := range map[string]node.Sources{
			"file":        {File: yaml(t, k.Name+": "+v.text+"\n")},
			"environment": {Environment: []string{k.Environment() + "=" + v.text}},
			"override":    {Overrides: []string{k.Name + "=" + v.text}},
		} {
			c, err := node.Load(s)
			if err != nil {
				t.Errorf("%s from %s: %v", k.Name, place, err)
			} else if got := v.got(c); !reflect.DeepEqual(got, v.want) {
				t.Errorf("%s from %s: got %v, want %v", k.Name, place, got, v.want)
			}
		}
	}
	for name := range values {
		t.Errorf("%s is not in the table of keys", name)
	}
}

func TestEveryKeySaysWhatItIs(t *testing.T) {
	for _, k := range node.Keys() {
		if k.Kind == "" || !strings.HasSuffix(k.Doc, ".") {
			t.Errorf("%s: kind %q, doc %q", k.Name, k.Kind, k.Doc)
		}
		if k.Default != "" && k.Derived != "" {
			t.Errorf("%s has a default that is written down and one that is worked out", k.Name)
		}
	}
}

// TestEnvironmentIsUnambiguous shows that dots as underscores never make two names one, and that no name is hidden by
// what Kubernetes sets.
func TestEnvironmentIsUnambiguous(t *testing.T) {
	variable := func(key string) string { return "WLMSERVER_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_")) }
	all := map[string]string{}
	for _, k := range node.Keys() {
		if variable(k.Name) != k.Environment() {
			t.Errorf("%s is called %s in the environment", k.Name, k.Environment())
		}
		all[k.Name] = k.Environment()
	}
	for _, s := range settings.Catalogue() {
		all[s.Key] = variable(s.Key)
	}
	seen := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		v := all[key]
		if other, ok := seen[v]; ok {
			t.Errorf("%s and %s are both %s", key, other, v)
		}
		seen[v] = key
		if strings.HasPrefix(v, "WLMSERVER_PORT") || strings.HasPrefix(v, "WLMSERVER_SERVICE_") {
			t.Errorf("%s is %s, which Kubernetes sets for a service called wlmserver", key, v)
		}
	}
}

func TestLaterSourcesWin(t *testing.T) {
	file := yaml(t, "http:\n  port: 1\nlogger.level: warn\ncluster.name: of-file\nsearch:\n  max_buckets: 7\n")
	environment := []string{"WLMSERVER_HTTP_PORT=2", "WLMSERVER_CLUSTER_NAME=of-environment", "HOME=/root", "WLMSERVER=x"}
	for _, step := range []struct {
		sources node.Sources
		port    int
		cluster string
	}{
		{node.Sources{}, 9200, "wlmserver"},
		{node.Sources{File: file}, 1, "of-file"},
		{node.Sources{File: file, Environment: environment}, 2, "of-environment"},
		{node.Sources{File: file, Environment: environment, Overrides: []string{"http.port=3"}}, 3, "of-environment"},
		{node.Sources{File: file, Environment: environment, Overrides: []string{"http.port=3", "http.port=4"}}, 4, "of-environment"},
	} {
		c, err := node.Load(step.sources)
		if err != nil {
			t.Fatal(err)
		}
		if c.HTTP.Port != step.port || c.ClusterName != step.cluster {
			t.Errorf("%+v: port %d, cluster %s; want %d, %s", step.sources, c.HTTP.Port, c.ClusterName, step.port, step.cluster)
		}
	}
}

func TestStartValuesOfSettings(t *testing.T) {
	c, err := node.Load(node.Sources{
		File:        yaml(t, "wlm.workload_group.mode: monitor_only\nsearch.cancel_after_time_interval: 30s\n"),
		Environment: []string{"WLMSERVER_SEARCH_MAX_BUCKETS=10"},
		Overrides:   []string{"wlm.workload_group.mode=disabled"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"wlm.workload_group.mode":           "disabled",
		"search.cancel_after_time_interval": "30s",
		"search.max_buckets":                "10",
	}
	if !maps.Equal(c.Settings, want) {
		t.Errorf("got %v, want %v", c.Settings, want)
	}
}

func TestServiceLinksOfKubernetesAreNoKeys(t *testing.T) {
	_, err := node.Load(node.Sources{Environment: []string{
		"WLMSERVER_SERVICE_HOST=10.0.0.1", "WLMSERVER_SERVICE_PORT=9200", "WLMSERVER_SERVICE_PORT_HTTP=9200",
		"WLMSERVER_PORT=tcp://10.0.0.1:9200", "WLMSERVER_PORT_9200_TCP=tcp://10.0.0.1:9200", "WLMSERVER_PORT_9200_TCP_ADDR=10.0.0.1",
	}})
	if err != nil {
		t.Error(err)
	}
}

// TestErrors: each message names the place, the key, the value and what would do.
func TestErrors(t *testing.T) {
	for name, c := range map[string]struct {
		file, environment, override string
		want                        []string
	}{
		"unknown in the file":        {file: "http.prt: 1", want: []string{"wlmserver.yml", "http.prt", "http.port"}},
		"unknown nested":             {file: "logger:\n  levle: info", want: []string{"logger.levle", "logger.level"}},
		"unknown override":           {override: "htp.port=1", want: []string{"-E", "htp.port", "http.port"}},
		"unknown variable":           {environment: "WLMSERVER_HTTP_PRT=1", want: []string{"environment", "WLMSERVER_HTTP_PRT", "WLMSERVER_HTTP_PORT"}},
		"unknown setting":            {override: "wlm.workload_group.mod=enabled", want: []string{"wlm.workload_group.mode"}},
		"no equals sign":             {override: "http.port", want: []string{"-E", "http.port", "key=value"}},
		"port too large":             {override: "http.port=70000", want: []string{"http.port", "70000", "from 0 to 65535"}},
		"port range":                 {file: "http.port: 9200-9300", want: []string{"http.port", "9200-9300", "whole number"}},
		"size without unit":          {override: "http.max_content_length=100", want: []string{"http.max_content_length", "100", "100mb"}},
		"size of nothing":            {override: "http.max_in_flight_bytes=-1", want: []string{"http.max_in_flight_bytes", "-1", "above 0"}},
		"time without unit":          {override: "node.shutdown_timeout=10", want: []string{"node.shutdown_timeout", "10", "10s"}},
		"time without end":           {override: "node.shutdown_timeout=-1", want: []string{"node.shutdown_timeout", "-1"}},
		"level":                      {environment: "WLMSERVER_LOGGER_LEVEL=loud", want: []string{"WLMSERVER_LOGGER_LEVEL", "logger.level", "loud", "debug"}},
		"format":                     {override: "logger.format=xml", want: []string{"logger.format", "xml", "console", "json"}},
		"boolean":                    {file: "auth.allow_anonymous: 'yes'", want: []string{"auth.allow_anonymous", "yes", "true or false"}},
		"peers":                      {override: "auth.proxy.allowed_peers=10.0.0.0/99", want: []string{"auth.proxy.allowed_peers", "10.0.0.0/99", "10.0.0.0/8"}},
		"empty role":                 {file: "auth.admin_roles: [admin, '']", want: []string{"auth.admin_roles", "empty"}},
		"empty text":                 {override: "cluster.name=", want: []string{"cluster.name", "must not be empty"}},
		"no value":                   {file: "http.port:", want: []string{"http.port", "has no value"}},
		"section without keys":       {file: "http: {}", want: []string{"http"}},
		"given twice":                {file: "http.port: 1\nhttp:\n  port: 2", want: []string{"http.port", "twice"}},
		"list of maps":               {file: "auth.admin_roles: [{a: 1}]", want: []string{"auth.admin_roles", "plain values"}},
		"not a map":                  {file: "- http.port", want: []string{"wlmserver.yml", "YAML"}},
		"not YAML":                   {file: "http: [", want: []string{"wlmserver.yml", "YAML"}},
		"cost":                       {override: "stub.query_time=5", want: []string{"stub.query_time", "5", "unit"}},
		"jitter":                     {override: "stub.jitter=2", want: []string{"stub.jitter", "2", "from 0 to 1"}},
		"no time to live":            {file: "cluster.member_ttl: 0", want: []string{"cluster.member_ttl", "at least 1s"}},
		"cluster in the environment": {environment: "WLMSERVER_CLUSTER_SESSION_LEASE=x", want: []string{"CLUSTER_SESSION_LEASE", "at least 1s"}},
		"compatibility":              {override: "node.compatibility_version=old", want: []string{"node.compatibility_version", "3.6.0"}},
		"other keys of TLS":          {override: "http.ssl.keystore=k.p12", want: []string{"http.ssl.keystore", "unknown key", "http.ssl.key"}},
		"value of a setting":         {override: "wlm.workload_group.mode=on", want: []string{"-E", "wlm.workload_group.mode", "on", "monitor_only"}},
		"order of settings":          {override: "wlm.workload_group.node.cpu_cancellation_threshold=0.1", want: []string{"cpu_cancellation_threshold", "0.1", "0.8"}},
		"static setting of its own":  {override: "search_backpressure.interval_millis=0", want: []string{"search_backpressure.interval_millis", "0"}},
	} {
		t.Run(name, func(t *testing.T) {
			var s node.Sources
			if c.file != "" {
				s.File = yaml(t, c.file)
			}
			if c.environment != "" {
				s.Environment = []string{c.environment}
			}
			if c.override != "" {
				s.Overrides = []string{c.override}
			}
			_, err := node.Load(s)
			if err == nil {
				t.Fatal("was accepted")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not speak of %q", err, w)
				}
			}
		})
	}
}

func TestAllErrorsAreToldAtOnce(t *testing.T) {
	_, err := node.Load(node.Sources{
		File:        yaml(t, "http.prt: 1\nhttp.port: many\n"),
		Environment: []string{"WLMSERVER_TRANSPORT_PORT=x"},
		Overrides:   []string{"search.max_buckets=-5", "wlm.workload_group.mode=on"},
	})
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 5 {
		t.Errorf("want one line for each of 5 mistakes, got\n%v", err)
	}
	if _, ok := errors.AsType[*node.UnknownKeyError](err); !ok {
		t.Error("no UnknownKeyError among them")
	}
	if _, ok := errors.AsType[*node.ValueError](err); !ok {
		t.Error("no ValueError among them")
	}
}

func TestMissingFile(t *testing.T) {
	_, err := node.Load(node.Sources{File: filepath.Join(t.TempDir(), "none.yml")})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "none.yml") {
		t.Errorf("got %v", err)
	}
}

func TestEmptyFile(t *testing.T) {
	c, err := node.Load(node.Sources{File: yaml(t, "# all as it is\n")})
	if err != nil || c.HTTP.Port != 9200 {
		t.Errorf("port %d, %v", c.HTTP.Port, err)
	}
}

func TestDerivedDefaults(t *testing.T) {
	c, err := node.Load(node.Sources{Overrides: []string{"node.heap_size=100mb"}})
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(100 << 20 / 10); c.HTTP.MaxInFlightBytes != want {
		t.Errorf("max_in_flight_bytes %d, want a tenth of the heap size, %d", c.HTTP.MaxInFlightBytes, want)
	}
	if c.NodeName == "" || c.SearchPool.Size < 2 {
		t.Errorf("node name %q, pool of %d", c.NodeName, c.SearchPool.Size)
	}
	if d := node.Default(); d.HeapSize < 16<<20 {
		t.Errorf("the machine's memory is given as %d bytes", d.HeapSize)
	}
}
