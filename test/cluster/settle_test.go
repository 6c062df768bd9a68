package cluster_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/rs/zerolog"

	assembled "github.com/wlmserver/wlmserver/internal/cluster"
	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/wlm"
)

// TestSettleEndsWithTheNode: who waits for a member that does not answer hears of it when the node itself ends.
func TestSettleEndsWithTheNode(t *testing.T) {
	c := newCluster(t)
	c.join("mute") // which nobody answers for
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k, err := assembled.Open(t.Context(), assembled.Config{
		Name: "c", Self: ring.Member{ID: "a", Incarnation: "1", Name: "a", HTTP: "a:9200", Version: "3.7.0"},
		Etcd:      assembled.EtcdConfig{Endpoints: []string{c.etcd.Endpoint()}, Prefix: c.prefix},
		MemberTTL: 5 * time.Second, Lease: 5 * time.Second, Listener: listener, Log: zerolog.Nop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	wlm.New(wlm.WithLink(k.Link))
	k.Serve(nil, nil, nil)
	if err := k.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	set, err := k.Meta().Settings().Load(t.Context())
	if err == nil {
		_, err = k.Meta().Settings().Commit(t.Context(), set.Revision, records.Change{Put: map[string][]byte{"x": []byte("{}")}})
	}
	if err != nil {
		t.Fatal(err)
	}
	settled := make(chan error, 1)
	go func() { settled <- k.Settle(context.WithoutCancel(t.Context())) }()
	select {
	case err := <-settled:
		t.Fatalf("settled with %v, and a member has not answered", err)
	case <-time.After(300 * time.Millisecond):
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-settled:
		if err == nil {
			t.Error("settled, and a member has not answered")
		}
	case <-time.After(5 * time.Second):
		t.Error("it waits on for a member that cannot be asked any more")
	}
}
