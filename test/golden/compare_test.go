package golden_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
)

// compare lists in what an answer differs from the recorded one.
func (r *replay) compare(c *recorded, a answer) []string {
	if a.err != nil {
		return []string{"no answer: " + a.err.Error()}
	}
	if a.status != c.Status {
		return []string{fmt.Sprintf("status %d, recorded %d", a.status, c.Status)}
	}
	all := r.compareHeaders(c, a)
	mediaType := c.Answer["content-type"]
	switch {
	case c.Text == "[binary body]": // it was compressed, and nobody looked into it
		if !strings.HasPrefix(a.body, "{") {
			all = append(all, fmt.Sprintf("compressed, the answer is %q", a.body))
		}
	case mediaType == "application/yaml":
		all = append(all, r.compareYAML(c, a)...)
	case c.isCut():
		all = append(all, r.compareCut(c.text(), a.body)...)
	case c.hasJSON():
		want, err := jsondoc.Parse(c.document())
		if err != nil {
			return append(all, "recorded: "+err.Error())
		}
		have, err := jsondoc.Parse([]byte(onceEach(a.body)))
		if err != nil {
			return append(all, err.Error())
		}
		if r.script.folded {
			fold(want)
		}
		all = append(all, r.diff("", want, have)...)
		if pretty := strings.HasPrefix(c.Text, "{\n"); pretty && !strings.HasPrefix(a.body, "{\n  ") {
			all = append(all, "it is not laid out for people")
		}
	case c.Text != "":
		all = append(all, r.compareTable(c, a)...)
	case a.body != "":
		all = append(all, "a body where none was recorded")
	}
	return all
}

// separators stand between the columns of a table that is JSON, each under the same key.
var separators = regexp.MustCompile(`("\|":"\|",)((?:"[^|"]+":"[^"]*",)+)"\|":"\|",`)

// onceEach is a table in JSON as the recorder's reader understood it: a repeated key counts once.
func onceEach(body string) string {
	for {
		less := separators.ReplaceAllString(body, "$1$2")
		if less == body {
			return body
		}
		body = less
	}
}

func (r *replay) compareHeaders(c *recorded, a answer) (all []string) {
	for name, want := range c.Answer {
		have := a.header.Get(name)
		switch name {
		case "allow":
			have, want = sortedList(have), sortedList(want)
		case "x-opaque-id": // the recorder read bytes as Latin-1
			have = strings.ReplaceAll(have, "\xe9", "é")
		}
		if have != want {
			all = append(all, fmt.Sprintf("header %s: %q, recorded %q", name, have, want))
		}
	}
	return all
}

func sortedList(s string) string {
	l := strings.Split(s, ",")
	slices.Sort(l)
	return strings.Join(l, ",")
}

// freeText are members whose wording is each server's own.
var freeText = []string{"reason", "details", "stack_trace", "tagline", "build_hash", "build_date", "error", "explanation"}

// volatile are members whose values depend on the machine, the clock, or what the node had done before: only their kind is compared.
var volatile = []string{
	"took", "updated_at", "created", "creation_date", "timestamp", "uuid", "index_uuid", "cluster_uuid", "version", "number", "lucene_version", "build_type",
	"transport_address", "publish_address", "bound_address",
	"current_usage", "query", "fetch", "_seq_no",
	"start_time", "start_time_in_millis", "running_time", "running_time_in_nanos", "cancellation_time_millis", "cpu_time_in_nanos", "memory_in_bytes",
	"total_wait_time_in_nanos", "completed", "largest", "bytes_wanted",
}

// volatileCells are the same in rows of tables that are JSON.
var volatileCells = []string{".epoch", ".heap.percent", ".ram.percent", ".cpu", ".load_1m", ".load_5m", ".load_15m", ".task_id",
	".parent_task_id", ".start_time", ".running_time", ".CPU_USAGE", ".MEMORY_USAGE", ".TOTAL_COMPLETIONS"}

// ours are members that the recorded server did not have.
var ours = []string{"total_throttled", "total_would_throttle", "total_queued", "total_queue_rejections", "queued_current", "queue_peak",
	"queue_wait_count", "total_queue_wait_millis", "max_queue_wait_millis"}

// configured are members that tell how the node was set up.
var configured = []string{"roles", "attributes"}

// unordered are members whose own members, or items, have no order that means anything.
var unordered = []string{"persistent", "transient", "defaults", "index", "properties", "workload_groups", "resource_tracker_stats", "tasks", "children"}

