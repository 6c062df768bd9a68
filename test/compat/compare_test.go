package compat_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// difference is one thing that the two answers do not share.
type difference struct{ where, here, there string }

func (d difference) String() string {
	return fmt.Sprintf("%s: %s here, %s there", d.where, shorten(d.here, 200), shorten(d.there, 200))
}

const (
	nothing   = "nothing"
	something = "something"
)

// freeText are members whose wording is each server's own.
var freeText = []string{"reason", "details", "tagline", "stack_trace", "cause", "explanation"}

// volatile are members whose values no two servers share: times, sizes, versions and ids that nobody names.
var volatile = []string{"took", "updated_at", "cluster_uuid", "number", "build_type", "build_hash", "build_date", "build_snapshot", "lucene_version",
	"minimum_wire_compatibility_version", "minimum_index_compatibility_version", "creation_date", "creation_date_string", "uuid", "index_uuid", "created",
	"transport_address", "publish_address", "bound_address", "host", "ip", "timestamp", "current_usage", "start_time_in_millis", "running_time_in_nanos",
	"start_time", "running_time", "bytes_wanted", "bytes_limit", "task_max_waiting_in_queue_millis", "task_max_waiting_in_queue", "query", "fetch", "total",
	"byte_offset", "col", "line", "updated_at_string", "created_string", "memory_in_bytes", "cpu_time_in_nanos", "number_of_pending_tasks", "version", "completed", "largest", "total_wait_time_in_nanos", "next_token", "CPU_USAGE", "MEMORY_USAGE", "active",
	"cpu", "heap.percent", "ram.percent", "load_1m", "load_5m", "load_15m", "store.size", "pri.store.size", "creation.date", "creation.date.string", "phase_took.dfs_pre_query", "phase_took.dfs_query", "docs.deleted", "store", "workload_groups._id"}

// numbers are where numbers stand that each server gives out as it likes: of tasks.
var numbers = regexp.MustCompile(`\.(tasks|children)(\..*)?\.id$`)

// isVolatile says whether the member at the end of a path is volatile. Some have dots in their names.
func isVolatile(path string) bool {
	return slices.ContainsFunc(volatile, func(name string) bool { return strings.HasSuffix(path, "."+name) })
}

// counted are members named like volatile ones whose values do count where they stand.
var counted = regexp.MustCompile(`_shards\.total|_nodes\.total|hits\.total`)

// compare lists how two answers to a request differ.
func compare(r *request, here, there answer, ours, theirs ids) []difference {
	switch {
	case here.problem != nil || there.problem != nil:
		return []difference{{"answer", fmt.Sprint(here.problem), fmt.Sprint(there.problem)}}
	case here.status != there.status:
		return []difference{{"status", kindOf(here), kindOf(there)}}
	}
	var all []difference
	for _, name := range []string{"Content-Type", "Content-Encoding", "Allow", "Location", "X-Opaque-Id", "X-Request-Id", "Www-Authenticate", "Warning"} {
		h, t := ours.names().Replace(here.header.Get(name)), theirs.names().Replace(there.header.Get(name))
		switch name {
		case "Allow":
			h, t = sortedList(h), sortedList(t)
		case "Warning": // the text in it is free
			h, t = presence(h), presence(t)
		}
		if h != t && (name != "Location" || !bothMadeUp(h, t)) {
			all = append(all, difference{name, cmp.Or(h, nothing), cmp.Or(t, nothing)})
		}
	}
	h, t := ours.names().Replace(here.body), theirs.names().Replace(there.body)
	return append(all, compareBodies(here.header.Get(contentType), h, t, !r.inOrder())...)
}

// unordered are tables whose rows each server lists as it likes, unless it is asked to sort them.
var unordered = regexp.MustCompile(`^/_cat/indices\b`)

// inOrder says whether the rows of the answer, if it is a table, come in an order that means something.
func (r *request) inOrder() bool {
	return !unordered.MatchString(r.path) || slices.ContainsFunc(r.query, func(p string) bool { return strings.HasPrefix(p, "s=") })
}

