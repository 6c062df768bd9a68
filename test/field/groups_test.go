package field_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/test/server"
)

const groupsPath = "/_wlm/workload_group"

// step is one request of a scenario and what it is to be answered.
type step struct {
	what         string
	method, path string
	body         string
	status       int
	want         string // a document: all that it has is in the answer; of an error the type. A null stands for what must not be there
}

// play sends the steps in their order, and stops at the first one that is answered otherwise.
func play(t *testing.T, p *server.Process, steps []step) {
	t.Helper()
	for i, s := range steps {
		a := p.Send(t.Context(), s.method, s.path, s.body)
		at := fmt.Sprintf("step %d, %s: %s %s %s", i+1, s.what, s.method, s.path, s.body)
		if a.Err != nil || a.Status != s.status {
			t.Fatalf("%s\n%d %s %v, want %d", at, a.Status, a.Body, a.Err, s.status)
		}
		if s.status >= 400 {
			if got := a.ErrorType(); got != s.want {
				t.Fatalf("%s\n%s, want a %s", at, a.Body, s.want)
			}
			continue
		}
		var got, want any
		if err := errors.Join(json.Unmarshal(a.Body, &got), json.Unmarshal([]byte(s.want), &want)); err != nil {
			t.Fatalf("%s\n%v in %s", at, err, a.Body)
		}
		if missing := lacks(got, want, ""); missing != "" {
			t.Fatalf("%s\n%s: %s, want %s", at, missing, a.Body, s.want)
		}
	}
}

// lacks says where a document does not have what another one has; "" if it has everything.
func lacks(got, want any, at string) string {
	object, ok := want.(map[string]any)
	if !ok {
		if list, ok := want.([]any); ok {
			return lacksItems(got, list, at)
		}
		if !reflect.DeepEqual(got, want) {
			return fmt.Sprintf("%s is %v", at, got)
		}
		return ""
	}
	members, ok := got.(map[string]any)
	if !ok {
		return fmt.Sprintf("%s is %v", at, got)
	}
	for name, w := range object {
		g, there := members[name]
		if w == nil {
			if there {
				return fmt.Sprintf("%s/%s is there", at, name)
			}
			continue
		}
		if missing := lacks(g, w, at+"/"+name); missing != "" {
			return missing
		}
	}
	return ""
}

func lacksItems(got any, want []any, at string) string {
	items, ok := got.([]any)
	if !ok || len(items) != len(want) {
		return fmt.Sprintf("%s is %v", at, got)
	}
	for i := range want {
		if missing := lacks(items[i], want[i], fmt.Sprintf("%s/%d", at, i)); missing != "" {
			return missing
		}
	}
	return ""
}

const illegal = "illegal_argument_exception"

