package peer

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/wlmserver/wlmserver/internal/cluster/ring"
)

// What the metadata of each call says; -bin because names may have any letters.
const (
	keyCluster = "wlm-cluster-bin"
	keyFrom    = "wlm-from-bin"
	keyTo      = "wlm-to-bin"
)

// identity tells one process of a node from all others.
type identity string

func identityOf(m ring.Member) identity { return identity(m.ID + "/" + m.Incarnation) }

// introduce adds to an outgoing call who calls whom.
func (c *Config) introduce(ctx context.Context, to ring.Member) context.Context {
	return metadata.AppendToOutgoingContext(ctx,
		keyCluster, c.ClusterName, keyFrom, string(identityOf(c.Self())), keyTo, string(identityOf(to)))
}

type callerKey struct{}

// callerOf is who makes the call of an admitted context.
func callerOf(ctx context.Context) identity { return ctx.Value(callerKey{}).(identity) }

// admit looks at who calls whom. The error is a status.
func (c *Config) admit(ctx context.Context) (context.Context, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	first := func(key string) string {
		if v := md.Get(key); len(v) > 0 {
			return v[0]
		}
		return ""
	}
	cluster, from, to := first(keyCluster), first(keyFrom), identity(first(keyTo))
	switch self := c.Self(); {
	case cluster == "" || from == "":
		return nil, status.Error(codes.PermissionDenied, "the caller does not say which cluster and node it is: it is no node of wlmserver")
	case cluster != c.ClusterName:
		return nil, status.Error(codes.PermissionDenied, fmt.Sprintf(
			"this node belongs to the cluster [%s] and the caller to [%s]: give both the same cluster.name, or the other one etcd endpoints or a prefix of its own", c.ClusterName, cluster))
	case to != identityOf(self):
		return nil, status.Error(codes.FailedPrecondition, fmt.Sprintf(
			"the call is meant for %s, and this is %s: that one has ended, or its address is another's now", to, identityOf(self)))
	}
	return context.WithValue(ctx, callerKey{}, identity(from)), nil
}
