package meta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/wlmserver/wlmserver/records"
)

// membership is this node's being a member, from Join until Leave or Close.
type membership struct {
	ctx  context.Context
	end  context.CancelCauseFunc
	done sync.WaitGroup

	mu      sync.Mutex
	lease   clientv3.LeaseID // 0 while there is none
	refused error            // why the node cannot be a member for now
	tried   chan struct{}    // closed when refused has been set anew
}

// Join makes the node a member, and returns when the ring names it. After an error it is tried on in the background,
// until Leave or Close: a node that starts without etcd becomes a member when etcd is back. To join again does nothing
// but wait.
//
// Errors: *records.UnavailableError while etcd does not answer, *VersionError and *SchemaError for what the metadata
// need by now, and the cause of ctx's end.
func (c *Client) Join(ctx context.Context) error {
	c.mu.Lock()
	m := c.membership
	if m == nil {
		m = &membership{tried: make(chan struct{})}
		m.ctx, m.end = context.WithCancelCause(c.life)
		c.membership = m
		m.done.Go(func() { c.belong(m) })
		m.done.Go(func() { c.tend(m) })
		c.group.Go(m.done.Wait)
	}
	c.mu.Unlock()
	for {
		c.mu.Lock()
		changed := c.changed
		c.mu.Unlock()
		m.mu.Lock()
		refused, tried := m.refused, m.tried
		m.mu.Unlock()
		if refused == nil && c.Live() && c.Ring().Has(c.config.Self) {
			return nil
		}
		if refused != nil {
			return refused
		}
		select {
		case <-changed:
		case <-tried:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-m.ctx.Done():
			return context.Cause(m.ctx)
		}
	}
}

// Live tells whether the node is surely a member now: etcd has answered a sign of life that was sent less than the time
// of its lease ago, and who listens to rings knows what the ring was when the node registered. So a node that joins again
// is none before it has learnt that it was written out meanwhile. It is to be asked at the moment of use.
func (c *Client) Live() bool {
	return int64(time.Since(c.started)) < c.until.Load() && c.ringKnown.Load() >= c.since.Load()
}

// liveUntil notes that the membership holds for so long after a moment.
func (c *Client) liveUntil(sent time.Time, seconds int64) {
	c.until.Store(int64(sent.Sub(c.started) + time.Duration(seconds)*time.Second))
}

// belong keeps the node registered.
func (c *Client) belong(m *membership) {
	var said string
	for wait := retry; m.ctx.Err() == nil; {
		lease, err := c.register(m)
		m.note(err)
		if err != nil {
			if _, down := errors.AsType[*records.UnavailableError](err); !down && !errors.Is(err, rpctypes.ErrLeaseNotFound) && err.Error() != said {
				said = err.Error()
				c.config.Log.Error().Err(err).Msg("this node cannot join the cluster; it tries again")
			}
			pause(m.ctx, wait)
			wait = min(2*wait, mostRetry)
			continue
		}
		wait = retry
		err = c.keepAlive(m, lease)
		if m.ctx.Err() != nil {
			return
		}
		c.until.Store(0)
		m.note(err)
		if errors.Is(err, errTaken) {
			c.config.Log.Error().Err(err).Msg("this node is no member any more")
			return
		}
		c.config.Log.Warn().Err(err).Msg("this node's membership has ended; it joins again")
		_ = c.read(m.ctx) // the watch may have missed that etcd's data were replaced
	}
}

// note keeps what became of the last attempt to register. A lease that ended is nothing to tell of: there will be another.
func (m *membership) note(err error) {
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		err = nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused = err
	close(m.tried)
	m.tried = make(chan struct{})
}

// register writes the member's key with a lease of its own.
func (c *Client) register(m *membership) (*clientv3.LeaseGrantResponse, error) {
	if err := c.Reachable(); err != nil {
		return nil, &records.UnavailableError{Cause: err}
	}
	etcd, err := c.connection()
	if err != nil {
		return nil, &records.UnavailableError{Cause: err}
	}
	ctx, cancel := context.WithTimeout(m.ctx, c.config.Timeout)
	defer cancel()
	sent := time.Now()
	lease, err := etcd.Grant(ctx, int64(c.config.MemberTTL/time.Second))
	if err != nil {
		return nil, c.failed("asking etcd for a lease", err)
	}
	for {
		v := c.view.Load()
		if err := v.fits(c.config.Self); err != nil {
			return nil, err
		}
		answer, err := c.registration(ctx, etcd, v, lease.ID)
		if err != nil {
			return nil, c.failed("registering with etcd", err)
		}
		if answer.Succeeded {
			m.mu.Lock()
			m.lease = lease.ID
			m.mu.Unlock()
			c.since.Store(uint64(answer.Header.Revision))
			c.liveUntil(sent, lease.TTL)
			return lease, nil
		}
		if err := c.takeAnswer(answer); err != nil {
			return nil, err
		}
	}
}

