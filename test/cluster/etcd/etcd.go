// Package etcd runs an etcd of one member within the process of a test.
package etcd

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// Server is an etcd with a folder of its own. It can be stopped and started again, also with other data. It is not safe
// for concurrent use.
type Server struct {
	dir    string
	client url.URL // where clients reach it; the port stays the same
	peer   url.URL
	etcd   *embed.Etcd
}

// New returns an etcd that keeps its data in a folder. It does not run yet.
func New(dir string) *Server {
	local := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	return &Server{dir: dir, client: local, peer: local}
}

// Endpoint is where clients reach the etcd once it has been started.
func (s *Server) Endpoint() string { return s.client.String() }

// Start starts the etcd, on the data that its folder holds, and returns when it answers.
func (s *Server) Start() error {
	c := embed.NewConfig()
	c.Dir = s.dir
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{s.client}, []url.URL{s.client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{s.peer}, []url.URL{s.peer}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.TickMs, c.ElectionMs = 10, 100 // then leases of one second are long enough
	c.UnsafeNoFsync = true
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	etcd, err := embed.StartEtcd(c)
	if err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}
	select {
	case <-etcd.Server.ReadyNotify():
	case err := <-etcd.Err():
		return fmt.Errorf("starting etcd: %w", err)
	case <-time.After(30 * time.Second):
		etcd.Close()
		return errors.New("etcd does not get ready")
	}
	s.etcd = etcd
	s.client.Host = etcd.Clients[0].Addr().String()
	return nil
}

// Stop ends the etcd. What it has answered is in its folder.
func (s *Server) Stop() {
	if s.etcd != nil {
		s.etcd.Close()
		s.etcd = nil
	}
}

// Move has the etcd use another folder from the next start on.
func (s *Server) Move(dir string) { s.dir = dir }
