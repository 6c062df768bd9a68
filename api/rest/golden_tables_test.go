package rest_test

import (
	"slices"
	"strings"
	"testing"
)

// compareTables compares tables in text: their headings, and how many rows they have. Of columns that are listed with their
// aliases, each of ours must be among the recorded ones, in their order.
func (r *replay) compareTables(t *testing.T, c goldenCase, body string) {
	t.Helper()
	have, ended := strings.CutSuffix(body, "\n")
	if !ended {
		t.Errorf("the last line has no end: %q", body)
	}
	ours, theirs := strings.Split(have, "\n"), strings.Split(c.Text, "\n")
	if strings.Contains(c.Path, "help") {
		recorded := cells(theirs)
		for _, line := range cells(ours) {
			i := slices.IndexFunc(recorded, func(r []string) bool { return slices.Equal(r[:2], line[:2]) })
			if i < 0 {
				t.Errorf("column %q was not recorded there", line)
				continue
			}
			recorded = recorded[i+1:]
		}
		return
	}
	if len(ours) != len(theirs) {
		t.Errorf("%d lines, recorded %d", len(ours), len(theirs))
	}
	if strings.Contains(c.Path, "?v") {
		if got, want := strings.Fields(ours[0]), strings.Fields(theirs[0]); !slices.Equal(got, want) {
			t.Errorf("headings %q, recorded %q", got, want)
		}
	}
	last, recorded := strings.Fields(ours[len(ours)-1]), strings.Fields(theirs[len(theirs)-1])
	if len(last) != len(recorded) {
		t.Fatalf("%d words in the last line, recorded %d: %q", len(last), len(recorded), last)
	}
	if recorded[0] == "next_token" { // later cases ask for that page
		r.learn(recorded[1], last[1])
	}
}

// cells cuts lines at | and strips the cells.
func cells(lines []string) [][]string {
	all := make([][]string, len(lines))
	for i, line := range lines {
		for cell := range strings.SplitSeq(line, "|") {
			all[i] = append(all[i], strings.TrimSpace(cell))
		}
	}
	return all
}
