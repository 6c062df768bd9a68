package search_test

import (
	"context"
	"testing"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/search"
	"github.com/wlmserver/wlmserver/settings"
	"github.com/wlmserver/wlmserver/tasks"
	"github.com/wlmserver/wlmserver/wlm"
)

// What the service adds to a search that costs nothing: alone, and as one of
// the ten that a multi-search has under way by default.
func BenchmarkRun(b *testing.B) {
	s := idle(b)
	r := &search.Request{}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Run(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRunMulti(b *testing.B) {
	s := idle(b)
	m := &search.MultiRequest{}
	for range 10 {
		m.Items = append(m.Items, &search.Request{})
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.RunMulti(b.Context(), m); err != nil {
			b.Fatal(err)
		}
	}
}

// idle is a service whose executor does nothing.
func idle(b *testing.B) *search.Service {
	gs, err := groups.Open(b.Context(), new(records.Memory))
	if err != nil {
		b.Fatal(err)
	}
	set, err := settings.Open(b.Context(), new(records.Memory), nil)
	if err != nil {
		b.Fatal(err)
	}
	a := wlm.New()
	s := search.New(search.Config{
		Tasks: tasks.NewManager("node-1"), Admission: a, Groups: gs.Snapshot, Settings: set.Snapshot, Executor: nothing{},
	})
	b.Cleanup(s.Close)
	return s
}

type nothing struct{}

func (nothing) Prepare(*search.Request) (search.Execution, error) { return nothing{}, nil }

func (nothing) Execute(context.Context, *tasks.Task, search.Limits) (*search.Response, error) {
	return nil, nil
}

func (nothing) Description() string { return "" }

func (nothing) Close() {}
