package peer

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/rs/zerolog"

	"github.com/wlmserver/wlmserver/internal/certificate"
	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/shard"
)

const (
	maxMessage = 256 << 20 // bytes

	keepAlive        = 10 * time.Second // the shortest that gRPC allows a client
	keepAliveTimeout = 5 * time.Second

	firstRetry     = 50 * time.Millisecond
	lastRetry      = 2 * time.Second
	connectTimeout = 3 * time.Second
)

// Config is what both sides of a node's connections need.
type Config struct {
	ClusterName string
	// Self is the member that this node is.
	Self func() ring.Member
	// Certificate is shown to other nodes, and says whom to trust. It is mutual. Nil means no TLS: then all addresses have to be
	// loopback ones.
	Certificate *certificate.Source
	// Failures knows the errors of the shards. Nil: of each there remains its text.
	Failures shard.Failures
	// KeepAlive is how long a connection may be silent before it is asked whether it still is one; 0: 10 s, which also is the least
	// that the calling side can do. The answer may take half of that.
	KeepAlive time.Duration
	// Dial connects to a member's address; nil: over TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	Log  zerolog.Logger
}

func (c *Config) complete() {
	if c.Failures == nil {
		c.Failures = textOnly{}
	}
	if c.Dial == nil {
		c.Dial = c.dial
	}
	if c.KeepAlive == 0 {
		c.KeepAlive = keepAlive
	}
}

// keepAliveTimeout is how long the answer of a silent connection may take.
func (c *Config) keepAliveTimeout() time.Duration { return min(c.KeepAlive/2, keepAliveTimeout) }

// PlaintextError: without TLS nodes talk on loopback addresses only.
type PlaintextError struct{ Address string }

func (e *PlaintextError) Error() string {
	return fmt.Sprintf("%s can be reached from other machines and nodes would talk there unencrypted, to everybody: "+
		"give transport.ssl.certificate, transport.ssl.key and transport.ssl.certificate_authorities, or use a loopback address such as 127.0.0.1", e.Address)
}

// loopback reports whether an address "ip:port" is this machine's own.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// textOnly knows no error.
type textOnly struct{}

func (textOnly) Describe(err error) shard.Failure { return shard.Failure{Reason: err.Error()} }

func (textOnly) Restore(f shard.Failure) error { return &ShardError{f} }

// ShardError is a failure of a shard of which nobody here knows more.
type ShardError struct{ Failure shard.Failure }

func (e *ShardError) Error() string {
	if e.Failure.Reason == "" {
		return e.Failure.Type
	}
	return e.Failure.Reason
}
