package golden_test

import (
	"fmt"
	"slices"
	"strings"
)

// script is what a recording does not tell of itself.
type script struct {
	// during are the cases that the recorder sent before it sent those that stand in front of them.
	during []background
	// before is what the recorder did before a case and did not write down.
	before map[int]func(*replay)
	// either are cases of which chance decides the answer: each may be answered like those that are named by recording and place,
	// and which shard failed, how often something happened, and which tasks have ended already is not compared.
	either map[int][]string
	// lots are cases whose answer holds an id that is drawn by lot: they are asked until it is one that comes where the recorded
	// one came.
	lots map[int]lot
	// folded says that two nodes were recorded, which are one here.
	folded bool
	// threads is the size of the search pool; 0 is the usual one. queue is how many shards may wait for it.
	threads, queue int
	// longest is for how long at most the query phase of a search lasts, in milliseconds; 0 is longest beside all that happens
	// meanwhile.
	longest int
	// groups are those that there were when the recording began, in the order of their ids.
	groups []group
}

// background is a case that runs beside others.
type background struct {
	at    int // the case
	from  int // the case before which it is sent
	until int // the case before which its answer has come; 0: its own place
	tasks int // how many tasks it then has
	first int // the recorded number of the first of them, from which the others follow; 0: not recorded
}

// lot says whether an answer is the one that is wanted, and how to undo what any other has done.
type lot struct {
	wanted func(made map[string]any) bool
	undo   func(made map[string]any) (path string) // to delete
}

// Groups that recordings begin with.
const (
	analytics = `{"name":"analytics","resiliency_mode":"enforced","resource_limits":{"cpu":0.3,"memory":0.3}}`
	batch     = `{"name":"batch","resiliency_mode":"soft","resource_limits":{"memory":0.1}}`
)

// slow is a search of the index golden: itself and its two shards.
func slow(at, from, first int) background {
	return background{at: at, from: from, tasks: 3, first: first}
}

var scripts = map[string]script{
	"05-documents-and-search": {lots: map[int]lot{3: { // the first document of its shard
		wanted: func(made map[string]any) bool { return made["_seq_no"] == 0.0 },
		undo:   func(made map[string]any) string { return fmt.Sprint("/golden/_doc/", made["_id"]) },
	}}},
	"06-tasks": {
		longest: 4000,
		during:  []background{slow(26, 11, 719), {at: 27, from: 26, tasks: 1}},
	},
	"07-tasks-cancel": {
		during: []background{
			slow(12, 10, 774), slow(14, 13, 787), slow(17, 16, 796), {at: 21, from: 19, until: 20, tasks: 3, first: 810},
			slow(23, 22, 821), slow(27, 24, 832), slow(29, 28, 847), slow(31, 30, 858), slow(33, 32, 870),
			{at: 35, from: 34, tasks: 3}, {at: 37, from: 36, tasks: 4, first: 898}, slow(39, 38, 917), {at: 43, from: 40, tasks: 1, first: 926},
		},
		either: map[int][]string{11: nil}, // parts of it may have ended already
	},
	"08-search-limits": {
		either: map[int][]string{18: twoLimits},
	},
	"13-wlm-groups-invalid": {groups: usualGroups},
	"14-wlm-stats":          {groups: usualGroups},
	"15-wlm-requests": {
		groups: usualGroups,
		during: []background{slow(13, 12, 0), slow(14, 14, 0)},
		before: map[int]func(*replay){14: func(r *replay) { r.must("POST", "/_tasks/_cancel?actions=indices:data/read/search", "", nil) }},
	},
	"16-wlm-enforcement": {
		longest: brief,
		groups:  usualGroups,
		during:  []background{slow(13, 1, 0), slow(21, 16, 0), slow(25, 23, 0), slow(29, 27, 0), slow(34, 31, 0), slow(39, 37, 0), slow(42, 41, 0)},
	},
	"17-wlm-settings-effect": {
		// Of the group's two limits one has no effect there.
		either: map[int][]string{4: twoLimits, 7: twoLimits, 8: twoLimits, 9: twoLimits, 14: twoLimits, 18: twoLimits},
	},
	"18-search-backpressure": {longest: brief},
	"19-rejections":          {longest: brief, during: []background{slow(9, 8, 0)}},
	"20-wlm-counting":        {groups: []group{{"RfLiBRjkTAaKyffpO6QR4w", `{"name":"counted","resiliency_mode":"soft","resource_limits":{"cpu":0.1}}`}}},
	"21-wlm-memory-and-duress": {
		longest: brief,
		groups: []group{
			{"AV8OVFWpTJO4HWa7k-15Mw", `{"name":"mem","resiliency_mode":"enforced","resource_limits":{"memory":0.0002}}`},
			{"6HePjkBIRo2GTqBxb8fULA", `{"name":"soft","resiliency_mode":"soft","resource_limits":{"cpu":0.01}}`},
			{"DgMlcXQkQLS8tbe53MdV8A", `{"name":"monitor","resiliency_mode":"monitor","resource_limits":{"cpu":0.01}}`},
			{"vVVjx20LQ62biKF-P6TQQQ", `{"name":"enforced","resiliency_mode":"enforced","resource_limits":{"cpu":0.01}}`},
		},
		during: []background{slow(2, 0, 0), slow(5, 3, 0), slow(8, 7, 0), slow(12, 10, 0), slow(14, 13, 0), slow(18, 17, 0), slow(22, 21, 0)},
		before: map[int]func(*replay){3: func(r *replay) {
			r.must("PUT", "/_wlm/workload_group/mem", `{"resource_limits":{"cpu":0.0001}}`, nil)
		}},
	},
	"22-two-nodes": {
		folded: true, threads: 2, queue: 2,
		lots: map[int]lot{3: {
			wanted: func(made map[string]any) bool { return fmt.Sprint(made["_id"]) > defaultGroup },
			undo:   func(made map[string]any) string { return fmt.Sprint("/_wlm/workload_group/", made["name"]) },
		}},
		during: slices.Concat([]background{slow(14, 11, 0)}, together(15, 17, 22), together(24, 24, 29)),
		either: mostlyRefused(),
	},
	"23-extras": {before: map[int]func(*replay){
		13: func(r *replay) {
			r.must("PUT", "/_wlm/workload_group", `{"name":"third","resiliency_mode":"soft","resource_limits":{"cpu":0.1}}`, nil)
			r.must("PUT", "/_cluster/settings", `{"transient":{"node.workload_group.max_count":3}}`, nil)
		},
		16: func(r *replay) {
			r.must("DELETE", "/_wlm/workload_group/third", "", nil)
			r.must("PUT", "/_cluster/settings", `{"transient":{"node.workload_group.max_count":null}}`, nil)
		},
	}},
}

