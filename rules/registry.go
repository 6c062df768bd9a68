package rules

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/records"
)

// A Registry is the live set of rules. It is safe for concurrent use, also beside others
// over the same repository.
type Registry struct {
	set      *records.Registry[*Rule, *Snapshot]
	groups   func() *groups.Snapshot
	maxCount func() int
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

// Open reads the rules from the repository, which holds them as Encode writes them, by id.
// It fails when that fails, or holds something that breaks the rules of this package. Now
// gives the workload groups that a change may name. The first snapshot's revision is 1.
func Open(ctx context.Context, repository records.Repository, now func() *groups.Snapshot, options ...Option) (*Registry, error) {
	r := &Registry{groups: now, maxCount: func() int { return DefaultMaxCount }}
	for _, option := range options {
		option(r)
	}
	var err error
	r.set, err = records.Open(ctx, repository, records.Kind[*Rule, *Snapshot]{
		Name:   "the rules",
		Encode: Encode,
		Decode: decodeStored,
		Snapshot: func(changes uint64, all map[string]*Rule) (*Snapshot, error) {
			return newSnapshot(changes, slices.Collect(maps.Values(all)))
		},
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Snapshot returns the rules as they are now.
func (r *Registry) Snapshot() *Snapshot { return r.set.Snapshot() }

// OnChange has f called after every change from now on. Calls come one at a time and in
// the order of the changes, on the goroutine that makes or takes in the change, after the
// new snapshot is published and before the change is answered. So f holds up changes, but
// no reader; it must not make a change itself.
func (r *Registry) OnChange(f func(old, new *Snapshot)) { r.set.OnChange(f) }

// Reload takes in what others have changed in the repository, and returns when every
// listener knows. On an error the rules stay as they were here.
func (r *Registry) Reload(ctx context.Context) error { return r.set.Reload(ctx) }

// Create adds a rule. Its id follows from what it says. The error is an *InvalidError,
// a *TooManyError, the cause of ctx's end, or the repository's.
func (r *Registry) Create(ctx context.Context, p Patch) (*Rule, error) {
	rule := p.Apply(&Rule{})
	rule.UpdatedAt = records.NextUpdate(time.Time{})
	err := r.set.Change(ctx, func(now *Snapshot) (records.Edit[*Rule], error) {
		if err := r.check(p, rule, now.all); err != nil {
			return records.Edit[*Rule]{}, err
		}
		if most := r.maxCount(); now.Len() >= most {
			return records.Edit[*Rule]{}, &TooManyError{Max: most}
		}
		rule.ID = newID(rule, now)
		return put(rule), nil
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
	err := r.set.Change(ctx, func(now *Snapshot) (records.Edit[*Rule], error) {
		old := now.ByID(id)
		if old == nil {
			return records.Edit[*Rule]{}, &NotFoundError{ID: id}
		}
		rule = p.Apply(old)
		if err := r.check(p, rule, now.except(id)); err != nil {
			return records.Edit[*Rule]{}, err
		}
		rule.UpdatedAt = records.NextUpdate(old.UpdatedAt)
		return put(rule), nil
	})
	if err != nil {
		return nil, err
	}
	return rule, nil
}

func put(rule *Rule) records.Edit[*Rule] {
	return records.Edit[*Rule]{Put: map[string]*Rule{rule.ID: rule}}
}

// Delete removes the rule with the id. The error is a *NotFoundError, the cause of
// ctx's end, or the repository's.
func (r *Registry) Delete(ctx context.Context, id string) error {
	return r.set.Change(ctx, func(now *Snapshot) (records.Edit[*Rule], error) {
		if now.ByID(id) == nil {
			return records.Edit[*Rule]{}, &NotFoundError{ID: id}
		}
		return records.Edit[*Rule]{Delete: []string{id}}, nil
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
