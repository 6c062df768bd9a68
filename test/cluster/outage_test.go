package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/wlmserver/wlmserver/internal/cluster/meta"
	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/settings"
	"github.com/wlmserver/wlmserver/store"
	"github.com/wlmserver/wlmserver/test/faultproxy"
)

func remembers(k meta.Keeper) func(*meta.Config) {
	return func(m *meta.Config) { m.Last = k }
}

// impatient makes a node give up soon that starts without etcd.
func impatient(m *meta.Config) { m.Timeout = 500 * time.Millisecond }

// A node that starts without etcd acts by what it saw last, refuses changes, and is whole again when etcd is back.
func TestStartWithoutEtcd(t *testing.T) {
	c := ownCluster(t)
	db, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	first := c.node(c.open("a", remembers(db.Last())), map[string]string{settings.DefaultSearchTimeout: "4s"})
	made, err := first.groups.Create(t.Context(), patch(t, body("kept", "")))
	if err != nil {
		t.Fatal(err)
	}
	u, err := settings.ParseUpdate([]byte(`{"transient":{"search.max_buckets":8}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.settings.Apply(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	if err := first.Await(within(t), first.Committed()); err != nil {
		t.Fatal(err)
	}
	id := first.ClusterID()
	c.close(first.Client)
	c.etcd.Stop()

	for what, keeper := range map[string]meta.Keeper{"a node that has seen nothing": &memory{}, "a node that keeps nothing": nil} {
		_, err := c.tryOpen("new", remembers(keeper), impatient)
		if e, ok := errors.AsType[*meta.UnseenError](err); !ok || !strings.Contains(e.Error(), c.etcd.Endpoint()) {
			t.Errorf("%s: error %v", what, err)
		}
	}
	_, err = c.tryOpen("elsewhere", remembers(db.Last()), impatient, func(m *meta.Config) { m.Prefix = "/another" })
	if _, ok := errors.AsType[*meta.UnseenError](err); !ok {
		t.Errorf("with another cluster's prefix: error %v", err)
	}

	a := c.node(c.open("a", remembers(db.Last()), impatient), map[string]string{settings.DefaultSearchTimeout: "5s"})
	if g := a.groups.Snapshot().ByName("kept"); g == nil || g.ID != made.ID || a.ClusterID() != id {
		t.Fatalf("without etcd the groups are %v of cluster %s", a.groups.Snapshot().All(), a.ClusterID())
	}
	if s := a.settings.Snapshot(); s.Int("search.max_buckets") != 8 || s.String(settings.DefaultSearchTimeout) != "4s" {
		t.Errorf("without etcd: %v, %s", s.Transient(), s.String(settings.DefaultSearchTimeout))
	}
	if a.Reachable() == nil || a.Live() {
		t.Error("etcd counts as reachable")
	}
	start := time.Now()
	changeFails(t, a)
	if took := time.Since(start); took > 250*time.Millisecond {
		t.Errorf("a change is refused after %v, though it is known that etcd does not answer", took)
	}
	if _, ok := errors.AsType[*records.UnavailableError](a.Join(within(t))); !ok {
		t.Error("a node joins without etcd")
	}

	c.start()
	eventually(t, "the node follows again", func() bool { return a.Reachable() == nil })
	if _, err := a.groups.Create(t.Context(), patch(t, body("later", ""))); err != nil {
		t.Fatal(err)
	}
	if err := a.Join(within(t)); err != nil && !errors.As(err, new(*records.UnavailableError)) {
		t.Fatal(err)
	}
	eventually(t, "the node is a member", func() bool { return a.Live() && names(a.Ring()) == "a" })
	if got := a.groups.Snapshot(); got.Len() != 2 {
		t.Errorf("groups %v", got.All())
	}
}

// What others change while a node cannot reach etcd, it takes in afterwards; meanwhile it acts by what it knows.
func TestCutOff(t *testing.T) {
	c := ownCluster(t)
	link, err := faultproxy.Start(strings.TrimPrefix(c.etcd.Endpoint(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(link.Close)
	through := func(m *meta.Config) { m.Endpoints = []string{"http://" + link.Addr()} }
	a, b := c.node(c.join("a"), nil), c.node(c.join("b", through), nil)
	c.agree("a b", a.Client, b.Client)
	for name, cut := range map[string]func(){"cut": link.Cut, "half-open": func() { link.HalfOpen(faultproxy.Both) }} {
		t.Run(name, func(t *testing.T) {
			cut()
			start := time.Now()
			eventually(t, "b is not live", func() bool { return !b.Live() })
			if took := time.Since(start); took > 1500*time.Millisecond {
				t.Errorf("b counts itself a member %v after its last sign of life; its lease is 1s", took)
			}
			c.agree("a", a.Client)
			g, err := a.groups.Create(t.Context(), patch(t, body(name, "")))
			if err != nil {
				t.Fatal(err)
			}
			if b.groups.Snapshot().ByID(g.ID) != nil {
				t.Error("the link is not cut")
			}
			changeFails(t, b)
			link.Heal()
			if err := b.Await(within(t), a.Committed()); err != nil {
				t.Fatal(err)
			}
			if b.groups.Snapshot().ByID(g.ID) == nil {
				t.Error("the change is lost")
			}
			c.agree("a b", a.Client, b.Client)
			eventually(t, "b is live", b.Live)
		})
	}
}

// All of etcd is away for longer than a lease: nobody counts as a member, until it is back.
func TestEtcdAway(t *testing.T) {
	c := ownCluster(t)
	a, b := c.join("a"), c.join("b")
	before := c.agree("a b", a, b).Epoch()
	c.etcd.Stop()
	eventually(t, "nobody is live", func() bool { return !a.Live() && !b.Live() })
	if now := a.Ring().Epoch(); now != before {
		t.Errorf("the ring changed without etcd: from epoch %d to %d", before, now)
	}
	c.start()
	eventually(t, "all are live", func() bool { return a.Live() && b.Live() })
	c.agree("a b", a, b)
}

// Etcd has been away for long. A node finds it soon after it is back: its connections are tried again every second or so, where they
// would be at ever longer distances if nothing else were said.
func TestEtcdBackAfterLong(t *testing.T) {
	c := ownCluster(t)
	a := c.join("a")
	c.etcd.Stop()
	eventually(t, "it is noticed", func() bool { return a.Reachable() != nil })
	time.Sleep(6 * time.Second) // attempts a second apart at first would be four apart by now
	c.start()
	start := time.Now()
	eventually(t, "the node follows again", func() bool { return a.Reachable() == nil })
	if took := time.Since(start); took > 2500*time.Millisecond {
		t.Errorf("etcd is found %v after it is back", took)
	}
}

// The answer to a change is lost. It was made once, and is answered as what it was.
func TestLostAnswer(t *testing.T) {
	c := ownCluster(t)
	a := c.node(c.open("a"), nil)
	beside, err := clientv3.New(clientv3.Config{Endpoints: []string{c.etcd.Beside()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { beside.Close() })
	for round := range 5 {
		name := fmt.Sprintf("g%d", round)
		c.etcd.Link.HalfOpen(faultproxy.Down)
		done := make(chan error, 1)
		go func() {
			_, err := a.groups.Create(t.Context(), patch(t, body(name, "")))
			done <- err
		}()
		eventually(t, "etcd has made the change", func() bool {
			answer, err := beside.Get(t.Context(), c.prefix+"/sets/groups/", clientv3.WithPrefix(), clientv3.WithCountOnly())
			return err == nil && answer.Count == int64(round+1)
		})
		c.etcd.Link.Break()
		c.etcd.Link.Heal()
		if err := <-done; err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if s := a.groups.Snapshot(); s.Len() != round+1 || s.ByName(name) == nil {
			t.Fatalf("round %d: groups %v", round, s.All())
		}
		if err := a.Await(within(t), a.Committed()); err != nil {
			t.Fatal(err)
		}
	}
}

// Etcd comes back with other data, or with those of an earlier time. What it holds counts.
func TestReplacedData(t *testing.T) {
	c := ownCluster(t)
	a := c.node(c.join("a"), nil)
	create := func(name string) {
		t.Helper()
		eventually(t, name+" is made", func() bool {
			_, err := a.groups.Create(t.Context(), patch(t, body(name, "")))
			if err != nil && !errors.As(err, new(*records.UnavailableError)) {
				t.Fatal(err)
			}
			return err == nil
		})
	}
	restart := func(dir string) {
		t.Helper()
		c.etcd.Stop()
		c.etcd.Move(dir)
		c.start()
	}
	whole := func() bool { return a.Reachable() == nil && a.Live() && names(a.Ring()) == "a" }
	create("early")
	c.etcd.Stop()
	backup := t.TempDir()
	if err := os.CopyFS(backup, os.DirFS(c.etcd.Dir())); err != nil {
		t.Fatal(err)
	}
	c.start()
	create("late")
	for i := range 10 {
		create(fmt.Sprint("later-", i))
	}
	id := a.ClusterID()

	restart(backup)
	eventually(t, "the backup counts", func() bool {
		s := a.groups.Snapshot()
		return s.Len() == 1 && s.ByName("early") != nil && whole()
	})
	if a.ClusterID() != id {
		t.Error("another cluster")
	}
	create("after the backup")

	restart(filepath.Join(t.TempDir(), "empty"))
	eventually(t, "the empty etcd counts", func() bool { return a.groups.Snapshot().Len() == 0 && a.ClusterID() != id && whole() })
	create("in the new one")
	if err := a.Await(within(t), a.Committed()); err != nil {
		t.Fatal(err)
	}
}

func TestNewerSchema(t *testing.T) {
	c := newCluster(t)
	a := c.node(c.open("a"), nil)
	if _, err := c.keys().Put(t.Context(), c.prefix+"/schema", `{"version":2,"cluster_uuid":"x"}`); err != nil {
		t.Fatal(err)
	}
	_, err := c.tryOpen("b")
	e, ok := errors.AsType[*meta.SchemaError](err)
	if !ok || e.Found != 2 || e.Known != 1 || !strings.Contains(err.Error(), c.prefix) {
		t.Fatalf("error %v", err)
	}
	// Who is there already writes nothing into it, and enforces what it knows.
	_, err = a.groups.Create(t.Context(), patch(t, body("g", "")))
	if _, ok := errors.AsType[*records.UnavailableError](err); !ok || !errors.As(err, &e) {
		t.Errorf("error %v", err)
	}
	keys, err := c.keys().Get(t.Context(), c.prefix+"/sets/groups", clientv3.WithPrefix())
	if err != nil || len(keys.Kvs) != 0 {
		t.Errorf("an older node has written: %v, %v", keys, err)
	}
}

// A node writes nothing into a newer layout, also when it has not heard of it yet.
func TestNewerSchemaAtTheSameMoment(t *testing.T) {
	c := newCluster(t)
	keys := c.keys()
	for round := range 30 {
		c.prefix = fmt.Sprintf("%s-%d", c.prefix, round)
		a := c.node(c.open("a"), nil)
		p := patch(t, body("g", ""))
		if _, err := keys.Put(t.Context(), c.prefix+"/schema", `{"version":2,"cluster_uuid":"x"}`); err != nil {
			t.Fatal(err)
		}
		if _, err := a.groups.Create(t.Context(), p); !errors.As(err, new(*records.UnavailableError)) {
			t.Fatalf("round %d: error %v", round, err)
		}
		c.close(a.Client)
	}
}

func TestConfigurationIsChecked(t *testing.T) {
	c := newCluster(t)
	for what, change := range map[string]func(*meta.Config){
		"cluster.etcd.endpoints": func(m *meta.Config) { m.Endpoints = nil },
		"cluster.etcd.prefix":    func(m *meta.Config) { m.Prefix = "/" },
		"id":                     func(m *meta.Config) { m.Self.ID = "a/b" },
		"incarnation":            func(m *meta.Config) { m.Self.Incarnation = "" },
	} {
		if _, err := c.tryOpen("a", change); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: error %v", what, err)
		}
	}
}

func TestUser(t *testing.T) {
	c := ownCluster(t)
	keys := c.keys()
	for _, err := range []error{
		second(keys.UserAdd(t.Context(), "root", "secret")), second(keys.UserGrantRole(t.Context(), "root", "root")), second(keys.AuthEnable(t.Context())),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	as := func(password string) func(*meta.Config) {
		return func(m *meta.Config) { m.Username, m.Password = "root", password }
	}
	if _, err := c.tryOpen("a", as("wrong"), remembers(&memory{})); err == nil || !strings.Contains(err.Error(), "authentication") {
		t.Errorf("with a wrong password: error %v", err)
	}
	own := &memory{}
	a := c.node(c.join("a", as("secret"), remembers(own)), nil)
	if _, err := a.groups.Create(t.Context(), patch(t, body("g", ""))); err != nil {
		t.Fatal(err)
	}
	if err := a.Await(within(t), a.Committed()); err != nil {
		t.Fatal(err)
	}
	c.etcd.Stop()
	c.close(a.Client)
	b := c.node(c.open("a", as("secret"), remembers(own), impatient), nil)
	if b.groups.Snapshot().ByName("g") == nil {
		t.Error("the group is lost")
	}
	c.start()
	eventually(t, "the node follows again", func() bool { return b.Reachable() == nil })
	if err := b.groups.Delete(t.Context(), "g"); err != nil {
		t.Fatal(err)
	}
}

func second[T any](_ T, err error) error { return err }

// What ends a node's context ends its waits, and a client that was closed does nothing more.
func TestClosed(t *testing.T) {
	c := newCluster(t)
	a := c.node(c.join("a"), nil)
	waiting := make(chan error, 1)
	go func() { waiting <- a.Await(context.Background(), a.Revision()+1000) }()
	c.close(a.Client)
	if err := <-waiting; err == nil {
		t.Error("a closed client has applied what never was")
	}
	if _, err := a.groups.Create(t.Context(), patch(t, body("g", ""))); !errors.As(err, new(*records.UnavailableError)) {
		t.Errorf("error %v", err)
	}
	if err := a.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}
