package peer

import (
	"context"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"

	"github.com/wlmserver/wlmserver/internal/cluster/peer/clusterpb"
	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/cluster/tier"
)

// Peers is the side that calls: a connection to each member that was called, kept while it is in the ring. It is safe for concurrent
// use.
type Peers struct {
	config  Config
	running sync.WaitGroup // what calls on behalf of others

	mu     sync.Mutex
	closed bool
	open   map[ring.Member]*grpc.ClientConn
	unread map[ring.Member][]uint64 // readers to be closed; there while a goroutine does that
}

var _ tier.Dialer = (*Peers)(nil)

// NewPeers returns the calling side. It connects to nobody yet.
func NewPeers(c Config) *Peers {
	c.complete()
	return &Peers{config: c, open: make(map[ring.Member]*grpc.ClientConn), unread: make(map[ring.Member][]uint64)}
}

// Update tells who the members are. The connections to others are closed, and what runs over them fails.
func (p *Peers) Update(members []ring.Member) {
	p.mu.Lock()
	var gone []*grpc.ClientConn
	for m, c := range p.open {
		if !slices.Contains(members, m) {
			gone = append(gone, c)
			delete(p.open, m)
		}
	}
	p.mu.Unlock()
	for _, c := range gone {
		c.Close()
	}
}

// Close closes all connections; calls fail with [ErrClosed] from then on. It returns when the answers to all questions to shards are
// given.
func (p *Peers) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Update(nil)
	p.running.Wait()
}

// client returns the connection to a member, and makes it if there is none. It does not wait for it.
func (p *Peers) client(to ring.Member) (clusterpb.PeerClient, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	c := p.open[to]
	if c == nil {
		var err error
		if c, err = p.connect(to); err != nil {
			return nil, &UnreachableError{to, err.Error()}
		}
		p.open[to] = c
	}
	return clusterpb.NewPeerClient(c), nil
}

func (p *Peers) connect(to ring.Member) (*grpc.ClientConn, error) {
	retry := backoff.DefaultConfig
	retry.BaseDelay, retry.MaxDelay = firstRetry, lastRetry
	return grpc.NewClient("passthrough:///"+to.Transport,
		grpc.WithTransportCredentials(p.config.credentials(nil)),
		grpc.WithContextDialer(p.config.Dial),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(), // who calls knows better what may be done twice
		grpc.WithIdleTimeout(0),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: retry, MinConnectTimeout: connectTimeout}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: p.config.KeepAlive, Timeout: p.config.keepAliveTimeout(), PermitWithoutStream: true}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
	)
}

// begin notes what calls on behalf of others, unless all is closed.
func (p *Peers) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.running.Add(1)
	}
	return !p.closed
}

// Await returns when the member has applied the revision of the metadata. Errors are those of ctx, *[UnreachableError], *[RefusedError],
// and *[FailedError].
func (p *Peers) Await(ctx context.Context, m ring.Member, revision uint64) error {
	client, err := p.client(m)
	if err != nil {
		return err
	}
	if _, err = client.Await(p.config.introduce(ctx, m), &clusterpb.AwaitRequest{Revision: revision}); err != nil {
		return explain(ctx, m, err)
	}
	return nil
}

// Local has the member answer a REST request for itself. Errors are those of Await.
func (p *Peers) Local(ctx context.Context, m ring.Member, r LocalRequest) (LocalAnswer, error) {
	client, err := p.client(m)
	if err != nil {
		return LocalAnswer{}, err
	}
	request := &clusterpb.LocalRequest{Method: r.Method, Path: r.Path, RawQuery: r.RawQuery, Body: r.Body, User: r.User, Roles: r.Roles}
	for name, values := range r.Header {
		request.Header = append(request.Header, &clusterpb.Header{Name: name, Values: values})
	}
	a, err := client.Local(p.config.introduce(ctx, m), request)
	if err != nil {
		return LocalAnswer{}, explain(ctx, m, err)
	}
	return LocalAnswer{Status: int(a.GetStatus()), ContentType: a.GetContentType(), Body: a.GetBody()}, nil
}
