package rest

import (
	"cmp"
	"net"
	"os"
	"slices"
	"strings"
	"time"
)

func nodesColumns() []column {
	return []column{
		{name: "id", aliases: "id,nodeId", description: "unique node id", hidden: true},
		{name: "pid", aliases: "p", description: "process id", right: true, hidden: true},
		{name: "ip", aliases: "i", description: "ip address"},
		{name: "port", aliases: "po", description: "bound transport port", hidden: true},
		{name: "http_address", aliases: "http", description: "bound http address", hidden: true},
		{name: "version", aliases: "v", description: "version of the API", hidden: true},
		{name: "type", aliases: "t", description: "distribution type", hidden: true},
		{name: "build", aliases: "b", description: "build hash", hidden: true},
		{name: "heap.current", aliases: "hc,heapCurrent", description: "used heap", right: true, hidden: true},
		{name: "heap.percent", aliases: "hp,heapPercent", description: "used heap ratio", right: true},
		{name: "heap.max", aliases: "hm,heapMax", description: "configured heap", right: true, hidden: true},
		{name: "ram.current", aliases: "rc,ramCurrent", description: "used machine memory", right: true, hidden: true},
		{name: "ram.percent", aliases: "rp,ramPercent", description: "used machine memory ratio", right: true},
		{name: "ram.max", aliases: "rm,ramMax", description: "total machine memory", right: true, hidden: true},
		{name: "file_desc.current", aliases: "fdc,fileDescriptorCurrent", description: "used file descriptors", right: true, hidden: true},
		{name: "cpu", aliases: "cpu", description: "recent cpu usage; not measured, and so -1", right: true},
		{name: "load_1m", aliases: "l", description: "1m load avg", right: true},
		{name: "load_5m", aliases: "l", description: "5m load avg", right: true},
		{name: "load_15m", aliases: "l", description: "15m load avg", right: true},
		{name: "uptime", aliases: "u", description: "node uptime", right: true, hidden: true},
		{name: "node.role", aliases: "r,role,nodeRole", description: "m:cluster manager eligible, d:data, i:ingest, r:remote cluster client, -:coordinating only"},
		{name: "node.roles", aliases: "rs,all roles", description: "-:coordinating node only"},
		{name: "cluster_manager", aliases: "cm,m,master", description: "*:current cluster manager"},
		{name: "name", aliases: "n", description: "node name"},
	}
}

func (s *Server) catNodes(c *call) (action, error) {
	fullID, err := c.flag("full_id", false)
	if err != nil {
		return nil, err
	}
	shownID := func(id string) string {
		if fullID {
			return id
		}
		return id[:min(4, len(id))]
	}
	columns, manager := nodesColumns(), s.manager()
	isManager := slices.IndexFunc(columns, func(col column) bool { return col.name == "cluster_manager" })
	return tableOf(c, columns, c.ofNodes("cluster:monitor/nodes/stats", columns, func() [][]any {
		n, m := s.cfg.Node, readMachine()
		heap := heapUsed()
		return [][]any{{
			shownID(n.ID), os.Getpid(), n.IP, n.port(), n.HTTPAddress, Version, buildType, n.Build.hash(),
			bytesCell(heap), percent(heap, n.HeapSize), bytesCell(n.HeapSize),
			known(bytesCell(m.memoryUsed)), known(percent(m.memoryUsed, m.memoryTotal)), known(bytesCell(m.memoryTotal)),
			known(m.openFiles), -1, known(m.load[0]), known(m.load[1]), known(m.load[2]),
			time.Since(n.Started), roleLetters(n.Roles), dashIfEmpty(strings.Join(n.Roles, ",")), nil, n.Name,
		}}
	}), func(parts []part[nodeRows]) [][]any {
		var all [][]any
		for _, p := range parts {
			cells := p.value.cells
			if p.failed != nil {
				cells = [][]any{knownOf(p.member, columns, shownID(p.member.ID))}
			}
			for _, row := range cells {
				row[isManager] = "-"
				if p.member.ID == manager {
					row[isManager] = "*"
				}
			}
			all = append(all, cells...)
		}
		return all
	})
}

// knownOf is the row of a node that has not answered.
func knownOf(m Member, columns []column, id string) []any {
	cells := map[string]any{
		"id": id, "ip": m.host(), "port": m.port(), "http_address": m.HTTPAddress, "version": m.Version, "name": m.Name,
		"node.role": roleLetters(m.Roles), "node.roles": dashIfEmpty(strings.Join(m.Roles, ",")),
	}
	row := make([]any, len(columns))
	for i, col := range columns {
		row[i] = cells[col.name]
	}
	return row
}

// known is a cell that is empty for a zero, which stands for what this machine does not tell.
func known[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

func dashIfEmpty(s string) string { return cmp.Or(s, "-") }

// port is that of the transport address; empty where it has none.
func (n NodeInfo) port() string {
	_, port, _ := net.SplitHostPort(n.TransportAddress)
	return port
}

// roleLetters are the initials of the roles, in alphabetical order.
func roleLetters(roles []string) string {
	var letters []byte
	for _, role := range roles {
		if role == "cluster_manager" {
			role = "master" // the letter is older than the name
		}
		letters = append(letters, role[:min(1, len(role))]...)
	}
	slices.Sort(letters)
	return dashIfEmpty(string(letters))
}