// diff lists where two values differ.
func (r *replay) diff(path string, want, have *jsondoc.Value) []string {
	name := path[strings.LastIndexByte(path, '.')+1:]
	inSettings := strings.HasPrefix(path, ".persistent") || strings.HasPrefix(path, ".transient")
	if want.Kind == have.Kind && (inSettings || slices.Contains(unordered, name)) {
		r.order(name, want, have)
	}
	switch {
	case want.Kind != have.Kind:
	case have.Kind == jsondoc.String && (want.Text == "<text>" || slices.Contains(freeText, name)):
		if have.Text == "" && name != "reason" { // which may be empty where the search failed between its phases
			return []string{path + " is empty"}
		}
		return nil
	case slices.Contains(configured, name):
		return nil
	}
	if want.Kind != have.Kind {
		return []string{fmt.Sprintf("%s is %s, recorded %s", path, have.Kind, want.Kind)}
	}
	switch want.Kind {
	case jsondoc.Object:
		return r.diffObjects(path, want, have)
	case jsondoc.Array:
		if len(want.Items) != len(have.Items) {
			return []string{fmt.Sprintf("%s has %d items, recorded %d", path, len(have.Items), len(want.Items))}
		}
		var all []string
		for i := range want.Items {
			all = append(all, r.diff(path, want.Items[i], have.Items[i])...)
		}
		return all
	}
	if r.same(path, name, want, have) {
		return nil
	}
	return []string{fmt.Sprintf("%s is %s, recorded %s", path, have.Text, want.Text)}
}

func (r *replay) diffObjects(path string, want, have *jsondoc.Value) []string {
	have.Members = slices.DeleteFunc(have.Members, func(m jsondoc.Member) bool { return slices.Contains(ours, m.Name) })
	if have, want := keys(have), r.ids.Replace(keys(want)); have != want {
		return []string{fmt.Sprintf("%s has the keys [%s], recorded [%s]", path, have, want)}
	}
	var all []string
	for i, m := range want.Members {
		all = append(all, r.diff(path+"."+m.Name, m.Value, have.Members[i].Value)...)
	}
	return all
}

// same says whether two scalars of one kind are the same, as far as they have to be.
func (r *replay) same(path, name string, want, have *jsondoc.Value) bool {
	switch {
	case name == "_id" || name == "_scroll_id" || name == "pit_id":
		if r.known[want.Text] == "" && len(want.Text) > 5 {
			r.learn(want.Text, have.Text)
		}
	case name == "id" && r.tasked[want.Text] != "":
		return r.tasked[want.Text] == have.Text
	case r.lucky && slices.Contains(chancy, name):
		return true
	case name == "total_completions":
		return r.sameCounter(path, want, have)
	case name == "description":
		return untilSource(want.Text) == untilSource(have.Text)
	case slices.Contains(volatile, name), slices.Contains(volatileCells, path):
		return want.Kind != jsondoc.Number || isWhole(want.Text) == isWhole(have.Text)
	case want.Kind == jsondoc.Number: // the recorder has its own way to write small ones
		w, err := strconv.ParseFloat(want.Text, 64)
		h, err2 := strconv.ParseFloat(have.Text, 64)
		return err == nil && err2 == nil && w == h && isWhole(want.Text) == isWhole(have.Text)
	}
	return r.ids.Replace(want.Text) == have.Text
}

func isWhole(number string) bool { return !strings.ContainsAny(number, ".eE") }

// untilSource is the description of a task without the body of its search, which is not the recorded one.
func untilSource(description string) string {
	known, _, _ := strings.Cut(description, "source[")
	return known
}

// chancy are members that depend on chance where the answer does.
var chancy = []string{"shard", "rejected", "total_completions", "active_threads"}

// carried are the groups that searches had run in before the recordings began.
var carried = []string{defaultGroup, "ndvMcmZ9Qjm9MrEe1aydrQ", "okZdiRllQzi36CbaDqKtew", "RfLiBRjkTAaKyffpO6QR4w"}

// sameCounter compares what has been counted since the recording began.
func (r *replay) sameCounter(path string, want, have *jsondoc.Value) bool {
	var w, h int64
	if _, err := fmt.Sscan(want.Text+" "+have.Text, &w, &h); err != nil {
		return false
	}
	switch {
	case strings.Contains(path, recordedNodes[2]): // the other node's share
		return true
	case !slices.ContainsFunc(carried, func(id string) bool { return strings.Contains(path, "."+id+".") }):
		return w == h
	}
	if _, seen := r.base[path]; !seen {
		r.base[path] = w - h
	}
	return w == h+r.base[path]
}

// order puts what has no order into the same one on both sides.
func (r *replay) order(name string, want, have *jsondoc.Value) {
	if name == "tasks" || name == "children" {
		r.orderTasks(want, have)
		return
	}
	for _, v := range []*jsondoc.Value{want, have} {
		slices.SortFunc(v.Members, func(a, b jsondoc.Member) int {
			return strings.Compare(r.ids.Replace(a.Name), r.ids.Replace(b.Name))
		})
		slices.SortFunc(v.Items, func(a, b *jsondoc.Value) int { return strings.Compare(textOf(a, "name"), textOf(b, "name")) })
	}
}

func textOf(v *jsondoc.Value, member string) string {
	if m := v.Member(member); m != nil {
		return m.Text
	}
	return ""
}

func keys(v *jsondoc.Value) string {
	var names []string
	for _, m := range v.Members {
		names = append(names, m.Name)
	}
	return strings.Join(names, " ")
}
