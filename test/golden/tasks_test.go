package golden_test

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
)

// leaked begins the actions of tasks that the recorded server had left behind and listed ever after: of requests for groups
// whose names were too long. There is no such leak here.
const leaked = "cluster:admin/opensearch/wlm/workload_group/"

// orderTasks puts two listings of tasks into the same order, and maps those that are not known yet to one another: by what they
// do, and which began first.
func (r *replay) orderTasks(want, have *jsondoc.Value) {
	isLeaked := func(v *jsondoc.Value) bool { return strings.HasPrefix(textOf(v, "action"), leaked) }
	want.Members = slices.DeleteFunc(want.Members, func(m jsondoc.Member) bool { return isLeaked(m.Value) })
	want.Items = slices.DeleteFunc(want.Items, isLeaked)
	if r.lucky { // some may have ended
		want.Items = slices.DeleteFunc(want.Items, func(v *jsondoc.Value) bool {
			return !slices.ContainsFunc(have.Items, func(h *jsondoc.Value) bool { return textOf(h, "id") == r.tasked[textOf(v, "id")] })
		})
	}
	for _, v := range []*jsondoc.Value{want, have} {
		slices.SortFunc(v.Members, func(a, b jsondoc.Member) int { return compareTasks(a.Value, b.Value) })
		slices.SortFunc(v.Items, compareTasks)
		for _, m := range v.Members {
			dropStatus(m.Value)
		}
		for _, x := range v.Items {
			dropStatus(x)
		}
	}
	for i := range min(len(want.Members), len(have.Members)) {
		r.pair(want.Members[i].Value, have.Members[i].Value)
	}
	for i := range min(len(want.Items), len(have.Items)) {
		r.pair(want.Items[i], have.Items[i])
	}
}

func compareTasks(a, b *jsondoc.Value) int {
	number := func(v *jsondoc.Value) int {
		n, _ := strconv.Atoi(textOf(v, "id")) // a task has one
		return n
	}
	return cmp.Or(strings.Compare(textOf(a, "action"), textOf(b, "action")), number(a)-number(b))
}

func (r *replay) pair(want, have *jsondoc.Value) {
	if theirs := textOf(want, "id"); r.tasked[theirs] == "" && textOf(want, "action") == textOf(have, "action") {
		r.learnTask(theirs, textOf(have, "id"))
	}
}

// dropStatus takes away what the recorded server did not tell of a task: where a search stands.
func dropStatus(v *jsondoc.Value) {
	v.Members = slices.DeleteFunc(v.Members, func(m jsondoc.Member) bool { return m.Name == "status" })
}
