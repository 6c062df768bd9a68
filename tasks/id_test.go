package tasks_test

import (
	"errors"
	"testing"

	"github.com/wlmserver/wlmserver/tasks"
)

func TestParseID(t *testing.T) {
	for _, c := range []struct {
		in      string
		want    tasks.ID
		set     bool
		printed string
	}{
		{"n:5", tasks.ID{Node: "n", Number: 5}, true, "n:5"},
		{"n:0", tasks.ID{Node: "n"}, true, "n:0"},
		{":5", tasks.ID{Number: 5}, true, ":5"},
		{"n:-1", tasks.ID{Node: "n", Number: -1}, false, "n:-1"},
		{"n:9223372036854775807", tasks.ID{Node: "n", Number: 1<<63 - 1}, true, "n:9223372036854775807"},
		{"", tasks.ID{}, false, "unset"},
		{"unset", tasks.ID{}, false, "unset"},
	} {
		id, err := tasks.ParseID(c.in)
		if err != nil || id != c.want || id.IsSet() != c.set || id.String() != c.printed {
			t.Errorf("ParseID(%q) = %+v (set %v, printed %q), %v; want %+v (set %v, printed %q)",
				c.in, id, id.IsSet(), id, err, c.want, c.set, c.printed)
		}
	}
}

func TestMalformedID(t *testing.T) {
	for in, notANumber := range map[string]bool{
		"garbage": false, "5": false, "n:abc": true, "n:": true, "a:b:1": true, "n: 5": true, "n:9223372036854775808": true,
	} {
		_, err := tasks.ParseID(in)
		var malformed *tasks.MalformedIDError
		if !errors.As(err, &malformed) || malformed.Value != in || malformed.NotANumber != notANumber {
			t.Errorf("ParseID(%q): %#v, want a MalformedIDError with NotANumber %v", in, err, notANumber)
		}
	}
}
