package meta

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/wlmserver/wlmserver/internal/cluster/ring"
)

// A Client is this node's end of the cluster's metadata. It is safe for concurrent use.
type Client struct {
	config  Config
	started time.Time

	sets [kinds]*Set
	view atomic.Pointer[view] // stored under mu

	until     atomic.Int64  // the membership surely holds for so long after started, in nanoseconds
	since     atomic.Uint64 // revision of the registration that the membership rests on
	ringKnown atomic.Uint64 // revision of the view whose ring all listeners know; stored under mu
	committed atomic.Uint64 // the newest revision that this node has written

	reading    chan struct{} // one slot: held by who reads the whole prefix
	publishing chan struct{} // one slot: filled when there may be something to tell of the sets
	ringing    chan struct{} // the same of the ring
	group      sync.WaitGroup
	life       context.Context
	end        context.CancelCauseFunc

	connecting sync.Mutex // guards etcd while it is made
	etcd       *clientv3.Client

	mu        sync.Mutex
	down      error                   // why etcd cannot be used now; nil when it can
	rewatch   context.CancelCauseFunc // ends the watch that is under way
	changed   chan struct{}           // closed when the view is replaced, and when listeners know its ring
	applied   uint64                  // everything up to here is known to all listeners
	told      chan struct{}           // closed when applied has grown
	ringHeard []func(*ring.Ring)
	ringTold  uint64 // the epoch of the last ring that listeners have heard of

	membership *membership // nil before Join
}

// Open connects a node with the cluster's metadata: it reads them from etcd, or takes what it saw last when etcd does
// not answer within the timeout of a request. It does not make the node a member.
//
// Errors: *SchemaError, *VersionError, *UnseenError, *MalformedError, and what etcd refuses.
func Open(ctx context.Context, config Config) (*Client, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	c := newClient(config)
	if err := c.begin(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.group.Go(c.follow)
	c.group.Go(c.publish)
	c.group.Go(c.publishRings)
	return c, nil
}

// newClient returns a client that knows nothing and does nothing yet.
func newClient(config Config) *Client {
	c := &Client{
		config: config, started: time.Now(),
		reading: make(chan struct{}, 1), publishing: make(chan struct{}, 1), ringing: make(chan struct{}, 1),
		changed: make(chan struct{}), told: make(chan struct{}),
	}
	c.view.Store(emptyView())
	c.life, c.end = context.WithCancelCause(context.Background())
	for k := range c.sets {
		c.sets[k] = &Set{client: c, kind: kind(k)}
	}
	return c
}

// begin reads the first view.
func (c *Client) begin(ctx context.Context) error {
	err := c.read(ctx)
	if err != nil && unreachable(err) && ctx.Err() == nil {
		return c.beginByLast(ctx, err)
	}
	if err != nil {
		return err
	}
	return c.view.Load().fits(c.config.Self)
}

// beginByLast takes the view that the node saw last.
func (c *Client) beginByLast(ctx context.Context, cause error) error {
	c.down = cause
	if c.config.Last == nil {
		return &UnseenError{Endpoints: c.config.Endpoints, Cause: cause}
	}
	record, err := c.config.Last.Kept(ctx)
	if err != nil {
		return err
	}
	if record == nil {
		return &UnseenError{Endpoints: c.config.Endpoints, Cause: cause}
	}
	v, err := decodeLast(c.config.Prefix, record)
	if err != nil {
		return err
	}
	if v == nil {
		return &UnseenError{Endpoints: c.config.Endpoints, Cause: cause}
	}
	if err := v.fits(c.config.Self); err != nil {
		return err
	}
	c.view.Store(v)
	c.config.Log.Warn().Err(cause).Uint64("revision", v.revision).
		Msg("etcd cannot be reached; this node acts by the metadata that it saw last, and refuses changes until etcd is back")
	return nil
}

// Close ends what the client does. A membership is not left but ends with its lease; see [Client.Leave].
func (c *Client) Close() error {
	c.until.Store(0)
	c.end(errClosed)
	c.group.Wait()
	c.until.Store(0) // an answer may have come meanwhile
	c.connecting.Lock()
	defer c.connecting.Unlock()
	if c.etcd == nil {
		return nil
	}
	if err := c.etcd.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("closing the connections to etcd: %w", err)
	}
	return nil
}