// TestGroupScenario is how OpenSearch's own tests take groups through their life: create, read, update, duplicates, limits, delete
// (10_workload_group.yml and WorkloadManagementRestIT there), by the same steps.
func TestGroupScenario(t *testing.T) {
	group := func(name, mode, limits string) string {
		return fmt.Sprintf(`{"name":%q,"resiliency_mode":%q,"resource_limits":{%s}}`, name, mode, limits)
	}
	play(t, server.Start(t), []step{
		{"nothing is there", "GET", groupsPath, "", 200, `{"workload_groups":[]}`},
		{"create", "PUT", groupsPath, group("analytics", "monitor", `"cpu":0.4,"memory":0.2`), 200,
			`{"name":"analytics","resiliency_mode":"monitor","resource_limits":{"cpu":0.4,"memory":0.2},"settings":{},"throttling":null,"queue":null}`},
		{"read", "GET", groupsPath + "/analytics", "", 200,
			`{"workload_groups":[{"name":"analytics","resiliency_mode":"monitor","resource_limits":{"cpu":0.4,"memory":0.2}}]}`},
		{"read what is not there", "GET", groupsPath + "/nosuch", "", 404, "resource_not_found_exception"},
		{"update all", "PUT", groupsPath + "/analytics", `{"resiliency_mode":"soft","resource_limits":{"cpu":0.61,"memory":0.3}}`, 200,
			`{"name":"analytics","resiliency_mode":"soft","resource_limits":{"cpu":0.61,"memory":0.3}}`},
		{"update one limit", "PUT", groupsPath + "/analytics", `{"resource_limits":{"cpu":0.35}}`, 200,
			`{"resiliency_mode":"soft","resource_limits":{"cpu":0.35,"memory":0.3}}`},
		{"update the mode", "POST", groupsPath + "/analytics", `{"resiliency_mode":"enforced"}`, 200,
			`{"resiliency_mode":"enforced","resource_limits":{"cpu":0.35,"memory":0.3}}`},
		{"update what is not there", "PUT", groupsPath + "/nosuch", `{"resource_limits":{"cpu":0.3}}`, 404, "resource_not_found_exception"},
		{"a limit above all there is", "PUT", groupsPath + "/analytics", `{"resource_limits":{"cpu":1.1}}`, 400, illegal},
		{"a limit below nothing", "PUT", groupsPath + "/analytics", `{"resource_limits":{"cpu":-0.1}}`, 400, illegal},
		{"a limit of nothing", "PUT", groupsPath + "/analytics", `{"resource_limits":{"memory":0}}`, 400, illegal},
		{"a resource that there is not", "PUT", groupsPath + "/analytics", `{"resource_limits":{"disk":0.1}}`, 400, illegal},
		{"a mode that there is not", "PUT", groupsPath + "/analytics", `{"resiliency_mode":"strict"}`, 400, illegal},

		{"a second one of the name", "PUT", groupsPath, group("analytics", "monitor", `"cpu":0.4`), 400, illegal},
		{"more than is left", "PUT", groupsPath, group("analytics2", "monitor", `"cpu":0.66`), 400, illegal},
		{"a limit below nothing, at once", "PUT", groupsPath, group("analytics2", "monitor", `"cpu":-0.1`), 400, illegal},
		{"no name", "PUT", groupsPath, group("", "monitor", `"cpu":0.1`), 400, illegal},
		{"a long name", "PUT", groupsPath, group(strings.Repeat("a", 51), "monitor", `"cpu":0.1`), 400, illegal},
		{"the longest name", "PUT", groupsPath, group(strings.Repeat("a", 50), "monitor", `"cpu":0.01`), 200, `{"resource_limits":{"cpu":0.01,"memory":null}}`},
		{"away with it", "DELETE", groupsPath + "/" + strings.Repeat("a", 50), "", 200, `{"acknowledged":true}`},
		{"a field that there is not", "PUT", groupsPath, `{"name":"x","resiliency_mode":"soft","resource_limits":{"cpu":0.1},"nosuch":1}`, 400, illegal},
		{"a second group", "POST", groupsPath, group("analytics2", "MONITOR", `"cpu":0.35,"memory":"0.25"`), 200,
			`{"name":"analytics2","resiliency_mode":"monitor","resource_limits":{"cpu":0.35,"memory":0.25}}`},
		{"just what is left, rounded up", "PUT", groupsPath + "/analytics2", `{"resource_limits":{"cpu":0.651}}`, 400, illegal},
		{"just what is left", "PUT", groupsPath + "/analytics2", `{"resource_limits":{"cpu":0.65}}`, 200, `{"resource_limits":{"cpu":0.65,"memory":0.25}}`},

		{"delete", "DELETE", groupsPath + "/analytics2", "", 200, `{"acknowledged":true}`},
		{"delete again", "DELETE", groupsPath + "/analytics2", "", 404, "resource_not_found_exception"},
		{"the other is left", "GET", groupsPath, "", 200, `{"workload_groups":[{"name":"analytics"}]}`},
		{"what it had is there again", "PUT", groupsPath + "/analytics", `{"resource_limits":{"cpu":1.0}}`, 200, `{"resource_limits":{"cpu":1}}`},

		{"management only watches", "PUT", "/_cluster/settings", `{"transient":{"wlm.workload_group.mode":"monitor_only"}}`, 200, `{"acknowledged":true}`},
		{"no create then", "PUT", groupsPath, group("late", "soft", `"memory":0.1`), 500, "illegal_state_exception"},
		{"no update then", "PUT", groupsPath + "/analytics", `{"resiliency_mode":"soft"}`, 500, "illegal_state_exception"},
		{"no delete then", "DELETE", groupsPath + "/analytics", "", 500, "illegal_state_exception"},
		{"management is off", "PUT", "/_cluster/settings", `{"transient":{"wlm.workload_group.mode":"disabled"}}`, 200, `{"acknowledged":true}`},
		{"reading goes on", "GET", groupsPath + "/analytics", "", 200, `{"workload_groups":[{"name":"analytics","resiliency_mode":"enforced"}]}`},
		{"and on again", "PUT", "/_cluster/settings", `{"transient":{"wlm.workload_group.mode":null}}`, 200, `{"acknowledged":true}`},
		{"delete the last", "DELETE", groupsPath + "/analytics", "", 200, `{"acknowledged":true}`},
		{"nothing is left", "GET", groupsPath, "", 200, `{"workload_groups":[]}`},
	})
}

