package tasks_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/wlmserver/wlmserver/tasks"
)

// What every request pays: registered under a context that can end, and ended.
func BenchmarkRegisterEnd(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	m := tasks.NewManager("n")
	for _, c := range []struct {
		name string
		spec tasks.Spec
	}{
		{"cancellable", tasks.Spec{Action: search, Cancellable: true}},
		{"not cancellable", tasks.Spec{Action: search}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				start(b, m, ctx, c.spec).End()
			}
		})
	}
	b.Run("child", func(b *testing.B) {
		parent := start(b, m, ctx, tasks.Spec{Action: search, Cancellable: true})
		defer parent.End()
		b.ReportAllocs()
		for b.Loop() {
			start(b, m, parent.Context(), tasks.Spec{Action: query, Parent: parent, Cancellable: true}).End()
		}
	})
	b.Run("cancellable, parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			for pb.Next() {
				task, err := m.Register(ctx, tasks.Spec{Action: search, Cancellable: true})
				if err != nil {
					b.Error(err)
					return
				}
				task.End()
			}
		})
	})
}

// A whole backlog under one parent is cancelled at once; time per task must not grow with their number.
func BenchmarkCancelTree(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			children := make([]*tasks.Task, n)
			for b.Loop() {
				b.StopTimer()
				m := tasks.NewManager("n")
				parent := cancellable(b, m, nil)
				for i := range children {
					children[i] = cancellable(b, m, parent)
				}
				b.StartTimer()
				parent.Cancel(tasks.UserCause())
				b.StopTimer()
				for _, c := range children {
					c.End()
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/task")
		})
	}
}

func BenchmarkList(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := tasks.NewManager("n")
			for range n {
				defer cancellable(b, m, nil).End()
			}
			b.ReportAllocs()
			for b.Loop() {
				m.List(tasks.Filter{Actions: []string{"*search*"}})
			}
		})
	}
}

func BenchmarkWork(b *testing.B) {
	m := tasks.NewManager("n")
	task := cancellable(b, m, nil)
	defer task.End()
	w := task.StartWork()
	defer w.Done()
	b.ReportAllocs()
	for b.Loop() {
		w.Add(1, 1)
	}
}
