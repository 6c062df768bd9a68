package tasks

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// shardCount spreads the requests: many more shards than processors, few enough to walk.
const shardCount = 64

// Manager holds the tasks of one node. It is safe for concurrent use.
type Manager struct {
	node  string
	names []string
	onEnd func(*Task)
	late  lateCounts

	last   atomic.Int64 // the number given last
	shards [shardCount]shard
}

// shard holds the tasks whose number leaves its index as remainder. They lie in a plain slice: registering and ending, done
// for every request, cost next to nothing, and the rare look-up by number walks a small part of the tasks.
type shard struct {
	mu    sync.Mutex
	tasks []*Task
	_     [32]byte // a cache line each
}

// Option changes how a Manager works.
type Option func(*Manager)

// WithNames gives the other names by which a filter may call the node: its node name, host, address.
func WithNames(names ...string) Option {
	return func(m *Manager) { m.names = append(m.names, names...) }
}

// WithOnEnd has f called once for each task that has ended, when it is no longer listed and before [Task.Ended] is
// closed, on the goroutine that ended it and with no lock held.
func WithOnEnd(f func(*Task)) Option {
	return func(m *Manager) { m.onEnd = f }
}

// NewManager makes the empty Manager of a node. The node's id must not contain a colon.
func NewManager(node string, opts ...Option) *Manager {
	m := &Manager{node: node}
	for _, o := range opts {
		o(m)
	}
	return m
}

// Node is the id of the node.
func (m *Manager) Node() string { return m.node }

// Spec says what a task is. A Manager keeps it, so nothing in it may change once it has been registered.
type Spec struct {
	Action string // what it does, for example "indices:data/read/search"
	Type   string // how it came: Direct, or else Transport
	// Description tells what in particular it works on. It is called whenever somebody wants to know, from any goroutine,
	// also after the task has ended. May be nil.
	Description func() string
	// Parent is the task that this one works for; nil for what comes from outside.
	Parent *Task
	// ParentID names the task that this one works for if that runs on another node. It is only told: what becomes of that task
	// concerns this one as far as ctx says so.
	ParentID ID
	// Headers are those request headers that are shown with the task. Left out, it has those of its parent.
	Headers map[string]string
	// Cancellable: the one who runs the task watches its context.
	Cancellable bool
	// User asked for it. Left out, it is that of its parent.
	User string
}

// The types of tasks.
const (
	Transport = "transport" // came over the network
	Direct    = "direct"    // started within the node
)

// Register starts a task. It fails with a *[CancelledError], and then there is nothing to end, when ctx has ended or the
// parent has been cancelled. Otherwise the caller must call [Task.End]. A parent that has ended is no obstacle.
func (m *Manager) Register(ctx context.Context, s Spec) (*Task, error) {
	if ctx.Err() != nil {
		return nil, &CancelledError{Cause: CauseOf(context.Cause(ctx)), BeforeStart: true}
	}
	t := &Task{
		manager:     m,
		parent:      s.Parent,
		number:      m.last.Add(1),
		action:      s.Action,
		description: s.Description,
		headers:     s.Headers,
		user:        s.User,
		start:       time.Now(),
		ctx:         ctx,
		cancellable: s.Cancellable,
		direct:      s.Type == Direct,
	}
	if t.parent == nil && s.ParentID.IsSet() {
		origin := s.ParentID // or else s would be on the heap for every task
		t.origin = &origin
	}
	if p := t.parent; p != nil {
		if t.user == "" {
			t.user = p.user
		}
		if t.headers == nil {
			t.headers = p.headers
		}
		if c := p.adopt(t); c != nil {
			return nil, &CancelledError{Cause: c, BeforeStart: true}
		}
	}
	m.shard(t.number).add(t)
	return t, nil
}

func (m *Manager) shard(number int64) *shard { return &m.shards[uint64(number)%shardCount] }

func (s *shard) add(t *Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.slot = int32(len(s.tasks))
	s.tasks = append(s.tasks, t)
}

func (s *shard) remove(t *Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.tasks) - 1
	moved := s.tasks[last]
	s.tasks[t.slot], moved.slot = moved, t.slot
	s.tasks[last] = nil
	s.tasks = s.tasks[:last]
}

// Task finds a task that has not ended; nil if there is none of that id on this node.
func (m *Manager) Task(id ID) *Task {
	if id.Node != m.node {
		return nil
	}
	s := m.shard(id.Number)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tasks {
		if t.number == id.Number {
			return t
		}
	}
	return nil
}

// List gives the tasks that f chooses, in the order of their numbers. It shows the tasks as they were at one moment:
// whatever was registered or had ended before another task came is seen so.
func (m *Manager) List(f Filter) []*Task {
	if !m.matchesNode(f.Nodes) {
		return nil
	}
	chosen := slices.DeleteFunc(m.live(), func(t *Task) bool { return !f.match(t) })
	sortByNumber(chosen)
	return chosen
}

// live copies the tasks of one moment.
func (m *Manager) live() []*Task {
	n := 0
	for i := range m.shards {
		m.shards[i].mu.Lock()
		n += len(m.shards[i].tasks)
	}
	all := make([]*Task, 0, n)
	for i := range m.shards {
		all = append(all, m.shards[i].tasks...)
		m.shards[i].mu.Unlock()
	}
	return all
}

func sortByNumber(ts []*Task) {
	slices.SortFunc(ts, func(a, b *Task) int { return cmp.Compare(a.number, b.number) })
}

// Len is how many tasks there are.
func (m *Manager) Len() int {
	n := 0
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		n += len(s.tasks)
		s.mu.Unlock()
	}
	return n
}

// Cancel cancels the tasks that can be, each as [Task.Cancel] does, and gives those that are cancelled ones now, in their order.
// The newest go first: so what waits has gone before the end of something older could let it run.
func (m *Manager) Cancel(ts []*Task, c *Cause) (cancelled []*Task) {
	for _, t := range slices.Backward(ts) {
		if t.Cancel(c) {
			cancelled = append(cancelled, t)
		}
	}
	slices.Reverse(cancelled)
	return cancelled
}
