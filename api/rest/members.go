package rest

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"slices"
)

// Cluster is what a node knows of the others, and asks of them. Implementations are safe for concurrent use.
type Cluster interface {
	// Members are the nodes of the cluster, this one among them. It answers at once, from memory. Nobody changes what it returns.
	Members() []Member
	// Ask has the member with this id answer a request for itself alone, which is [Server.ServeLocal] there. It returns when ctx
	// ends, at the latest, and may be called many times at once. An error says that there is no answer, and why in words that
	// name the node.
	Ask(ctx context.Context, id string, r LocalRequest) (LocalAnswer, error)
	// Settle returns when every member acts by all changes of the metadata that this node has made, or with the reason when ctx
	// ends before.
	Settle(ctx context.Context) error
	// Health is how the cluster is, as this node sees it. It answers at once, from memory.
	Health() ClusterHealth
}

// Member is a node as the others know it.
type Member struct {
	ID, Name         string
	TransportAddress string // host:port
	HTTPAddress      string // host:port
	Version          string // of the API that it is compatible with
	Roles            []string
	Attributes       map[string]string
}

// LocalRequest is one node's part of a request. Path is escaped, as it was sent.
type LocalRequest struct {
	Method, Path, RawQuery string
	Header                 http.Header
	Body                   []byte
	User                   string // as the node that the client asked has found
	Roles                  []string
}

// LocalAnswer is the answer to a LocalRequest.
type LocalAnswer struct {
	Status      int
	ContentType string
	Body        []byte
}

// ClusterHealth is how a cluster is, as one of its nodes sees it.
type ClusterHealth struct {
	// Metadata: what the nodes have in common can be changed. Else they act on what they have seen last.
	Metadata bool
	// Member: this node is one of the cluster at this moment. Else it runs and queues nothing under a shared limit.
	Member bool
	// SharedTier: everyone who shares out permits of shared limits can be asked.
	SharedTier bool
	// Missing are the names of nodes that belong to the cluster and are not there.
	Missing []string
	// Reasons are what else keeps the cluster from being as it should, a sentence each.
	Reasons []string
}

// status is green when nothing is wrong, and red when this node is cut off from the others; reasons say what is wrong.
func (h ClusterHealth) status() (status healthStatus, reasons []string) {
	if !h.Member {
		status = red
		reasons = append(reasons, "this node is not a member of the cluster at the moment: under a shared limit nothing starts here")
	}
	if !h.Metadata {
		reasons = append(reasons, "etcd cannot be reached: groups, rules and settings act as they were seen last, and cannot be changed")
	}
	if !h.SharedTier {
		reasons = append(reasons, "not every node that shares out permits of shared limits can be asked: searches under such a limit may wait, or be refused")
	}
	for _, name := range h.Missing {
		reasons = append(reasons, "node ["+name+"] is missing")
	}
	reasons = append(reasons, h.Reasons...)
	if len(reasons) > 0 {
		status = max(status, yellow)
	}
	return status, reasons
}

// clusterHealth is the health of the cluster; that of a node alone is always good.
func (s *Server) clusterHealth() ClusterHealth {
	if s.cfg.Cluster == nil {
		return ClusterHealth{Metadata: true, Member: true, SharedTier: true}
	}
	return s.cfg.Cluster.Health()
}

// self is this node as a member.
func (s *Server) self() Member {
	n := s.cfg.Node
	return Member{ID: n.ID, Name: n.Name, TransportAddress: n.TransportAddress, HTTPAddress: n.HTTPAddress, Version: Version,
		Roles: n.Roles, Attributes: n.Attributes}
}

// clusterMembers are the nodes of the cluster by id, each once. This node is always one of them.
func (s *Server) clusterMembers() []Member {
	self := s.self()
	all := []Member{self}
	if s.cfg.Cluster != nil {
		for _, m := range s.cfg.Cluster.Members() {
			if m.ID != self.ID {
				all = append(all, m)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(all, func(a, b Member) bool { return a.ID == b.ID }) // a node that has started anew may be there twice
}

// member finds a node by its id.
func (s *Server) member(id string) (Member, bool) {
	all := s.clusterMembers()
	i := slices.IndexFunc(all, func(m Member) bool { return m.ID == id })
	if i < 0 {
		return Member{}, false
	}
	return all[i], true
}

// manager is the id of the node that is shown as the manager of the cluster. What a manager does elsewhere is done by etcd here, so
// that it does not matter which one it is, as long as it is one.
func (s *Server) manager() string { return s.clusterMembers()[0].ID }

// host and port are those of the transport address; empty where it has none.
func (m Member) host() string {
	host, _, _ := net.SplitHostPort(m.TransportAddress)
	return host
}

func (m Member) port() string {
	_, port, _ := net.SplitHostPort(m.TransportAddress)
	return port
}
