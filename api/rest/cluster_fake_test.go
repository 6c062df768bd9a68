package rest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/api/rest"
	"github.com/wlmserver/wlmserver/records"
)

// cluster is some servers that ask one another within the process. They know the same groups.
type cluster struct {
	testing.TB
	groups *records.Memory

	mu      sync.Mutex
	members []rest.Member
	nodes   map[string]*node
	health  rest.ClusterHealth
}

// node is a server of a cluster.
type node struct {
	*server
	id string
	cl *cluster

	asked  int // guarded by the cluster's lock, as is what follows
	link   func(ctx context.Context) error
	rework func(rest.LocalAnswer) rest.LocalAnswer
	settle func(ctx context.Context) error
}

// newCluster starts as many nodes as it is given options for: a-id called alpha, b-id called beta, c-id called gamma. All
// get the options of everyone.
func newCluster(t testing.TB, nodes int, everyone ...func(*options)) (*cluster, []*node) {
	t.Helper()
	cl := &cluster{TB: t, groups: new(records.Memory), nodes: map[string]*node{}, health: rest.ClusterHealth{Metadata: true, Member: true, SharedTier: true}}
	var all []*node
	for i := range nodes {
		name := []string{"alpha", "beta", "gamma"}[i]
		n := &node{id: []string{"a-id", "b-id", "c-id"}[i], cl: cl}
		options := append([]func(*options){func(o *options) { o.id, o.name, o.cluster, o.groups = n.id, name, n, cl.groups }}, everyone...)
		n.server = newServer(t, options...)
		all = append(all, n)
		cl.nodes[n.id] = n
		cl.members = append([]rest.Member{{ // in no order
			ID: n.id, Name: name, TransportAddress: n.address, HTTPAddress: n.address, Version: "3.7.0", Roles: []string{"cluster_manager", "data"},
		}}, cl.members...)
	}
	return cl, all
}

// Members implements rest.Cluster, as all methods of node but those that say something else.
func (n *node) Members() []rest.Member {
	n.cl.mu.Lock()
	defer n.cl.mu.Unlock()
	return n.cl.members
}

func (n *node) Settle(ctx context.Context) error {
	n.cl.mu.Lock()
	settle := n.settle
	n.cl.mu.Unlock()
	if settle == nil {
		return nil
	}
	return settle(ctx)
}

func (n *node) Health() rest.ClusterHealth {
	n.cl.mu.Lock()
	defer n.cl.mu.Unlock()
	return n.cl.health
}

func (n *node) Ask(ctx context.Context, id string, r rest.LocalRequest) (rest.LocalAnswer, error) {
	n.cl.mu.Lock()
	to := n.cl.nodes[id]
	link, rework := to.link, to.rework
	to.asked++
	n.cl.mu.Unlock()
	if to == n {
		return rest.LocalAnswer{}, errors.New("a node asks itself")
	}
	if link != nil {
		if err := link(ctx); err != nil {
			return rest.LocalAnswer{}, err
		}
	}
	a, err := to.rest.ServeLocal(ctx, r)
	if rework != nil {
		a = rework(a)
	}
	return a, err
}

// reached changes how others reach the node: nil is without trouble.
func (n *node) reached(link func(context.Context) error) {
	n.cl.mu.Lock()
	defer n.cl.mu.Unlock()
	n.link = link
}

// answers changes what the node answers to others.
func (n *node) answers(rework func(rest.LocalAnswer) rest.LocalAnswer) {
	n.cl.mu.Lock()
	defer n.cl.mu.Unlock()
	n.rework = rework
}

// times is how often others have asked the node.
func (n *node) times() int {
	n.cl.mu.Lock()
	defer n.cl.mu.Unlock()
	return n.asked
}

func (cl *cluster) is(h rest.ClusterHealth) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.health = h
}

// cut is a link that nothing passes.
func cut(context.Context) error { return errors.New("the connection was refused") }

// lags is a link on which a request takes this long.
func lags(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return fmt.Errorf("asking: %w", context.Cause(ctx))
		}
	}
}
