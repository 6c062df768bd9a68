package peer

import (
	"context"
	"net"
	"syscall"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/wlmserver/wlmserver/internal/certificate"
)

// credentials are those of either side. refused is told of connections that are not let in; nil on the calling side.
func (c *Config) credentials(refused func(from net.Addr, why error)) credentials.TransportCredentials {
	if c.Certificate == nil {
		return insecure.NewCredentials()
	}
	return &mutual{c.Certificate, refused}
}

// mutual is TLS with certificates on both sides. Each connection sees what is in the files when it begins.
type mutual struct {
	source  *certificate.Source
	refused func(from net.Addr, why error)
}

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
	secured, info, err := credentials.NewTLS(c).ServerHandshake(conn)
	if err != nil {
		m.refused(conn.RemoteAddr(), err)
	}
	return secured, info, err
}

func (m *mutual) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

func (m *mutual) Clone() credentials.TransportCredentials { return &mutual{m.source, m.refused} }

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
