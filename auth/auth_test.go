package auth_test

import (
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/wlmserver/wlmserver/auth"
)

func TestWithoutConfigurationEverybodyIsAnonymousAdmin(t *testing.T) {
	a := newAuth(t, auth.Config{})
	r := request("ann", "whatever") // credentials that nobody asked for
	r.Header.Set("X-Proxy-User", "root")
	u, err := a.Authenticate(r)
	if err != nil || u.Name != "" || u.Roles != nil || a.Enabled() || !a.IsAdmin(u) {
		t.Errorf("user %+v, %v; enabled %v, admin %v", u, err, a.Enabled(), a.IsAdmin(u))
	}
}

func TestBasic(t *testing.T) {
	a := newAuth(t, auth.Config{UsersFile: twoUsers(t)})
	if !a.Enabled() {
		t.Error("not enabled")
	}
	ann := auth.User{Name: "ann", Roles: []string{"admin", "oncall"}}
	for range 2 { // by bcrypt, then as remembered
		u, err := a.Authenticate(request("ann", "secret"))
		if err != nil || !reflect.DeepEqual(u, ann) || !a.IsAdmin(u) {
			t.Errorf("ann: %+v, %v, admin %v", u, err, a.IsAdmin(u))
		}
		u, err = a.Authenticate(request("bob", "hunter"))
		if err != nil || u.Name != "bob" || a.IsAdmin(u) {
			t.Errorf("bob: %+v, %v, admin %v", u, err, a.IsAdmin(u))
		}
	}
	var first string
	for _, c := range [][2]string{{"ann", "hunter"}, {"ann", "Secret"}, {"ann", ""}, {"eve", "secret"}, {"", "secret"}, {"Ann", "secret"}} {
		u, err := a.Authenticate(request(c[0], c[1]))
		if !isUnauthenticated(err) || u.Name != "" {
			t.Fatalf("%v: %+v, %v", c, u, err)
		}
		if first == "" {
			first = err.Error()
		}
		if err.Error() != first {
			t.Errorf("%v is told %q, others %q: the text tells which names exist", c, err, first)
		}
	}
}

func TestRequestsWithoutCredentials(t *testing.T) {
	a := newAuth(t, auth.Config{UsersFile: twoUsers(t)})
	for _, header := range []string{"", "Bearer abc", "Basic", "Basic !!!", "Basic YW5u" /* no colon */} {
		r := request("", "")
		r.Header.Set("Authorization", header)
		u, err := a.Authenticate(r)
		refused, ok := errors.AsType[*auth.UnauthenticatedError](err)
		if !ok || u.Name != "" || !strings.HasPrefix(refused.Challenge(), `Basic realm="`) || !strings.Contains(err.Error(), "HTTP Basic") {
			t.Errorf("%q: %+v, %v", header, u, err)
		}
	}
}

func TestAdminRoles(t *testing.T) {
	a := newAuth(t, auth.Config{UsersFile: twoUsers(t), AdminRoles: []string{"oncall", "root"}})
	for role, want := range map[string]bool{"oncall": true, "root": true, "admin": false, "": false} {
		if got := a.IsAdmin(auth.User{Name: "x", Roles: []string{"other", role}}); got != want {
			t.Errorf("role %q makes an admin: %v, want %v", role, got, want)
		}
	}
	if a.IsAdmin(auth.User{}) {
		t.Error("the anonymous user is an admin where users are known")
	}
}

func TestConfigErrors(t *testing.T) {
	peers := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for name, c := range map[string]struct {
		config auth.ProxyConfig
		key    string
	}{
		"nobody to believe":      {auth.ProxyConfig{UserHeader: "X-User"}, "auth.proxy.allowed_peers"},
		"peers alone":            {auth.ProxyConfig{AllowedPeers: peers}, "auth.proxy.user_header"},
		"roles alone":            {auth.ProxyConfig{RolesHeader: "X-Roles"}, "auth.proxy.user_header"},
		"user header no token":   {auth.ProxyConfig{UserHeader: "X User", AllowedPeers: peers}, "auth.proxy.user_header"},
		"roles header no token":  {auth.ProxyConfig{UserHeader: "X-User", RolesHeader: "ü", AllowedPeers: peers}, "auth.proxy.roles_header"},
		"user and roles in one":  {auth.ProxyConfig{UserHeader: "X-User", RolesHeader: "x-user", AllowedPeers: peers}, "auth.proxy.roles_header"},
		"header of credentials":  {auth.ProxyConfig{UserHeader: "authorization", AllowedPeers: peers}, "auth.proxy.user_header"},
		"a network that is none": {auth.ProxyConfig{UserHeader: "X-User", AllowedPeers: []netip.Prefix{{}}}, "auth.proxy.allowed_peers"},
	} {
		_, err := auth.New(auth.Config{Proxy: c.config})
		e, ok := errors.AsType[*auth.ConfigError](err)
		if !ok || e.Key != c.key || !strings.Contains(err.Error(), c.key) {
			t.Errorf("%s: %v, want an error about %s", name, err, c.key)
		}
	}
}
