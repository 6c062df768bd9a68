package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/wlmserver/wlmserver/internal/certificate"
	"github.com/wlmserver/wlmserver/internal/cluster/meta"
	"github.com/wlmserver/wlmserver/internal/cluster/peer"
	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/cluster/tier"
	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/wlm"
)

// Config is what a member needs.
type Config struct {
	Name string // of the cluster: nodes of another are refused
	// Self is this node but for its transport address, which Open adds. Its incarnation is new with each start.
	Self ring.Member

	Etcd      EtcdConfig
	MemberTTL time.Duration // how long a silent node stays a member
	Lease     time.Duration // how long a silent session keeps its permits

	Listener net.Listener // for other nodes; the cluster closes it
	Host     string       // what they are told as the host of the listener's address: a name can outlive an IP address
	// Dial connects to another node's address; nil: over TCP.
	Dial      func(ctx context.Context, address string) (net.Conn, error)
	Transport certificate.Files
	Failures  shard.Failures // how errors of shards travel
	Last      meta.Keeper    // of the metadata seen last

	Log zerolog.Logger
}

// EtcdConfig says where the cluster's metadata are.
type EtcdConfig struct {
	Endpoints          []string
	Prefix             string
	Username, Password string
	TLS                certificate.Files
}

// Cluster is this node's part in the cluster. It is safe for concurrent use.
type Cluster struct {
	config Config
	shown  *certificate.Source // to other nodes; nil without TLS
	meta   *meta.Client
	peers  *peer.Peers
	tier   *tier.Tier
	server *peer.Server
	served sync.WaitGroup
}

// Open connects the node with the cluster's metadata; it is no member yet. Without TLS the listener's
// address has to be a loopback one. Errors: those of [meta.Open], and *[certificate.Error].
func Open(ctx context.Context, c Config) (*Cluster, error) {
	_, port, err := net.SplitHostPort(c.Listener.Addr().String())
	if err != nil {
		return nil, err
	}
	c.Self.Transport = net.JoinHostPort(c.Host, port)
	k := &Cluster{config: c}
	if k.shown, err = certificate.Open(c.Transport, c.Log); err != nil {
		return nil, err
	}
	etcdTLS, err := clientTLS(c.Etcd.TLS, c.Log)
	if err != nil {
		return nil, err
	}
	k.meta, err = meta.Open(ctx, meta.Config{
		Endpoints: c.Etcd.Endpoints, Prefix: c.Etcd.Prefix, Username: c.Etcd.Username, Password: c.Etcd.Password, TLS: etcdTLS,
		Self: c.Self, MemberTTL: c.MemberTTL, Last: c.Last, Log: c.Log,
	})
	if err != nil {
		return nil, err
	}
	k.peers = peer.NewPeers(k.peerConfig())
	return k, nil
}

func (k *Cluster) peerConfig() peer.Config {
	return peer.Config{
		ClusterName: k.config.Name, Self: func() ring.Member { return k.config.Self }, Certificate: k.shown,
		Failures: k.config.Failures, Dial: k.config.Dial, Log: k.config.Log,
	}
}

// clientTLS is how etcd is spoken to; nil without TLS.
func clientTLS(f certificate.Files, log zerolog.Logger) (*tls.Config, error) {
	source, err := certificate.Open(f, log)
	if source == nil || err != nil {
		return nil, err
	}
	return source.Mutual()
}

// Self is this node as a member.
func (k *Cluster) Self() ring.Member { return k.config.Self }

// Meta is the cluster's metadata.
func (k *Cluster) Meta() *meta.Client { return k.meta }

// Link makes the shared tier of an admission.
func (k *Cluster) Link(a *wlm.Admission) wlm.Link {
	k.tier = tier.New(tier.Config{
		Self: k.config.Self, Lease: k.config.Lease, Metadata: k.meta, Dialer: k.peers, Log: k.config.Log,
	}, a)
	return k.tier
}

// Shards makes the way to the shards of all nodes. local are those of this node, copies says which members have a shard.
func (k *Cluster) Shards(local shard.Transport, copies func(shard.ID) []ring.Member) shard.Transport {
	return peer.NewShards(k.peers, local, copies)
}

// Nodes finds the other nodes that hold copies of shards.
func (k *Cluster) Nodes() shard.Nodes { return peer.NewNodes(k.peers, k.Member) }

// Member returns the member that a node is; false when it is none, any more.
func (k *Cluster) Member(n shard.Node) (ring.Member, bool) {
	members := k.meta.Ring().Members()
	i := slices.IndexFunc(members, func(m ring.Member) bool { return NodeOf(m) == n })
	if i < 0 {
		return ring.Member{}, false
	}
	return members[i], true
}

// NodeOf is a member as the shards name it.
func NodeOf(m ring.Member) shard.Node { return shard.Node{ID: m.ID, Incarnation: m.Incarnation} }

