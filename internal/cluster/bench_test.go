package cluster_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/cluster/peer"
	"github.com/wlmserver/wlmserver/internal/cluster/peer/clusterpb"
	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/cluster/tier"
	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/wlm"
)

// member is a node without the parts that the shared tier does without.
type member struct {
	*wlm.Admission
	self  ring.Member
	tier  *tier.Tier
	peers *peer.Peers
}

// still is metadata that do not change.
type still struct{}

func (still) Live() bool                          { return true }
func (still) Revision() uint64                    { return 1 }
func (still) Await(context.Context, uint64) error { return nil }

func (still) ServeLocal(context.Context, peer.LocalRequest) (peer.LocalAnswer, error) {
	return peer.LocalAnswer{}, nil
}

// startMember starts one on loopback.
func startMember(b *testing.B, id string, registry *groups.Registry) *member {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	m := &member{self: ring.Member{ID: id, Incarnation: "1", Name: id, Transport: l.Addr().String(), Version: ring.Since}}
	config := peer.Config{ClusterName: "bench", Self: func() ring.Member { return m.self }, Log: zerolog.Nop()}
	m.peers = peer.NewPeers(config)
	m.Admission = wlm.New(wlm.WithLink(func(a *wlm.Admission) wlm.Link {
		m.tier = tier.New(tier.Config{Self: m.self, Lease: 15 * time.Second, Metadata: still{}, Dialer: m.peers, Log: zerolog.Nop()}, a)
		return m.tier
	}))
	m.GroupsChanged(registry.Snapshot())
	server := peer.NewServer(config, peer.Handlers{Sessions: m.tier, Local: still{}, Metadata: still{}, Shards: struct{ shard.Transport }{}})
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	b.Cleanup(func() {
		m.tier.Close()
		m.peers.Close()
		server.Shutdown(context.Background())
		if err := <-served; err != nil {
			b.Error(err)
		}
	})
	return m
}

// startPair starts two members; the first owns the bucket of the group whose id it returns.
func startPair(b *testing.B, limit int) (owner, other *member, group string) {
	b.Helper()
	registry, err := groups.Open(b.Context(), new(records.Memory))
	if err != nil {
		b.Fatal(err)
	}
	patch, err := groups.ParsePatch(fmt.Appendf(nil, `{"name":"g","resiliency_mode":"enforced","resource_limits":{"cpu":0.1},
		"throttling":{"attribute":"group","shared_limit":%d},"queue":{"size_per_bucket":1000}}`, limit))
	if err != nil {
		b.Fatal(err)
	}
	g, err := registry.Create(b.Context(), patch)
	if err != nil {
		b.Fatal(err)
	}
	owner, other = startMember(b, "a", registry), startMember(b, "b", registry)
	r := ring.New(1, []ring.Member{owner.self, other.self})
	owner.tier.SetRing(r)
	other.tier.SetRing(r)
	if of, _ := r.Owner(wlm.BucketKey{Group: g.ID, Attribute: groups.ByGroup}.String()); of == other.self {
		owner, other = other, owner
	}
	return owner, other, g.ID
}

// run takes a permit and gives it back.
func (m *member) run(ctx context.Context, group string) error {
	ticket, err := m.Enter(ctx, wlm.Request{Group: group})
	if err != nil {
		return err
	}
	permit, err := ticket.Wait(ctx)
	if err != nil {
		return err
	}
	permit.Close()
	return nil
}

// median measures single times: their mean is the scheduler's.
func median(b *testing.B, do func() error) {
	b.Helper()
	b.ReportAllocs()
	var times []time.Duration
	for b.Loop() {
		began := time.Now()
		if err := do(); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Nanoseconds()), "p50-ns")
}

// bare is a gRPC server that answers, and nothing else.
type bare struct {
	clusterpb.UnimplementedPeerServer
}

func (bare) Await(context.Context, *clusterpb.AwaitRequest) (*clusterpb.AwaitAnswer, error) {
	return new(clusterpb.AwaitAnswer), nil
}

// BenchmarkSharedAcquire tells what it costs to take a permit of the shared tier that is free and to give it back: of an owner on another
// node, and of this node itself; beside a bare unary call of gRPC. All over loopback, one after another.
func BenchmarkSharedAcquire(b *testing.B) {
	b.Run("bare-unary", func(b *testing.B) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		s := grpc.NewServer()
		clusterpb.RegisterPeerServer(s, bare{})
		served := make(chan error, 1)
		go func() { served <- s.Serve(l) }()
		c, err := grpc.NewClient("passthrough:///"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			b.Fatal(err)
		}
		client := clusterpb.NewPeerClient(c)
		median(b, func() error { _, err := client.Await(b.Context(), &clusterpb.AwaitRequest{Revision: 1}); return err })
		c.Close()
		s.Stop()
		if err := <-served; err != nil {
			b.Error(err)
		}
	})
	b.Run("another-node", func(b *testing.B) {
		_, other, group := startPair(b, 100)
		median(b, func() error { return other.run(b.Context(), group) })
	})
	b.Run("this-node", func(b *testing.B) {
		owner, _, group := startPair(b, 100)
		median(b, func() error { return owner.run(b.Context(), group) })
	})
}

// BenchmarkSharedGrants tells how many permits a second an owner hands over between searches that wait on two nodes.
func BenchmarkSharedGrants(b *testing.B) {
	for _, waiting := range []int{16, 256} {
		b.Run(fmt.Sprint(waiting, "-waiting"), func(b *testing.B) {
			owner, other, group := startPair(b, 4)
			var left atomic.Int64
			left.Store(int64(b.N))
			var clients sync.WaitGroup
			b.ResetTimer()
			for i := range waiting {
				m := []*member{owner, other}[i%2]
				clients.Go(func() {
					for left.Add(-1) >= 0 {
						if err := m.run(b.Context(), group); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			clients.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "grants/s")
		})
	}
}