// registration asks to write the member's key, on the groups that this node has looked at.
func (c *Client) registration(ctx context.Context, etcd *clientv3.Client, v *view, lease clientv3.LeaseID) (*clientv3.TxnResponse, error) {
	self, err := json.Marshal(c.config.Self)
	if err != nil {
		return nil, err
	}
	prefix := c.config.Prefix
	return etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(prefix+setKey(groupsSet)), "=", int64(v.sets[groupsSet].Revision)),
			clientv3.Compare(clientv3.ModRevision(prefix+schemaKey), "=", v.schemaRevision)).
		Then(clientv3.OpPut(prefix+membersKey+"/"+c.config.Self.ID, string(self), clientv3.WithLease(lease)),
			clientv3.OpPut(prefix+membersKey, c.config.Self.ID)).
		Else(clientv3.OpGet(prefix, clientv3.WithPrefix())).
		Commit()
}

// takeAnswer takes in the view that a transaction has brought which failed.
func (c *Client) takeAnswer(answer *clientv3.TxnResponse) error {
	v, err := read(c.config.Prefix, answer.Responses[0].GetResponseRange().Kvs, uint64(answer.Header.Revision))
	if err != nil {
		return err
	}
	return c.take(v, nil)
}

// failed wraps what went wrong with a request, and notes when etcd did not answer. That this node gave up says nothing
// of etcd.
func (c *Client) failed(doing string, err error) error {
	err = fmt.Errorf("%s: %w", doing, inTime(err))
	if !unreachable(err) {
		return err
	}
	if !errors.Is(err, context.Canceled) {
		c.lost(err)
	}
	return &records.UnavailableError{Cause: err}
}

// keepAlive sends signs of life, a third of the lease apart, until the lease has ended.
func (c *Client) keepAlive(m *membership, lease *clientv3.LeaseGrantResponse) error {
	apart := time.Duration(lease.TTL) * time.Second / 3
	next := time.NewTimer(apart)
	defer next.Stop()
	for {
		c.mu.Lock()
		changed := c.changed
		c.mu.Unlock()
		if err := c.standing(); err != nil {
			return err
		}
		select {
		case <-next.C:
		case <-changed:
			continue
		case <-m.ctx.Done():
			return context.Cause(m.ctx)
		}
		next.Reset(apart)
		sent, known := time.Now(), c.view.Load().newest()
		answer, err := c.beat(m.ctx, lease.ID, apart)
		switch {
		case err == nil:
			c.liveUntil(sent, answer.TTL)
			if uint64(answer.Revision) < known {
				// Either a member of etcd lags, or its data were replaced by earlier ones, of which the watch would not tell.
				_ = c.read(m.ctx)
			}
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			return err
		case m.ctx.Err() == nil:
			c.lost(fmt.Errorf("renewing the lease: %w", inTime(err)))
		}
	}
}

// beat sends one sign of life.
func (c *Client) beat(ctx context.Context, lease clientv3.LeaseID, within time.Duration) (*clientv3.LeaseKeepAliveResponse, error) {
	etcd, err := c.connection()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return etcd.KeepAliveOnce(ctx, lease)
}

// standing checks that the member's key is still this incarnation's.
func (c *Client) standing() error {
	v := c.view.Load()
	if v.revision < c.since.Load() {
		return nil // what this node knows is older than its registration
	}
	r, ok := v.members[c.config.Self.ID]
	switch {
	case !ok:
		return rpctypes.ErrLeaseNotFound
	case r.Incarnation != c.config.Self.Incarnation:
		return errTaken
	}
	return nil
}

// Leave ends the membership: at once for this node, and for all others as the ring is written that does not name it. On
// an error the membership ends with its lease.
func (c *Client) Leave(ctx context.Context) error {
	c.mu.Lock()
	m := c.membership
	c.mu.Unlock()
	if m == nil {
		return nil
	}
	c.until.Store(0)
	m.end(errors.New("this node has left the cluster"))
	m.done.Wait()
	c.until.Store(0) // an answer may have come meanwhile
	m.mu.Lock()
	lease := m.lease
	m.lease = 0
	m.mu.Unlock()
	if lease == 0 {
		return nil
	}
	etcd, err := c.connection()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	errRing := c.writeRing(ctx, lease, true)
	if _, err := etcd.Revoke(ctx, lease); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return errors.Join(errRing, fmt.Errorf("ending the lease: %w", inTime(err)))
	}
	return errRing
}