// madeUp is the id of a document that a server made up. Most are learnt, and have names. That of one that was made by chance, by a
// damaged request, or that was not shown, has none.
var madeUp = regexp.MustCompile(`^[\w-]{20}$`)

func bothMadeUp(here, there string) bool {
	at := func(s string) int { return strings.LastIndexByte(s, '/') + 1 } // of a path, its last part
	h, t := at(here), at(there)
	return here[:h] == there[:t] && madeUp.MatchString(here[h:]) && madeUp.MatchString(there[t:])
}

// kindOf is a status with the type of the error.
func kindOf(a answer) string {
	if a.status == 0 {
		return "no answer"
	}
	t, err := parse(a.body)
	if err != nil {
		if t, err = parseYAML(a.body); err != nil {
			return fmt.Sprint(a.status)
		}
	}
	return strings.TrimSpace(fmt.Sprint(a.status, " ", t.at("error.type")))
}

func presence(s string) string {
	if s == "" {
		return ""
	}
	return something
}

func sortedList(s string) string {
	l := strings.Split(s, ",")
	slices.Sort(l)
	return strings.Join(l, ",")
}

func compareBodies(contentType, here, there string, anyOrder bool) []difference {
	read := parse
	switch {
	case here == there:
		return nil
	case strings.HasPrefix(contentType, "application/yaml"):
		read = parseYAML
	case !strings.HasPrefix(contentType, "application/json"):
		return compareTexts(here, there, anyOrder)
	}
	h, hereErr := read(here)
	t, thereErr := read(there)
	switch {
	case hereErr != nil && thereErr != nil:
		return compareTexts(here, there, anyOrder)
	case hereErr != nil || thereErr != nil:
		return []difference{{"body", here, there}}
	}
	if anyOrder {
		inOrder(h)
		inOrder(t)
	}
	all := compareTrees("", h, t)
	if strings.HasSuffix(here, "\n") != strings.HasSuffix(there, "\n") || strings.Count(here, "\n") > 1 != (strings.Count(there, "\n") > 1) {
		all = append(all, difference{"layout", shorten(here, 40), shorten(there, 40)})
	}
	return all
}

// background is how the actions of tasks begin that OpenSearch starts by itself, and rows of what its cluster manager has yet to do.
var background = regexp.MustCompile(`^(indices:admin/seq_no/|internal:|(\d+ +\d\S* +)?(IMMEDIATE|URGENT|HIGH|NORMAL|LOW|LANGUID) )`)

// withoutBackground takes away the tasks that a server starts by itself.
func withoutBackground(t *tree) {
	isOne := func(v *tree) bool {
		return background.MatchString(v.member("action").String()) || background.MatchString(v.member("priority").String()+" ") && v.member("source") != nil
	}
	t.members = slices.DeleteFunc(t.members, func(m member) bool { return isOne(m.value) })
	t.items = slices.DeleteFunc(t.items, isOne)
}

// compareTrees lists how two values differ. The names of members on the way are its path.
func compareTrees(path string, here, there *tree) []difference {
	name := path[strings.LastIndexByte(path, '.')+1:]
	if name == "tasks" || path == "" {
		withoutBackground(here)
		withoutBackground(there)
	}
	free := slices.Contains(freeText, name) && !strings.Contains(path, "_source") || path == ".error" || path == ".explanations.error"
	switch {
	case here.kind != there.kind:
		return []difference{{cmp.Or(path, "body"), here.kind, there.kind}}
	case here.kind == "object" && name == "workload_groups": // one whose id was not shown has none that both sides know
		for _, t := range []*tree{here, there} {
			for i, m := range t.members {
				if uuid.MatchString(m.name) && m.name != "DEFAULT_WORKLOAD_GROUP" {
					t.members[i].name = "«not learnt»"
				}
			}
		}
		return compareMembers(path, here.sorted(), there.sorted())
	case here.kind == "object":
		return compareMembers(path, here.sorted(), there.sorted())
	case here.kind == "array":
		if name == "workload_groups" || name == "tasks" || name == "explanations" || len(here.items) > 0 && (here.items[0].member("WORKLOAD_GROUP_ID") != nil || here.items[0].member("prirep") != nil) {
			inOrder(here)
			inOrder(there)
		}
		if len(here.items) != len(there.items) {
			return []difference{{path, fmt.Sprintf("%d items", len(here.items)), fmt.Sprintf("%d items", len(there.items))}}
		}
		var all []difference
		for i := range here.items {
			all = append(all, compareTrees(path, here.items[i], there.items[i])...)
		}
		return all
	case name == "_id" && bothMadeUp(here.text, there.text):
		return nil
	case free, isVolatile(path) && !counted.MatchString(path), numbers.MatchString(path):
		return nil
	case withoutTaskNumbers(here.text) != withoutTaskNumbers(there.text):
		return []difference{{path, quote(here.text), quote(there.text)}}
	}
	return nil
}

