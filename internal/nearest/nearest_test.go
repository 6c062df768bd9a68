package nearest_test

import (
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/internal/nearest"
)

func TestName(t *testing.T) {
	known := []string{"level", "timeout", "wait_for_status", "pretty"}
	for _, c := range []struct{ name, want string }{
		{"levle", "level"},
		{"level", "level"},
		{"timout", "timeout"},
		{"wait_for_satus", "wait_for_status"},
		{"x", ""},
		{"", ""},
		{"nosuch", ""},
		{strings.Repeat("level", 1_000_000), ""},
	} {
		if got := nearest.Name(c.name, known...); got != c.want {
			t.Errorf("%.20q: got %q, want %q", c.name, got, c.want)
		}
	}
	if got := nearest.Name("ab", "ac", "ad"); got != "ac" {
		t.Errorf("of equals the first: got %q", got)
	}
}