// connection returns the connections to etcd. They come about as they are needed, unless etcd asks for a user.
func (c *Client) connection() (*clientv3.Client, error) {
	c.connecting.Lock()
	defer c.connecting.Unlock()
	if c.etcd != nil {
		return c.etcd, nil
	}
	if c.life.Err() != nil {
		return nil, context.Cause(c.life)
	}
	again := backoff.DefaultConfig
	again.BaseDelay, again.MaxDelay = retry, mostRetry // so that an etcd that was away for long is found soon
	etcd, err := clientv3.New(clientv3.Config{
		Endpoints: c.config.Endpoints,
		Username:  c.config.Username, Password: c.config.Password, TLS: c.config.TLS,
		DialTimeout: c.config.Timeout,
		DialOptions: []grpc.DialOption{
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: again, MinConnectTimeout: c.config.Timeout}),
		},
		DialKeepAliveTime:    10 * time.Second, // etcd takes more than one ping in 5 s amiss
		DialKeepAliveTimeout: c.config.Timeout,
		Logger:               zap.NewNop(), // what matters, this package says
		Context:              c.life,
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd: %w", err)
	}
	c.etcd = etcd
	return etcd, nil
}

// ClusterID is the id that the cluster got when its prefix was laid out: a UUID in 22 characters of URL-safe base64.
func (c *Client) ClusterID() string { return c.view.Load().schema.Cluster }

// Ring returns the ring that this node has read last; one of epoch 0 without members when it has read none.
func (c *Client) Ring() *ring.Ring { return c.view.Load().ring }

// Members returns the members that are registered, in the order of their ids. Those that have only just joined, and
// those that have just gone, the ring does not tell of yet.
func (c *Client) Members() []ring.Member {
	all := c.view.Load().registered()
	members := make([]ring.Member, len(all))
	for i, r := range all {
		members[i] = r.Member
	}
	return members
}

// OnRing has f called with each ring from now on that this node comes to know, in the order of their epochs and one at
// a time; it may skip epochs. The first call is with the ring there is, if there is one. It holds up the next ring.
func (c *Client) OnRing(f func(*ring.Ring)) {
	c.mu.Lock()
	c.ringHeard = append(c.ringHeard, c.once(f))
	c.ringTold = 0
	c.mu.Unlock()
	c.tell()
}

// once keeps a listener from hearing of one ring twice.
func (c *Client) once(f func(*ring.Ring)) func(*ring.Ring) {
	var last uint64
	return func(r *ring.Ring) {
		if r.Epoch() != last {
			last = r.Epoch()
			f(r)
		}
	}
}

// Revision returns the revision up to which this node has applied the metadata: all listeners know them.
func (c *Client) Revision() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.applied
}

// Committed returns the revision of the newest change that this node has made; 0 before the first. Whoever answers the
// change has other members [Client.Await] it.
func (c *Client) Committed() uint64 { return c.committed.Load() }