// twoLimits are the answers to a search of which the timeout and the time after which it is cancelled are over at once.
var twoLimits = []string{"08-search-limits/2", cancelledAnyhow}

// cancelledAnyhow stands for all answers of searches that were cancelled, whatever they had come to.
const cancelledAnyhow = "cancelled"

// brief is for how many milliseconds searches last that are to be cut short by limits which there are not yet.
const brief = 500

// usualGroups are those that most recordings began with.
var usualGroups = []group{{"ndvMcmZ9Qjm9MrEe1aydrQ", analytics}, {"okZdiRllQzi36CbaDqKtew", batch}}

// group is a group that there was, by its recorded id.
type group struct{ id, body string }

// together are searches that were sent at once.
func together(from, first, last int) (all []background) {
	for at := first; at <= last; at++ {
		all = append(all, slow(at, from, 0))
	}
	return all
}

// mostlyRefused are searches of which a few find places and the others do not: which, is chance.
func mostlyRefused() map[int][]string {
	either := map[int][]string{}
	var all []string
	for _, b := range slices.Concat(together(0, 17, 22), together(0, 24, 29)) {
		all = append(all, exceptionKey("22-two-nodes", b.at))
		either[b.at] = nil
	}
	for at := range either {
		either[at] = all
	}
	either[23], either[30] = nil, nil // what was counted of them
	return either
}

const defaultGroup = "DEFAULT_WORKLOAD_GROUP"

// prepare makes what the recording found when it began: the index golden, with a few documents, and groups.
func (r *replay) prepare() {
	if r.name < "03" { // which make it
		return
	}
	r.must("PUT", "/golden", `{"settings":{"number_of_shards":2,"number_of_replicas":0},"mappings":{"properties":{"n":{"type":"integer"},"t":{"type":"text"},"k":{"type":"keyword"}}}}`, nil)
	switch {
	case r.script.folded:
		for n := range 6 {
			r.must("PUT", fmt.Sprint("/golden/_doc/", n), fmt.Sprintf(`{"n":%d}`, n), nil)
		}
	case r.name > "06": // those before make them
		r.must("PUT", "/golden/_doc/1", `{"n":1,"t":"red fox","k":"a"}`, nil)
		r.must("PUT", "/golden/_doc/1", `{"n":1,"t":"red fox","k":"a"}`, nil)
		r.must("PUT", "/golden/_doc/3", `{"n":3,"t":"blue fox","k":"a"}`, nil)
		r.must("PUT", "/golden/_doc/Jg3vKKIB7LZ-4g7f2SD0", `{"n":2,"t":"red dog","k":"b"}`, nil)
	}
	last := defaultGroup // tables are sorted by id
	for _, g := range r.script.groups {
		last = r.makeGroup(g, last)
	}
	if strings.HasPrefix(r.name, "10-") {
		r.must("PUT", "/_cluster/settings", `{"transient":{"wlm.workload_group.mode":"monitor_only"}}`, nil)
	}
}

// makeGroup makes a group until its id, which is drawn by lot, comes after another where the recorded one does.
func (r *replay) makeGroup(g group, after string) (id string) {
	var made struct {
		ID   string `json:"_id"`
		Name string `json:"name"`
	}
	ordered := r.name < "15" // the others print no tables
	for {
		r.must("PUT", "/_wlm/workload_group", g.body, &made)
		if !ordered || made.ID > after && made.ID < "w" {
			break
		}
		r.must("DELETE", "/_wlm/workload_group/"+made.Name, "", nil)
	}
	r.learn(g.id, made.ID)
	return made.ID
}
