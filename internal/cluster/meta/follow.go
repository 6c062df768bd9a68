package meta

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// follow keeps the view up to date until the client is closed: by a watch, and by reading all when that ends.
func (c *Client) follow() {
	for c.life.Err() == nil {
		if c.Reachable() == nil {
			c.lost(c.watch())
		}
		for wait := retry; c.life.Err() == nil; wait = min(2*wait, mostRetry) {
			err := c.read(c.life)
			if err == nil {
				c.found()
				break
			}
			c.lost(err)
			pause(c.life, wait)
		}
	}
}

// watch takes in changes as etcd tells them, and returns why there are no more to come.
func (c *Client) watch() error {
	etcd, err := c.connection()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(c.life)
	defer cancel(nil)
	c.mu.Lock()
	if c.down != nil {
		defer c.mu.Unlock()
		return c.down
	}
	c.rewatch = cancel
	from := c.view.Load().revision + 1
	c.mu.Unlock()
	changes := etcd.Watch(clientv3.WithRequireLeader(ctx), c.config.Prefix, clientv3.WithPrefix(), clientv3.WithRev(int64(from)))
	for answer := range changes {
		if err := answer.Err(); err != nil {
			return fmt.Errorf("following the cluster's metadata in etcd: %w", err)
		}
		err := c.change(func(now *view) (*view, error) { return c.followed(now, answer.Events) })
		if err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.New("etcd has ended the watch")
}

// followed is the view that events lead to.
func (c *Client) followed(now *view, events []*clientv3.Event) (*view, error) {
	if len(events) == 0 {
		return now, nil
	}
	next, err := now.after(c.config.Prefix, events)
	if err == nil && next.schema.Version > schemaVersion {
		err = &SchemaError{Prefix: c.config.Prefix, Found: next.schema.Version, Known: schemaVersion}
	}
	return next, err
}

// lost notes that etcd cannot be used now, and has the watch begin anew once it can.
func (c *Client) lost(cause error) {
	if c.life.Err() != nil {
		return
	}
	c.mu.Lock()
	first := c.down == nil
	c.down = cause
	if c.rewatch != nil {
		c.rewatch(cause)
	}
	c.mu.Unlock()
	if first {
		c.config.Log.Warn().Err(cause).Msg("the cluster's metadata cannot be followed; this node acts by what it knows, and tries again")
	}
}

// found notes that etcd can be used.
func (c *Client) found() {
	c.mu.Lock()
	was := c.down
	c.down = nil
	c.mu.Unlock()
	if was != nil {
		c.config.Log.Info().Uint64("revision", c.view.Load().revision).Msg("the cluster's metadata are followed again")
	}
}

// publishRings tells the listeners of the ring, until the client is closed. It is apart from publish, where a change that
// etcd does not answer may hold things up.
func (c *Client) publishRings() {
	for {
		select {
		case <-c.ringing:
		case <-c.life.Done():
			return
		}
		v := c.view.Load()
		for _, f := range c.heard(v.ring.Epoch()) {
			f(v.ring)
		}
		c.ringHeardOf(v.revision)
	}
}

// publish tells the listeners of the sets what has changed, until the client is closed.
func (c *Client) publish() {
	var (
		kept lastSeen
		said [kinds]string // what was wrong with a set last
	)
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-c.publishing:
		case <-again.C:
		case <-c.life.Done():
			return
		}
		v := c.view.Load()
		failed := false
		for _, s := range c.sets {
			err := s.publish(c.life, v)
			if err == nil || c.life.Err() != nil {
				said[s.kind] = ""
				continue
			}
			failed = true
			if err.Error() != said[s.kind] {
				said[s.kind] = err.Error()
				c.config.Log.Error().Err(err).Stringer("set", s.kind).
					Msg("a change of the cluster's metadata cannot be used here; what was there before stays in force")
			}
		}
		if seen := lastSeenOf(v); seen != kept && c.keep(v) {
			kept = seen
		}
		if failed {
			again.Reset(time.Second)
			continue
		}
		c.apply(v)
	}
}

// apply notes that all listeners know a view.
func (c *Client) apply(v *view) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v.revision > c.applied {
		c.applied = v.revision
		close(c.told)
		c.told = make(chan struct{})
	}
}

// keep stores a view for a start without etcd.
func (c *Client) keep(v *view) bool {
	if c.config.Last == nil || v.schema.Cluster == "" {
		return true
	}
	record, err := encodeLast(c.config.Prefix, v)
	if err == nil {
		err = c.config.Last.Keep(c.life, record)
	}
	if err != nil && c.life.Err() == nil {
		c.config.Log.Error().Err(err).Msg("the cluster's metadata cannot be kept for a start without etcd")
	}
	return err == nil
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
