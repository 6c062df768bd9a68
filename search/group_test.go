package search_test

import (
	"context"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/rules"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
	"github.com/wlmserver/wlmserver/wlm"
)

// ruled runs a test on fake time with two groups and rules for them: searches of
// logs-* are of the group logs, those of the user ann of the group ann.
func ruled(t *testing.T, test func(f *fixture, logs, ann string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var now *rules.Snapshot
		f := newFixture(t, func(c *search.Config) { c.Rules = func() *rules.Snapshot { return now } })
		logs, ann := f.group("logs", `"throttling":{"attribute":"group","node_limit":1}`), f.group("ann", "")
		now = rules.NewSnapshot(1,
			&rules.Rule{ID: "1", Group: logs, Indices: []string{"logs-*"}},
			&rules.Rule{ID: "2", Group: ann, Usernames: []string{"ann"}},
			&rules.Rule{ID: "3", Group: "gone", Indices: []string{"old"}},
		)
		test(f, logs, ann)
		f.finish()
	})
}

func TestRuleGivesTheGroup(t *testing.T) {
	ruled(t, func(f *fixture, logs, ann string) {
		ranIn := ""
		f.engine.execute = func(_ context.Context, _ *search.Request, task *tasks.Task, _ search.Limits) error {
			ranIn = task.Group()
			return nil
		}
		for _, mode := range []string{"enabled", "monitor_only", "disabled"} {
			f.set("wlm.workload_group.mode", mode)
			for _, c := range []struct {
				name, header, user string
				indices            []string
				kind               search.Kind
				want, disabled     string
			}{
				{"a rule", "", "bob", []string{"logs-1", "logs-2"}, search.Search, logs, groups.DefaultID},
				{"a rule, of a count", "", "", []string{"logs-1"}, search.Count, logs, groups.DefaultID},
				{"the rule for the user", "", "ann", []string{"logs-1"}, search.Search, ann, groups.DefaultID},
				{"no rule", "", "bob", []string{"logs-1", "other"}, search.Search, groups.DefaultID, groups.DefaultID},
				{"all indices", "", "", nil, search.Search, groups.DefaultID, groups.DefaultID},
				{"the header wins", logs, "ann", []string{"x"}, search.Search, logs, logs},
				{"the header wins, be it unknown", "unknown", "ann", []string{"logs-1"}, search.Search, groups.DefaultID, groups.DefaultID},
				{"the default group by its name", groups.DefaultID, "ann", []string{"logs-1"}, search.Search, groups.DefaultID, groups.DefaultID},
				{"a rule whose group is gone", "", "", []string{"old"}, search.Search, groups.DefaultID, groups.DefaultID},
			} {
				ranIn = ""
				_, err := f.service.Run(f.Context(), &search.Request{Kind: c.kind, GroupID: c.header, Indices: c.indices, Principal: wlm.Principal{User: c.user}})
				want := c.want
				if mode == "disabled" {
					want = c.disabled
				}
				if err != nil || ranIn != want {
					f.Errorf("%s, mode %s: ran in %q, want %q (%v)", c.name, mode, ranIn, want, err)
				}
			}
		}
	})
}

// A rule's group throttles as if the search had named it.
func TestRuledSearchIsThrottled(t *testing.T) {
	ruled(t, func(f *fixture, logs, _ string) {
		long := f.start(f.Context(), &search.Request{Indices: []string{"logs-1"}, Query: url.Values{"work": {"1m"}}})
		_, err := f.service.Run(f.Context(), &search.Request{Indices: []string{"logs-2"}})
		if r, ok := err.(*wlm.RejectedError); !ok || r.GroupID != logs {
			f.Errorf("error %v", err)
		}
		after(time.Minute)
		if c := f.counters(logs); !long.done || c.Completions != 1 || c.Throttled != 1 {
			f.Errorf("counters %+v", c)
		}
	})
}

// Each item of a multi-search has indices of its own, and so a group of its own.
func TestItemsFollowRulesOfTheirOwn(t *testing.T) {
	ruled(t, func(f *fixture, logs, ann string) {
		byIndex := map[string]string{}
		f.engine.execute = func(_ context.Context, r *search.Request, task *tasks.Task, _ search.Limits) error {
			byIndex[r.Indices[0]] = task.Group()
			return nil
		}
		results, err := f.service.RunMulti(f.Context(), &search.MultiRequest{MaxConcurrent: 1, Items: []*search.Request{
			{Indices: []string{"logs-1"}}, {Indices: []string{"x"}}, {Indices: []string{"logs-2"}, GroupID: ann},
		}})
		if err != nil {
			f.Fatal(err)
		}
		for i, r := range results {
			if r.Err != nil {
				f.Errorf("item %d: %v", i, r.Err)
			}
		}
		if byIndex["logs-1"] != logs || byIndex["x"] != groups.DefaultID || byIndex["logs-2"] != ann {
			f.Errorf("groups by index: %v", byIndex)
		}
	})
}

// The pages of a scroll name no index: they go by those that it was opened with.
func TestPagesFollowTheScrollsIndices(t *testing.T) {
	ruled(t, func(f *fixture, logs, ann string) {
		var ranIn []string
		var id string
		f.engine.execute = func(_ context.Context, r *search.Request, task *tasks.Task, _ search.Limits) error {
			id = r.ScrollID
			ranIn = append(ranIn, task.Group())
			return nil
		}
		if _, err := f.service.Run(f.Context(), &search.Request{Indices: []string{"logs-1"}, ScrollKeepAlive: time.Minute}); err != nil {
			f.Fatal(err)
		}
		for _, group := range []string{"", ann} {
			if _, err := f.service.Run(f.Context(), page(group, id, time.Minute)); err != nil {
				f.Fatal(err)
			}
		}
		if len(ranIn) != 3 || ranIn[0] != logs || ranIn[1] != logs || ranIn[2] != ann {
			f.Errorf("pages ran in %v", ranIn)
		}
	})
}

// A nested search is of the group of the search on whose behalf it runs, whatever rules
// say of its own indices, and needs no permit beside that one's.
func TestNestedSearchFollowsNoRule(t *testing.T) {
	ruled(t, func(f *fixture, logs, _ string) {
		for _, outer := range []struct{ index, want string }{{"logs-1", logs}, {"x", groups.DefaultID}} {
			var ranIn []string
			f.engine.execute = func(ctx context.Context, r *search.Request, task *tasks.Task, _ search.Limits) error {
				ranIn = append(ranIn, task.Group())
				if r.Query.Has("leaf") {
					return nil
				}
				leaf := &search.Request{Indices: []string{"logs-2"}, Query: url.Values{"leaf": {""}}}
				if _, err := f.service.Run(ctx, leaf); err != nil {
					return err
				}
				_, err := f.service.RunMulti(ctx, &search.MultiRequest{Items: []*search.Request{leaf}})
				return err
			}
			if _, err := f.service.Run(f.Context(), &search.Request{Indices: []string{outer.index}}); err != nil {
				f.Error(err)
			}
			if len(ranIn) != 3 || ranIn[0] != outer.want || ranIn[1] != outer.want || ranIn[2] != outer.want {
				f.Errorf("outer of [%s]: ran in %v, want %s", outer.index, ranIn, outer.want)
			}
		}
		if c := f.counters(logs); c.Throttled != 0 {
			f.Errorf("counters %+v", c)
		}
	})
}
