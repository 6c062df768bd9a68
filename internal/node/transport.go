package node

import (
	"context"
	"fmt"
	"net"
	"strconv"
)

// ClusterConfigError: what the configuration says of the cluster does not go together.
type ClusterConfigError struct{ Reason string }

func (e *ClusterConfigError) Error() string { return e.Reason }

// check looks at what goes with what.
func (c ClusterConfig) check() error {
	for key, value := range map[string]string{
		"username": c.Username, "password": c.Password,
		"ssl.certificate": c.EtcdCertificate, "ssl.key": c.EtcdKey, "ssl.certificate_authorities": c.EtcdAuthorities,
	} {
		if value != "" && len(c.Endpoints) == 0 {
			return &ClusterConfigError{fmt.Sprintf("cluster.etcd.%s is given without cluster.etcd.endpoints: say where etcd is, or leave it out for a node alone", key)}
		}
	}
	if (c.Username == "") != (c.Password == "") {
		return &ClusterConfigError{"of cluster.etcd.username and cluster.etcd.password only one is given: give both, or neither where etcd asks for no user"}
	}
	return nil
}

// listenTransport binds the address for other nodes; nil for a node alone. Its host is also what they are told, so it has
// to lead to this machine from theirs; and without TLS it has to be a loopback one.
func listenTransport(ctx context.Context, c Config) (net.Listener, error) {
	if err := c.Cluster.check(); err != nil || len(c.Cluster.Endpoints) == 0 {
		return nil, err
	}
	address, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(c.Transport.Host, strconv.Itoa(c.Transport.Port)))
	switch {
	case err != nil:
		return nil, fmt.Errorf("transport.host = %q is no address of this machine: %w", c.Transport.Host, err)
	case address.IP.IsUnspecified():
		return nil, &ClusterConfigError{fmt.Sprintf("transport.host = %q is nowhere that other nodes could connect to: "+
			"give the address at which they reach this machine, or a name of it", c.Transport.Host)}
	case !address.IP.IsLoopback() && c.Transport.Certificate == "":
		return nil, &ClusterConfigError{fmt.Sprintf("transport.host = %q can be reached from other machines, where nodes know and trust one another by certificates alone: "+
			"give transport.ssl.certificate, .key and .certificate_authorities, or bind a loopback address such as 127.0.0.1", c.Transport.Host)}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address.String())
	if err != nil {
		return nil, fmt.Errorf("cannot listen for other nodes on %s (transport.host, transport.port; each node of a machine needs a port of its own): %w", address, err)
	}
	return l, nil
}
