package rest_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const rulesPath = "/_rules/workload_group"

func TestRuleLife(t *testing.T) {
	s := newServer(t)
	group, other := s.group("g", ""), s.group("h", "")
	for _, method := range []string{"PUT", "POST"} {
		r := s.do(method, rulesPath, `{"description":"the logs","index_pattern":["logs-*","logs"],"principal":{"username":["dev*"],"role":["ops"]},"workload_group":"`+group+`"}`).want(200)
		shape := regexp.MustCompile(`^\{"id":"[0-9a-f-]{36}","description":"the logs","index_pattern":\["logs-\*","logs"\],` +
			`"principal":\{"username":\["dev\*"\],"role":\["ops"\]\},"workload_group":"` + group + `","updated_at":"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ"\}$`)
		if !shape.MatchString(r.body) {
			t.Fatalf("%s: %s", method, r.body)
		}
		id := r.at("id").(string)
		if got, want := s.do("GET", rulesPath+"/"+id, "").want(200).body, `{"rules":[`+r.body+`]}`; got != want {
			t.Errorf("read: %s, want %s", got, want)
		}

		u := s.do(method, rulesPath+"/"+id, `{"principal":{"username":["ann"]},"workload_group":"`+other+`"}`).want(200)
		if u.at("id") != id || u.at("principal", "username", 0) != "ann" || u.at("principal", "role", 0) != "ops" || u.at("index_pattern", 1) != "logs" ||
			u.at("workload_group") != other || u.at("updated_at").(string) <= r.at("updated_at").(string) {
			t.Errorf("%s: updated: %s", method, u.body)
		}
		if got, want := s.do("GET", rulesPath, "").want(200).body, `{"rules":[`+u.body+`]}`; got != want {
			t.Errorf("list: %s, want %s", got, want)
		}
		if got := s.do("DELETE", rulesPath+"/"+id, "").want(200).body; got != `{"acknowledged":true}` {
			t.Errorf("deleted: %s", got)
		}
		if got := s.do("GET", rulesPath, "").want(200).body; got != `{"rules":[]}` {
			t.Errorf("list: %s", got)
		}
	}
	if body := s.do("PUT", rulesPath, `{"description":"d","index_pattern":["a"],"workload_group":"`+group+`"}`).want(200).body; strings.Contains(body, "principal") {
		t.Errorf("a rule without principal: %s", body)
	}
}

func TestRuleErrors(t *testing.T) {
	s := newServer(t)
	group := s.group("g", "")
	rule := func(rest string) string { return `{"description":"d","workload_group":"` + group + `",` + rest + `}` }
	first := s.do("PUT", rulesPath, rule(`"index_pattern":["a"]`)).want(200).at("id").(string)
	for _, c := range []struct {
		method, path, body string
		status             int
		typ                string
		says               []string
	}{
		{"PUT", rulesPath, `{}`, 400, "illegal_argument_exception", []string{"1: ", "[description]", "2: ", "no attribute", "3: ", "[workload_group]"}},
		{"PUT", rulesPath, rule(`"tenant":["a"]`), 400, "illegal_argument_exception", []string{"[tenant]"}},
		{"PUT", rulesPath, `{"description":"d","index_pattern":["b"],"workload_group":"g"}`, 400, "illegal_argument_exception", []string{"[g] of [workload_group]"}},
		{"PUT", rulesPath, rule(`"index_pattern":["b","a"]`), 400, "illegal_argument_exception", []string{first}},
		{"PUT", rulesPath, rule(`"principal":{"username":"ann"}`), 400, "parsing_exception", []string{"principal.username"}},
		{"PUT", rulesPath, rule(`"principal":{"team":["x"]}`), 400, "parsing_exception", []string{"[team]"}},
		{"PUT", rulesPath, `{`, 400, "unexpected_end_of_input_exception", nil},
		{"PUT", rulesPath, ``, 400, "parse_exception", nil},
		{"PUT", rulesPath + "/none", `{"description":"x"}`, 404, "resource_not_found_exception", []string{"[none]"}},
		{"GET", rulesPath + "/none", ``, 404, "resource_not_found_exception", []string{"[none]"}},
		{"DELETE", rulesPath + "/none", ``, 404, "resource_not_found_exception", []string{"[none]"}},
		{"PUT", rulesPath + "/" + first, `{"index_pattern":[]}`, 400, "illegal_argument_exception", []string{"index_pattern"}},
		{"GET", rulesPath + "?tenant=a", ``, 400, "illegal_argument_exception", []string{"[tenant]"}},
		{"GET", "/_rules/other", ``, 404, "resource_not_found_exception", []string{"[other]"}},
		{"PUT", "/_rules/other", `{}`, 404, "resource_not_found_exception", []string{"[other]"}},
		{"DELETE", "/_rules/other/" + first, ``, 404, "resource_not_found_exception", []string{"[other]"}},
	} {
		r := s.do(c.method, c.path, c.body).wantError(c.status, c.typ)
		for _, part := range c.says {
			if reason := r.at("error", "reason").(string); !strings.Contains(reason, part) {
				t.Errorf("%s %s %s: %q does not say %q", c.method, c.path, c.body, reason, part)
			}
		}
		if c.typ == "parsing_exception" && r.at("error", "line") != float64(1) {
			t.Errorf("%s: no place: %s", c.body, r.body)
		}
	}
	s.do("DELETE", rulesPath, "").want(405)
	if n := len(s.do("GET", rulesPath, "").want(200).at("rules").([]any)); n != 1 {
		t.Errorf("%d rules are left, want 1", n)
	}
}