// TestThrottlingScenario is the same for the blocks of limits and of the queue: numbers in answers, changes in part, unknown keys,
// ranges, clearing by null, and leaving out what is off.
func TestThrottlingScenario(t *testing.T) {
	const path = groupsPath + "/throttled"
	with := func(blocks string) string {
		return `{"name":"throttled","resiliency_mode":"enforced","resource_limits":{"cpu":0.1},` + blocks + `}`
	}
	play(t, server.Start(t), []step{
		{"a limit without an attribute", "PUT", groupsPath, with(`"throttling":{"node_limit":2}`), 400, illegal},
		{"an attribute without a limit", "PUT", groupsPath, with(`"throttling":{"attribute":"username"}`), 400, illegal},
		{"limits of nothing", "PUT", groupsPath, with(`"throttling":{"attribute":"group","node_limit":0}`), 400, illegal},
		{"below nothing", "PUT", groupsPath, with(`"throttling":{"attribute":"group","node_limit":-1}`), 400, illegal},
		{"above an int", "PUT", groupsPath, with(`"throttling":{"attribute":"group","node_limit":2147483648}`), 400, illegal},
		{"no whole number", "PUT", groupsPath, with(`"throttling":{"attribute":"group","node_limit":1.5}`), 400, illegal},
		{"an attribute that there is not", "PUT", groupsPath, with(`"throttling":{"attribute":"index","node_limit":1}`), 400, illegal},
		{"a key that there is not", "PUT", groupsPath, with(`"throttling":{"attribute":"group","node_limit":1,"limit":1}`), 400, illegal},
		{"a queue without a limit", "PUT", groupsPath, with(`"queue":{"size_per_bucket":5}`), 400, illegal},
		{"an endless queue", "PUT", groupsPath, with(`"throttling":{"attribute":"group","node_limit":1},"queue":{"size_per_bucket":10001}`), 400, illegal},
		{"a queue with a timeout", "PUT", groupsPath, with(`"throttling":{"attribute":"group","node_limit":1},"queue":{"timeout":"1s"}`), 400, illegal},
		{"nothing of that is there", "GET", groupsPath, "", 200, `{"workload_groups":[]}`},

		{"create, in words that mean numbers", "PUT", groupsPath, with(`"throttling":{"attribute":"username","node_limit":"10","shared_limit":40},"queue":{"size_per_bucket":"7"}`), 200,
			`{"throttling":{"attribute":"username","node_limit":10,"shared_limit":40},"queue":{"size_per_bucket":7}}`},
		{"read", "GET", path, "", 200, `{"workload_groups":[{"throttling":{"attribute":"username","node_limit":10,"shared_limit":40},"queue":{"size_per_bucket":7}}]}`},
		{"change one limit", "PUT", path, `{"throttling":{"node_limit":20}}`, 200, `{"throttling":{"attribute":"username","node_limit":20,"shared_limit":40},"queue":{"size_per_bucket":7}}`},
		{"change by the older name", "PUT", path, `{"throttling":{"by":"role"}}`, 200, `{"throttling":{"attribute":"role","by":null,"node_limit":20}}`},
		{"both names", "PUT", path, `{"throttling":{"by":"role","attribute":"role"}}`, 400, illegal},
		{"change something else", "PUT", path, `{"resiliency_mode":"soft"}`, 200, `{"resiliency_mode":"soft","throttling":{"attribute":"role","node_limit":20,"shared_limit":40},"queue":{"size_per_bucket":7}}`},
		{"clear one limit", "PUT", path, `{"throttling":{"shared_limit":null}}`, 200, `{"throttling":{"attribute":"role","node_limit":20,"shared_limit":null}}`},
		{"clear the last limit", "PUT", path, `{"throttling":{"node_limit":null}}`, 400, illegal},
		{"clear it with the queue still there", "PUT", path, `{"throttling":null}`, 400, illegal},
		{"nothing changed by that", "GET", path, "", 200, `{"workload_groups":[{"throttling":{"attribute":"role","node_limit":20},"queue":{"size_per_bucket":7}}]}`},
		{"clear the queue", "PUT", path, `{"queue":null}`, 200, `{"throttling":{"attribute":"role","node_limit":20},"queue":null}`},
		{"clear the limits key by key", "PUT", path, `{"throttling":{"attribute":null,"node_limit":null}}`, 200, `{"throttling":null,"queue":null}`},
		{"and again", "PUT", path, `{"throttling":null,"queue":{}}`, 200, `{"throttling":null,"queue":null}`},
		{"all anew", "PUT", path, `{"throttling":{"attribute":"group","shared_limit":1},"queue":{"size_per_bucket":10000}}`, 200,
			`{"throttling":{"attribute":"group","node_limit":null,"shared_limit":1},"queue":{"size_per_bucket":10000}}`},
		{"clear both at once", "PUT", path, `{"throttling":{},"queue":null}`, 200, `{"throttling":null,"queue":null}`},

		{"settings of searches", "PUT", path, `{"settings":{"search.default_search_timeout":"30s","search.max_buckets":5000,"override_request_values":true}}`, 200,
			`{"settings":{"override_request_values":"true","search.default_search_timeout":"30s","search.max_buckets":"5000"}}`},
		{"one setting away", "PUT", path, `{"settings":{"search.max_buckets":null}}`, 200, `{"settings":{"search.default_search_timeout":"30s","search.max_buckets":null}}`},
		{"a setting that there is not", "PUT", path, `{"settings":{"search.nosuch":1}}`, 400, illegal},
		{"a value that does not fit", "PUT", path, `{"settings":{"search.max_concurrent_shard_requests":0}}`, 400, illegal},
		{"all settings away", "PUT", path, `{"settings":null}`, 200, `{"settings":{"search.default_search_timeout":null,"override_request_values":null}}`},
		{"delete", "DELETE", path, "", 200, `{"acknowledged":true}`},
		{"gone", "GET", path, "", 404, "resource_not_found_exception"},
	})
}

