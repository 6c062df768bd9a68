package golden_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// replay asks the cases of one recording. Ids that a server makes up are mapped from the recorded ones as they appear. It belongs
// to one goroutine.
type replay struct {
	*server
	recording
	script  script
	known   map[string]string // recorded id to ours
	ids     *strings.Replacer
	tasked  map[string]string // recorded number of a task to ours
	lucky   bool              // chance decides the answer to the case that is compared
	base    map[string]int64  // what a counter had counted before the recording began
	running map[int]chan answer
	ended   map[int]answer
	groups  map[string]bool // names in use
}

func newReplay(s *server, r recording) *replay {
	p := &replay{server: s, recording: r, script: scripts[r.name], known: map[string]string{}, tasked: map[string]string{}, base: map[string]int64{},
		running: map[int]chan answer{}, ended: map[int]answer{}, groups: map[string]bool{}}
	for _, id := range recordedNodes {
		p.known[id] = s.node
	}
	for _, address := range recordedAddresses {
		p.known[address] = s.address
	}
	p.known["golden-2"] = "golden-1"
	p.known["dimr"], p.known["cluster_manager,data,ingest,remote_cluster_client"] = "dm", "cluster_manager,data" // what the node was set up to do
	p.learn("", "")
	return p
}

// recordedNodes and recordedAddresses are the nodes that were recorded. In the recording of two, both are ours.
var (
	recordedNodes     = []string{"sfctup0nQEajWfPJx1wEkg", "Ovm3lyD_T2mgtUkuqT8DMQ", "c7NX9w-3TAK13cOkifT3JA"}
	recordedAddresses = []string{"127.0.0.1:9301", "127.0.0.1:9311", "127.0.0.1:9312"}
)

// learn maps a recorded id. Longer ones go first: one may begin with another.
func (r *replay) learn(theirs, ours string) {
	if theirs != "" {
		r.known[theirs] = ours
	}
	keys := slices.SortedFunc(maps.Keys(r.known), func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, k := range keys {
		pairs = append(pairs, k, r.known[k])
	}
	r.ids = strings.NewReplacer(pairs...)
}

// learnTask maps the recorded number of a task.
func (r *replay) learnTask(theirs, ours string) {
	r.tasked[theirs] = ours
	for _, node := range recordedNodes {
		r.known[node+":"+theirs] = r.node + ":" + ours
	}
	r.learn("", "")
}

// run asks all cases in turn and gives each answer to look at.
func (r *replay) run(look func(i int, c *recorded, a answer)) {
	r.prepare()
	for i := range r.cases {
		for _, b := range r.script.during {
			if b.from == i {
				r.start(b)
			}
			if b.until == i && b.until != 0 {
				r.end(b.at)
			}
		}
		if before := r.script.before[i]; before != nil {
			before(r)
		}
		look(i, &r.cases[i], r.answer(i))
	}
}

// answer asks one case, unless it has run in the background: then it waits for its end.
func (r *replay) answer(i int) answer {
	if r.isBackground(i) {
		return r.end(i)
	}
	for {
		a := r.ask(&r.cases[i])
		lot, drawn := r.script.lots[i]
		var made map[string]any
		if !drawn || json.Unmarshal([]byte(a.body), &made) != nil || lot.wanted(made) {
			return a
		}
		r.must("DELETE", lot.undo(made), "", nil)
		delete(r.groups, groupName(&r.cases[i]))
	}
}

func (r *replay) isBackground(i int) bool {
	return slices.ContainsFunc(r.script.during, func(b background) bool { return b.at == i })
}

// start sends a case of which the recorder read the answer later, and waits until what it does is under way.
func (r *replay) start(b background) {
	before := r.tasks()
	c := r.cases[b.at]
	method, path, headers, body := r.request(&c)
	done := make(chan answer, 1)
	go func() { done <- r.send(method, path, headers, body) }()
	r.running[b.at] = done
	var fresh []task
	r.await(fmt.Sprintf("case %d has %d tasks", b.at, b.tasks), func() bool {
		fresh = slices.DeleteFunc(r.tasks(), func(t task) bool {
			return slices.ContainsFunc(before, func(b task) bool { return b.Number == t.Number })
		})
		return len(fresh) >= b.tasks && (r.script.folded || !slices.ContainsFunc(fresh, func(t task) bool { return !t.begun() })) || len(done) > 0
	})
	for i, t := range fresh {
		if b.first != 0 {
			r.learnTask(fmt.Sprint(b.first+i), fmt.Sprint(t.Number))
		}
	}
}

// end waits for the answer to a case that runs in the background.
func (r *replay) end(i int) answer {
	if done := r.running[i]; done != nil {
		r.ended[i] = <-done
		delete(r.running, i)
	}
	return r.ended[i]
}

// ask sends a case. Of a group that the recorder made room for, or took away again, it does the same.
func (r *replay) ask(c *recorded) answer {
	method, path, headers, body := r.request(c)
	created := groupName(c)
	if created != "" && !c.removed() && r.groups[created] && c.Status == 200 {
		r.must("DELETE", "/_wlm/workload_group/"+url.PathEscape(created), "", nil)
	}
	a := r.send(method, path, headers, body)
	if created != "" && a.status == 200 {
		if c.removed() {
			r.must("DELETE", "/_wlm/workload_group/"+url.PathEscape(created), "", nil)
		} else {
			r.groups[created] = true
		}
	}
	return a
}

func (r *replay) request(c *recorded) (method, path string, headers [][2]string, body *string) {
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		value := c.Headers[name]
		if escaped, ok := strings.CutPrefix(value, `b'`); ok { // bytes, as the recorder wrote them
			value = strings.ReplaceAll(strings.TrimSuffix(escaped, `'`), `\xe9`, "\xe9")
		}
		headers = append(headers, [2]string{name, r.ids.Replace(value)})
	}
	if c.Body != nil {
		text := r.ids.Replace(translate(*c.Body, cmp.Or(r.script.longest, longest)))
		body = &text
	}
	return c.Method, r.ids.Replace(c.Path), headers, body
}

