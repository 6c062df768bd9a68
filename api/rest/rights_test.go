package rest_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/wlmserver/wlmserver/auth"
)

// withUsers has a proxy in front that names users, which is this machine.
func withUsers(o *options) {
	o.auth = auth.Config{Proxy: auth.ProxyConfig{
		UserHeader: "X-User", RolesHeader: "X-Roles", AllowedPeers: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	}}
}

func TestRights(t *testing.T) {
	s := newServer(t, withUsers)
	const group = `{"name":"g","resiliency_mode":"enforced","resource_limits":{"cpu":0.1}}`
	admin, plain := []string{"X-User", "ann", "X-Roles", "admin"}, []string{"X-User", "bob", "X-Roles", "analyst"}
	for _, c := range []struct {
		method, path, body string
		anyUser            bool // else administrators only
	}{
		{"GET", "/", "", true},
		{"GET", "/_cluster/health", "", true},
		{"GET", "/_nodes", "", true},
		{"GET", "/_cluster/settings", "", true},
		{"PUT", "/_cluster/settings", `{"transient":{"search.max_buckets":9}}`, false},
		{"PUT", "/_wlm/workload_group", group, false},
		{"PUT", "/_wlm/workload_group/g", `{}`, false},
		{"GET", "/_wlm/workload_group", "", true},
		{"GET", "/_wlm/workload_group/g", "", true},
		{"GET", "/_wlm/stats", "", true},
		{"GET", "/_list/wlm_stats", "", true},
		{"GET", "/_nodes/stats", "", true},
		{"GET", "/_cat/tasks", "", true},
		{"DELETE", "/_wlm/workload_group/g", "", false},
		{"GET", "/_tasks", "", true},
		{"POST", "/_tasks/_cancel", "", true},
		{"DELETE", "/i*", "", true},
		{"POST", "/idx/_doc/1", `{}`, true},
		{"POST", "/_search", `{}`, true},
		{"POST", "/_count", `{}`, true},
		{"POST", "/_msearch", "{}\n{}\n", true},
		{"GET", "/metrics", "", true},
	} {
		r := s.do(c.method, c.path, c.body)
		r.wantError(401, "security_exception")
		if !strings.HasPrefix(r.header.Get("Www-Authenticate"), "Basic ") {
			t.Errorf("%s %s: 401 without a challenge: %v", c.method, c.path, r.header)
		}
		if r := s.do(c.method, c.path, c.body, plain...); c.anyUser {
			if r.status >= 300 {
				t.Errorf("%s %s by a plain user: %d %s", c.method, c.path, r.status, r.body)
			}
		} else {
			r.wantError(403, "security_exception")
			if reason := r.at("error", "reason").(string); !strings.Contains(reason, "[bob]") || !strings.Contains(reason, "auth.admin_roles") {
				t.Errorf("%s %s: %s", c.method, c.path, reason)
			}
		}
		if r := s.do(c.method, c.path, c.body, admin...); r.status >= 300 {
			t.Errorf("%s %s by an administrator: %d %s", c.method, c.path, r.status, r.body)
		}
	}
	// What does not exist tells strangers no more than what does.
	s.do("GET", "/a/b/c", "").wantError(401, "security_exception")
	s.do("OPTIONS", "/_search", "").wantError(401, "security_exception")
}

func TestPasswords(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	must(t, err)
	file := filepath.Join(t.TempDir(), "users.yml")
	must(t, os.WriteFile(file, []byte("ann:\n  hash: \""+string(hash)+"\"\n  backend_roles: [admin]\n"), 0o600))
	s := newServer(t, func(o *options) { o.auth = auth.Config{UsersFile: file} })
	s.do("GET", "/_cluster/settings", "", "Authorization", basic("ann", "secret")).want(200)
	s.do("GET", "/_cluster/settings", "", "Authorization", basic("ann", "wrong")).wantError(401, "security_exception")
}

// Others' searches may be seen, but not what they search for or where they wait; and they are cancelled only by their
// own user or an administrator.
func TestOtherPeoplesTasks(t *testing.T) {
	hold := make(chan struct{})
	s := newServer(t, withUsers, func(o *options) { o.executor = &gate{open: hold} })
	admin, bob, eve := []string{"X-User", "ann", "X-Roles", "admin"}, []string{"X-User", "bob"}, []string{"X-User", "eve"}
	ofBob := s.background("POST", "/_search", `{}`, bob...)
	ofEve := s.background("POST", "/_search", `{}`, eve...)
	s.eventually("both run", func() bool { return s.running("indices:data/read/search") == 2 })

	described := func(who []string) (mine, others int) {
		for _, x := range s.do("GET", "/_tasks?detailed&group_by=none&actions=*search", "", who...).want(200).at("tasks").([]any) {
			if at(x, "description") == "a search at the gate" {
				mine++
			} else if at(x, "description") == "" {
				others++
			}
		}
		return mine, others
	}
	if mine, others := described(bob); mine != 1 || others != 1 {
		t.Errorf("bob sees %d described, %d not", mine, others)
	}
	if mine, others := described(admin); mine != 2 || others != 0 {
		t.Errorf("an administrator sees %d described, %d not", mine, others)
	}

	var idOfEve string
	for _, x := range s.tasks.List(everything) {
		if x.User() == "eve" && x.Cancellable() {
			idOfEve = x.ID().String()
		}
	}
	s.do("POST", "/_tasks/"+idOfEve+"/_cancel", "", bob...).wantError(403, "security_exception")
	r := s.do("POST", "/_tasks/_cancel?group_by=none", "", bob...).want(200)
	if n := len(r.at("tasks").([]any)); n != 1 {
		t.Errorf("bob cancelled %d tasks: %s", n, r.body)
	}
	(<-ofBob).wantError(500, "task_cancelled_exception")
	if n := s.running("indices:data/read/search"); n != 1 {
		t.Errorf("%d searches are left", n)
	}
	s.do("POST", "/_tasks/"+idOfEve+"/_cancel", "", admin...).want(200)
	(<-ofEve).wantError(500, "task_cancelled_exception")
}

// Scrolls are freed by who opened them.
func TestOtherPeoplesScrolls(t *testing.T) {
	s := newServer(t, withUsers)
	s.do("PUT", "/idx", `{}`, "X-User", "bob").want(200)
	id := s.do("POST", "/idx/_search?scroll=1m", `{}`, "X-User", "bob").want(200).at("_scroll_id").(string)
	s.do("DELETE", "/_search/scroll/_all", "", "X-User", "eve").want(404)
	s.do("DELETE", "/_search/scroll/"+id, "", "X-User", "eve").want(404)
	s.do("DELETE", "/_search/scroll/"+id, "", "X-User", "bob").want(200)
}
