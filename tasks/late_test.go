package tasks_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/wlmserver/wlmserver/tasks"
)

func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		patience := 100
		m := tasks.NewManager("n", tasks.WithPatience(func() int { return patience }))
		start := func(action string) *tasks.Task {
			x, err := m.Register(t.Context(), tasks.Spec{Action: action, Cancellable: true})
			if err != nil {
				t.Fatal(err)
			}
			return x
		}
		want := func(action string, want tasks.Late) {
			t.Helper()
			if got := m.Late()[action]; got != want {
				t.Errorf("%s: %+v, want %+v", action, got, want)
			}
		}
		a, b, prompt, never := start("a"), start("b"), start("a"), start("a")
		for _, x := range []*tasks.Task{a, b, prompt} {
			x.Cancel(tasks.UserCause())
		}
		time.Sleep(100 * time.Millisecond)
		want("a", tasks.Late{})
		prompt.End()
		time.Sleep(time.Millisecond)
		want("a", tasks.Late{Current: 1, Total: 1})
		want("b", tasks.Late{Current: 1, Total: 1})
		a.End()
		a.End()
		want("a", tasks.Late{Total: 1})
		patience = 1000
		want("a", tasks.Late{Total: 1}) // it was late when it ended
		want("b", tasks.Late{})
		b.End()
		never.End()
		want("a", tasks.Late{Total: 1})
		want("b", tasks.Late{})
	})
}

// TestNobodyIsLate: a task that cannot be cancelled only remembers that nothing more may start under it.
func TestNobodyIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := tasks.NewManager("n", tasks.WithPatience(func() int { return 0 }))
		parent, err := m.Register(t.Context(), tasks.Spec{Action: "a", Cancellable: true})
		if err != nil {
			t.Fatal(err)
		}
		deaf, err := m.Register(t.Context(), tasks.Spec{Action: "b", Parent: parent})
		if err != nil {
			t.Fatal(err)
		}
		parent.Cancel(tasks.UserCause())
		parent.End()
		time.Sleep(time.Second)
		deaf.End()
		if got := m.Late(); len(got) != 0 {
			t.Errorf("late: %+v", got)
		}
		if got := tasks.NewManager("n").Late(); len(got) != 0 {
			t.Errorf("without patience: %+v", got)
		}
	})
}
