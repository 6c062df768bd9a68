package search_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/internal/units"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/tasks"
)

// A level of the table of precedence: not said, no limit, or a limit.
type level struct {
	name  string
	value *time.Duration
}

func levels(limit time.Duration) []level {
	return []level{{"unset", nil}, {"none", new(units.None)}, {"zero", new(time.Duration(0))}, {"set", &limit}}
}

// TestPrecedence goes through all combinations of request, group and cluster,
// with and without override, and compares with the rule as it is written in
// the documentation.
func TestPrecedence(t *testing.T) {
	for _, override := range []bool{false, true} {
		for _, request := range levels(1 * time.Second) {
			for _, group := range levels(2 * time.Second) {
				for _, cluster := range levels(3 * time.Second) {
					order := []level{request, group, cluster}
					if override {
						order = []level{group, request, cluster}
					}
					want := units.None
					for _, l := range order {
						if l.value != nil {
							want = *l.value
							break
						}
					}
					l := search.Limits{
						Override: override,
						Group:    search.Bounds{Timeout: group.value, CancelAfter: group.value},
						Cluster:  search.Bounds{Timeout: cluster.value, CancelAfter: cluster.value},
					}
					name := fmt.Sprintf("override %v, request %s, group %s, cluster %s", override, request.name, group.name, cluster.name)
					if got := l.Timeout(request.value); got != want {
						t.Errorf("%s: timeout %v, want %v", name, got, want)
					}
					if got := l.CancelAfter(request.value); got != want {
						t.Errorf("%s: cancel after %v, want %v", name, got, want)
					}
				}
			}
		}
	}
}

func TestPrecedenceOfShardRequests(t *testing.T) {
	for _, test := range []struct {
		override bool
		request  int
		group    *int
		want     int
	}{
		{false, 0, nil, 5},
		{false, 0, new(3), 3},
		{false, 7, nil, 7},
		{false, 7, new(3), 7},
		{true, 0, nil, 5},
		{true, 0, new(3), 3},
		{true, 7, nil, 7},
		{true, 7, new(3), 3},
	} {
		l := search.Limits{Override: test.override, Group: search.Bounds{MaxConcurrentShardRequests: test.group}}
		if got := l.MaxConcurrentShardRequests(test.request); got != test.want {
			t.Errorf("%+v: got %d", test, got)
		}
	}
}

func TestPrecedenceOfPartialResults(t *testing.T) {
	if !(search.Limits{}).AllowPartialResults(nil) {
		t.Error("without a word they are not allowed")
	}
	for _, cluster := range []bool{false, true} {
		l := search.Limits{Cluster: search.Bounds{AllowPartialResults: &cluster}}
		if got := l.AllowPartialResults(nil); got != cluster {
			t.Errorf("cluster %v: got %v", cluster, got)
		}
		for _, request := range []bool{false, true} {
			if got := l.AllowPartialResults(&request); got != request {
				t.Errorf("cluster %v, request %v: got %v", cluster, request, got)
			}
		}
	}
}

// TestCancelAfter goes through the same table with real settings and a real
// group, for a search that is parked and for one that runs: it is ended after
// what the table says, or never.
func TestCancelAfter(t *testing.T) {
	request := []level{{"unset", nil}, {"none", new(units.None)}, {"set", new(time.Second)}}
	group := []level{{"unset", nil}, {"none", new(units.None)}, {"set", new(2 * time.Second)}}
	cluster := []level{{"none", new(units.None)}, {"set", new(3 * time.Second)}}
	for _, override := range []bool{false, true} {
		for _, r := range request {
			for _, g := range group {
				for _, c := range cluster {
					want := search.Limits{Override: override, Group: search.Bounds{CancelAfter: g.value}, Cluster: search.Bounds{CancelAfter: c.value}}.
						CancelAfter(r.value)
					t.Run(fmt.Sprintf("override=%v,request=%s,group=%s,cluster=%s", override, r.name, g.name, c.name), func(t *testing.T) {
						bubble(t, func(f *fixture) { f.checkCancelAfter(override, r.value, g.value, c.value, want) })
					})
				}
			}
		}
	}
}

func (f *fixture) checkCancelAfter(override bool, request, group, cluster *time.Duration, want time.Duration) {
	f.Helper()
	id := f.limited(1, 5)
	holder := f.start(f.Context(), &search.Request{GroupID: id, CancelAfter: new(units.None), Query: work("", time.Minute).Query})
	f.set("search.cancel_after_time_interval", units.FormatTime(*cluster))
	settings := fmt.Sprintf(`"override_request_values":"%v"`, override)
	if group != nil {
		settings += fmt.Sprintf(`,"search.cancel_after_time_interval":%q`, units.FormatTime(*group))
	}
	f.update("limited", `{"settings":{`+settings+`}}`)

	parked := work(id, 0)
	parked.CancelAfter = request
	waits := f.start(f.Context(), parked)
	after(time.Minute)
	if !holder.done || holder.err != nil {
		f.Errorf("the holder, admitted before the settings: %+v", holder)
	}
	running := work(id, time.Minute)
	running.CancelAfter = request
	runs := f.start(f.Context(), running)
	after(time.Minute)
	for name, o := range map[string]*outcome{"parked": waits, "running": runs} {
		cause, cancelled := errors.AsType[*tasks.Cause](o.err)
		switch {
		case !o.done:
			f.Errorf("%s: not done", name)
		case want == units.None && o.err != nil:
			f.Errorf("%s: got %v after %v, want no limit", name, o.err, o.took)
		case want != units.None && (!cancelled || cause.Kind != tasks.ByInterval || o.took != want):
			f.Errorf("%s: got %v after %v, want cancelled after %v", name, o.err, o.took, want)
		}
	}
}
