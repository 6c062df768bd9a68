// Package etcd runs an etcd within the process of a test: of one member, or of several.
package etcd

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/wlmserver/wlmserver/test/cluster/port"
	"github.com/wlmserver/wlmserver/test/faultproxy"
)

// Server is a member of an etcd, mostly the only one, with a folder of its own. It can be stopped and started again, also with other data; the address for
// clients stays the same. It is not safe for concurrent use.
type Server struct {
	// Link is the way of all clients to the etcd.
	Link *faultproxy.Proxy

	dir  string
	own  url.URL // where the etcd listens itself
	etcd *embed.Etcd

	// Of one member among several: its name, where the others reach it, and who they all are.
	name, all string
	peer      url.URL
}

// NewGroup starts an etcd of as many members as folders are given.
func NewGroup(dirs ...string) ([]*Server, error) {
	var all []string
	group := make([]*Server, len(dirs))
	for i, dir := range dirs {
		p, err := port.Free()
		if err != nil {
			return nil, err
		}
		s := &Server{dir: dir, own: url.URL{Scheme: "http", Host: "127.0.0.1:0"}, name: fmt.Sprint("etcd", i)}
		s.peer = url.URL{Scheme: "http", Host: fmt.Sprint("127.0.0.1:", p)}
		all = append(all, s.name+"="+s.peer.String())
		group[i] = s
	}
	errs := make([]error, len(group))
	var started sync.WaitGroup
	for i, s := range group { // none is ready before most of them are there
		s.all = strings.Join(all, ",")
		started.Go(func() { errs[i] = s.open() })
	}
	started.Wait()
	if err := errors.Join(errs...); err != nil {
		for _, s := range group {
			s.Close()
		}
		return nil, err
	}
	return group, nil
}

// Leads tells whether this member is the leader.
func (s *Server) Leads() bool {
	return s.etcd != nil && s.etcd.Server.Leader() == s.etcd.Server.MemberID()
}

// New starts an etcd that keeps its data in a folder.
func New(dir string) (*Server, error) {
	s := &Server{dir: dir, own: url.URL{Scheme: "http", Host: "127.0.0.1:0"}}
	if err := s.open(); err != nil {
		return nil, err
	}
	return s, nil
}

// open starts the etcd and its link for the first time.
func (s *Server) open() error {
	if err := s.Start(); err != nil {
		return err
	}
	link, err := faultproxy.Start(s.own.Host)
	if err != nil {
		s.etcd.Close()
		return fmt.Errorf("starting the link to etcd: %w", err)
	}
	s.Link = link
	return nil
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
	if s.name != "" {
		c.Name, c.InitialCluster = s.name, s.all
		c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{s.peer}, []url.URL{s.peer}
	}
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
	if s.Link != nil {
		s.Link.Cut() // first: etcd waits for its clients' streams to end
	}
	if s.etcd != nil {
		s.etcd.Close()
		s.etcd = nil
	}
}

// Close ends the etcd for good.
func (s *Server) Close() {
	s.Stop()
	if s.Link != nil {
		s.Link.Close()
	}
}

// Move has the etcd use another folder from the next start on.
func (s *Server) Move(dir string) { s.dir = dir }
