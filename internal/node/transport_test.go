package node_test

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/wlmserver/wlmserver/internal/node"
)

// What a configuration says of the cluster and cannot be is told at the start, by the names of the keys, before a data folder is made.
func TestClusterConfigErrors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	number, _ := strconv.Atoi(port)
	for name, test := range map[string]struct {
		change func(*node.Config)
		usage  bool
		want   []string
	}{
		"everywhere":           {func(c *node.Config) { c.Transport.Host = "0.0.0.0" }, true, []string{"transport.host", "0.0.0.0"}},
		"everywhere, IPv6":     {func(c *node.Config) { c.Transport.Host = "::" }, true, []string{"transport.host", "::"}},
		"public without TLS":   {func(c *node.Config) { c.Transport.Host = "192.0.2.1" }, true, []string{"transport.host", "192.0.2.1", "transport.ssl.certificate"}},
		"port in use":          {func(c *node.Config) { c.Transport.Port = number }, false, []string{"transport.port", port}},
		"user alone":           {func(c *node.Config) { c.Cluster.Username = "u" }, true, []string{"cluster.etcd.username", "cluster.etcd.password"}},
		"password alone":       {func(c *node.Config) { c.Cluster.Password = "p" }, true, []string{"cluster.etcd.username", "cluster.etcd.password"}},
		"etcd without a place": {func(c *node.Config) { c.Cluster.Endpoints, c.Cluster.EtcdKey = nil, "k.pem" }, true, []string{"cluster.etcd.ssl.key", "cluster.etcd.endpoints"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := node.Default()
			c.HTTP.Port, c.Transport.Port, c.DataPath, c.Log.Level = 0, 0, t.TempDir(), zerolog.Disabled
			c.Cluster.Endpoints = []string{"http://127.0.0.1:1"}
			test.change(&c)
			n, err := node.Start(t.Context(), c)
			if err == nil {
				n.Close()
				t.Fatal("it starts")
			}
			if _, usage := errors.AsType[*node.ClusterConfigError](err); usage != test.usage {
				t.Errorf("%T", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the message does not speak of %q: %v", want, err)
				}
			}
		})
	}
}
