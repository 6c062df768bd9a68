package units_test

import (
	"errors"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/internal/units"
)

var notations = []string{"", "0", "-1", "-0", "1", "5s", "1.5s", "300ms", "10micros", "5nanos", "1d", "1D", " 5s", "5 s", "00005m", "9223372036854775807nanos",
	"9223372036854775808", "106751d", "106752d", "-5s", "+5s", "1e3s", "٣s", "\xff", "64mb", "0b", "1kb", "8191pb", "8192pb", "9007199254740993k", "1.5gb", "b", "s", "ms"}

// A time is refused with the typed error that names what was said, or read as one whose shortest form reads back as the same.
func FuzzTime(f *testing.F) {
	for _, n := range notations {
		f.Add(n)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := units.ParseTime("key", text)
		if refused(t, text, err) {
			return
		}
		if d < 0 && d != units.None {
			t.Fatalf("%q is read as %v", text, d)
		}
		form := units.FormatTime(d)
		if again, err := units.ParseTime("key", form); err != nil || again != d {
			t.Fatalf("%q is read as %v, whose form %q is read as %v, %v", text, d, form, again, err)
		}
		if units.HumanTime(max(d, time.Duration(0))) == "" {
			t.Fatalf("%v has no form for people", d)
		}
	})
}

// The same of sizes.
func FuzzBytes(f *testing.F) {
	for _, n := range notations {
		f.Add(n)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := units.ParseBytes("key", text)
		if refused(t, text, err) {
			return
		}
		if n < -1 {
			t.Fatalf("%q is read as %d", text, n)
		}
		form := units.FormatBytes(n)
		if again, err := units.ParseBytes("key", form); err != nil || again != n {
			t.Fatalf("%q is read as %d, whose form %q is read as %d, %v", text, n, form, again, err)
		}
		if units.HumanBytes(max(n, 0)) == "" {
			t.Fatalf("%d has no form for people", n)
		}
	})
}

func refused(t *testing.T, text string, err error) bool {
	t.Helper()
	if err == nil {
		return false
	}
	var e *units.ParseError
	if !errors.As(err, &e) || e.Key != "key" || e.Value != text || e.Reason == "" {
		t.Fatalf("%q: %#v", text, err)
	}
	return true
}
