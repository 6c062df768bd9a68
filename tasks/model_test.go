package tasks_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/wlmserver/wlmserver/tasks"
)

// modelled is what a naive model knows of a task.
type modelled struct {
	task        *tasks.Task
	parent      *modelled
	cancellable bool
	ended       bool
	barred      *tasks.Cause // nothing starts under it any more
	group       string
}

// cancel walks over everything known, time and again, until nothing changes.
func (m *modelled) cancel(all []*modelled, c *tasks.Cause) {
	if m.ended || m.barred != nil {
		return
	}
	m.barred = c
	for reached := map[*modelled]bool{m: true}; ; {
		before := len(reached)
		for _, x := range all {
			if reached[x.parent] && !x.ended && x.barred == nil {
				x.barred = c
				reached[x] = true
			}
		}
		if len(reached) == before {
			return
		}
	}
}

func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ends := 0
		m := tasks.NewManager("n", tasks.WithOnEnd(func(*tasks.Task) { ends++ }))
		var all []*modelled
		pick := func(t *rapid.T) *modelled {
			if len(all) == 0 {
				t.Skip("no task yet")
			}
			return rapid.SampledFrom(all).Draw(t, "task")
		}
		t.Repeat(map[string]func(*rapid.T){
			"register": func(t *rapid.T) {
				x := &modelled{cancellable: rapid.IntRange(0, 3).Draw(t, "cancellable") > 0}
				s := tasks.Spec{Action: search, Cancellable: x.cancellable}
				ctx := context.Background()
				if len(all) > 0 && rapid.IntRange(0, 3).Draw(t, "child") > 0 {
					x.parent = pick(t)
					x.group, s.Parent = x.parent.group, x.parent.task
				}
				task, err := m.Register(ctx, s)
				if x.parent != nil && x.parent.barred != nil {
					if !errors.Is(err, x.parent.barred) {
						t.Fatalf("registered under a cancelled task: %v, want %v", err, x.parent.barred)
					}
					return
				}
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				x.task = task
				all = append(all, x)
			},
			"cancel": func(t *rapid.T) {
				x, c := pick(t), tasks.UserCause()
				if got, want := x.task.Cancel(c), x.cancellable && !x.ended; got != want {
					t.Fatalf("Cancel = %v, want %v", got, want)
				}
				if x.cancellable {
					x.cancel(all, c)
				}
			},
			"end": func(t *rapid.T) {
				x := pick(t)
				x.task.End()
				x.ended = true
			},
			"group": func(t *rapid.T) {
				x := pick(t)
				x.group = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "group")
				x.task.SetGroup(x.group)
			},
			"": func(t *rapid.T) {
				var live []int64
				over := 0
				for _, x := range all {
					id := x.task.ID()
					if x.ended {
						over++
					} else {
						live = append(live, id.Number)
					}
					if found := m.Task(id); (found == x.task) == x.ended {
						t.Fatalf("Task(%v) = %v, ended %v", id, found, x.ended)
					}
					want := x.barred
					if !x.cancellable {
						want = nil
					}
					if c, at := x.task.Cancelled(); c != want || (c == nil) != at.IsZero() {
						t.Fatalf("%v was cancelled for %v at %v, want %v", id, c, at, want)
					}
					if want == nil && x.task.Context().Err() != nil || want != nil && context.Cause(x.task.Context()) != error(want) {
						t.Fatalf("context of %v: %v, want %v", id, context.Cause(x.task.Context()), want)
					}
					if x.task.Group() != x.group {
						t.Fatalf("group of %v: %q, want %q", id, x.task.Group(), x.group)
					}
					var children []int64
					for _, y := range all {
						if y.parent == x && !y.ended {
							children = append(children, y.task.ID().Number)
						}
					}
					if got := numbers(x.task.Children()); !slices.Equal(got, children) {
						t.Fatalf("children of %v: %v, want %v", id, got, children)
					}
				}
				if got := numbers(m.List(tasks.Filter{})); !slices.Equal(got, live) || m.Len() != len(live) {
					t.Fatalf("listed %v, Len %d, want %v", got, m.Len(), live)
				}
				if ends != over {
					t.Fatalf("%d ends told, want %d", ends, over)
				}
			},
		})
	})
}
