package rest

import (
	"net"
	"path"
	"slices"
	"strings"
)

// named are the nodes that a list of node expressions means, by id: each is a node's id, name, address, a pattern of one of those, a
// role or attribute such as data:true, or _all, _local, _cluster_manager. One such as data:false takes nodes out again. No expression
// at all means every node.
func (c *call) named(expressions []string) []Member {
	if c.local { // whoever asks has looked already
		return []Member{c.s.self()}
	}
	all := c.s.clusterMembers()
	if len(expressions) == 0 {
		return all
	}
	d := discovery{s: c.s, manager: all[0].ID}
	return slices.DeleteFunc(all, func(m Member) bool { return !d.means(expressions, m) })
}

// discovery knows what expressions mean.
type discovery struct {
	s       *Server
	manager string
}

// means says whether expressions mean a node.
func (d *discovery) means(expressions []string, m Member) bool {
	in := false
	for _, x := range expressions {
		switch x {
		case "_all":
			in = true
		case "_local":
			in = in || m.ID == d.s.cfg.Node.ID
		case "_cluster_manager", "_master":
			in = in || m.ID == d.manager
		default:
			in = d.after(x, m, in)
		}
	}
	return in
}

// after says whether a node is meant when one more expression has been read.
func (d *discovery) after(x string, m Member, in bool) bool {
	if key, value, ok := strings.Cut(x, ":"); ok && net.ParseIP(x) == nil && x != m.TransportAddress {
		switch {
		case value == "true" && m.hasRole(key), m.hasAttribute(key, value):
			return true
		case value == "false" && m.hasRole(key):
			return false
		}
		return in
	}
	names := []string{m.ID, m.Name, m.host(), m.TransportAddress}
	if n := d.s.cfg.Node; m.ID == n.ID {
		names = append(names, n.Host, n.IP)
	}
	return in || slices.ContainsFunc(names, func(name string) bool { return matches(x, name) })
}

// hasRole says whether the node has a role; that of one without any is coordinating_only.
func (m Member) hasRole(role string) bool {
	switch role {
	case "coordinating_only":
		return len(m.Roles) == 0
	case "master":
		role = "cluster_manager"
	}
	return slices.Contains(m.Roles, role)
}

// hasAttribute says whether the node has an attribute; both may be patterns.
func (m Member) hasAttribute(key, value string) bool {
	for k, v := range m.Attributes {
		if matches(key, k) && matches(value, v) {
			return true
		}
	}
	return false
}

func matches(pattern, s string) bool {
	matched, err := path.Match(pattern, s)
	return err == nil && matched
}
