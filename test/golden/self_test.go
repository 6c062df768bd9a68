package golden_test

import (
	"net/http"
	"strings"
	"testing"
)

// answered is what a server answers that answers as it was recorded, with ids of its own.
func answered(r *replay, c *recorded) answer {
	h := http.Header{}
	for name, value := range c.Answer {
		h.Set(name, value)
	}
	body := strings.TrimPrefix(string(c.JSON), "null")
	if c.Text != "" {
		body = c.text()
		if c.Answer["content-type"] != "application/json; charset=UTF-8" {
			body += "\n" // which the recorder cut
		}
	}
	return answer{status: c.Status, header: h, body: r.ids.Replace(body)}
}

// TestTheRecordedPasses compares the recorded answers with themselves: each passes, but for those that need two nodes.
func TestTheRecordedPasses(t *testing.T) {
	for _, rec := range recordings(t) {
		if scripts[rec.name].folded {
			continue
		}
		r := newReplay(&server{t: t, node: "AAAAAAAAAAAAAAAAAAAAAA", address: "127.0.0.1:9301"}, rec)
		for i := range rec.cases {
			c := &rec.cases[i]
			if c.isCut() || strings.Contains(string(c.JSON), leaked) || c.Answer["content-encoding"] == "gzip" || c.Answer["content-type"] == "application/cbor" {
				continue
			}
			if d := r.compare(c, answered(r, c)); len(d) > 0 {
				t.Errorf("%s: %d %s: %v", rec.name, i, c.Name, d)
			}
		}
	}
}

// TestAnyChangeIsNoticed changes recorded answers in one place each.
func TestAnyChangeIsNoticed(t *testing.T) {
	for _, x := range []struct{ key, old, changed string }{
		{"13-wlm-groups-invalid/0", `"type": "null_pointer_exception"`, `"type": "illegal_argument_exception"`},
		{"15-wlm-requests/0", `"timed_out": false`, `"timed_out": true`},
		{"15-wlm-requests/0", `"timed_out": false`, `"timed_out": "false"`},
		{"15-wlm-requests/0", `"skipped": 0`, `"skipped": 1`},
		{"15-wlm-requests/0", `"max_score": null`, `"max_score": 0.0`},
		{"15-wlm-requests/0", `"successful": 2,`, ``},
		{"15-wlm-requests/0", `"took": 7`, `"took": 7.5`},
		{"15-wlm-requests/8", `"_version": 2`, `"_version": 1`},
		{"15-wlm-requests/8", `"found": true`, `"found": true, "more": 1`},
		{"15-wlm-requests/9", `"count": 3`, `"count": 4`},
		{"15-wlm-requests/22", `"enforced"`, `"soft"`},
		{"06-tasks/19", `"action": "indices:data/read/search"`, `"action": "indices:data/read/msearch"`},
		{"06-tasks/19", `indices[golden]`, `indices[other]`},
		{"06-tasks/11", `"cancelled": false`, `"cancelled": true`},
		{"04-cluster-health-nodes-cat/49", "id  ", "ids "},
		{"04-cluster-health-nodes-cat/49", "golden-1", "golden-3"},
		{"05-documents-and-search/20", `"phase"`, `"phases"`},
		{"05-documents-and-search/20", `"query_shard_exception"`, `1`},
	} {
		name, _, _ := strings.Cut(x.key, "/")
		c := caseOf(recordings(t), x.key)
		r := newReplay(&server{t: t, node: "AAAAAAAAAAAAAAAAAAAAAA", address: "127.0.0.1:9301"}, recording{name: name})
		a := answered(r, c)
		compact := strings.NewReplacer(": ", ":", ", ", ",")
		old, changed := x.old, x.changed
		if !strings.Contains(a.body, old) {
			old, changed = compact.Replace(old), compact.Replace(changed)
		}
		if !strings.Contains(a.body, old) {
			if c.isCut() { // behind the cut
				continue
			}
			t.Errorf("%s: there is no %s in %s", x.key, x.old, a.body)
			continue
		}
		a.body = strings.Replace(a.body, old, changed, 1)
		if len(r.compare(c, a)) == 0 {
			t.Errorf("%s: %s instead of %s is not noticed", x.key, x.changed, x.old)
		}
	}
	c := caseOf(recordings(t), "15-wlm-requests/0")
	r := newReplay(&server{t: t, node: "AAAAAAAAAAAAAAAAAAAAAA", address: "127.0.0.1:9301"}, recording{})
	a := answered(r, c)
	a.status++
	if len(r.compare(c, a)) == 0 {
		t.Error("another status is not noticed")
	}
	a = answered(r, c)
	a.header.Set("Content-Type", "text/plain")
	if len(r.compare(c, a)) == 0 {
		t.Error("another content type is not noticed")
	}
}
