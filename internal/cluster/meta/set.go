package meta

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/google/uuid"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/records"
)

// A Set is one of the cluster's sets: a [records.Repository] that all nodes share.
type Set struct {
	client *Client
	kind   kind

	mu        sync.Mutex
	listeners []*listener
}

// listener is who takes a set in, and what it has heard of last.
type listener struct {
	take     func(context.Context) error
	told     bool
	revision uint64
	cluster  string
}

// Groups is the repository of the workload groups.
func (c *Client) Groups() *Set { return c.sets[groupsSet] }

// Rules is the repository of the rules.
func (c *Client) Rules() *Set { return c.sets[rulesSet] }

// Settings is the repository of the settings.
func (c *Client) Settings() *Set { return c.sets[settingsSet] }

// Indices is the repository of the indices and of where their shards lie.
func (c *Client) Indices() *Set { return c.sets[indicesSet] }

// OnChange has f called when the set has changed, here or elsewhere, one call at a time; and once at first, for what may
// have changed since the caller read it. It is for a registry's Reload: when it has returned nil, this node has applied
// the change. On an error it is called again.
func (s *Set) OnChange(f func(context.Context) error) {
	s.mu.Lock()
	s.listeners = append(s.listeners, &listener{take: f})
	s.mu.Unlock()
	s.client.tell()
}

// publish has the listeners take the set in, as it is in a view or later. Only the publisher calls it.
func (s *Set) publish(ctx context.Context, v *view) error {
	s.mu.Lock()
	all := slices.Clip(s.listeners)
	s.mu.Unlock()
	revision := v.sets[s.kind].Revision
	var failed []error
	for _, l := range all {
		if l.told && l.revision == revision && l.cluster == v.schema.Cluster {
			continue
		}
		if err := l.take(ctx); err != nil {
			failed = append(failed, err)
			continue
		}
		l.told, l.revision, l.cluster = true, revision, v.schema.Cluster
	}
	return errors.Join(failed...)
}

// Load returns the set as this node has seen it last.
func (s *Set) Load(ctx context.Context) (records.Set, error) {
	if ctx.Err() != nil {
		return records.Set{}, context.Cause(ctx)
	}
	return s.client.view.Load().sets[s.kind], nil
}

// Commit makes a change, as one transaction. Beside a [records.Repository]'s errors there is *groups.InvalidError, for a
// group with something that a member does not know yet.
func (s *Set) Commit(ctx context.Context, base uint64, change records.Change) (uint64, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if err := s.client.Reachable(); err != nil {
		return 0, &records.UnavailableError{Cause: err}
	}
	etcd, err := s.client.connection()
	if err != nil {
		return 0, &records.UnavailableError{Cause: err}
	}
	v := s.client.view.Load()
	conditions, err := s.conditions(v, base, change)
	if err != nil {
		return 0, err
	}
	t := &transaction{set: s, base: base, change: change, mark: s.client.config.Self.ID + " " + uuid.NewString()}
	return t.commit(ctx, etcd, conditions)
}

// conditions are what a change rests on.
func (s *Set) conditions(v *view, base uint64, change records.Change) ([]clientv3.Cmp, error) {
	prefix := s.client.config.Prefix
	all := []clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(prefix+setKey(s.kind)), "=", int64(base)),
		clientv3.Compare(clientv3.ModRevision(prefix+schemaKey), "=", v.schemaRevision),
	}
	if s.kind != groupsSet {
		return all, nil
	}
	for _, record := range change.Put {
		g, queues := queued(record)
		if !queues {
			continue
		}
		if m, found := v.tooOld(ring.Since, s.client.config.Self); found {
			return nil, &groups.InvalidError{Reason: fmt.Sprintf(
				"[queue] of the workload group [%s] needs version %s of every node, and node [%s] is compatible with %s; upgrade that node first, or leave [queue] out",
				g.Name, ring.Since, m.Name, m.Version)}
		}
		return append(all, clientv3.Compare(clientv3.ModRevision(prefix+membersKey), "=", v.membersRevision)), nil
	}
	return all, nil
}

// transaction is a change on its way.
type transaction struct {
	set    *Set
	base   uint64
	change records.Change
	mark   string // what the set's key holds once it is made, and never else
}

// commit makes the change. A request that is not answered is made again: if the first one has been carried out, the
// second fails, and finds the mark.
func (t *transaction) commit(ctx context.Context, etcd *clientv3.Client, conditions []clientv3.Cmp) (uint64, error) {
	c := t.set.client
	client := ctx
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	for unanswered := false; ; unanswered = true {
		answer, err := etcd.Txn(ctx).If(conditions...).Then(t.operations()...).
			Else(clientv3.OpGet(c.config.Prefix, clientv3.WithPrefix())).Commit()
		if err == nil {
			return t.answered(answer)
		}
		if !unreachable(err) {
			return 0, &records.UnavailableError{Unknown: unanswered, Cause: err}
		}
		pause(ctx, retry)
		if ctx.Err() != nil {
			if client.Err() == nil {
				c.lost(inTime(err))
			} else {
				err = errors.Join(context.Cause(client), err)
			}
			return 0, &records.UnavailableError{Unknown: true, Cause: inTime(err)}
		}
	}
}

// mostOperations is how many operations are put together; etcd takes 128 on all levels of a transaction.
const mostOperations = 64

// operations are what the change does. Many of them are put into transactions within the transaction.
func (t *transaction) operations() []clientv3.Op {
	key := t.set.client.config.Prefix + setKey(t.set.kind)
	all := []clientv3.Op{clientv3.OpPut(key, t.mark)}
	for id, record := range t.change.Put {
		all = append(all, clientv3.OpPut(key+"/"+id, string(record)))
	}
	for _, id := range t.change.Delete {
		all = append(all, clientv3.OpDelete(key+"/"+id))
	}
	if len(all) <= mostOperations {
		return all
	}
	var nested []clientv3.Op
	for len(all) > 0 {
		n := min(len(all), mostOperations)
		nested = append(nested, clientv3.OpTxn(nil, all[:n], nil))
		all = all[n:]
	}
	return nested
}

// answered tells what became of the change.
func (t *transaction) answered(answer *clientv3.TxnResponse) (uint64, error) {
	c, k := t.set.client, t.set.kind
	if answer.Succeeded {
		revision := uint64(answer.Header.Revision)
		c.noteCommit(revision)
		_ = c.change(func(now *view) (*view, error) {
			if now.sets[k].Revision != t.base {
				return now, nil
			}
			return now.with(k, now.sets[k].After(t.change, revision)), nil
		})
		return revision, nil
	}
	found := answer.Responses[0].GetResponseRange()
	v, err := read(c.config.Prefix, found.Kvs, uint64(answer.Header.Revision))
	if err == nil {
		err = c.take(v, nil)
	}
	if err != nil {
		return 0, &records.UnavailableError{Cause: err}
	}
	key := c.config.Prefix + setKey(k)
	for _, kv := range found.Kvs {
		if string(kv.Key) == key && string(kv.Value) == t.mark {
			c.noteCommit(uint64(kv.ModRevision))
			return uint64(kv.ModRevision), nil
		}
	}
	return 0, &records.StaleError{Base: t.base}
}

// noteCommit notes a revision that this node has written.
func (c *Client) noteCommit(revision uint64) {
	for {
		last := c.committed.Load()
		if revision <= last || c.committed.CompareAndSwap(last, revision) {
			return
		}
	}
}

var _ records.Repository = (*Set)(nil)
