package peer

import (
	"context"
	"net"
	"syscall"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/wlmserver/wlmserver/internal/certificate"
)

// credentials are those of both sides.
func (c *Config) credentials() credentials.TransportCredentials {
	if c.Certificate == nil {
		return insecure.NewCredentials()
	}
	return &mutual{c.Certificate}
}

// mutual is TLS with certificates on both sides. Each connection sees what is in the files when it begins.
type mutual struct{ source *certificate.Source }

func (m *mutual) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, err := m.source.Mutual()
	if err != nil {
		return nil, nil, err
	}
	return credentials.NewTLS(c).ClientHandshake(ctx, authority, conn)
}

func (m *mutual) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, err := m.source.Mutual()
	if err != nil {
		return nil, nil, err
	}
	return credentials.NewTLS(c).ServerHandshake(conn)
}

func (m *mutual) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

func (m *mutual) Clone() credentials.TransportCredentials { return &mutual{m.source} }

// OverrideServerName does nothing: the name is the address's.
func (m *mutual) OverrideServerName(string) error { return nil }

// dial connects to an address, to a loopback one only when there is no TLS.
func (c *Config) dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	if c.Certificate == nil {
		d.Control = func(_, resolved string, _ syscall.RawConn) error {
			if !loopback(resolved) {
				return &PlaintextError{resolved}
			}
			return nil
		}
	}
	return d.DialContext(ctx, "tcp", address)
}
