package rest_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
)

// goldenCase is a request with the answer that OpenSearch 3.9.0 gave to it. Free text is "<text>" there.
type goldenCase struct {
	Name    string            `json:"name"`
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
	Body    *string           `json:"body"`
	Status  int               `json:"status"`
	Answer  map[string]string `json:"response_headers"`
	JSON    json.RawMessage   `json:"json"`
	Text    string            `json:"text"`
	Removed bool              `json:"removed"` // the recorder took away again what had been created
}

// TestGolden asks what a real server was asked, and compares statuses, headers, keys with their order, kinds and values.
// testdata/golden holds one list of cases a file, each in the order in which it was recorded.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.json")
	must(t, err)
	if len(files) == 0 {
		t.Fatal("there are no golden cases")
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(file)
			must(t, err)
			var cases []goldenCase
			must(t, json.Unmarshal(b, &cases))
			r := &replay{server: newServer(t), ids: strings.NewReplacer(), known: map[string]string{}, inUse: map[string]bool{}}
			r.prepare(name)
			for i, c := range cases {
				if reason, ok := differences[name+"/"+c.Name]; ok {
					if reason == "" {
						t.Errorf("%s: the difference has no reason", c.Name)
					}
					r.ask(c) // what it changes, later cases count on
					continue
				}
				t.Run(fmt.Sprintf("%02d %s", i, c.Name), func(t *testing.T) { r.compare(t, c) })
			}
		})
	}
}

// replay asks the cases of one file. Ids that a server makes up are mapped from the recorded ones as they appear.
type replay struct {
	*server
	known map[string]string
	ids   *strings.Replacer
	inUse map[string]bool // names of groups
}

// prepare makes what the recording found when it began.
func (r *replay) prepare(file string) {
	if !strings.HasPrefix(file, "01-") && !strings.HasPrefix(file, "02-") {
		r.do("PUT", "/golden", `{"settings":{"number_of_shards":2,"number_of_replicas":0},"mappings":{"properties":{"n":{"type":"integer"},"t":{"type":"text"},"k":{"type":"keyword"}}}}`).want(200)
	}
	r.learn("127.0.0.1:9301", r.address)
	if strings.HasPrefix(file, "13-") || strings.HasPrefix(file, "14-") {
		r.learn("ndvMcmZ9Qjm9MrEe1aydrQ", r.do("PUT", "/_wlm/workload_group", `{"name":"analytics","resiliency_mode":"enforced","resource_limits":{"cpu":0.3,"memory":0.3}}`).at("_id").(string))
		r.learn("okZdiRllQzi36CbaDqKtew", r.do("PUT", "/_wlm/workload_group", `{"name":"batch","resiliency_mode":"soft","resource_limits":{"memory":0.1}}`).at("_id").(string))
	}
	if strings.HasPrefix(file, "10-") {
		r.do("PUT", "/_cluster/settings", `{"transient":{"wlm.workload_group.mode":"monitor_only"}}`).want(200)
	}
}

func (r *replay) learn(recorded, ours string) {
	r.known[recorded] = ours
	var pairs []string
	for k, v := range r.known {
		pairs = append(pairs, k, v)
	}
	r.ids = strings.NewReplacer(pairs...)
}

func (r *replay) ask(c goldenCase) response {
	var headers []string
	for k, v := range c.Headers {
		headers = append(headers, k, r.ids.Replace(v))
	}
	body := ""
	if c.Body != nil {
		body = r.ids.Replace(*c.Body)
	}
	if c.Headers["Content-Type"] == "" {
		headers = append(headers, "Content-Type", "-")
	}
	created := groupName(c)
	if created != "" && !c.Removed && r.inUse[created] { // the recorder had made room
		r.do("DELETE", "/_wlm/workload_group/"+created, "").want(200)
	}
	got := r.do(c.Method, r.ids.Replace(c.Path), body, headers...)
	if created != "" {
		if c.Removed {
			r.do("DELETE", "/_wlm/workload_group/"+url.PathEscape(created), "")
		} else {
			r.inUse[created] = got.status == 200
		}
	}
	return got
}

// groupName is the name of the group that a case creates; "" for all other cases.
func groupName(c goldenCase) string {
	var body struct{ Name any }
	if c.Method != "PUT" || c.Path != "/_wlm/workload_group" || c.Body == nil || json.Unmarshal([]byte(*c.Body), &body) != nil || body.Name == nil {
		return ""
	}
	return fmt.Sprint(body.Name)
}