// Reachable returns nil while etcd answers, else why it does not.
func (c *Client) Reachable() error {
	if c.life.Err() != nil {
		return context.Cause(c.life)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.down
}

// Await returns when this node has applied the metadata up to a revision, or the cause of ctx's end. When the watch does
// not bring the revision soon, the metadata are read.
func (c *Client) Await(ctx context.Context, revision uint64) error {
	timer := time.NewTimer(lag)
	defer timer.Stop()
	for {
		c.mu.Lock()
		applied, told := c.applied, c.told
		c.mu.Unlock()
		if applied >= revision {
			return nil
		}
		select {
		case <-told:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.life.Done():
			return context.Cause(c.life)
		case <-timer.C:
			if c.view.Load().revision < revision {
				_ = c.read(ctx) // tried again, as long as somebody waits
			}
			timer.Reset(lag)
		}
	}
}

// seen is Await for the view, whether listeners know it or not.
func (c *Client) seen(ctx context.Context, revision uint64) error {
	timer := time.NewTimer(lag)
	defer timer.Stop()
	for {
		c.mu.Lock()
		changed := c.changed
		c.mu.Unlock()
		if c.view.Load().revision >= revision {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			if err := c.read(ctx); err != nil {
				return err
			}
			timer.Reset(lag)
		}
	}
}

// read reads the whole prefix. Of many that want it at once, one does, and the others use what it has read.
func (c *Client) read(ctx context.Context) error {
	before := c.view.Load()
	select {
	case c.reading <- struct{}{}:
		defer func() { <-c.reading }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if c.view.Load() != before {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	etcd, err := c.connection()
	if err != nil {
		return err
	}
	answer, err := etcd.Get(ctx, c.config.Prefix, clientv3.WithPrefix())
	if err != nil {
		return fmt.Errorf("reading the cluster's metadata: %w", inTime(err))
	}
	v, err := read(c.config.Prefix, answer.Kvs, uint64(answer.Header.Revision))
	if err != nil {
		return err
	}
	if v.schemaRevision == 0 {
		return c.layOut(ctx, etcd)
	}
	return c.take(v, before)
}

// layOut makes an empty prefix one of this package's, unless somebody is faster.
func (c *Client) layOut(ctx context.Context, etcd *clientv3.Client) error {
	id := uuid.New()
	record, err := json.Marshal(schemaRecord{Version: schemaVersion, Cluster: base64.RawURLEncoding.EncodeToString(id[:])})
	if err != nil {
		return err
	}
	key := c.config.Prefix + schemaKey
	all := clientv3.OpGet(c.config.Prefix, clientv3.WithPrefix())
	answer, err := etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, string(record)), all).
		Else(all).
		Commit()
	if err != nil {
		return fmt.Errorf("laying out the cluster's metadata: %w", inTime(err))
	}
	found := answer.Responses[len(answer.Responses)-1].GetResponseRange()
	v, err := read(c.config.Prefix, found.Kvs, uint64(answer.Header.Revision))
	if err != nil {
		return err
	}
	return c.take(v, nil)
}

// take replaces the view by one that was read whole. Before is the view when the reading began, nil for any: that a
// later reading has brought an earlier revision can only be since etcd's own data were replaced. Then, and where the
// cluster has another id, what was read stands, whatever its revisions.
func (c *Client) take(v *view, before *view) error {
	if v.schema.Version > schemaVersion {
		return &SchemaError{Prefix: c.config.Prefix, Found: v.schema.Version, Known: schemaVersion}
	}
	c.mu.Lock()
	now := c.view.Load()
	other := now.schema.Cluster != "" && v.schema.Cluster != now.schema.Cluster || before != nil && v.revision < before.newest()
	switch {
	case other:
		c.replaceLocked(v)
		c.applied, c.ringTold = 0, 0
		c.committed.Store(0)
		if c.rewatch != nil {
			c.rewatch(errors.New("etcd's data were replaced"))
		}
	case v.revision >= now.revision:
		for k := range v.sets {
			if now.sets[k].Revision > v.sets[k].Revision {
				v.sets[k] = now.sets[k]
			}
		}
		c.replaceLocked(v)
	}
	c.mu.Unlock()
	if other {
		c.config.Log.Warn().Uint64("revision", v.revision).Uint64("seen", now.revision).
			Msg("etcd's data were replaced; what they hold stands in the place of the metadata that this node knew")
	}
	c.tell()
	return nil
}

// change replaces the view by what f makes of it, if that is another.
func (c *Client) change(f func(*view) (*view, error)) error {
	c.mu.Lock()
	now := c.view.Load()
	v, err := f(now)
	if err == nil && v != now {
		c.replaceLocked(v)
	}
	c.mu.Unlock()
	if err == nil {
		c.tell()
	}
	return err
}

func (c *Client) replaceLocked(v *view) {
	c.view.Store(v)
	close(c.changed)
	c.changed = make(chan struct{})
}

// ringHeardOf notes that all listeners know the ring of a view.
func (c *Client) ringHeardOf(revision uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ringKnown.Swap(revision) != revision {
		close(c.changed)
		c.changed = make(chan struct{})
	}
}

// tell has the publishers look whether there is something to tell.
func (c *Client) tell() {
	for _, wake := range []chan struct{}{c.publishing, c.ringing} {
		select {
		case wake <- struct{}{}:
		default: // it will look anyway
		}
	}
}

// heard returns the listeners to rings, and whether the ring is news to one of them.
func (c *Client) heard(epoch uint64) []func(*ring.Ring) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if epoch == 0 || c.ringTold == epoch {
		return nil
	}
	c.ringTold = epoch
	return slices.Clip(c.ringHeard)
}