// groupName is the name of the group that a case creates; "" for all other cases.
func groupName(c *recorded) string {
	var body struct{ Name any }
	if c.Method != "PUT" || c.Path != "/_wlm/workload_group" || c.Body == nil || json.NewDecoder(strings.NewReader(*c.Body)).Decode(&body) != nil || body.Name == nil {
		return ""
	}
	return fmt.Sprint(body.Name)
}

// sleeping is the query of the recorder's own that takes its time.
var sleeping = regexp.MustCompile(`\{"sleep":\{[^}]*\}\}`)

// longest is how many milliseconds the query phase of a search lasts at most: long beside all that happens meanwhile.
const longest = 1500

// translate puts the cost that the recorder's own query had into the terms of the stub. What follows the query stays in its
// column, for errors tell it.
func translate(body string, longest int) string {
	lines := strings.SplitAfter(body, "\n")
	for i, line := range lines {
		query := sleeping.FindString(line)
		if query == "" {
			continue
		}
		var cost struct {
			Sleep struct {
				MS    int   `json:"ms"`
				Spin  bool  `json:"spin"`
				Check *bool `json:"check"`
				KB    int   `json:"kb"`
				Shard *int  `json:"shard"`
			} `json:"sleep"`
		}
		if err := json.Unmarshal([]byte(query), &cost); err != nil {
			panic(err)
		}
		s := cost.Sleep
		ms := min(s.MS, longest)
		stub := map[string]any{"query_time": fmt.Sprint(ms, "ms")}
		if s.Spin {
			stub["query_cpu"] = fmt.Sprint(ms/10, "ms") // beside many others: the machine has to be shared
		}
		if s.Check != nil {
			stub["ignore_cancel"] = !*s.Check
		}
		if s.KB > 0 { // in each step of five milliseconds
			stub["query_memory"] = fmt.Sprint(s.KB*ms/5, "kb")
		}
		if s.Shard != nil {
			stub["shard"] = *s.Shard
		}
		b, err := json.Marshal(stub)
		if err != nil {
			panic(err)
		}
		all := `{"match_all":{}}`
		line = strings.Replace(line, query, all+strings.Repeat(" ", max(0, len(query)-len(all))), 1)
		end := strings.LastIndexByte(line, '}')
		lines[i] = line[:end] + `,"ext":{"stub":` + string(b) + `}` + line[end:]
	}
	return strings.Join(lines, "")
}