func (r *replay) compare(t *testing.T, c goldenCase) {
	t.Helper()
	got := r.ask(c)
	if got.status != c.Status {
		t.Fatalf("%s %s: status %d, recorded %d: %s", c.Method, c.Path, got.status, c.Status, got.body)
	}
	for name, want := range c.Answer {
		have := got.header.Get(name)
		if name == "allow" {
			have, want = sortedList(have), sortedList(want)
		}
		if have != want {
			t.Errorf("header %s: %q, recorded %q", name, have, want)
		}
	}
	switch {
	case c.Answer["content-type"] == "application/yaml":
		r.compareYAML(t, c, got)
		return
	case c.Answer["content-encoding"] == "gzip":
		if b := inflate(t, got); !strings.HasPrefix(b, "{") {
			t.Errorf("compressed, the answer is %q", b)
		}
		return
	}
	if c.Text != "" {
		r.compareTables(t, c, got.body)
		return
	}
	if len(c.JSON) == 0 || string(c.JSON) == "null" {
		if got.body != "" {
			t.Errorf("a body where none was recorded: %s", got.body)
		}
		return
	}
	want, err := jsondoc.Parse(c.JSON)
	must(t, err)
	have, err := jsondoc.Parse([]byte(got.body))
	if err != nil {
		t.Fatalf("%v: %s", err, got.body)
	}
	for _, d := range r.diff("", want, have) {
		t.Error(d)
	}
	if t.Failed() {
		t.Logf("ours     %s\nrecorded %s", got.body, c.JSON)
	}
}

func sortedList(s string) string {
	l := strings.Split(s, ",")
	slices.Sort(l)
	return strings.Join(l, ",")
}

// volatile are members whose values no two servers share.
var volatile = []string{"took", "updated_at", "cluster_uuid", "number", "version", "created", "lucene_version", "build_type", "build_hash",
	"creation_date", "uuid", "index_uuid", "transport_address", "publish_address", "bound_address", "max_score", "_score",
	"current_usage", "total_completions", "query", "fetch", "timestamp"}

// volatileCells are the same in rows of tables.
var volatileCells = []string{".epoch", ".heap.percent", ".ram.percent", ".cpu", ".load_1m", ".load_5m", ".load_15m", ".task_id",
	".parent_task_id", ".start_time", ".running_time"}

// ours are members that the recorded server did not have.
var ours = []string{"total_throttled", "total_would_throttle", "total_queued", "total_queue_rejections", "queued_current", "queue_peak",
	"queue_wait_count", "total_queue_wait_millis", "max_queue_wait_millis"}

// unordered are members whose own members, or items, have no order that means anything.
var unordered = []string{"persistent", "transient", "defaults", "index", "properties", "workload_groups", "resource_tracker_stats"}

