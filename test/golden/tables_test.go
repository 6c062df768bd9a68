package golden_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// compareTable lists in what a table in text differs: its lines, their words, and in those the values that are fixed. Of columns
// that are listed with their aliases, each of ours must be among the recorded ones, in their order.
func (r *replay) compareTable(c *recorded, a answer) (all []string) {
	have, ended := strings.CutSuffix(a.body, "\n")
	if !ended {
		all = append(all, fmt.Sprintf("the last line has no end: %q", have))
	}
	ours, theirs := strings.Split(have, "\n"), strings.Split(strings.TrimSuffix(c.text(), "\n"), "\n")
	if r.script.folded {
		theirs = foldLines(theirs)
	}
	if strings.Contains(c.Path, "help") {
		return append(all, subsequence(cells(ours), cells(theirs))...)
	}
	if strings.HasPrefix(c.Path, "/_cat/tasks") { // which have no order
		r.orderRows(ours)
		r.orderRows(theirs)
	}
	if len(ours) != len(theirs) {
		return append(all, fmt.Sprintf("%d lines, recorded %d", len(ours), len(theirs)))
	}
	for i := range ours {
		all = append(all, r.compareLine(strings.Fields(ours[i]), strings.Fields(theirs[i]))...)
	}
	return all
}

// orderRows sorts rows of tasks, below the headings, by what they do and by their ids.
func (r *replay) orderRows(rows []string) {
	first := 0
	if strings.HasPrefix(rows[0], "action ") {
		first = 1
	}
	key := func(row string) string {
		words := strings.Fields(r.ids.Replace(row))
		return strings.Join(words[:min(2, len(words))], " ")
	}
	slices.SortStableFunc(rows[first:], func(a, b string) int { return strings.Compare(key(a), key(b)) })
}

func (r *replay) compareLine(ours, theirs []string) (all []string) {
	if len(theirs) == 2 && theirs[0] == "next_token" && len(ours) == 2 { // later cases ask for that page
		r.learn(theirs[1], ours[1])
	}
	if i := slices.IndexFunc(theirs, func(s string) bool { return strings.HasPrefix(s, "source[") }); i >= 0 && i < len(ours) {
		ours, theirs = ours[:i], theirs[:i] // the body of a search
	}
	if len(ours) != len(theirs) {
		return []string{fmt.Sprintf("%d words, recorded %d: %q", len(ours), len(theirs), ours)}
	}
	for i := range ours {
		if t, o := taskID.FindStringSubmatch(theirs[i]), taskID.FindStringSubmatch(ours[i]); t != nil && o != nil && r.tasked[t[1]] == "" {
			r.learnTask(t[1], o[1])
		}
		if id.MatchString(theirs[i]) && id.MatchString(ours[i]) && r.known[theirs[i]] == "" && theirs[i] != defaultGroup {
			r.learn(theirs[i], ours[i])
		}
		if want := r.ids.Replace(theirs[i]); want != ours[i] && shape(want) != shape(ours[i]) {
			all = append(all, fmt.Sprintf("the word %q, recorded %q", ours[i], want))
		}
	}
	return all
}

var (
	taskID = regexp.MustCompile(`^[A-Za-z0-9_-]{22}:([0-9]+)$`)
	id     = regexp.MustCompile(`^[A-Za-z0-9_-]{22}$`)
	figure = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?(b|kb|mb|gb|nanos|micros|ms|s|m|h|d|%)?$`)
	clock  = regexp.MustCompile(`^[0-9]{2}:[0-9]{2}:[0-9]{2}$`)
)

// shape is a cell, or what kind of figure it is: figures are the machine's.
func shape(word string) string {
	switch m := figure.FindStringSubmatch(word); {
	case m != nil && m[2] != "":
		return "a figure with its unit"
	case m != nil:
		return "a figure"
	case clock.MatchString(word):
		return "a time of day"
	}
	return word
}

// subsequence lists the lines of ours that are not among theirs, in their order. The first two cells are compared.
func subsequence(ours, theirs [][]string) (all []string) {
	for _, line := range ours {
		i := slices.IndexFunc(theirs, func(r []string) bool { return len(r) > 1 && len(line) > 1 && slices.Equal(r[:2], line[:2]) })
		if i < 0 {
			all = append(all, fmt.Sprintf("the column %q was not recorded there", line))
			continue
		}
		theirs = theirs[i+1:]
	}
	return all
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
