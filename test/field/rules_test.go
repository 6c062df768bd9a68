package field_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/groups"
	"github.com/wlmserver/wlmserver/test/server"
)

// rule makes a rule; the attributes are JSON members. It gives the rule's id.
func rule(p *server.Process, group, attributes string) string {
	var r struct{ ID string }
	p.Must(http.MethodPut, "/_rules/workload_group", fmt.Sprintf(`{"description":"of the test","workload_group":%q,%s}`, group, attributes), &r)
	return r.ID
}

// tagging watches in which group searches run.
type tagging struct {
	*testing.T
	p      *server.Process
	groups map[string]string // ids by name
}

func newTagging(t *testing.T, p *server.Process, names ...string) tagging {
	t.Helper()
	g := tagging{t, p, map[string]string{"": groups.DefaultID}}
	for _, name := range names {
		g.groups[name] = p.CreateGroup(name, limits("group", 10, -1, 0))
	}
	return g
}

// want sends a request, which must succeed, and checks in which group its search runs; "" is the default group.
func (g tagging) want(group, method, path, body string, headers ...string) server.Answer {
	g.Helper()
	completed := func() map[string]int {
		n := map[string]int{}
		for name, id := range g.groups {
			n[name] = g.p.Stats(id).Completions
		}
		return n
	}
	before := completed()
	a := g.p.Send(g.Context(), method, path, body, headers...)
	if a.Status != http.StatusOK {
		g.Fatalf("%s %s: %d %s", method, path, a.Status, a.Body)
	}
	var ranIn []string
	g.p.Await("the search is counted", func() bool {
		ranIn = nil
		for name, n := range completed() {
			if n > before[name] {
				ranIn = append(ranIn, name)
			}
		}
		return len(ranIn) > 0
	})
	if len(ranIn) != 1 || ranIn[0] != group {
		g.Errorf("%s %s %v: ran in %q, want %q", method, path, headers, ranIn, group)
	}
	return a
}

func TestP5RuleOutlivesItsGroup(t *testing.T) {
	p := server.Start(t)
	for _, index := range []string{"logs-a", "other"} {
		p.CreateIndex(index, "")
	}
	g := newTagging(t, p, "old", "new")
	id := rule(p, g.groups["old"], `"index_pattern":["logs-*"]`)
	g.want("old", http.MethodPost, "/logs-a/_search", "{}")
	p.Must(http.MethodDelete, "/_wlm/workload_group/old", "", nil)
	gone := g.groups["old"]
	delete(g.groups, "old")

	after := func(what string) {
		t.Helper()
		for _, path := range []string{"/_rules/workload_group", "/_rules/workload_group/" + id} {
			a := p.Send(t.Context(), http.MethodGet, path, "")
			if a.Status != http.StatusOK || !strings.Contains(string(a.Body), id) || !strings.Contains(string(a.Body), gone) {
				t.Errorf("%s: %s: %d %s", what, path, a.Status, a.Body)
			}
		}
		g.want("", http.MethodPost, "/logs-a/_search", "{}")
		g.want("", http.MethodPost, "/other/_search", "{}")
	}
	after("the group is gone")
	p.Stop()
	p = p.Restart()
	g.p = p
	for _, index := range []string{"logs-a", "other"} {
		p.CreateIndex(index, "")
	}
	after("after a restart")

	change := "/_rules/workload_group/" + id
	if a := p.Send(t.Context(), http.MethodPost, change, fmt.Sprintf(`{"workload_group":%q}`, gone)); a.Status != http.StatusBadRequest {
		t.Errorf("the group that is gone could be named: %d %s", a.Status, a.Body)
	}
	p.Must(http.MethodPost, change, fmt.Sprintf(`{"workload_group":%q}`, g.groups["new"]), nil)
	g.want("new", http.MethodPost, "/logs-a/_search", "{}")
	p.Must(http.MethodDelete, "/_wlm/workload_group/new", "", nil)
	delete(g.groups, "new")
	p.Must(http.MethodDelete, change, "", nil)
	if a := p.Send(t.Context(), http.MethodGet, "/_rules/workload_group", ""); string(a.Body) != `{"rules":[]}` {
		t.Errorf("left: %s", a.Body)
	}
	g.want("", http.MethodPost, "/logs-a/_search", "{}")
}

