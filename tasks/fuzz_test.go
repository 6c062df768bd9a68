package tasks_test

import (
	"errors"
	"testing"

	"github.com/wlmserver/wlmserver/tasks"
)

// Whatever is given as a task's id is refused with the one typed error, or read as an id whose own form reads back as the same.
func FuzzParseID(f *testing.F) {
	for _, seed := range []string{"", "unset", "n:1", "n:-1", ":1", "n:", "n", "n:1:2", "n:9223372036854775807", "n:9223372036854775808", "n:+5", "n:٣", "\xff:0", "n: 1", "unset:0", ":0"} {
		f.Add(seed)
	}
	m := tasks.NewManager("n")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := tasks.ParseID(text)
		if err != nil {
			var malformed *tasks.MalformedIDError
			if !errors.As(err, &malformed) || malformed.Value != text || id != (tasks.ID{}) {
				t.Fatalf("%q: %v, %#v", text, id, err)
			}
			return
		}
		again, err := tasks.ParseID(id.String())
		if err != nil || again != id {
			t.Fatalf("%q is read as %#v, whose form %q is read as %#v, %v", text, id, id, again, err)
		}
		if m.Task(id) != nil {
			t.Fatalf("%q finds a task where there is none", text)
		}
	})
}

// A pattern chooses the actions that the plain meaning of '*' says, and no others.
func FuzzActionPattern(f *testing.F) {
	for _, seed := range [][2]string{{"*", ""}, {"*search*", "indices:data/read/search"}, {"indices:*[phase/query]", "indices:data/read/search[phase/query]"},
		{"a*b*c", "abbc"}, {"a*a", "a"}, {"**", "x"}, {"", "x"}, {"-x", "-x"}, {"*é", "caf\xc3\xa9"}, {"a*", "\xff"}, {"*aab", "aaaab"}, {"ab*ab*ab", "abab"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, action string) {
		if len(pattern) > 1000 || len(action) > 1000 {
			t.Skip("longer than the header that it comes in is worth")
		}
		m := tasks.NewManager("n")
		task, err := m.Register(t.Context(), tasks.Spec{Action: action})
		if err != nil {
			t.Fatal(err)
		}
		defer task.End()
		want := plainMatch(pattern, action)
		if got := len(m.List(tasks.Filter{Actions: []string{pattern}})) == 1; got != want {
			t.Fatalf("pattern %q, action %q: chosen %v, want %v", pattern, action, got, want)
		}
	})
}

// plainMatch says byte by byte which beginnings of the pattern describe which beginnings of s.
func plainMatch(pattern, s string) bool {
	ends := make([]bool, len(s)+1) // of the pattern so far: whether it describes s[:i]
	ends[0] = true
	for _, c := range []byte(pattern) {
		next := make([]bool, len(s)+1)
		for i := range next {
			if c == '*' {
				next[i] = ends[i] || i > 0 && next[i-1]
			} else {
				next[i] = i > 0 && ends[i-1] && s[i-1] == c
			}
		}
		ends = next
	}
	return ends[len(s)]
}
