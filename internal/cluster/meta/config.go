package meta

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/wlmserver/wlmserver/internal/cluster/ring"
)

const (
	// DefaultTTL is how long a member that says nothing stays one.
	DefaultTTL = 15 * time.Second

	// DefaultTimeout bounds one request to etcd.
	DefaultTimeout = 5 * time.Second

	// gather is for how long joins in quick succession are gathered into one ring.
	gather = 100 * time.Millisecond

	// retry is the pause after a request that etcd has not answered.
	// It doubles each time, up to mostRetry.
	retry     = 100 * time.Millisecond
	mostRetry = time.Second

	// lag is how long the watch may take to bring a revision that somebody waits for, before it is read.
	lag = 100 * time.Millisecond
)

// Config says where the metadata lives and who asks.
type Config struct {
	Endpoints          []string // of etcd: "http://host:2379"
	Prefix             string   // of all keys; one for each cluster
	Username, Password string   // empty where etcd asks for none
	TLS                *tls.Config

	// Self is this node. Its incarnation is new with each start.
	Self ring.Member

	// MemberTTL is how long the node stays a member without a sign of life, in whole seconds; 0 is DefaultTTL. etcd may
	// make it longer, to what its elections take.
	MemberTTL time.Duration

	// Timeout bounds one request to etcd, and the wait for it at the start; 0 is DefaultTimeout.
	Timeout time.Duration

	// Last keeps the last view across restarts; nil keeps none.
	Last Keeper

	Log zerolog.Logger
}

// A Keeper keeps one record durably in the node's own store.
type Keeper interface {
	// Keep stores the record in the place of the last one.
	Keep(ctx context.Context, record []byte) error

	// Kept returns the record; nil when there is none.
	Kept(ctx context.Context) ([]byte, error)
}

// complete checks a configuration and fills in what it leaves out.
func (c Config) complete() (Config, error) {
	c.Prefix = strings.TrimRight(c.Prefix, "/") + "/"
	switch {
	case len(c.Endpoints) == 0:
		return c, errors.New("no endpoint of etcd is given; set [cluster.etcd.endpoints]")
	case c.Prefix == "/":
		return c, errors.New("the prefix of the cluster's keys in etcd is empty; set [cluster.etcd.prefix]")
	case c.Self.ID == "" || strings.Contains(c.Self.ID, "/") || c.Self.Incarnation == "":
		return c, errors.New("a member needs an id without slashes, and an incarnation")
	}
	if c.MemberTTL <= 0 {
		c.MemberTTL = DefaultTTL
	}
	c.MemberTTL = max((c.MemberTTL + time.Second - 1).Truncate(time.Second), time.Second)
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	return c, nil
}