func compareMembers(path string, here, there *tree) []difference {
	var all []difference
	h, t := here.members, there.members
	for len(h) > 0 || len(t) > 0 {
		switch {
		case len(t) == 0 || len(h) > 0 && memberName(h[0]) < memberName(t[0]):
			all = append(all, difference{path + "." + memberName(h[0]), something, nothing})
			h = h[1:]
		case len(h) == 0 || memberName(h[0]) > memberName(t[0]):
			all = append(all, difference{path + "." + memberName(t[0]), nothing, something})
			t = t[1:]
		default:
			all = append(all, compareTrees(path+"."+memberName(h[0]), h[0].value, t[0].value)...)
			h, t = h[1:], t[1:]
		}
	}
	return all
}

func memberName(m member) string { return withoutTaskNumbers(m.name) }

var taskNumber = regexp.MustCompile(`(«node»:)\d+`)

// withoutTaskNumbers takes the numbers of tasks away, which each server gives out as it likes.
func withoutTaskNumbers(s string) string {
	if !strings.Contains(s, "«node»:") {
		return s
	}
	return taskNumber.ReplaceAllString(s, "${1}0")
}

// inOrder sorts the items of a list that has no order.
func inOrder(t *tree) {
	key := func(v *tree) string {
		return v.member("name").String() + v.member("action").String() + v.member("WORKLOAD_GROUP_ID").String() +
			v.member("index").String() + v.member("shard").String() + v.member("prirep").String()
	}
	slices.SortStableFunc(t.items, func(a, b *tree) int { return strings.Compare(key(a), key(b)) })
}

// uuid is an id that a server made up, in a column.
var uuid = regexp.MustCompile(`(^|\s)[\w-]{22}(\s|$)`)

var digits = regexp.MustCompile(`\d+(\.\d+)?(E-?\d+|([kmg]?b|nanos|micros|ms|s|m)\b)?`)

// compareTexts compares tables: the number of rows and of columns, and what is neither a number nor a size.
func compareTexts(here, there string, anyOrder bool) []difference {
	plain := func(s string) []string {
		var lines []string
		for line := range strings.Lines(digits.ReplaceAllString(uuid.ReplaceAllString(withoutTaskNumbers(s), "${1}uuid$2"), "0")) {
			if !background.MatchString(line) {
				lines = append(lines, strings.Join(strings.Fields(line), " "))
			}
		}
		return lines
	}
	h, t := plain(here), plain(there)
	if anyOrder || strings.Contains(here, "WORKLOAD_GROUP") || strings.Contains(here, " STARTED") { // in the order of ids, or in none
		slices.Sort(h)
		slices.Sort(t)
	}
	if len(h) != len(t) {
		return []difference{{"rows", fmt.Sprintf("%d: %s", len(h), shorten(here, 100)), fmt.Sprintf("%d: %s", len(t), shorten(there, 100))}}
	}
	for i := range h {
		if h[i] != t[i] {
			return []difference{{"row", h[i], t[i]}}
		}
	}
	return nil
}