func TestTooManyRules(t *testing.T) {
	s := newServer(t)
	group := s.group("g", "")
	s.do("PUT", "/_cluster/settings", `{"transient":{"wlm.autotagging.max_rules":10}}`).want(200)
	create := func(i int) response {
		return s.do("PUT", rulesPath, fmt.Sprintf(`{"description":"d","index_pattern":["i%d"],"workload_group":%q}`, i, group))
	}
	for i := range 10 {
		create(i).want(200)
	}
	r := create(10).wantError(429, "rejected_execution_exception")
	if !strings.Contains(r.at("error", "reason").(string), "wlm.autotagging.max_rules") || r.header.Get("Retry-After") == "" {
		t.Errorf("%s %v", r.body, r.header)
	}
	s.do("PUT", "/_cluster/settings", `{"transient":{"wlm.autotagging.max_rules":11}}`).want(200)
	create(10).want(200)
}

func TestListOfRules(t *testing.T) {
	s := newServer(t)
	group := s.group("g", "")
	for i := range 120 {
		s.do("PUT", rulesPath, fmt.Sprintf(`{"description":"d","index_pattern":["i%d","%d*"],"principal":{"username":["u%d"],"role":["r%d"]},"workload_group":%q}`,
			i, i, i, i%3, group)).want(200)
	}
	// pages reads all pages of a list and tells how long each is.
	pages := func(query string) (sizes []int, ids []string) {
		for after := ""; len(sizes) < 5; {
			r := s.do("GET", rulesPath+"?"+query+after, "").want(200)
			var page struct {
				Rules []struct{ ID string }
				After []string `json:"search_after"`
			}
			must(t, json.Unmarshal([]byte(r.body), &page))
			sizes = append(sizes, len(page.Rules))
			for _, x := range page.Rules {
				ids = append(ids, x.ID)
			}
			if page.After == nil {
				return sizes, ids
			}
			if len(page.After) != 1 || page.After[0] != ids[len(ids)-1] {
				t.Fatalf("search_after %v, the last id is %s", page.After, ids[len(ids)-1])
			}
			after = "&search_after=" + page.After[0]
		}
		t.Fatalf("%s: no end", query)
		return nil, nil
	}
	for query, want := range map[string][]int{
		"":                      {50, 50, 20},
		"principal.role=r0":     {40},
		"principal.role=r0,x":   {40},
		"principal.role=r0,r1":  {50, 30},
		"principal.role=r":      {0},
		"index_pattern=i1,7*,*": {2},
		"index_pattern=i4,i5&principal.role=r1,r0":                             {1},
		"principal.username=u1,u2,u3&principal.role=r2,r0&index_pattern=i2,i1": {1},
		"principal.username=u1&principal.role=r2":                              {0},
	} {
		sizes, ids := pages(query)
		if !slices.Equal(sizes, want) || !slices.IsSorted(ids) || len(slices.Compact(ids)) != len(ids) {
			t.Errorf("%s: pages of %v, want %v", query, sizes, want)
		}
	}
}

func TestRightsOnRules(t *testing.T) {
	s := newServer(t, withUsers)
	admin, plain := []string{"X-User", "ann", "X-Roles", "admin"}, []string{"X-User", "bob"}
	group := s.do("PUT", "/_wlm/workload_group", `{"name":"g","resiliency_mode":"enforced","resource_limits":{"cpu":0.1}}`, admin...).want(200).at("_id").(string)
	body := `{"description":"d","index_pattern":["a"],"workload_group":"` + group + `"}`
	s.do("PUT", rulesPath, body).wantError(401, "security_exception")
	s.do("PUT", rulesPath, body, plain...).wantError(403, "security_exception")
	id := s.do("PUT", rulesPath, body, admin...).want(200).at("id").(string)
	s.do("POST", rulesPath+"/"+id, `{}`, plain...).wantError(403, "security_exception")
	s.do("POST", rulesPath+"/"+id, `{}`, admin...).want(200)
	s.do("DELETE", rulesPath+"/"+id, "", plain...).wantError(403, "security_exception")
	s.do("GET", rulesPath, "", plain...).want(200)
	s.do("GET", rulesPath+"/"+id, "", plain...).want(200)
	s.do("GET", rulesPath, "").wantError(401, "security_exception")
	s.do("DELETE", rulesPath+"/"+id, "", admin...).want(200)
}
