package golden_test

import (
	"slices"
	"strconv"
	"strings"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
)

// fold turns what two nodes answered into what one node has to answer that does the work of both: what each told of itself is
// put together, counters are added up, and where nodes are counted there is one.
func fold(v *jsondoc.Value) {
	for _, m := range v.Members {
		fold(m.Value)
	}
	for _, x := range v.Items {
		fold(x)
	}
	first, second := recordedNodes[1], recordedNodes[2]
	if a, b := v.Member(first), v.Member(second); a != nil && b != nil {
		merge(a, b)
		v.Members = slices.DeleteFunc(v.Members, func(m jsondoc.Member) bool { return m.Name == second })
	}
	if textOf(v, "number_of_nodes") == "2" {
		halve(v.Member("number_of_nodes"), v.Member("number_of_data_nodes"))
	}
	if nodes := v.Member("_nodes"); nodes != nil && textOf(nodes, "total") == "2" {
		halve(nodes.Member("total"), nodes.Member("successful"), nodes.Member("failed"))
		if failures := nodes.Member("failures"); failures != nil {
			failures.Items = failures.Items[:1]
		}
	}
	if textOf(v, "node") == second && textOf(v, "type") == "transport" { // asked over the network
		v.Member("type").Text = "direct"
	}
}

func halve(numbers ...*jsondoc.Value) {
	for _, v := range numbers {
		if v.Text == "2" {
			v.Text = "1"
		}
	}
}

// merge adds what b tells to a.
func merge(a, b *jsondoc.Value) {
	x, err := strconv.Atoi(a.Text)
	y, err2 := strconv.Atoi(b.Text)
	if a.Kind == jsondoc.Number && err == nil && err2 == nil {
		a.Text = strconv.Itoa(x + y)
	}
	for _, m := range b.Members {
		if own := a.Member(m.Name); own != nil {
			merge(own, m.Value)
		} else {
			a.Members = append(a.Members, m)
		}
	}
}

// foldLines does the same to the rows of a table: those of the second node go, but for shards, which are all on the one node.
func foldLines(lines []string) []string {
	return slices.DeleteFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, recordedNodes[2]) || strings.Contains(line, "golden-2") && !strings.Contains(line, " STARTED ")
	})
}
