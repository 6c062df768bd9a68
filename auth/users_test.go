package auth_test

import (
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/auth"
)

const (
	bits   = "decoydecoydecoydecoyde.nobodyknowsthepasswordofthis.."
	hash2y = "$2y$12$" + bits
)

func TestUsersFile(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []auth.User
	}{
		"plain": {"ann:\n  hash: " + hash2y + "\n  roles: [admin, oncall]\nbob: {hash: '$2a$04$" + bits + "'}\n",
			[]auth.User{{Name: "ann", Roles: []string{"admin", "oncall"}}, {Name: "bob"}}},
		"of OpenSearch": {`---
_meta:
  type: "internalusers"
  config_version: 2
admin:
  hash: "$2b$12$` + bits + `"
  reserved: true
  hidden: false
  static: false
  backend_roles:
  - "admin"
  - "readall"
  opendistro_security_roles: [kibana, readall]
  attributes: {a: b}
  description: "Demo admin user"
`, []auth.User{{Name: "admin", Roles: []string{"admin", "readall", "kibana"}}}},
		"names and roles of all kinds": {"123: {hash: " + hash2y + ", roles: [1, true]}\n\"a b\": {hash: " + hash2y + ", roles: }\n",
			[]auth.User{{Name: "123", Roles: []string{"1", "true"}}, {Name: "a b"}}},
		"anchors": {"a: &x {hash: &h " + hash2y + ", roles: &r [&one one]}\nb: *x\nc: {hash: *h, roles: *r}\nd: {hash: *h, roles: [*one, two]}\n",
			[]auth.User{{Name: "a", Roles: []string{"one"}}, {Name: "b", Roles: []string{"one"}}, {Name: "c", Roles: []string{"one"}},
				{Name: "d", Roles: []string{"one", "two"}}}},
	} {
		if got, err := auth.ParseUsers([]byte(c.text)); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

func TestBadUsersFiles(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		line int
		user string
		says string
	}{
		"empty":               {"", 0, "", "no user in it"},
		"only a comment":      {"# users\n", 0, "", "no user in it"},
		"only _meta":          {"_meta: {type: internalusers}\n", 0, "", "no user in it"},
		"null":                {"null\n", 1, "", "must be a mapping"},
		"a list":              {"- ann\n", 1, "", "must be a mapping"},
		"not YAML":            {"ann: {hash: x\n", 0, "", "not valid YAML"},
		"two documents":       {"ann: {hash: " + hash2y + "}\n---\nbob: {hash: " + hash2y + "}\n", 2, "", "second YAML document"},
		"bad second document": {"ann: {hash: " + hash2y + "}\n---\n{\n", 0, "", "not valid YAML"},
		"no hash":             {"\nann: {roles: [a]}\n", 2, "ann", "has no hash"},
		"nothing":             {"ann:\n", 1, "ann", "must be a mapping with a hash"},
		"a password":          {"ann:\n  hash: opensesame\n", 2, "ann", "not one of bcrypt"},
		"another kind":        {"ann:\n  hash: [a]\n", 2, "ann", "not one of bcrypt"},
		"other bcrypt":        {"ann: {hash: '$2x$12$" + bits + "'}\n", 1, "ann", "not one of bcrypt"},
		"cost too low":        {"ann: {hash: '$2a$03$" + bits + "'}\n", 1, "ann", "not one of bcrypt"},
		"cost not possible":   {"ann: {hash: '$2a$32$" + bits + "'}\n", 1, "ann", "not one of bcrypt"},
		"cost too high":       {"ann: {hash: '$2a$17$" + bits + "'}\n", 1, "ann", "cost 17"},
		"cut short":           {"ann: {hash: '$2a$12$" + bits[1:] + "'}\n", 1, "ann", "not one of bcrypt"},
		"too long":            {"ann: {hash: '$2a$12$" + bits + "x'}\n", 1, "ann", "not one of bcrypt"},
		"unknown key":         {"ann:\n  hash: " + hash2y + "\n  rolse: [a]\n", 3, "ann", `unknown key "rolse": did you mean "roles"?`},
		"nearest of long":     {"ann:\n  hash: " + hash2y + "\n  backend_role: [a]\n", 3, "ann", `did you mean "backend_roles"?`},
		"merge key":           {"ann: {<<: {hash: x}}\n", 1, "ann", "unknown key"},
		"roles no list":       {"ann:\n  roles: admin\n  hash: " + hash2y + "\n", 2, "ann", "roles must be a list"},
		"an empty role":       {"ann: {hash: " + hash2y + ", roles: ['']}\n", 1, "ann", "roles must be a list of names"},
		"a role of kind list": {"ann: {hash: " + hash2y + ", backend_roles: [[a]]}\n", 1, "ann", "backend_roles must be a list of names"},
		"key twice":           {"ann:\n  hash: " + hash2y + "\n  hash: " + hash2y + "\n", 3, "ann", "hash is there twice"},
		"user twice":          {"ann: {hash: " + hash2y + "}\nbob: {hash: " + hash2y + "}\nann: {hash: " + hash2y + "}\n", 3, "ann", "in line 1 already"},
		"colon in a name":     {"'a:b': {hash: " + hash2y + "}\n", 1, "a:b", "no colon"},
		"control character":   {"\"a\\tb\": {hash: " + hash2y + "}\n", 1, "a\tb", "control characters"},
		"no name":             {"'': {hash: " + hash2y + "}\n", 1, "", "name of a user"},
		"null name":           {"~: {hash: " + hash2y + "}\n", 1, "", "name of a user"},
		"a list as name":      {"[a]: {hash: " + hash2y + "}\n", 1, "", "name of a user"},
	} {
		users, err := auth.ParseUsers([]byte(c.text))
		e, ok := errors.AsType[*auth.UsersFileError](err)
		if !ok || users != nil {
			t.Errorf("%s: %v, %v; want a UsersFileError", name, users, err)
			continue
		}
		if e.Line != c.line || e.User != c.user || !strings.Contains(e.Error(), c.says) {
			t.Errorf("%s: line %d, user %q: %v; want line %d, user %q, %q", name, e.Line, e.User, e, c.line, c.user, c.says)
		}
		if strings.Contains(e.Error(), "opensesame") || strings.Contains(e.Error(), bits) {
			t.Errorf("%s: the message gives a secret away: %v", name, e)
		}
	}
}

