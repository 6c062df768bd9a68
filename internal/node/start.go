package node

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/wlmserver/wlmserver/api/rest"
	"github.com/wlmserver/wlmserver/auth"
	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/certificate"
	"github.com/wlmserver/wlmserver/internal/cluster/ring"
	"github.com/wlmserver/wlmserver/internal/stub"
	"github.com/wlmserver/wlmserver/rules"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/settings"
	"github.com/wlmserver/wlmserver/stats"
	"github.com/wlmserver/wlmserver/store"
	"github.com/wlmserver/wlmserver/tasks"
	"github.com/wlmserver/wlmserver/wlm"
)

const (
	// readHeaderTimeout bounds how long a client may take to send its headers, idleTimeout how long a connection is kept
	// without a request. There is no write timeout: a search may take any time, and so may its client to read.
	readHeaderTimeout = 15 * time.Second
	idleTimeout       = 3 * time.Minute
	// maxStreams bounds the requests of one HTTP/2 connection: all that may wait in a group, and as many that run or are refused.
	maxStreams = 2 * groups.MaxQueued
)

// Start starts a node and returns once it answers. ctx bounds the start only. On an error nothing is left running.
func Start(ctx context.Context, c Config) (_ *Node, err error) {
	started := time.Now()
	log := newLogger(c.Log)
	var undo []func() // what was opened, for an error half-way
	defer func() {
		for i := len(undo) - 1; err != nil && i >= 0; i-- {
			undo[i]()
		}
	}()

	who, err := auth.New(c.Auth)
	if err != nil {
		return nil, err
	}
	cert, err := certificate.Open(c.HTTP.files(), log)
	if err != nil {
		return nil, err
	}
	listener, err := listen(ctx, c, !who.Enabled())
	if err != nil {
		return nil, err
	}
	undo = append(undo, func() { listener.Close() })
	transport, err := listenTransport(ctx, c)
	if err != nil {
		return nil, err
	}
	if transport != nil {
		undo = append(undo, func() { transport.Close() })
	}

	db, err := store.Open(c.DataPath)
	if err != nil {
		return nil, err
	}
	undo = append(undo, func() { db.Close() })
	id, err := db.NodeID()
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	meta, err := openMetadata(ctx, c, id, address, transport, db, log)
	if err != nil {
		return nil, err
	}
	if meta.cluster != nil {
		undo = append(undo, func() { meta.cluster.Close() })
	}
	dynamic, err := settings.Open(ctx, meta.settings, c.startSettings(), meta.shared()...)
	if err != nil {
		return nil, err
	}
	for _, problem := range dynamic.Problems() {
		log.Warn().Err(problem).Msg("a setting has no effect")
	}
	registry, err := groups.Open(ctx, meta.groups, groups.WithMaxCount(func() int { return dynamic.Snapshot().Int(settings.MaxGroups) }))
	if err != nil {
		return nil, err
	}
	book, err := rules.Open(ctx, meta.rules, registry.Snapshot, rules.WithMaxCount(func() int { return dynamic.Snapshot().Int(settings.MaxRules) }))
	if err != nil {
		return nil, err
	}

	options := []wlm.Option{wlm.WithMode(wlm.Mode(dynamic.Snapshot().String(settings.WLMMode))), wlm.WithCauseName(causeName)}
	if meta.cluster != nil {
		options = append(options, wlm.WithLink(meta.cluster.Link))
	}
	admission := wlm.New(append(options, c.Admission...)...)
	endSweep := func() {}
	if !c.Sweepless {
		endSweep = startSweep(admission)
	}
	undo = append(undo, endSweep)
	admission.GroupsChanged(registry.Snapshot())
	registry.OnChange(func(_, now *groups.Snapshot) { admission.GroupsChanged(now) })
	dynamic.OnChange(func(before, now *settings.Snapshot) {
		if mode := now.String(settings.WLMMode); mode != before.String(settings.WLMMode) {
			admission.SetMode(wlm.Mode(mode))
		}
	})

	host, _, _ := net.SplitHostPort(address)
	manager := tasks.NewManager(id, tasks.WithNames(c.NodeName, host, address), tasks.WithPatience(func() int {
		return dynamic.Snapshot().Int("task_cancellation.duration_millis")
	}), tasks.WithOnEnd(func(t *tasks.Task) {
		if group := t.Group(); group != "" {
			admission.Completed(group)
		}
	}))
	var service *search.Service // made below, of the engine; a nested search comes long after
	engine, err := meta.engine(ctx, stub.Config{
		Node: id, NodeName: c.NodeName, Tasks: manager,
		PoolSize: c.SearchPool.Size, QueueSize: c.SearchPool.QueueSize,
		MaxDocumentBytes: c.HeapSize / 4, MaxWorkBytes: c.HeapSize / 2,
		Defaults: c.Stub,
		Nested:   func(ctx context.Context, r *search.Request) (*search.Response, error) { return service.Run(ctx, r) },
		Panicked: func(value any, stack []byte) {
			log.Error().Any("panic", value).Bytes("stack", stack).Msg("the work of a shard panicked")
		},
	})
	if err != nil {
		return nil, err
	}
	undo = append(undo, engine.Close)
	service = search.New(search.Config{
		Executor: engine, Admission: admission, Tasks: manager, Groups: registry.Snapshot, Rules: book.Snapshot, Settings: dynamic.Snapshot,
		IsAdmin:               func(p wlm.Principal) bool { return who.IsAdmin(auth.User{Name: p.User, Roles: p.Roles}) },
		MaxConcurrentSearches: min(10, c.SearchPool.Size),
	})
	undo = append(undo, service.Close)

	api := rest.New(rest.Config{
		Search: service, Groups: registry, Rules: book, Settings: dynamic, Tasks: manager, Auth: who, Admission: admission, Stub: engine,
		Stats: stats.New(stats.Source{
			Admission: admission, Tasks: manager, Groups: registry.Snapshot, HeapSize: c.HeapSize, Processors: runtime.GOMAXPROCS(0),
			Version: Version().Build, Started: started,
		}),
		Node:    c.nodeInfo(id, address, started, meta),
		Cluster: meta.view(),
		Permits: meta.permits(),
		Limits: rest.Limits{
			MaxContentLength: c.HTTP.MaxContentLength, MaxHeaderSize: c.HTTP.MaxHeaderSize,
			MaxInitialLineLength: c.HTTP.MaxInitialLineLength, MaxInFlightBytes: c.HTTP.MaxInFlightBytes,
		},
		Log:     log,
		Control: c.StubControl,
	})
	undo = append(undo, api.Close)

	requests, endRequests := context.WithCancelCause(context.Background())
	n := &Node{
		config: c, log: log, tls: cert != nil, store: db, cluster: meta.cluster, admission: admission, endSweep: endSweep, tasks: manager, stub: engine, search: service, rest: api,
		address: address, listener: newPatientListener(listener, log), connections: newConnections(), endRequests: endRequests,
		served: make(chan struct{}), stopped: make(chan struct{}),
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true) // a search that waits on a stream costs half of one on a connection of its own
	n.server = &http.Server{
		Protocols:         protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          httpErrorLog(log),
		ConnState:         n.connections.changed,
		BaseContext:       func(net.Listener) context.Context { return requests },
	}
	if cert != nil {
		protect(n.server, cert)
	}
	api.Configure(n.server)
	n.server.Handler = n.closing(n.server.Handler)
	if c.HTTP.AddressFile != "" {
		if err := writeAddressFile(c.HTTP.AddressFile, address); err != nil {
			return nil, err
		}
	}
	meta.follow(dynamic.Reload, registry.Reload, book.Reload)
	if meta.cluster != nil {
		meta.cluster.Serve(local{api}, engine.Local(), engine.Holder())
		if err := meta.cluster.Join(ctx); err != nil {
			return nil, err
		}
	}
	go n.serve()

	if c.StubControl {
		log.Warn().Msg("stub.control is on: whoever may administer this server can have it answer falsely and forget everything, and reads what others send")
	}
	if n.cluster != nil && !n.cluster.Self().Eligible() {
		log.Warn().Str("node.compatibility_version", c.Compatibility).
			Msg("this node behaves as of a version before " + ring.Since + ": it shares out no permits of shared limits, and no group may have a queue while it is a member")
	}
	log.Info().Str("version", Version().Build).Str("node.name", c.NodeName).Str("address", address).Func(n.inCluster).Str("path.data", c.DataPath).
		Bool("tls", n.tls).Bool("anonymous", !who.Enabled()).Dur("took_ms", time.Since(started)).
		Msg("started: " + n.standing() + posture(!who.Enabled(), n.tls))
	return n, nil
}

