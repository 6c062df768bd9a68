package rest

import (
	"cmp"
	"context"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wlmserver/wlmserver/internal/stub"
)

func (s *Server) catRoutes() []route {
	const indices = tableParams + " health expand_wildcards include_unloaded_segments"
	return []route{
		{methods: "GET", pattern: "/_cat", prepare: s.catList},
		{methods: "GET", pattern: "/_cat/nodes", params: tableParams + " full_id", view: true, prepare: s.catNodes},
		{methods: "GET", pattern: "/_cat/health", params: rowParams, prepare: s.catHealth},
		{methods: "GET", pattern: "/_cat/indices", params: indices, prepare: s.catIndices},
		{methods: "GET", pattern: "/_cat/indices/{index}", params: indices, prepare: s.catIndices},
		{methods: "GET", pattern: "/_cat/shards", params: tableParams, prepare: s.catShards},
		{methods: "GET", pattern: "/_cat/shards/{index}", params: tableParams, prepare: s.catShards},
		{methods: "GET", pattern: "/_cat/count", params: rowParams + lucene + bodyInQuery, body: optional, prepare: s.catCount},
		{methods: "GET", pattern: "/_cat/count/{index}", params: rowParams + lucene + bodyInQuery, body: optional, prepare: s.catCount},
		{methods: "GET", pattern: "/_cat/cluster_manager", params: tableParams, prepare: s.catClusterManager},
		{methods: "GET", pattern: "/_cat/master", params: tableParams, prepare: s.catClusterManager},
		{methods: "GET", pattern: "/_cat/pending_tasks", params: tableParams, prepare: s.catPendingTasks},
		{methods: "GET", pattern: "/_cat/plugins", params: tableParams, prepare: s.catPlugins},
		{methods: "GET", pattern: "/_cat/tasks", params: rowParams + " detailed nodes actions parent_task_id", view: true, prepare: s.catTasks},
		{methods: "GET", pattern: "/_cat/thread_pool", params: tableParams, view: true, prepare: s.catThreadPool},
		{methods: "GET", pattern: "/_cat/thread_pool/{pools}", params: tableParams, view: true, prepare: s.catThreadPool},
	}
}

// catList names the tables there are.
func (s *Server) catList(*call) (action, error) {
	return func() (*answer, error) {
		text := []byte("=^.^=\n")
		for _, rt := range s.catRoutes()[1:] {
			text = append(append(text, rt.pattern...), '\n')
		}
		return textAnswer(text)
	}, nil
}

// table answers with the rows of one of these tables, which are read as a task of the given action.
func (c *call) table(action string, everyNode bool, columns []column, rows func() ([][]any, error)) (action, error) {
	view, err := c.tableView(columns)
	if err != nil {
		return nil, err
	}
	return func() (*answer, error) {
		if view.help {
			return view.answer(nil)
		}
		return c.asTask(action, everyNode, func() (*answer, error) {
			all, err := rows()
			if err != nil {
				return nil, err
			}
			return view.answer(all)
		})
	}, nil
}

// tableOf answers with a table that is made of what each node has to say.
func tableOf[T any](c *call, columns []column, v view[T], rows func([]part[T]) [][]any) (action, error) {
	shown, err := c.tableView(columns)
	if err != nil {
		return nil, err
	}
	if v.wait, err = c.nodeTimeout(); err != nil {
		return nil, err
	}
	v.merge = func(parts []part[T]) (*answer, error) { return shown.answer(rows(parts)) }
	return func() (*answer, error) {
		if shown.help {
			return shown.answer(nil)
		}
		return show(c, v)
	}, nil
}

// ofNodes is a view of the nodes' rows of a table.
func (c *call) ofNodes(action string, columns []column, own func() [][]any) view[nodeRows] {
	return view[nodeRows]{
		action: action, members: c.named(nil),
		own:  func(context.Context) (nodeRows, error) { return nodeRows{columns, own()}, nil },
		read: func(b []byte) (nodeRows, error) { return readRows(columns, b) },
	}
}

// allRows are the rows of the nodes that have answered.
func allRows(parts []part[nodeRows]) [][]any {
	var all [][]any
	for _, p := range parts {
		all = append(all, p.value.cells...)
	}
	return all
}

