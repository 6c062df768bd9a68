package node

import (
	"context"
	"net"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/wlmserver/wlmserver/api/rest"
	"github.com/wlmserver/wlmserver/internal/certificate"
	"github.com/wlmserver/wlmserver/internal/cluster"
	"github.com/wlmserver/wlmserver/internal/cluster/peer"
	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/internal/stub"
	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/settings"
	"github.com/wlmserver/wlmserver/store"
)

// leaveTimeout bounds how long a node that stops tries to tell the others.
const leaveTimeout = 2 * time.Second

// metadata are the repositories that the node's registries work on: its own, or those of the cluster.
type metadata struct {
	settings, groups, rules records.Repository
	cluster                 *cluster.Cluster // nil for a node alone
}

// openMetadata finds where the node's metadata are. transport is where other nodes are answered, nil for a node alone.
func openMetadata(
	ctx context.Context, c Config, id, httpAddress string, transport net.Listener, db *store.DB, log zerolog.Logger,
) (metadata, error) {
	if transport == nil {
		return metadata{settings: db.Settings(), groups: db.Groups(), rules: db.Rules()}, nil
	}
	k, err := cluster.Open(ctx, cluster.Config{
		Name: c.ClusterName,
		Self: ring.Member{ID: id, Incarnation: uuid.NewString(), Name: c.NodeName, HTTP: httpAddress, Version: c.Compatibility},
		Etcd: cluster.EtcdConfig{
			Endpoints: c.Cluster.Endpoints, Prefix: c.Cluster.Prefix, Username: c.Cluster.Username, Password: c.Cluster.Password,
			TLS: certificate.Files{
				Keys: "cluster.etcd.ssl", Certificate: c.Cluster.EtcdCertificate, Key: c.Cluster.EtcdKey, Authorities: c.Cluster.EtcdAuthorities, Mutual: true,
			},
		},
		MemberTTL: c.Cluster.MemberTTL, Lease: c.Cluster.Lease,
		Listener: transport, Host: c.Transport.Host, Dial: c.Transport.Dial,
		Transport: certificate.Files{
			Keys: "transport.ssl", Certificate: c.Transport.Certificate, Key: c.Transport.Key, Authorities: c.Transport.Authorities, Mutual: true,
		},
		Failures: stub.Failures{}, Last: db.Last(), Log: log,
	})
	if err != nil {
		return metadata{}, err
	}
	return metadata{settings: k.Meta().Settings(), groups: k.Meta().Groups(), rules: k.Meta().Rules(), cluster: k}, nil
}

// follow has registries take in what other nodes change.
func (m metadata) follow(settings, groups, rules func(context.Context) error) {
	if m.cluster == nil {
		return
	}
	m.cluster.Meta().Settings().OnChange(settings)
	m.cluster.Meta().Groups().OnChange(groups)
	m.cluster.Meta().Rules().OnChange(rules)
}

// shared says of the settings whether they are a cluster's.
func (m metadata) shared() []settings.Option {
	if m.cluster == nil {
		return nil
	}
	return []settings.Option{settings.OfCluster()}
}

// engine makes the search stub; that of a cluster's node is one of several.
func (m metadata) engine(ctx context.Context, c stub.Config) (*stub.Engine, error) {
	k := m.cluster
	if k == nil {
		return stub.New(c), nil
	}
	var e *stub.Engine // no shard is asked before it is there
	c.Cluster = &stub.Cluster{
		Indices: k.Meta().Indices(), Self: cluster.NodeOf(k.Self()), Nodes: k.Nodes(), Settled: k.Settle,
		Members: func() stub.Members {
			r := k.Meta().Ring()
			all := stub.Members{Epoch: r.Epoch()}
			for _, x := range r.Members() {
				all.Nodes = append(all.Nodes, cluster.NodeOf(x))
			}
			return all
		},
	}
	c.Shards = func(local shard.Transport) shard.Transport {
		return k.Shards(local, func(id shard.ID) (copies []ring.Member) {
			for _, n := range e.Copies(id) {
				if x, ok := k.Member(n); ok {
					copies = append(copies, x)
				}
			}
			return copies
		})
	}
	var err error
	if e, err = stub.Open(ctx, c); err != nil {
		return nil, err
	}
	k.Meta().Indices().OnChange(e.Reload)
	k.Meta().OnRing(func(*ring.Ring) { e.MembersChanged() })
	return e, nil
}

// members is the cluster as the API sees it.
type members struct{ *cluster.Cluster }

// view is nil for a node alone.
func (m metadata) view() rest.Cluster {
	if m.cluster == nil {
		return nil
	}
	return members{m.cluster}
}

// roles are those of every node.
func roles() []string { return []string{"cluster_manager", "data"} }

func (m members) Members() []rest.Member {
	all := m.Meta().Ring().Members()
	out := make([]rest.Member, len(all))
	for i, x := range all {
		out[i] = rest.Member{ID: x.ID, Name: x.Name, TransportAddress: x.Transport, HTTPAddress: x.HTTP, Version: x.Version, Roles: roles()}
	}
	return out
}

func (m members) Ask(ctx context.Context, id string, r rest.LocalRequest) (rest.LocalAnswer, error) {
	a, err := m.Cluster.Ask(ctx, id, peer.LocalRequest(r))
	return rest.LocalAnswer(a), err
}

func (m members) Health() rest.ClusterHealth {
	h := m.Cluster.Health()
	out := rest.ClusterHealth{Metadata: h.Etcd == nil, Member: h.Member, SharedTier: h.Tier.Ready && h.Tier.Sessions == h.Tier.Owners}
	for _, name := range h.Outside {
		out.Reasons = append(out.Reasons, "node ["+name+"] is of a version before "+ring.Since+": it shares out no permits, and no group may have a queue while it is there")
	}
	return out
}

// permits are those that the node has granted, for the check of all nodes; nil for a node alone.
func (m metadata) permits() func() rest.Permits {
	if m.cluster == nil {
		return nil
	}
	return func() rest.Permits {
		tier := m.cluster.Tier()
		status := tier.Status()
		p := rest.Permits{Settled: status.Ready && status.Sessions == status.Owners}
		for _, x := range tier.Permits() {
			p.Out = append(p.Out, rest.Permit{Bucket: x.Bucket, Epoch: x.Permit.Epoch, Seq: x.Permit.Seq, Holder: string(x.By)})
		}
		return p
	}
}

// local answers other nodes.
type local struct{ *rest.Server }

func (l local) ServeLocal(ctx context.Context, r peer.LocalRequest) (peer.LocalAnswer, error) {
	a, err := l.Server.ServeLocal(ctx, rest.LocalRequest(r))
	return peer.LocalAnswer(a), err
}