// nodeInfo is what the node tells about itself.
func (c Config) nodeInfo(id, address string, started time.Time, meta metadata) rest.NodeInfo {
	// A node alone has no transport; clients want an address all the same.
	host, _, _ := net.SplitHostPort(address)
	transport, uuid := address, clusterID(id)
	if meta.cluster != nil {
		transport, uuid = meta.cluster.Self().Transport, meta.cluster.Meta().ClusterID()
	}
	version := Version()
	return rest.NodeInfo{
		ID: id, Name: c.NodeName, ClusterName: c.ClusterName, ClusterUUID: uuid,
		TransportAddress: transport, Host: host, IP: host, HTTPAddress: address,
		Roles:    roles(),
		Settings: c.shown(),
		Build:    rest.Build{Version: version.Build, Hash: version.Revision, Date: version.Date},
		Started:  started, HeapSize: c.HeapSize, Processors: runtime.GOMAXPROCS(0),
		SearchThreads: c.SearchPool.Size, SearchQueue: c.SearchPool.QueueSize,
	}
}

// inCluster adds to the line of the start where other nodes find this one.
func (n *Node) inCluster(line *zerolog.Event) {
	if n.cluster != nil {
		line.Str("cluster.name", n.config.ClusterName).Str("transport", n.cluster.Self().Transport)
	}
}

// standing says in words what the node is in its cluster; nothing for a node alone.
func (n *Node) standing() string {
	switch {
	case n.cluster == nil:
		return ""
	case !n.cluster.Health().Member:
		return "not a member of the cluster yet: under a shared limit nothing starts here until etcd answers; "
	}
	others := len(n.cluster.Meta().Ring().Members()) - 1
	switch others {
	case 0:
		return "the first member of the cluster; "
	case 1:
		return "a member of the cluster, beside 1 other; "
	default:
		return fmt.Sprintf("a member of the cluster, beside %d others; ", others)
	}
}

// posture says in words what an operator must know of a server that has just started.
func posture(anonymous, encrypted bool) string {
	s := "resource_limits of groups are stored and summed but not enforced yet; "
	switch {
	case anonymous:
		return s + "everyone is anonymous and may do everything"
	case encrypted:
		return s + "requests need a user"
	default:
		return s + "requests need a user, and passwords come unencrypted: set http.ssl.certificate and http.ssl.key, or have a proxy speak TLS"
	}
}

// causeName is what admission metrics call the cause of a search's end.
func causeName(cause error) string { return tasks.CauseOf(cause).Kind.String() }

// clusterID is the id of the cluster that is this node alone: always the same for the same data folder.
func clusterID(node string) string {
	id := uuid.NewSHA1(uuid.NameSpaceOID, []byte(node))
	return base64.RawURLEncoding.EncodeToString(id[:])
}
