package rest_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/wlmserver/wlmserver/api/rest"
	"github.com/wlmserver/wlmserver/auth"
	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/internal/stub"
	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/rules"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/settings"
	"github.com/wlmserver/wlmserver/stats"
	"github.com/wlmserver/wlmserver/tasks"
	"github.com/wlmserver/wlmserver/test/openapi"
	"github.com/wlmserver/wlmserver/wlm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	nodeID   = "sfctup0nQEajWfPJx1wEkg"
	nodeName = "golden-1"
)

// server is a whole server on a free port, without a disk.
type server struct {
	testing.TB
	url       string
	address   string
	admission *wlm.Admission
	tasks     *tasks.Manager
	client    *http.Client
	watch     *openapi.Watch // nil for none
	rest      *rest.Server
	dialer    func() (net.Conn, error)
}

// options change what newServer makes.
type options struct {
	limits   rest.Limits
	auth     auth.Config
	executor search.Executor // instead of the stub
	log      io.Writer
	tls      bool
	control  bool
	bubble   bool // connections within the process, for testing/synctest

	id, name string
	cluster  rest.Cluster
	groups   *records.Memory // that the groups are read from
	permits  func() rest.Permits
}

func newServer(t testing.TB, change ...func(*options)) *server {
	t.Helper()
	o := options{log: io.Discard, id: nodeID, name: nodeName, groups: new(records.Memory)}
	for _, f := range change {
		f(&o)
	}
	ctx := t.Context()
	who, err := auth.New(o.auth)
	must(t, err)
	cluster, err := settings.Open(ctx, new(records.Memory), nil)
	must(t, err)
	registry, err := groups.Open(ctx, o.groups, groups.WithMaxCount(func() int { return cluster.Snapshot().Int(settings.MaxGroups) }))
	must(t, err)
	book, err := rules.Open(ctx, new(records.Memory), registry.Snapshot, rules.WithMaxCount(func() int { return cluster.Snapshot().Int(settings.MaxRules) }))
	must(t, err)

	admission := wlm.New(wlm.WithMode(wlm.ModeEnabled), wlm.WithVerification(func(violation string) { t.Error(violation) }))
	admission.GroupsChanged(registry.Snapshot())
	registry.OnChange(func(_, now *groups.Snapshot) { admission.GroupsChanged(now) })
	cluster.OnChange(func(_, now *settings.Snapshot) { admission.SetMode(wlm.Mode(now.String(settings.WLMMode))) })
	manager := tasks.NewManager(o.id, tasks.WithNames(o.name), tasks.WithPatience(func() int {
		return cluster.Snapshot().Int("task_cancellation.duration_millis")
	}), tasks.WithOnEnd(func(x *tasks.Task) {
		if g := x.Group(); g != "" {
			admission.Completed(g)
		}
	}))
	engine := stub.New(stub.Config{Node: o.id, NodeName: o.name, Tasks: manager, PoolSize: 8, QueueSize: 100})
	executor := o.executor
	if executor == nil {
		executor = engine
	}
	service := search.New(search.Config{
		Tasks: manager, Admission: admission, Groups: registry.Snapshot, Rules: book.Snapshot, Settings: cluster.Snapshot, Executor: executor,
		IsAdmin: func(p wlm.Principal) bool { return who.IsAdmin(auth.User{Name: p.User, Roles: p.Roles}) },
	})

	hs := httptest.NewUnstartedServer(nil)
	client := func() *http.Client {
		c := hs.Client()
		c.Transport.(*http.Transport).DisableCompression = true // a test that wants gzip asks for it
		return c
	}
	if o.bubble {
		hs.Listener.Close()
		l := newPipeListener()
		hs.Listener = l
		client = func() *http.Client {
			return &http.Client{Transport: &http.Transport{DialContext: l.dial, DisableKeepAlives: true, DisableCompression: true}}
		}
	}
	address := hs.Listener.Addr().String()
	host, _, _ := net.SplitHostPort(address)
	api := rest.New(rest.Config{
		Search: service, Groups: registry, Rules: book, Settings: cluster, Tasks: manager, Auth: who, Admission: admission, Stub: engine,
		Stats: stats.New(stats.Source{Admission: admission, Tasks: manager, Groups: registry.Snapshot, HeapSize: 1 << 30}),
		Node: rest.NodeInfo{
			ID: o.id, Name: o.name, ClusterName: "golden", ClusterUUID: "dOq3Y9TERt6B5EpmxRQfww",
			TransportAddress: address, Host: host, IP: host, HTTPAddress: address,
			Roles:      []string{"cluster_manager", "data", "ingest", "remote_cluster_client"},
			Attributes: map[string]string{"shard_indexing_pressure_enabled": "true"},
			Settings:   []settings.KV{{Key: "http.type", Value: "go"}, {Key: "http.type.default", Value: "go"}, {Key: "node.name", Value: o.name}},
			Started:    time.Now(), HeapSize: 1 << 30, Processors: 2, SearchThreads: 8, SearchQueue: 100,
		},
		Limits:  o.limits,
		Log:     zerolog.New(o.log),
		Control: o.control,
		Cluster: o.cluster,
		Permits: o.permits,
	})
	api.Configure(hs.Config)
	if o.tls {
		hs.StartTLS()
	} else {
		hs.Start()
	}
	t.Cleanup(func() {
		admission.Stop()
		for _, x := range manager.List(tasks.Filter{Cancellable: true}) {
			x.Cancel(tasks.ShutdownCause())
		}
		hs.Close()
		api.Close()
		service.Close()
		engine.Close()
		if n := manager.Len(); n != 0 {
			t.Errorf("%d tasks were left behind", n)
		}
	})
	dial := func() (net.Conn, error) { return net.Dial("tcp", address) }
	if l, ok := hs.Listener.(*pipeListener); ok {
		dial = func() (net.Conn, error) { return l.dial(ctx, "", "") }
	}
	s := &server{TB: t, url: hs.URL, address: address, admission: admission, tasks: manager, client: client(), rest: api, dialer: dial}
	if _, measured := t.(*testing.B); !measured && o.executor == nil { // other executors answer what they like
		s.hold(o.control)
	}
	return s
}

