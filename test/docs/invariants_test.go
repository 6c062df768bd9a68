package docs_test

import (
	"regexp"
	"strings"
	"testing"
)

// TestInvariants holds docs/invariants.md to the code: each invariant of wlm/doc.go has its row, each name is declared in the file
// that is named after it, and what is said to have mutants has some.
func TestInvariants(t *testing.T) {
	const page = "docs/invariants.md"
	table := rows(t, page)
	promised := regexp.MustCompile(`(?m)^//   - (I\d+) `).FindAllStringSubmatch(read(t, "wlm/doc.go"), -1)
	if len(promised) == 0 {
		t.Fatal("wlm/doc.go states no invariant")
	}
	mutants := read(t, "tools/mutants/list.go")
	for _, m := range promised {
		row, ok := table[m[1]]
		if !ok {
			t.Errorf("%s has no row for %s", page, m[1])
			continue
		}
		says := strings.HasSuffix(row[len(row)-1], "mutants")
		if has := strings.Contains(mutants, `"`+m[1]+`: `); says != has {
			t.Errorf("%s: that %s has mutants: said %v, true %v", page, m[1], says, has)
		}
	}

	// `a`, `b` in `file`
	list := regexp.MustCompile("((?:`[^`]+`(?:, | and )?)+) in `([^`]+\\.go)`")
	quoted := regexp.MustCompile("`([^`]+)`")
	found := 0
	for line := range strings.Lines(read(t, page)) {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		for _, m := range list.FindAllStringSubmatch(line, -1) {
			code := read(t, m[2])
			for _, name := range quoted.FindAllStringSubmatch(m[1], -1) {
				found++
				if !regexp.MustCompile(`(?m)^(func (\([^)]*\) )?|var )` + regexp.QuoteMeta(name[1]) + `\b`).MatchString(code) {
					t.Errorf("%s: %s is not declared in %s", page, name[1], m[2])
				}
			}
		}
	}
	if found < len(promised) {
		t.Errorf("only %d names were found in %s", found, page)
	}
}
