//go:build !race

// The race detector makes pools forget.

package rules_test

import (
	"testing"

	"github.com/wlmserver/wlmserver/rules"
)

func TestMatchAllocatesNothing(t *testing.T) {
	full, q := many()
	if group, ok := full.Match(q); !ok || group != "A" {
		t.Fatalf("group %q, %t", group, ok)
	}
	for name, s := range map[string]*rules.Snapshot{"none": rules.NewSnapshot(1), "zero": {}, "500": full} {
		if n := testing.AllocsPerRun(1000, func() { s.Match(q) }); n != 0 {
			t.Errorf("%s rules: %v allocations", name, n)
		}
	}
}
