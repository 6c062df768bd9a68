package cluster_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/wlmserver/wlmserver/internal/cluster/meta"
	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/test/cluster/etcd"
)

// shared is the etcd of all tests that need none of their own; prefixes counts the prefixes they use.
var (
	shared   *etcd.Server
	prefixes atomic.Int64
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "wlmserver-etcd-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if shared, err = etcd.New(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	shared.Close()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// patience is how long a test waits for what must come about. It bounds a failure, and says nothing of how long it may
// take.
const patience = 30 * time.Second

// cluster is an etcd and a prefix in it.
type cluster struct {
	testing.TB
	etcd   *etcd.Server
	prefix string
}

// newCluster is a cluster in the shared etcd.
func newCluster(t testing.TB) *cluster {
	t.Helper()
	return &cluster{TB: t, etcd: shared, prefix: fmt.Sprintf("/wlmserver/test-%d", prefixes.Add(1))}
}

// ownCluster is a cluster with an etcd that the test may stop.
func ownCluster(t testing.TB) *cluster {
	t.Helper()
	server, err := etcd.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return &cluster{TB: t, etcd: server, prefix: "/wlmserver/own"}
}

func (c *cluster) start() {
	c.Helper()
	if err := c.etcd.Start(); err != nil {
		c.Fatal(err)
	}
}

// config is that of a node. Its id is its name.
func (c *cluster) config(name string) meta.Config {
	return meta.Config{
		Endpoints: []string{c.etcd.Endpoint()}, Prefix: c.prefix, MemberTTL: time.Second, Timeout: 2 * time.Second,
		Self: ring.Member{
			ID: name, Incarnation: fmt.Sprintf("%s-%d", name, prefixes.Add(1)), Name: name, Transport: name + ":9300", HTTP: name + ":9200", Version: "3.7.0",
		},
		Log: zerolog.Nop(),
	}
}

// open opens a node, and closes it at the end of the test.
func (c *cluster) open(name string, change ...func(*meta.Config)) *meta.Client {
	c.Helper()
	client, err := c.tryOpen(name, change...)
	if err != nil {
		c.Fatalf("opening %s: %v", name, err)
	}
	return client
}

func (c *cluster) tryOpen(name string, change ...func(*meta.Config)) (*meta.Client, error) {
	c.Helper()
	config := c.config(name)
	for _, f := range change {
		f(&config)
	}
	client, err := meta.Open(c.Context(), config)
	if err == nil {
		c.Cleanup(func() { c.close(client) })
	}
	return client, err
}

func (c *cluster) close(client *meta.Client) {
	c.Helper()
	if err := client.Close(); err != nil {
		c.Errorf("closing: %v", err)
	}
}

// join opens a node and has it join.
func (c *cluster) join(name string, change ...func(*meta.Config)) *meta.Client {
	c.Helper()
	client := c.open(name, change...)
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	if err := client.Join(ctx); err != nil {
		c.Fatalf("%s joins: %v", name, err)
	}
	return client
}

// keys is a connection with etcd beside all nodes.
func (c *cluster) keys() *clientv3.Client {
	c.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{c.etcd.Endpoint()}, Logger: zap.NewNop()})
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { client.Close() })
	return client
}

// eventually waits until something holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); !holds(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("never came true: %s", what)
		}
	}
}

// memory is a node's own store.
type memory struct {
	mu     sync.Mutex
	record []byte
}

func (m *memory) Keep(_ context.Context, record []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.record = bytes.Clone(record)
	return nil
}

func (m *memory) Kept(context.Context) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.record, nil
}

// journal is a log that tests look into.
type journal struct {
	mu    sync.Mutex
	lines strings.Builder
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lines.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lines.String()
}
