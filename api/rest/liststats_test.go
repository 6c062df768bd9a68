package rest_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pageOf asks for a page of _list/wlm_stats, and takes it apart: the ids of its groups, and the token for the next one.
func (s *server) pageOf(query string) (ids []string, next string) {
	s.Helper()
	lines := strings.Split(strings.TrimSuffix(s.do("GET", "/_list/wlm_stats?"+query, "").want(200).body, "\n"), "\n")
	last := lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		ids = append(ids, strings.TrimSpace(strings.Split(line, "|")[1]))
	}
	next, more := strings.CutPrefix(last, "next_token ")
	if !more {
		if !strings.HasPrefix(last, "No more pages available") {
			s.Fatalf("the page ends with %q", last)
		}
		return ids, ""
	}
	return ids, next
}

func TestListStatsPages(t *testing.T) {
	s := newServer(t)
	want := []string{"DEFAULT_WORKLOAD_GROUP"}
	for name := range strings.SplitSeq("abcdefghijkl", "") {
		want = append(want, s.group(name, ""))
	}
	slices.Sort(want)
	for _, q := range []string{"", "size=1", "size=5", "size=13", "size=100", "size=4&sort=workload_group", "size=4&order=ASC"} {
		ids, next := s.pageOf(q)
		for next != "" {
			var more []string
			more, next = s.pageOf(q + "&next_token=" + next)
			ids = append(ids, more...)
		}
		if !slices.Equal(ids, want) {
			t.Errorf("%s: %q, want %q", q, ids, want)
		}
	}
	ids, _ := s.pageOf("order=desc&size=100")
	slices.Reverse(ids)
	if !slices.Equal(ids, want) {
		t.Errorf("descending: %q", ids)
	}

	_, next := s.pageOf("size=2")
	s.group("m", "")
	for _, token := range []string{next, "garbage", "Z2FyYmFnZQ=="} {
		r := s.do("GET", "/_list/wlm_stats?size=2&next_token="+token, "").want(400)
		if e, _ := r.at("error").(string); e == "" || len(r.json()) != 2 {
			t.Errorf("%s", r.body)
		}
		if d, _ := r.at("details").(string); !strings.Contains(d, "next_token") {
			t.Errorf("%s", r.body)
		}
	}
}

func TestListStatsOfSome(t *testing.T) {
	s := newServer(t)
	id := s.group("a", "")
	for path, rows := range map[string]int{
		"/_list/wlm_stats":                                2,
		"/_list/wlm_stats/_local/stats":                   2,
		"/_list/wlm_stats/nosuch/stats":                   0,
		"/_list/wlm_stats/stats/" + id:                    1,
		"/_list/wlm_stats/stats/_all":                     2,
		"/_list/wlm_stats/stats/nosuch":                   0,
		"/_list/wlm_stats/" + nodeID + "/stats/" + id:     1,
		"/_list/wlm_stats/nosuch/stats/" + id:             0,
		"/_list/wlm_stats/_local/stats/" + id + ",nosuch": 0,
	} {
		if got := strings.Count(s.do("GET", path, "").want(200).body, "\n") - 1; got != rows {
			t.Errorf("%s: %d rows, want %d", path, got, rows)
		}
	}
}

func TestListStatsObjects(t *testing.T) {
	s := newServer(t)
	id := s.group("a", "")
	usage := regexp.MustCompile(`"(CPU|MEMORY)_USAGE":"[^"]*"`)
	const first = `{"NODE_ID":"` + nodeID + `","|":"|","WORKLOAD_GROUP_ID":"DEFAULT_WORKLOAD_GROUP","|":"|","TOTAL_COMPLETIONS":"0","|":"|","TOTAL_REJECTIONS":"0","|":"|","TOTAL_CANCELLATIONS":"0","|":"|",USED,"|":"|",USED}`
	const footer = `{"NODE_ID":"No more pages available","|":"-","WORKLOAD_GROUP_ID":"-","|":"-","TOTAL_COMPLETIONS":"-","|":"-","TOTAL_REJECTIONS":"-","|":"-","TOTAL_CANCELLATIONS":"-","|":"-",USED,"|":"-",USED}`
	r := s.do("GET", "/_list/wlm_stats?format=json&size=1", "").want(200)
	next, _ := r.at("next_token").(string)
	leading := strings.Replace(first, "DEFAULT_WORKLOAD_GROUP", min("DEFAULT_WORKLOAD_GROUP", id), 1)
	if got := usage.ReplaceAllString(r.body, "USED"); next == "" || got != `{"next_token":"`+next+`","wlm_stats":[`+leading+`]}` {
		t.Errorf("%s", got)
	}
	if got := usage.ReplaceAllString(s.do("GET", "/_list/wlm_stats/stats/DEFAULT_WORKLOAD_GROUP?format=json", "").want(200).body, "USED"); got != `[`+first+`,`+strings.ReplaceAll(footer, `"|":"-"`, `"|":"|"`)+`]` {
		t.Errorf("%s", got)
	}
	if got := usage.ReplaceAllString(s.do("GET", "/_list/wlm_stats/nosuch/stats?format=json", "").want(200).body, "USED"); got != `[`+footer+`]` {
		t.Errorf("%s", got)
	}
}

// TestListStatsHasMoreColumns: what a queue counts is shown to those who ask for it.
func TestListStatsHasMoreColumns(t *testing.T) {
	s := newServer(t)
	id := s.group("a", `,"throttling":{"attribute":"group","node_limit":1}`)
	s.do("PUT", "/idx", "").want(200)
	s.background("POST", "/idx/_search", `{"ext":{"stub":{"query_time":"1m"}}}`, "workloadGroupId", id)
	s.eventually("the search runs", func() bool { return s.running("*phase/query*") > 0 })
	s.do("POST", "/idx/_search", "{}", "workloadGroupId", id).want(429)
	got := s.do("GET", "/_list/wlm_stats/stats/"+id+"?v&h=TOTAL_THROTTLED,QUEUED_CURRENT", "").want(200).body
	if want := "TOTAL_THROTTLED QUEUED_CURRENT\n1               0\n-               -\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if help := s.do("GET", "/_list/wlm_stats?help", "").want(200).body; !strings.Contains(help, "TOTAL_QUEUED ") {
		t.Errorf("%q", help)
	}
	s.do("POST", "/_tasks/_cancel?actions=*search", "").want(200)
}
