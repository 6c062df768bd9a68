// Package etcd runs an etcd of one member within the process of a test.
package etcd

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/wlmserver/wlmserver/test/faultproxy"
)

// Server is an etcd with a folder of its own. It can be stopped and started again, also with other data; the address for
// clients stays the same. It is not safe for concurrent use.
type Server struct {
	// Link is the way of all clients to the etcd.
	Link *faultproxy.Proxy

	dir  string
	own  url.URL // where the etcd listens itself
	etcd *embed.Etcd
}

// New starts an etcd that keeps its data in a folder.
func New(dir string) (*Server, error) {
	s := &Server{dir: dir, own: url.URL{Scheme: "http", Host: "127.0.0.1:0"}}
	if err := s.Start(); err != nil {
		return nil, err
	}
	link, err := faultproxy.Start(s.own.Host)
	if err != nil {
		s.etcd.Close()
		return nil, fmt.Errorf("starting the link to etcd: %w", err)
	}
	s.Link = link
	return s, nil
}

// Endpoint is where clients reach the etcd.
func (s *Server) Endpoint() string { return "http://" + s.Link.Addr() }

// Beside is where the etcd is reached past the link, while it runs.
func (s *Server) Beside() string { return s.own.String() }

// Dir is the folder of its data.
func (s *Server) Dir() string { return s.dir }

// Start starts the etcd, on the data that its folder holds, and returns when it answers.
func (s *Server) Start() error {
	local := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c := embed.NewConfig()
	c.Dir = s.dir
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{s.own}, []url.URL{s.own}
	c.ListenPeerUrls, c.AdvertisePeerUrls = local, local
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.TickMs, c.ElectionMs = 10, 100 // then leases of one second are long enough
	c.UnsafeNoFsync = true
	c.BcryptCost = 4 // the least there is
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
	s.own.Host = etcd.Clients[0].Addr().String()
	if s.Link != nil {
		s.Link.Heal()
	}
	return nil
}

// Stop ends the etcd. What it has answered is in its folder.
func (s *Server) Stop() {
	s.Link.Cut() // first: etcd waits for its clients' streams to end
	if s.etcd != nil {
		s.etcd.Close()
		s.etcd = nil
	}
}

// Close ends the etcd for good.
func (s *Server) Close() {
	s.Stop()
	s.Link.Close()
}

// Move has the etcd use another folder from the next start on.
func (s *Server) Move(dir string) { s.dir = dir }