const (
	// clock is how tables print the time of day.
	clock = "15:04:05"
	// dateAndTime is how moments are printed.
	dateAndTime = "2006-01-02T15:04:05.000Z"
)

func healthColumns() []column {
	return []column{
		{name: "epoch", aliases: "t,time", description: "seconds since 1970-01-01 00:00:00"},
		{name: "timestamp", aliases: "ts,hms,hhmmss", description: "time in HH:MM:SS"},
		{name: "cluster", aliases: "cl", description: "cluster name"},
		{name: "status", aliases: "st", description: "health status"},
		{name: "node.total", aliases: "nt,nodeTotal", description: "total number of nodes", right: true},
		{name: "node.data", aliases: "nd,nodeData", description: "number of nodes that can store data", right: true},
		{name: "discovered_cluster_manager", aliases: "dcm", description: "whether the cluster manager is known", right: true},
		{name: "shards", aliases: "t,sh,shards.total,shardsTotal", description: "total number of shards", right: true},
		{name: "pri", aliases: "p,shards.primary,shardsPrimary", description: "number of primary shards", right: true},
		{name: "relo", aliases: "r,shards.relocating,shardsRelocating", description: "number of relocating shards", right: true},
		{name: "init", aliases: "i,shards.initializing,shardsInitializing", description: "number of initializing shards", right: true},
		{name: "unassign", aliases: "u,shards.unassigned,shardsUnassigned", description: "number of unassigned shards", right: true},
		{name: "pending_tasks", aliases: "pt,pendingTasks", description: "number of pending cluster tasks", right: true},
		{name: "max_task_wait_time", aliases: "mtwt,maxTaskWaitTime", description: "wait time of the longest pending cluster task", right: true},
		{name: "active_shards_percent", aliases: "asp,activeShardsPercent", description: "share of the shards that are active", right: true},
	}
}

func (s *Server) catHealth(c *call) (action, error) {
	return c.table("cluster:monitor/health", false, healthColumns(), func() ([][]any, error) {
		h, _ := s.currentHealth(&healthRequest{
			found: stub.Expansion{Wildcards: stub.AllIndices}, worst: red, nodes: func(int) bool { return true },
			activeShards: func(*healthDTO) bool { return true }, human: true,
		})
		now := time.Now().UTC()
		return [][]any{{
			now.Unix(), now.Format(clock), h.ClusterName, h.Status, h.Nodes, h.DataNodes, strconv.FormatBool(h.ClusterManager),
			h.Active, h.ActivePrimaries, h.Relocating, h.Initializing, h.Unassigned, h.PendingTasks, "-", h.ActivePercentText,
		}}, nil
	})
}

func indicesColumns() []column {
	return []column{
		{name: "health", aliases: "h", description: "current health status"},
		{name: "status", aliases: "s", description: "open or closed"},
		{name: "index", aliases: "i,idx", description: "index name"},
		{name: "uuid", aliases: "id,uuid", description: "index uuid"},
		{name: "pri", aliases: "p,shards.primary,shardsPrimary", description: "number of primary shards", right: true},
		{name: "rep", aliases: "r,shards.replica,shardsReplica", description: "number of replica shards", right: true},
		{name: "docs.count", aliases: "dc,docsCount", description: "available documents", right: true},
		{name: "docs.deleted", aliases: "dd,docsDeleted", description: "deleted documents", right: true},
		{name: "creation.date", aliases: "cd", description: "creation date in milliseconds", hidden: true},
		{name: "creation.date.string", aliases: "cds", description: "creation date as text", hidden: true},
		{name: "store.size", aliases: "ss,storeSize", description: "size on disk of primaries and replicas", right: true},
		{name: "pri.store.size", description: "size on disk of primaries", right: true},
	}
}