// TestGroupOrderScenario: creating, changing and deleting in another order, and what the sum of limits allows at each point.
func TestGroupOrderScenario(t *testing.T) {
	group := func(name string, cpu float64) string {
		return fmt.Sprintf(`{"name":%q,"resiliency_mode":"enforced","resource_limits":{"cpu":%g,"memory":%g}}`, name, cpu, cpu)
	}
	p := server.Start(t, "node.workload_group.max_count=3")
	play(t, p, []step{
		{"first", "PUT", groupsPath, group("a", 0.4), 200, `{"name":"a"}`},
		{"second", "PUT", groupsPath, group("b", 0.2), 200, `{"name":"b"}`},
		{"third is too much", "PUT", groupsPath, group("c", 0.41), 400, illegal},
		{"third", "PUT", groupsPath, group("c", 0.4), 200, `{"name":"c"}`},
		{"fourth is one too many", "PUT", groupsPath, group("d", 0.1), 500, "illegal_state_exception"},
		{"which comes before its name", "PUT", groupsPath, group("a", 0.1), 500, "illegal_state_exception"},
		{"no room to grow", "PUT", groupsPath + "/b", `{"resource_limits":{"cpu":0.21}}`, 400, illegal},
		{"room in the other resource", "PUT", groupsPath + "/c", `{"resource_limits":{"memory":0.1}}`, 200, `{"resource_limits":{"cpu":0.4,"memory":0.1}}`},
		{"taken by another", "PUT", groupsPath + "/b", `{"resource_limits":{"memory":0.5}}`, 200, `{"resource_limits":{"cpu":0.2,"memory":0.5}}`},
		{"delete the first", "DELETE", groupsPath + "/a", "", 200, `{"acknowledged":true}`},
		{"room to grow", "PUT", groupsPath + "/b", `{"resource_limits":{"cpu":0.6}}`, 200, `{"resource_limits":{"cpu":0.6,"memory":0.5}}`},
		{"the name is free, the room is not", "PUT", groupsPath, group("a", 0.4), 400, illegal},
		{"but for another resource", "PUT", groupsPath, `{"name":"a","resiliency_mode":"soft","resource_limits":{"memory":0.4}}`, 200, `{"resource_limits":{"cpu":null,"memory":0.4}}`},
	})
	p.Stop()
	p = p.Restart()
	var list struct {
		Groups []struct{ Name string } `json:"workload_groups"`
	}
	p.Must(http.MethodGet, groupsPath, "", &list)
	if len(list.Groups) != 3 {
		t.Errorf("after a restart: %v", list.Groups)
	}
}
