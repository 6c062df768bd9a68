package search

import (
	"context"
	"time"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/rules"
	"github.com/wlmserver/wlmserver/settings"
	"github.com/wlmserver/wlmserver/tasks"
	"github.com/wlmserver/wlmserver/wlm"
)

// Names of the actions under which searches show in the task list.
const (
	SearchAction      = "indices:data/read/search"
	ScrollAction      = "indices:data/read/scroll"
	MultiSearchAction = "indices:data/read/msearch"
)

// OpaqueIDHeader carries the client's own mark of a request.
const OpaqueIDHeader = "X-Opaque-Id"

// RequestIDHeader carries the id of a request, for those who follow it through systems.
const RequestIDHeader = "X-Request-Id"

// Config is what a service is made of.
type Config struct {
	Tasks     *tasks.Manager
	Admission *wlm.Admission
	Groups    func() *groups.Snapshot
	Settings  func() *settings.Snapshot
	Executor  Executor

	// Rules find the group of searches that name none; nil stands for no rules.
	Rules func() *rules.Snapshot

	// IsAdmin says who may read on in anybody's scroll; nil stands for nobody.
	// Everyone may in their own.
	IsAdmin func(wlm.Principal) bool

	// MaxConcurrentSearches is how many items of a multi-search are under way
	// at once when it does not say. OpenSearch takes ten times its data nodes,
	// or with a search thread pool smaller than ten its size times them; 0
	// stands for 10.
	MaxConcurrentSearches int

	// ScrollReapInterval is how often expired scrolls are looked for; 0 stands
	// for a minute. It only bounds how long they hold memory: one that has
	// expired is never served.
	ScrollReapInterval time.Duration
}

const (
	defaultMaxConcurrentSearches = 10
	defaultScrollReapInterval    = time.Minute
)

// Service runs searches. It is safe for concurrent use.
type Service struct {
	config  Config
	scrolls *scrolls
}

// New starts a service. It must be closed.
func New(c Config) *Service {
	if c.IsAdmin == nil {
		c.IsAdmin = func(wlm.Principal) bool { return false }
	}
	if c.Rules == nil {
		none := &rules.Snapshot{}
		c.Rules = func() *rules.Snapshot { return none }
	}
	if c.MaxConcurrentSearches == 0 {
		c.MaxConcurrentSearches = defaultMaxConcurrentSearches
	}
	if c.ScrollReapInterval == 0 {
		c.ScrollReapInterval = defaultScrollReapInterval
	}
	return &Service{config: c, scrolls: openScrolls(c.ScrollReapInterval)}
}

// Close frees all scrolls; one whose page is under way goes when that ends. It
// waits for no search. To end those is for who stops the admission and cancels
// the tasks.
func (s *Service) Close() { s.scrolls.close() }

// Run carries out one search, one count or one page of a scroll, and returns
// its answer. It blocks while the search waits and works.
//
// Besides what the executor returns, errors are *wlm.RejectedError,
// *wlm.StoppedError, *wlm.CancelledError (before it was admitted) and
// *tasks.CancelledError (before it could even ask); for a scroll *InvalidError
// and *PhaseError.
//
// Called with the context that an Execution was given, it runs a nested
// search: one whose task is a child of that execution's, and that takes no
// second permit of the same bucket.
func (s *Service) Run(ctx context.Context, r *Request) (*Response, error) {
	q, err := s.prepare(r)
	if err != nil {
		return nil, err
	}
	defer q.close()
	if err := q.start(ctx, nil); err != nil {
		return nil, err
	}
	defer q.task.End()
	if r.Follower != nil {
		r.Follower.Started(q.task)
		defer r.Follower.Ended()
	}
	return q.run(func() (*wlm.Permit, error) { return q.admit(ctx) })
}
