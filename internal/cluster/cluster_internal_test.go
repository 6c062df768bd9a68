package cluster

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/wlmserver/wlmserver/internal/cluster/ring"
)

// What the log says of a ring: all members, and since the one before who has come and who has gone.
func TestTell(t *testing.T) {
	member := func(name, incarnation string) ring.Member {
		return ring.Member{ID: name, Incarnation: incarnation, Name: name, Version: "3.7.0"}
	}
	a, b, b2, c := member("a", "1"), member("b", "1"), member("b", "2"), member("c", "1")
	for name, test := range map[string]struct {
		before, now []ring.Member
		want        []string
	}{
		"the first":    {nil, []ring.Member{a, b}, []string{`"members":["a","b"]`, "are known\""}},
		"not yet":      {nil, []ring.Member{b}, []string{`"members":["b"]`, "none of them"}},
		"one comes":    {[]ring.Member{a}, []ring.Member{a, c}, []string{`"joined":["c"]`, "have changed\""}},
		"one goes":     {[]ring.Member{a, b}, []ring.Member{a}, []string{`"members":["a"]`, `"left":["b"]`}},
		"starts anew":  {[]ring.Member{a, b}, []ring.Member{a, b2}, []string{`"joined":["b"]`, `"left":["b"]`}},
		"this one too": {[]ring.Member{a, b}, []ring.Member{b}, []string{`"left":["a"]`, "none of them"}},
	} {
		var log bytes.Buffer
		k := &Cluster{config: Config{Self: a, Log: zerolog.New(&log)}}
		var before *ring.Ring
		if test.before != nil {
			before = ring.New(1, test.before)
		}
		k.tell(before, ring.New(2, test.now))
		for _, want := range append(test.want, `"epoch":2`) {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%s: nothing of %s in %s", name, want, log.String())
			}
		}
		if strings.Contains(log.String(), "joined") != strings.Contains(strings.Join(test.want, ""), "joined") {
			t.Errorf("%s: %s", name, log.String())
		}
	}
}
