package rest

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/wlmserver/wlmserver/internal/stub"
	"github.com/wlmserver/wlmserver/search"
)

func shardsColumns() []column {
	return []column{
		{name: "index", aliases: "i,idx", description: "index name"},
		{name: "shard", aliases: "s,sh", description: "shard number"},
		{name: "prirep", aliases: "p,pr,primaryOrReplica", description: "primary or replica"},
		{name: "state", aliases: "st", description: "shard state"},
		{name: "docs", aliases: "d,dc", description: "number of docs in the shard", right: true},
		{name: "store", aliases: "sto", description: "what the documents take, roughly", right: true},
		{name: "ip", description: "ip address of the node"},
		{name: "id", description: "unique node id", hidden: true},
		{name: "node", aliases: "n", description: "node name"},
	}
}

// catShards lists the copies of shards, the primary first. Those that no node holds are unassigned.
func (s *Server) catShards(c *call) (action, error) {
	pattern, rules := c.param("index"), stub.Expansion{ForbidClosed: true}
	if pattern == "" {
		rules = stub.Expansion{Wildcards: stub.AllIndices}
	}
	return c.table("cluster:monitor/state", false, shardsColumns(), func() ([][]any, error) {
		indices, err := s.cfg.Stub.Expand(pattern, rules)
		if err != nil {
			return nil, err
		}
		s.cfg.Stub.Measure(c.r.Context(), indices)
		slices.SortFunc(indices, func(a, b stub.IndexInfo) int { return cmp.Compare(a.Name, b.Name) })
		rows := [][]any{}
		for _, x := range indices {
			for number, store := range x.Stores {
				rows = append(rows, s.shardRows(x, number, store)...)
			}
		}
		return rows, nil
	})
}

// shardRows are the rows of one shard's copies.
func (s *Server) shardRows(x stub.IndexInfo, number int, store stub.StoreInfo) (rows [][]any) {
	shard, copies := strconv.Itoa(number), x.Copies[number]
	for i := range max(1+x.Replicas, len(copies)) {
		kind := "r"
		if i == 0 {
			kind = "p"
		}
		if i >= len(copies) {
			rows = append(rows, []any{x.Name, shard, kind, "UNASSIGNED", nil, nil, nil, nil, nil})
			continue
		}
		ip, id, name := s.place(copies[i].Node)
		row := []any{x.Name, shard, kind, "INITIALIZING", nil, nil, ip, id, name}
		if copies[i].Started {
			row[3] = "STARTED"
			if !x.Closed {
				row[4], row[5] = store.Documents, bytesCell(store.Bytes)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// place is where a node is, as far as that is known.
func (s *Server) place(node string) (ip, id, name string) {
	if n := s.cfg.Node; node == n.ID {
		return n.IP, n.ID, n.Name
	}
	m, _ := s.member(node)
	return m.host(), node, m.Name
}

func countColumns() []column {
	return []column{
		{name: "epoch", aliases: "t,time", description: "seconds since 1970-01-01 00:00:00"},
		{name: "timestamp", aliases: "ts,hms,hhmmss", description: "time in HH:MM:SS"},
		{name: "count", aliases: "dc,docs.count,docsCount", description: "the document count"},
	}
}

// catCount counts the documents of indices without a search. A query must be one that a count takes.
func (s *Server) catCount(c *call) (action, error) {
	if help, err := c.flag("help", false); err == nil && !help { // which minds nothing else
		c.passOver(search.Count)
		body, err := c.source()
		if err != nil {
			return nil, err
		}
		x, err := s.cfg.Stub.Prepare(&search.Request{Kind: search.Count, Body: body})
		if err != nil {
			return nil, err
		}
		x.Close()
	}
	return c.table("indices:monitor/stats", false, countColumns(), func() ([][]any, error) {
		indices, err := s.cfg.Stub.Expand(c.param("index"), stub.Expansion{ForbidClosed: true})
		if err != nil {
			return nil, err
		}
		s.cfg.Stub.Measure(c.r.Context(), indices)
		count := 0
		for _, x := range indices {
			count += x.Documents
		}
		now := time.Now().UTC()
		return [][]any{{now.Unix(), now.Format(clock), strconv.Itoa(count)}}, nil
	})
}

func clusterManagerColumns() []column {
	return []column{
		{name: "id", description: "node id"},
		{name: "host", aliases: "h", description: "host name"},
		{name: "ip", description: "ip address"},
		{name: "node", aliases: "n", description: "node name"},
	}
}

// catClusterManager names the node that leads the cluster.
func (s *Server) catClusterManager(c *call) (action, error) {
	return c.table("cluster:monitor/state", false, clusterManagerColumns(), func() ([][]any, error) {
		all := s.clusterMembers()
		n := all[0]
		if n.ID == s.cfg.Node.ID {
			return [][]any{{n.ID, s.cfg.Node.Host, s.cfg.Node.IP, n.Name}}, nil
		}
		return [][]any{{n.ID, n.host(), n.host(), n.Name}}, nil
	})
}

// catPendingTasks lists changes of the cluster that wait to be carried out: here they never do.
func (s *Server) catPendingTasks(c *call) (action, error) {
	columns := []column{
		{name: "insertOrder", aliases: "o", description: "task insertion order", right: true},
		{name: "timeInQueue", aliases: "t", description: "how long the task has been in the queue", right: true},
		{name: "priority", aliases: "p", description: "task priority"},
		{name: "source", aliases: "s", description: "task source"},
	}
	return c.table("cluster:monitor/task", false, columns, func() ([][]any, error) { return nil, nil })
}

// catPlugins lists plugins, of which there are none.
func (s *Server) catPlugins(c *call) (action, error) {
	columns := []column{
		{name: "id", description: "unique node id", hidden: true},
		{name: "name", aliases: "n", description: "node name"},
		{name: "component", aliases: "c", description: "component"},
		{name: "version", aliases: "v", description: "component version"},
		{name: "description", aliases: "d", description: "plugin details", hidden: true},
	}
	return c.table("cluster:monitor/nodes/info", true, columns, func() ([][]any, error) { return nil, nil })
}