// Serve answers other nodes from now on and follows the ring. [Cluster.Link] must have been called.
func (k *Cluster) Serve(local peer.Local, shards shard.Transport, copies shard.Holder) {
	k.server = peer.NewServer(k.peerConfig(), peer.Handlers{Sessions: k.tier, Local: local, Metadata: k.meta, Shards: shards, Copies: copies})
	k.served.Go(func() {
		if err := k.server.Serve(k.config.Listener); err != nil {
			k.config.Log.Error().Err(err).Msg("other nodes are not answered any more")
		}
	})
	var before *ring.Ring
	k.meta.OnRing(func(r *ring.Ring) {
		k.server.Update(r.Members())
		k.peers.Update(r.Members())
		k.tell(before, r)
		before = r
		k.tier.SetRing(r)
	})
}

// tell logs who has come and who has gone since another ring; nil for none. A node that has started anew has done both.
func (k *Cluster) tell(before, now *ring.Ring) {
	line := k.config.Log.Info().Uint64("epoch", now.Epoch()).Strs("members", names(now.Members(), nil))
	message := "the members of the cluster have changed"
	if before == nil {
		message = "the members of the cluster are known"
	} else {
		if joined := names(now.Members(), before); len(joined) > 0 {
			line = line.Strs("joined", joined)
		}
		if left := names(before.Members(), now); len(left) > 0 {
			line = line.Strs("left", left)
		}
	}
	if !now.Has(k.config.Self) {
		message += "; this node is none of them"
	}
	line.Msg(message)
}

// names are those of the members that another ring has not; of all, without one.
func names(members []ring.Member, other *ring.Ring) []string {
	var all []string
	for _, m := range members {
		if other == nil || !other.Has(m) {
			all = append(all, m.Name)
		}
	}
	return all
}

// Join makes the node a member and waits for that. When etcd does not answer, it returns at once and goes on trying; the node then
// acts by the metadata that it saw last. Errors: what a member may not do, such as being of a version that is too old.
func (k *Cluster) Join(ctx context.Context) error {
	err := k.meta.Join(ctx)
	if err != nil && k.meta.Reachable() != nil {
		return nil
	}
	return err
}

// Ask has a member answer a request for itself alone.
func (k *Cluster) Ask(ctx context.Context, id string, r peer.LocalRequest) (peer.LocalAnswer, error) {
	for _, m := range k.meta.Ring().Members() {
		if m.ID == id {
			return k.peers.Local(ctx, m, r)
		}
	}
	return peer.LocalAnswer{}, fmt.Errorf("node [%s] is not a member of the cluster", id)
}

// settleRetry is the pause before a member that did not answer is asked again.
const settleRetry = 100 * time.Millisecond

// Settle returns when every live member acts by the changes that this node has made or taken in. A member that cannot be reached is waited for
// until it is none any more. The error is the cause of ctx's end, or that this node stops.
func (k *Cluster) Settle(ctx context.Context) error {
	revision := max(k.meta.Committed(), k.meta.Revision())
	if err := k.meta.Await(ctx, revision); err != nil {
		return err
	}
	members := k.meta.Members()
	errs := make([]error, len(members))
	var asked sync.WaitGroup
	for i, m := range members {
		if m != k.config.Self {
			asked.Go(func() { errs[i] = k.settle(ctx, m, revision) })
		}
	}
	asked.Wait()
	return errors.Join(errs...)
}

func (k *Cluster) settle(ctx context.Context, m ring.Member, revision uint64) error {
	for {
		err := k.peers.Await(ctx, m, revision)
		switch {
		case err == nil || !slices.Contains(k.meta.Members(), m):
			return nil
		case errors.Is(err, peer.ErrClosed):
			return fmt.Errorf("this node stops, and node [%s] may not have applied the change: %w", m.Name, err)
		}
		select {
		case <-time.After(settleRetry):
		case <-ctx.Done():
			return fmt.Errorf("node [%s] has not applied the change: %w", m.Name, err)
		}
	}
}

// Health is how the cluster is, as this node sees it.
type Health struct {
	Etcd    error // why the metadata cannot be changed; nil when they can
	Member  bool  // this node is one of the cluster, surely
	Tier    tier.Status
	Outside []string // names of members that are too old for the shared tier
}

// Health reads how the cluster is at this moment.
func (k *Cluster) Health() Health {
	r := k.meta.Ring()
	h := Health{Etcd: k.meta.Reachable(), Member: k.meta.Live() && r.Has(k.config.Self), Tier: k.tier.Status()}
	for _, m := range r.Members() {
		if !m.Eligible() {
			h.Outside = append(h.Outside, m.Name)
		}
	}
	return h
}

// Tier is the node's part of the shared limits.
func (k *Cluster) Tier() *tier.Tier { return k.tier }

// Leave ends the membership: other members take over what this node owns, and what it holds counts no longer. Its searches should
// have ended.
func (k *Cluster) Leave(ctx context.Context) error { return k.meta.Leave(ctx) }

// Close ends everything. A membership that was not left ends with its time to live.
func (k *Cluster) Close() error {
	if k.tier != nil {
		k.tier.Close()
	}
	if k.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), settleRetry)
		k.server.Shutdown(ctx)
		cancel()
	} else {
		k.config.Listener.Close()
	}
	k.peers.Close()
	k.served.Wait()
	return k.meta.Close()
}
