package meta

import (
	"context"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// tend writes the ring whenever it does not name the members that are registered, for as long as this node is one.
func (c *Client) tend(m *membership) {
	var joined time.Time // when the first join was noticed that the ring does not name yet
	for m.ctx.Err() == nil {
		c.mu.Lock()
		changed := c.changed
		c.mu.Unlock()
		m.mu.Lock()
		lease, tried := m.lease, m.tried
		m.mu.Unlock()
		v := c.view.Load()
		var wait <-chan time.Time
		switch {
		case lease == 0 || !c.Live():
			joined = time.Time{}
			wait = time.After(mostRetry)
		case v.left():
			joined = time.Time{}
			c.tryRing(m.ctx, lease)
			continue
		case v.joined():
			if joined.IsZero() {
				joined = time.Now()
			}
			left := gather - time.Since(joined)
			if left <= 0 {
				joined = time.Time{}
				c.tryRing(m.ctx, lease)
				continue
			}
			wait = time.After(left)
		default:
			joined = time.Time{}
		}
		select {
		case <-changed:
		case <-tried:
		case <-wait:
		case <-m.ctx.Done():
		}
	}
}

// tryRing writes the ring, and waits a moment when that fails.
func (c *Client) tryRing(ctx context.Context, lease clientv3.LeaseID) {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	if err := c.writeRing(ctx, lease, false); err != nil {
		pause(ctx, retry)
	}
}

// writeRing writes the ring of the members that are registered, on the revision that this node has read, and returns
// when this node knows of a ring that is right. Leaving, it takes the node's own key away in the same transaction.
func (c *Client) writeRing(ctx context.Context, lease clientv3.LeaseID, leaving bool) error {
	etcd, err := c.connection()
	if err != nil {
		return err
	}
	own := c.config.Prefix + membersKey + "/" + c.config.Self.ID
	key := c.config.Prefix + ringKey
	for {
		v := c.view.Load()
		all := v.registered()
		if leaving {
			all = slices.DeleteFunc(all, func(r registration) bool { return r.ID == c.config.Self.ID })
		} else if !v.left() && !v.joined() {
			return nil
		}
		record, err := v.ringOf(all)
		if err != nil {
			return err
		}
		then := []clientv3.Op{clientv3.OpPut(key, string(record))}
		if leaving {
			then = append(then, clientv3.OpDelete(own))
		}
		answer, err := etcd.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(key), "=", v.ringRevision),
				clientv3.Compare(clientv3.ModRevision(c.config.Prefix+schemaKey), "=", v.schemaRevision),
				clientv3.Compare(clientv3.LeaseValue(own), "=", lease)).
			Then(then...).
			Else(clientv3.OpGet(c.config.Prefix, clientv3.WithPrefix())).
			Commit()
		if err != nil {
			return c.failed("writing the ring", err)
		}
		if answer.Succeeded {
			return c.seen(ctx, uint64(answer.Header.Revision))
		}
		if err := c.takeAnswer(answer); err != nil {
			return err
		}
		if r, ok := c.view.Load().members[c.config.Self.ID]; !ok || r.Incarnation != c.config.Self.Incarnation {
			return fmt.Errorf("node [%s] is no member any more", c.config.Self.Name)
		}
	}
}
