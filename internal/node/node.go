package node

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/wlmserver/wlmserver/api/rest"
	"github.com/wlmserver/wlmserver/internal/cluster"
	"github.com/wlmserver/wlmserver/internal/stub"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/store"
	"github.com/wlmserver/wlmserver/tasks"
	"github.com/wlmserver/wlmserver/wlm"
)

// A Node is one running server. It is safe for concurrent use.
type Node struct {
	config Config
	log    zerolog.Logger
	tls    bool

	store     *store.DB
	cluster   *cluster.Cluster // nil for a node alone
	admission *wlm.Admission
	endSweep  func() // waits for it
	tasks     *tasks.Manager
	stub      *stub.Engine
	search    *search.Service
	rest      *rest.Server

	address     string
	listener    net.Listener
	server      *http.Server
	connections *connections
	stopping    atomic.Bool
	endRequests context.CancelCauseFunc // ends the context of every request
	served      chan struct{}           // closed when the server no longer accepts

	stopOnce sync.Once
	stopped  chan struct{}
	stopErr  error

	mu       sync.Mutex
	serveErr error
}

const (
	// lastGrace is how long requests whose work was cancelled may take to send their answers, and then once more those
	// whose work did not heed that.
	lastGrace = 2 * time.Second

	// settle is how long open connections may still send requests once the listener is closed: some are on their way
	// already. net/http would close their connections without an answer.
	settle = 250 * time.Millisecond
)

// Addr returns the bound address, host:port.
func (n *Node) Addr() string { return n.address }

// URL returns where the server is reached from this machine.
func (n *Node) URL() string {
	scheme := "http://"
	if n.tls {
		scheme = "https://"
	}
	host, port, err := net.SplitHostPort(n.address)
	if err != nil {
		return scheme + n.address
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + net.JoinHostPort(host, port)
}

// Done is closed when the server accepts no more requests, be it stopped or broken; [Node.Err] tells which.
func (n *Node) Done() <-chan struct{} { return n.served }

// Err returns what broke the server; nil while it runs and when it was stopped.
func (n *Node) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.serveErr
}

// serve accepts connections until the server is stopped.
func (n *Node) serve() {
	defer close(n.served)
	serve := n.server.Serve
	if n.tls {
		serve = func(l net.Listener) error { return n.server.ServeTLS(l, "", "") } // the certificate is in the server's TLSConfig
	}
	if err := serve(n.listener); !n.stopping.Load() {
		n.log.Error().Err(err).Msg("the server cannot accept connections any more")
		n.mu.Lock()
		n.serveErr = err
		n.mu.Unlock()
	}
}

// Shutdown stops the node gently: no new connections, 429 for parked searches, node.shutdown_timeout (less when ctx ends
// before) for running ones, cancellation of what is left, and the end of everything. It returns when all is closed.
// Of several calls, and calls of Close, the first decides and all wait for it.
func (n *Node) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, n.config.ShutdownTimeout)
	defer cancel()
	return n.stop(ctx)
}

// Close stops the node without letting searches end: they are cancelled and answer so.
func (n *Node) Close() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return n.stop(ctx)
}

// stop ends the node; running searches may go on until ctx ends.
func (n *Node) stop(ctx context.Context) error {
	n.stopOnce.Do(func() {
		n.stopErr = n.drain(ctx)
		n.stopErr = errors.Join(n.stopErr, n.closeAll())
		close(n.stopped)
	})
	<-n.stopped
	return n.stopErr
}

// drain lets the server answer what it has.
func (n *Node) drain(ctx context.Context) error {
	n.log.Info().Int("tasks", n.tasks.Len()).Dur("timeout_ms", n.config.ShutdownTimeout).
		Msg("stopping: no new connections, waiting searches are refused")
	n.stopping.Store(true)
	n.listener.Close()
	<-n.served // so all connections are known
	n.admission.Stop()
	n.settle(ctx)
	n.connections.closeFresh()
	if n.server.Shutdown(ctx) == nil {
		return nil
	}

	left := n.tasks.List(tasks.Filter{})
	if len(left) > 0 {
		n.log.Warn().Int("tasks", len(left)).Msg("stopping: what still runs is cancelled")
	}
	cause := tasks.ShutdownCause()
	n.tasks.Cancel(left, cause)
	n.endRequests(cause) // for what waits without being a task, and for tasks that were about to be
	if n.answered() {
		return nil
	}

	n.log.Warn().Int("tasks", n.tasks.Len()).Msg("stopping: work that does not heed its cancellation is ended")
	n.stub.Close()
	if n.answered() {
		return nil
	}
	n.log.Warn().Msg("stopping: connections are cut; their clients do not read what they are sent")
	return n.server.Close()
}

// settle has the requests answered that were on their way.
func (n *Node) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	tick := time.NewTicker(settle / 50)
	defer tick.Stop()
	for !n.connections.none() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// closing has the answers of a node that stops say that their connection ends with them.
func (n *Node) closing(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.stopping.Load() {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

// answered waits until no request is left, but not for long.
func (n *Node) answered() bool {
	ctx, cancel := context.WithTimeout(context.Background(), lastGrace)
	defer cancel()
	return n.server.Shutdown(ctx) == nil
}

// leave ends the node's membership, so that the others need not wait for it to run out. They take over what this node has; it still answers
// those that have not heard of that.
func (n *Node) leave() {
	if n.cluster == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	if err := n.cluster.Leave(ctx); err != nil {
		n.log.Warn().Err(err).Msg("stopping: the other nodes could not be told; they notice when the membership has run out")
	}
}

// part ends the connections to other nodes.
func (n *Node) part() {
	if n.cluster == nil {
		return
	}
	if err := n.cluster.Close(); err != nil {
		n.log.Warn().Err(err).Msg("stopping: the connections of the cluster did not end as they should")
	}
}

// startSweep has the admission's backstop look until end is called.
func startSweep(a *wlm.Admission) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		a.Sweep(ctx)
	}()
	return func() {
		cancel()
		<-over
	}
}

// closeAll ends what the requests worked with, the store last.
func (n *Node) closeAll() error {
	<-n.served
	n.rest.Close()
	n.search.Close()
	n.leave()
	n.stub.Close()
	n.part()
	n.endSweep()
	err := n.store.Close()
	if n.config.HTTP.AddressFile != "" {
		removeAddressFile(n.config.HTTP.AddressFile, n.address)
	}
	if err == nil {
		n.log.Info().Msg("stopped")
	}
	return err
}