func TestP6PatternsStayAsWritten(t *testing.T) {
	p := server.Start(t, "auth.proxy.user_header=x-proxy-user", "auth.proxy.roles_header=x-proxy-roles", "auth.proxy.allowed_peers=127.0.0.0/8")
	p.Headers = []string{"x-proxy-user", "operator", "x-proxy-roles", "admin"}
	for _, index := range []string{"logs-a", "logs-a-1", "logs-b", "xlogs-a"} {
		p.CreateIndex(index, "")
	}
	g := newTagging(t, p, "exact", "beginning", "dev", "ops")
	id := rule(p, g.groups["exact"], `"index_pattern":["logs-a"]`)
	rule(p, g.groups["beginning"], `"index_pattern":["logs-a*"]`)
	who := rule(p, g.groups["dev"], `"principal":{"username":["dev*"]}`)
	rule(p, g.groups["ops"], `"principal":{"role":["ops*"]}`)

	g.want("exact", http.MethodPost, "/logs-a/_search", "{}")
	g.want("exact", http.MethodGet, "/logs-a/_count", "")
	g.want("beginning", http.MethodPost, "/logs-a-1/_search", "{}")
	g.want("beginning", http.MethodPost, "/logs-a,logs-a-1/_search", "{}") // every index
	g.want("beginning", http.MethodPost, "/logs-a*/_search", "{}")
	g.want("", http.MethodPost, "/logs-a,logs-b/_search", "{}")
	g.want("", http.MethodPost, "/xlogs-a/_search", "{}")
	g.want("", http.MethodPost, "/logs-*/_search", "{}")
	g.want("", http.MethodPost, "/_search", "{}")
	g.want("exact", http.MethodPost, "/_msearch", msearch("logs-a", 2), "Content-Type", "application/x-ndjson")

	user := func(name, roles string) []string { return []string{"x-proxy-user", name, "x-proxy-roles", roles} }
	g.want("dev", http.MethodPost, "/logs-b/_search", "{}", user("dev", "")...)
	g.want("dev", http.MethodPost, "/logs-a/_search", "{}", user("dev_j", "ops")...) // username before role before index
	g.want("ops", http.MethodPost, "/logs-a/_search", "{}", user("xdev", "x,ops-2")...)
	g.want("", http.MethodPost, "/logs-b/_search", "{}", user("xdev", "xops")...)

	// An explicit header wins, also one of no group.
	g.want("ops", http.MethodPost, "/logs-a/_search", "{}", append(user("dev", ""), "workloadGroupId", g.groups["ops"])...)
	g.want("", http.MethodPost, "/logs-a/_search", "{}", append(user("dev", ""), "workloadGroupId", "unknown")...)

	// A page of a scroll goes by the indices that it was opened with.
	var s struct {
		ID string `json:"_scroll_id"`
	}
	if err := json.Unmarshal(g.want("exact", http.MethodPost, "/logs-a/_search?scroll=1m", `{"size":1}`).Body, &s); err != nil || s.ID == "" {
		t.Fatal(err, s.ID)
	}
	g.want("exact", http.MethodPost, "/_search/scroll", fmt.Sprintf(`{"scroll":"1m","scroll_id":%q}`, s.ID))

	for id, want := range map[string]string{id: `"index_pattern":["logs-a"]`, who: `"principal":{"username":["dev*"]}`} {
		if a := p.Send(t.Context(), http.MethodGet, "/_rules/workload_group/"+id, ""); !strings.Contains(string(a.Body), want) {
			t.Errorf("read back: %s, want %s", a.Body, want)
		}
	}

	// Rules act while workload management only watches, and not when it is off.
	mode := func(mode string) {
		p.Must(http.MethodPut, "/_cluster/settings", `{"transient":{"wlm.workload_group.mode":"`+mode+`"}}`, nil)
	}
	mode("monitor_only")
	g.want("exact", http.MethodPost, "/logs-a/_search", "{}")
	mode("disabled")
	g.want("", http.MethodPost, "/logs-a/_search", "{}")
	mode("enabled")
	g.want("exact", http.MethodPost, "/logs-a/_search", "{}")
}