// inOrder sorts what has no order.
func inOrder(v *jsondoc.Value) {
	slices.SortFunc(v.Members, func(a, b jsondoc.Member) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(v.Items, func(a, b *jsondoc.Value) int { return strings.Compare(a.Member("name").Text, b.Member("name").Text) })
}

// diff lists where two values differ.
func (r *replay) diff(path string, want, have *jsondoc.Value) []string {
	name := path[strings.LastIndexByte(path, '.')+1:]
	if slices.Contains(unordered, name) && want.Kind == have.Kind {
		inOrder(want)
		inOrder(have)
	}
	if want.Text == "<text>" && have.Kind == jsondoc.String && have.Text != "" {
		return nil
	}
	if want.Kind != have.Kind {
		return []string{fmt.Sprintf("%s is %s, recorded %s", path, have.Kind, want.Kind)}
	}
	var all []string
	switch want.Kind {
	case jsondoc.Object:
		have.Members = slices.DeleteFunc(have.Members, func(m jsondoc.Member) bool { return slices.Contains(ours, m.Name) })
		if name == "workload_groups" { // sorted by ids that are others here
			for i, m := range want.Members {
				want.Members[i].Name = r.ids.Replace(m.Name)
			}
			inOrder(want)
		}
		if keys(have) != r.ids.Replace(keys(want)) {
			return []string{fmt.Sprintf("%s has the keys [%s], recorded [%s]", path, keys(have), keys(want))}
		}
		for i, m := range want.Members {
			all = append(all, r.diff(path+"."+m.Name, m.Value, have.Members[i].Value)...)
		}
	case jsondoc.Array:
		if len(want.Items) != len(have.Items) {
			return []string{fmt.Sprintf("%s has %d items, recorded %d", path, len(have.Items), len(want.Items))}
		}
		for i := range want.Items {
			all = append(all, r.diff(path, want.Items[i], have.Items[i])...)
		}
	default:
		switch {
		case name == "_id" || name == "_scroll_id":
			if len(want.Text) > 5 {
				r.learn(want.Text, have.Text)
			}
		case slices.Contains(volatile, name), slices.Contains(volatileCells, path):
		case r.ids.Replace(want.Text) != have.Text:
			all = append(all, fmt.Sprintf("%s is %s, recorded %s", path, have.Text, want.Text))
		}
	}
	return all
}

func keys(v *jsondoc.Value) string {
	var names []string
	for _, m := range v.Members {
		names = append(names, m.Name)
	}
	return strings.Join(names, " ")
}

// differences are the cases whose answers are meant to be others here, with the reason.
var differences = map[string]string{
	"13-wlm-groups-invalid/rules API (other plugin module, not in this rig)": "the recorded server had no rules",

	"01-root-and-http-layer/wrong method on /": "DELETE / would delete every index, and is not offered",
	"01-root-and-http-layer/OPTIONS /":         "DELETE / is not offered",
	"01-root-and-http-layer/GET /?format=cbor": "there is no CBOR here: JSON",
	"01-root-and-http-layer/TRACE":             "DELETE / is not offered",

	"05-documents-and-search/GET /golden/_search?q=t:fox&size=1":                     stubMatchesAll,
	"05-documents-and-search/POST /golden/_search?pretty":                            stubMatchesAll,
	"05-documents-and-search/no hits":                                                stubMatchesAll,
	"05-documents-and-search/POST /golden/_search?typed_keys&rest_total_hits_as_int": stubMatchesAll,
	"05-documents-and-search/sort on unmapped":                                       "the stub knows no mappings to sort by",
	"05-documents-and-search/POST /golden/_search?cancel_after_time_interval=0s":     "a search that was cancelled before it was admitted has no phases",
	"05-documents-and-search/bad scroll id":                                          "ids are not decoded here, so nothing below fails",
	"05-documents-and-search/DELETE /_search/scroll":                                 onePerScroll,
	"05-documents-and-search/DELETE /_search/scroll/_all":                            "the point in time whose context was freed here is not provided",
	"05-documents-and-search/cleared scroll":                                         onePerScroll,
	"05-documents-and-search/POST /_search":                                          "points in time are not provided",
	"05-documents-and-search/GET /golden":                                            "an index has no version of the engine that made it",

	"11-wlm-groups-valid/tiny":                                  "the recorder wrote 1.0E-6 in its own notation",
	"11-wlm-groups-valid/create: no-limits":                     requiredPart,
	"11-wlm-groups-valid/create: no mode":                       requiredPart,
	"11-wlm-groups-valid/create: only name":                     requiredPart,
	"11-wlm-groups-valid/create: settings block only with mode": requiredPart,

	"12-wlm-settings-block/null value": "a null removes a setting: there is none to print",

	"13-wlm-groups-invalid/name null":              requiredPart,
	"13-wlm-groups-invalid/resiliency_mode null":   requiredPart,
	"13-wlm-groups-invalid/resiliency_mode object": requiredPart,
	"13-wlm-groups-invalid/limits string":          requiredPart,
	"13-wlm-groups-invalid/empty object":           requiredPart,
	"13-wlm-groups-invalid/unknown field array":    "refused like every other unknown field",
	"13-wlm-groups-invalid/trailing garbage":       "what follows the document is most often a mistake",
	"13-wlm-groups-invalid/two objects":            "what follows the document is most often a mistake",

	"14-wlm-stats/GET /_list/wlm_stats?format=json": "its rows repeat a key, of which the recorder kept only the last",
	"14-wlm-stats/GET /_list/wlm_stats?help":        "there are columns that only help tells of",
}

const (
	stubMatchesAll = "a search of the stub matches every document"
	onePerScroll   = "a scroll is one context here, not one per shard"
	requiredPart   = "what is missing in a request is its own fault: 400"
)
