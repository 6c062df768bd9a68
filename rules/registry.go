package rules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/wlmserver/wlmserver/groups"
)

// A Repository keeps rules durably. It must not change what it is given, nor later what
// it has returned. The registry calls one method at a time.
type Repository interface {
	// Rules returns all rules, in any order.
	Rules(ctx context.Context) ([]*Rule, error)

	// PutRule stores a rule, in place of one with the same id if there is one. When it
	// returns nil the rule outlives a crash; else nothing has changed.
	PutRule(ctx context.Context, r *Rule) error

	// DeleteRule removes the rule with the id, as durably.
	DeleteRule(ctx context.Context, id string) error
}

// A Registry is the live set of rules. It is safe for concurrent use.
type Registry struct {
	repository Repository
	groups     func() *groups.Snapshot
	maxCount   func() int

	// turn holds a token while no change is under way. It is a channel and not a mutex
	// since a change writes to the repository: who waits behind it can give up.
	turn     chan struct{}
	snapshot atomic.Pointer[Snapshot] // stored by who has the turn

	mu        sync.Mutex
	listeners []func(old, new *Snapshot)
}

// An Option adjusts a Registry.
type Option func(*Registry)

// DefaultMaxCount is how many rules there may be when nothing else is said.
const DefaultMaxCount = 200

// WithMaxCount says how many rules there may be. The function is called at each
// creation; it must not call the registry.
func WithMaxCount(most func() int) Option {
	return func(r *Registry) { r.maxCount = most }
}

// Open reads the rules from the repository. It fails when that fails, or holds something
// that breaks the rules of this package. Now gives the workload groups that a change may
// name. The first snapshot's revision is 1.
func Open(ctx context.Context, repository Repository, now func() *groups.Snapshot, options ...Option) (*Registry, error) {
	r := &Registry{
		repository: repository,
		groups:     now,
		maxCount:   func() int { return DefaultMaxCount },
		turn:       make(chan struct{}, 1),
	}
	for _, option := range options {
		option(r)
	}
	stored, err := repository.Rules(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the rules: %w", err)
	}
	for _, rule := range stored {
		if err := checkStored(rule); err != nil {
			return nil, fmt.Errorf("the stored rule with the id [%s] cannot be used: %w", rule.ID, err)
		}
	}
	snapshot, err := newSnapshot(1, stored)
	if err != nil {
		return nil, fmt.Errorf("the stored rules cannot be used: %w", err)
	}
	r.snapshot.Store(snapshot)
	r.turn <- struct{}{}
	return r, nil
}

func checkStored(r *Rule) error {
	if r.ID == "" {
		return errors.New("its id is empty")
	}
	return r.Validate()
}

// Snapshot returns the rules as they are now.
func (r *Registry) Snapshot() *Snapshot { return r.snapshot.Load() }

// OnChange has f called after every change from now on. Calls come one at a time and in
// the order of the changes, on the goroutine that makes the change, after the new
// snapshot is published and before the change is answered. So f holds up changes, but
// no reader; it must not make a change itself.
func (r *Registry) OnChange(f func(old, new *Snapshot)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listeners = append(r.listeners, f)
}

// Create adds a rule. Its id follows from what it says. The error is an *InvalidError,
// a *TooManyError, the cause of ctx's end, or the repository's.
func (r *Registry) Create(ctx context.Context, p Patch) (*Rule, error) {
	rule := p.Apply(&Rule{})
	err := r.change(ctx, func(now *Snapshot) ([]*Rule, error) {
		if err := r.check(p, rule, now.all); err != nil {
			return nil, err
		}
		if most := r.maxCount(); now.Len() >= most {
			return nil, &TooManyError{Max: most}
		}
		rule.ID = newID(rule, now)
		rule.UpdatedAt = nextUpdate(time.Time{})
		if err := r.repository.PutRule(ctx, rule); err != nil {
			return nil, fmt.Errorf("storing the new rule [%s]: %w", rule.ID, err)
		}
		return append(slices.Clone(now.all), rule), nil
	})
	if err != nil {
		return nil, err
	}
	return rule, nil
}

