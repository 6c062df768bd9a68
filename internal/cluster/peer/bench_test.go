package peer_test

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/wlmserver/wlmserver/internal/certificate/certificatetest"
	"github.com/wlmserver/wlmserver/internal/cluster/peer"
	"github.com/wlmserver/wlmserver/internal/cluster/peer/clusterpb"
	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/cluster/tier"
	"github.com/wlmserver/wlmserver/internal/shard"
	"github.com/wlmserver/wlmserver/internal/sharedtier"
)

// bare is a gRPC server that answers, and nothing else.
type bare struct {
	clusterpb.UnimplementedPeerServer
}

func (bare) Await(context.Context, *clusterpb.AwaitRequest) (*clusterpb.AwaitAnswer, error) {
	return new(clusterpb.AwaitAnswer), nil
}

// nothing are shards that have no documents and no work.
type nothing struct{ shard.Transport }

func (nothing) Query(_ context.Context, _ *shard.QueryRequest, done func(*shard.QueryResult, error)) {
	done(new(shard.QueryResult), nil)
}

// BenchmarkRoundTrip tells what one message there and one back cost, one after another on loopback: as a bare unary call of gRPC, as a
// call between nodes, and as two messages of a session.
func BenchmarkRoundTrip(b *testing.B) {
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
		measure(b, func() error { _, err := client.Await(b.Context(), &clusterpb.AwaitRequest{Revision: 1}); return err })
		c.Close()
		s.Stop()
		if err := <-served; err != nil {
			b.Error(err)
		}
	})
	for _, secure := range []bool{false, true} {
		name, config := "", func(*peer.Config) {}
		if secure {
			name, config = "-tls", secured(b, certificatetest.NewAuthority(b))
		}
		b.Run("unary"+name, func(b *testing.B) {
			to, from := start(b, "b", peer.Handlers{Metadata: metadata(1)}, config), start(b, "a", peer.Handlers{}, config)
			measure(b, func() error { return from.peers.Await(b.Context(), to.self, 1) })
		})
		b.Run("shard"+name, func(b *testing.B) {
			to, from := start(b, "b", peer.Handlers{Shards: nothing{}}, config), start(b, "a", peer.Handlers{}, config)
			across := peer.NewShards(from.peers, nil, func(shard.ID) []ring.Member { return []ring.Member{to.self} })
			answered := make(chan error, 1)
			done := func(_ *shard.QueryResult, err error) { answered <- err }
			measure(b, func() error { across.Query(b.Context(), new(shard.QueryRequest), done); return <-answered })
		})
		b.Run("session"+name, func(b *testing.B) {
			to, from := start(b, "b", peer.Handlers{Sessions: sessions(echo)}, config), start(b, "a", peer.Handlers{}, config)
			s, err := from.peers.Session(b.Context(), to.self, 1)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			batch := tier.Batch{Revision: 1, Envelopes: []tier.Envelope{envelope(sharedtier.Message{Kind: sharedtier.Acquire, Depth: 1})}}
			measure(b, func() error {
				if err := s.Send(batch); err != nil {
					return err
				}
				_, err := s.Receive()
				return err
			})
		})
	}
}

// measure reports the median of the single times: the mean is the scheduler's.
func measure(b *testing.B, do func() error) {
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

// BenchmarkSession tells how many messages one direction carries, one envelope at a time as the shared tier's busiest moments are at
// worst, and gathered.
func BenchmarkSession(b *testing.B) {
	for name, n := range map[string]int{"single": 1, "hundred": 100} {
		b.Run(name, func(b *testing.B) {
			got, done := 0, make(chan struct{})
			to := start(b, "b", peer.Handlers{Sessions: sessions(func(_ ring.Member, _ uint64, s tier.Stream) error {
				defer close(done)
				for {
					x, err := s.Receive()
					if err != nil || x.Revision == 0 { // the last one
						return err
					}
					got += len(x.Envelopes)
				}
			})})
			from := start(b, "a", peer.Handlers{})
			s, err := from.peers.Session(b.Context(), to.self, 1)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			batch := tier.Batch{Revision: 1}
			for range n {
				batch.Envelopes = append(batch.Envelopes, envelope(sharedtier.Message{Kind: sharedtier.Grant, Permit: sharedtier.PermitID{Epoch: 1, Seq: 1}}))
			}
			sent := 0
			for b.Loop() {
				if err := s.Send(batch); err != nil {
					b.Fatal(err)
				}
				sent += n
			}
			if err := s.Send(tier.Batch{}); err != nil {
				b.Fatal(err)
			}
			<-done
			if got != sent {
				b.Errorf("%d of %d messages arrived", got, sent)
			}
			b.ReportMetric(float64(sent)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}