// hold has requests fail whose answers are not as openapi.yaml says; of a server with faults, those about the faults only: what
// else it answers a fault may have made.
func (s *server) hold(control bool) {
	s.Helper()
	described, err := contract()
	must(s.TB, err)
	below := ""
	if control {
		below = "/_stub/"
	}
	s.watch = described.Watch(s.client.Transport, below)
	s.client = &http.Client{Transport: s.watch}
	s.Cleanup(func() { must(s.TB, s.wrong()) })
}

// wrong is what was not as openapi.yaml says.
func (s *server) wrong() error {
	if s.watch == nil {
		return nil
	}
	return errors.Join(s.watch.Wrong()...)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// response is an answer read to its end.
type response struct {
	testing.TB
	status int
	header http.Header
	body   string
}

// do sends a request. headers are pairs of name and value; a body without a Content-Type goes as JSON.
func (s *server) do(method, path, body string, headers ...string) response {
	s.Helper()
	r, err := s.try(s.Context(), method, path, body, headers...)
	must(s.TB, err)
	return r
}

func (s *server) try(ctx context.Context, method, path, body string, headers ...string) (response, error) {
	var rd io.Reader
	if body != "" {
		rd = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, rd)
	if err != nil {
		return response{}, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "-" {
			req.Header.Del(headers[i])
		} else {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return response{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return response{s.TB, resp.StatusCode, resp.Header, string(b)}, cmp.Or(err, s.wrong())
}

// background sends a request whose answer is read later, or never.
func (s *server) background(method, path, body string, headers ...string) <-chan response {
	s.Helper()
	c := make(chan response, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r, err := s.try(s.Context(), method, path, body, headers...)
		if err != nil && s.Context().Err() == nil {
			s.Error(err)
		}
		c <- r
	}()
	s.Cleanup(func() { <-done })
	return c
}

func (r response) want(status int) response {
	r.Helper()
	if r.status != status {
		r.Fatalf("status %d, want %d: %s", r.status, status, r.body)
	}
	return r
}

// json is the body, decoded.
func (r response) json() map[string]any {
	r.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(r.body), &v); err != nil {
		r.Fatalf("%v in %q", err, r.body)
	}
	return v
}

// at follows keys, and indices of lists, into the body; nil where they lead nowhere.
func (r response) at(path ...any) any {
	r.Helper()
	return at(r.json(), path...)
}

func at(v any, path ...any) any {
	for _, p := range path {
		switch k := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[k]
		case int:
			l, _ := v.([]any)
			if k >= len(l) {
				return nil
			}
			v = l[k]
		}
	}
	return v
}

// wantError checks an error in the form that has a root cause.
func (r response) wantError(status int, typ string) response {
	r.Helper()
	r.want(status)
	if got := r.at("error", "type"); got != typ {
		r.Fatalf("error type %v, want %s: %s", got, typ, r.body)
	}
	if got := r.at("status"); got != float64(status) {
		r.Errorf("status in the body is %v, want %d", got, status)
	}
	if reason, _ := r.at("error", "reason").(string); reason == "" {
		r.Errorf("there is no reason: %s", r.body)
	}
	return r
}

// group creates a workload group and returns its id.
func (s *server) group(name, rest string) string {
	s.Helper()
	r := s.do("PUT", "/_wlm/workload_group", `{"name":"`+name+`","resiliency_mode":"enforced","resource_limits":{"cpu":0.01}`+rest+`}`).want(200)
	return r.at("_id").(string)
}

// basic is the header of HTTP Basic authentication.
func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// eventually waits until a condition holds.
func (s *server) eventually(what string, holds func() bool) {
	s.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			s.Fatalf("never came true: %s", what)
		}
		<-time.After(2 * time.Millisecond)
	}
}

// running counts the tasks of an action.
func (s *server) running(action string) int {
	return len(s.tasks.List(tasks.Filter{Actions: []string{action}}))
}

// dial opens a connection to the server for bytes written by hand.
func (s *server) dial() (net.Conn, *bufio.Reader) {
	s.Helper()
	c, err := s.dialer()
	must(s.TB, err)
	s.Cleanup(func() { c.Close() })
	must(s.TB, c.SetDeadline(time.Now().Add(time.Minute)))
	return c, bufio.NewReader(c)
}

// pipeListener is a network within the process, whose deadlines follow the clock of a testing/synctest bubble.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9200} }

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// lockedBuffer collects log lines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