// Update changes the rule with the id. The error is an *InvalidError, a *NotFoundError,
// the cause of ctx's end, or the repository's.
func (r *Registry) Update(ctx context.Context, id string, p Patch) (*Rule, error) {
	var rule *Rule
	err := r.change(ctx, func(now *Snapshot) ([]*Rule, error) {
		old := now.ByID(id)
		if old == nil {
			return nil, &NotFoundError{ID: id}
		}
		rule = p.Apply(old)
		others := now.except(id)
		if err := r.check(p, rule, others); err != nil {
			return nil, err
		}
		rule.UpdatedAt = nextUpdate(old.UpdatedAt)
		if err := r.repository.PutRule(ctx, rule); err != nil {
			return nil, fmt.Errorf("storing the rule [%s]: %w", id, err)
		}
		return append(others, rule), nil
	})
	if err != nil {
		return nil, err
	}
	return rule, nil
}

// Delete removes the rule with the id. The error is a *NotFoundError, the cause of
// ctx's end, or the repository's.
func (r *Registry) Delete(ctx context.Context, id string) error {
	return r.change(ctx, func(now *Snapshot) ([]*Rule, error) {
		if now.ByID(id) == nil {
			return nil, &NotFoundError{ID: id}
		}
		if err := r.repository.DeleteRule(ctx, id); err != nil {
			return nil, fmt.Errorf("deleting the rule [%s]: %w", id, err)
		}
		return now.except(id), nil
	})
}

// check lists all that is wrong with a rule that a patch has led to. A group that is
// gone may stay, but not be named anew.
func (r *Registry) check(p Patch, rule *Rule, others []*Rule) error {
	problems := append(p.problems(), rule.problems()...)
	if id, named := p.Group.Value(); named && id != "" && r.groups().ByID(id) == nil {
		problems = append(problems, fmt.Sprintf("the value [%s] of [workload_group] is the id of no workload group; give the _id, not the name, of one that exists", abridge(id)))
	}
	for _, other := range others {
		if rule.rivals(other) {
			problems = append(problems, fmt.Sprintf("the rule with the id [%s] has the same attributes and in each a pattern of this one; update that rule, or change the patterns", other.ID))
			break
		}
	}
	if problems != nil {
		return invalid(problems...)
	}
	return nil
}

// change makes one change at a time. Commit decides it on the rules as they are now,
// stores it and returns the rules as they are to be.
func (r *Registry) change(ctx context.Context, commit func(now *Snapshot) ([]*Rule, error)) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case <-r.turn:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { r.turn <- struct{}{} }()

	now := r.snapshot.Load()
	all, err := commit(now)
	if err != nil {
		return err
	}
	next, err := newSnapshot(now.revision+1, all)
	if err != nil {
		return err
	}
	r.snapshot.Store(next)
	for _, f := range r.heard() {
		f(now, next)
	}
	return nil
}

// heard returns who is to be told of a change.
func (r *Registry) heard() []func(old, new *Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clip(r.listeners)
}

// newID returns a UUID made of what a rule says, whatever the order of its patterns. A
// rule that was changed keeps its id, so what it once said may be said anew: then a
// number is added.
func newID(r *Rule, now *Snapshot) string {
	name, _ := json.Marshal([]any{ // strings always can be
		r.Description, "workload_group",
		slices.Sorted(slices.Values(r.Indices)), slices.Sorted(slices.Values(r.Usernames)), slices.Sorted(slices.Values(r.Roles)),
		r.Group,
	})
	id := uuid.NewMD5(uuid.Nil, name).String()
	for n := 1; now.ByID(id) != nil; n++ {
		id = uuid.NewMD5(uuid.Nil, append(name, strconv.Itoa(n)...)).String()
	}
	return id
}

// nextUpdate returns the time of a change, in whole milliseconds and after last even
// when the clock stands still or goes back.
func nextUpdate(last time.Time) time.Time {
	now := time.UnixMilli(time.Now().UnixMilli()).UTC()
	if !now.After(last) {
		return last.Add(time.Millisecond)
	}
	return now
}