func (s *Server) catIndices(c *call) (action, error) {
	pattern, health := c.param("index"), strings.ToLower(c.query.Get("health"))
	var unknown error // help does not mind
	if c.query.Has("health") && !slices.Contains([]string{green.String(), yellow.String(), red.String()}, health) {
		health, unknown = "", illegalArgument("parameter [health] must be green, yellow or red, not [%s]", health)
	}
	if _, err := c.flag("include_unloaded_segments", false); err != nil {
		return nil, err
	}
	rules, err := c.expansion(stub.Expansion{Wildcards: stub.AllIndices})
	if err != nil {
		return nil, err
	}
	return c.table("indices:monitor/stats", false, indicesColumns(), func() ([][]any, error) {
		if unknown != nil {
			return nil, unknown
		}
		indices, err := s.cfg.Stub.Expand(pattern, rules)
		if err != nil {
			return nil, err
		}
		s.cfg.Stub.Measure(c.r.Context(), indices)
		slices.SortFunc(indices, func(a, b stub.IndexInfo) int { return cmp.Compare(a.Name, b.Name) })
		rows := [][]any{}
		for _, x := range indices {
			h := newIndexHealth(x, false)
			if health != "" && h.Status != health {
				continue
			}
			row := []any{
				h.Status, openOrClosed(x), x.Name, x.UUID, x.Shards, x.Replicas, x.Documents, 0,
				x.Created.UnixMilli(), x.Created.UTC().Format(dateAndTime),
				bytesCell(0), bytesCell(0), // nothing of an index is on a disk
			}
			if x.Closed {
				row[6], row[7], row[10], row[11] = nil, nil, nil, nil
			}
			rows = append(rows, row)
		}
		return rows, nil
	})
}

func openOrClosed(x stub.IndexInfo) string {
	if x.Closed {
		return "close"
	}
	return "open"
}

// searchPool is the name of the thread pool of searches.
const searchPool = "search"

func threadPoolColumns() []column {
	return []column{
		{name: "node_name", aliases: "nn", description: "node name"},
		{name: "node_id", aliases: "id", description: "persistent node id", hidden: true},
		{name: "pid", aliases: "p", description: "process id", hidden: true},
		{name: "host", aliases: "h", description: "host name", hidden: true},
		{name: "ip", aliases: "i", description: "ip address", hidden: true},
		{name: "port", aliases: "po", description: "bound transport port", hidden: true},
		{name: "name", aliases: "n", description: "thread pool name"},
		{name: "type", aliases: "t", description: "thread pool type", hidden: true},
		{name: "active", aliases: "a", description: "number of active threads", right: true},
		{name: "pool_size", aliases: "psz", description: "number of threads", right: true, hidden: true},
		{name: "queue", aliases: "q", description: "number of pieces of work in the queue", right: true},
		{name: "queue_size", aliases: "qs", description: "maximum number of pieces of work in the queue", right: true, hidden: true},
		{name: "rejected", aliases: "r", description: "number of rejected pieces of work", right: true},
		{name: "largest", aliases: "l", description: "highest number of threads seen", right: true, hidden: true},
		{name: "completed", aliases: "c", description: "number of completed pieces of work", right: true, hidden: true},
		{name: "size", aliases: "sz", description: "number of threads in a fixed thread pool", right: true, hidden: true},
		{name: "total_wait_time", aliases: "twt", description: "time that work has waited for a thread", right: true, hidden: true},
	}
}

// catThreadPool has one pool to tell of: that of searches.
func (s *Server) catThreadPool(c *call) (action, error) {
	pools := splitList(c.param("pools"))
	columns := threadPoolColumns()
	return tableOf(c, columns, c.ofNodes("cluster:monitor/nodes/stats", columns, func() [][]any {
		if len(pools) > 0 && !slices.ContainsFunc(pools, isSearchPool) {
			return nil
		}
		n, p := s.cfg.Node, s.cfg.Stub.PoolStats()
		return [][]any{{
			n.Name, n.ID, os.Getpid(), n.Host, n.IP, n.port(), searchPool, "resizable",
			p.Active, p.Threads, p.Queue, n.SearchQueue, p.Rejected, p.Largest, p.Completed, n.SearchThreads, p.Wait,
		}}
	}), allRows)
}

func isSearchPool(pattern string) bool {
	matched, err := path.Match(pattern, searchPool)
	return err == nil && matched
}