func TestUsersFileErrorsNameTheFile(t *testing.T) {
	path := usersFile(t, "ann: {}\n")
	_, err := auth.New(auth.Config{UsersFile: path})
	if want := "users file " + path + `, line 1, user "ann": has no hash`; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	missing := filepath.Join(t.TempDir(), "nosuch.yml")
	_, err = auth.New(auth.Config{UsersFile: missing})
	if err == nil || !strings.Contains(err.Error(), missing) || !strings.Contains(err.Error(), "auth.users_file") {
		t.Errorf("%v", err)
	}
}

// No text makes the parser panic; whom it accepts can be used.
func FuzzUsersFile(f *testing.F) {
	for _, seed := range []string{
		"", "ann: {hash: " + hash2y + ", roles: [admin]}\n", "_meta: {}\n", "a: &a {hash: *a}\n", "a: *a\n", "? [a]\n: b\n", "a: {hash: x\n",
		"ann: {roles: &r [*r]}\n", "ann: {<<: *x}", "\xff", "ann:\n\thash: x\n", "---\n---\n", "!!binary aa: {hash: !!int 3}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		users, err := auth.ParseUsers(b)
		if err != nil {
			if _, ok := errors.AsType[*auth.UsersFileError](err); !ok || users != nil {
				t.Fatalf("%v, %v", users, err)
			}
			return
		}
		seen := map[string]bool{}
		for _, u := range users {
			if u.Name == "" || strings.Contains(u.Name, ":") || seen[u.Name] {
				t.Fatalf("user %q", u.Name)
			}
			seen[u.Name] = true
		}
		if len(users) == 0 {
			t.Fatal("no user, no error")
		}
	})
}
