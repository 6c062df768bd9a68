package auth_test

import (
	"net/netip"
	"reflect"
	"testing"

	"github.com/wlmserver/wlmserver/auth"
)

func TestProxy(t *testing.T) {
	behind := auth.ProxyConfig{
		UserHeader: "x-proxy-user", RolesHeader: "X-Proxy-Roles",
		AllowedPeers: []netip.Prefix{netip.MustParsePrefix("10.1.2.3/8"), netip.MustParsePrefix("::ffff:192.0.2.7/128"), netip.MustParsePrefix("fe80::/10")},
	}
	proxyOnly := newAuth(t, auth.Config{Proxy: behind})
	withFile := newAuth(t, auth.Config{Proxy: behind, UsersFile: twoUsers(t)})
	noRoles := behind
	noRoles.RolesHeader = ""
	withoutRoles := newAuth(t, auth.Config{Proxy: noRoles})

	const listed, unlisted = "10.9.9.9:4711", "172.16.0.1:4711"
	none := func(err error) bool { return err == nil }
	for name, c := range map[string]struct {
		auth     *auth.Authenticator
		peer     string
		user     []string
		roles    []string
		basic    bool // as ann
		want     auth.User
		isWanted func(error) bool
	}{
		"user and roles": {proxyOnly, listed, []string{" eve "}, []string{" a, b,,a", "c"}, false,
			auth.User{Name: "eve", Roles: []string{"a", "b", "c"}}, none},
		"user alone": {proxyOnly, listed, []string{"eve"}, nil, false, auth.User{Name: "eve"}, none},
		"no role from the users file": {withFile, listed, []string{"ann"}, nil, false,
			auth.User{Name: "ann"}, none},
		"IPv4 listed as IPv6":            {proxyOnly, "192.0.2.7:1", []string{"eve"}, nil, false, auth.User{Name: "eve"}, none},
		"IPv4 over IPv6":                 {proxyOnly, "[::ffff:10.0.0.1]:1", []string{"eve"}, nil, false, auth.User{Name: "eve"}, none},
		"IPv6 with a zone":               {proxyOnly, "[fe80::1%eth0]:1", []string{"eve"}, nil, false, auth.User{Name: "eve"}, none},
		"roles are not configured":       {withoutRoles, listed, []string{"eve"}, []string{"admin"}, false, auth.User{Name: "eve"}, none},
		"the proxy before Basic":         {withFile, listed, []string{"eve"}, nil, true, auth.User{Name: "eve"}, none},
		"no header: Basic":               {withFile, listed, nil, nil, true, auth.User{Name: "ann", Roles: []string{"admin", "oncall"}}, none},
		"no header from elsewhere":       {withFile, unlisted, nil, nil, true, auth.User{Name: "ann", Roles: []string{"admin", "oncall"}}, none},
		"roles alone: not believed":      {withFile, listed, nil, []string{"root"}, true, auth.User{Name: "ann", Roles: []string{"admin", "oncall"}}, none},
		"no header, no Basic":            {withFile, listed, nil, nil, false, auth.User{}, isUnauthenticated},
		"no header, no users file":       {proxyOnly, listed, nil, nil, true, auth.User{}, isUnauthenticated},
		"user from elsewhere":            {proxyOnly, unlisted, []string{"eve"}, nil, false, auth.User{}, isForbidden},
		"user from elsewhere, and Basic": {withFile, unlisted, []string{"eve"}, nil, true, auth.User{}, isForbidden},
		"roles from elsewhere":           {withFile, unlisted, nil, []string{"admin"}, true, auth.User{}, isForbidden},
		"empty user from elsewhere":      {withFile, unlisted, []string{""}, nil, true, auth.User{}, isForbidden},
		"from a Unix socket":             {proxyOnly, "@", []string{"eve"}, nil, false, auth.User{}, isForbidden},
		"two users":                      {proxyOnly, listed, []string{"eve", "root"}, nil, false, auth.User{}, isForbidden},
		"an empty user":                  {proxyOnly, listed, []string{" "}, nil, false, auth.User{}, isForbidden},
		"a user not in UTF-8":            {proxyOnly, listed, []string{"\xff"}, nil, false, auth.User{}, isForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			r := request("", "")
			if c.basic {
				r = request("ann", "secret")
			}
			r.RemoteAddr = c.peer
			r.Header["X-Proxy-User"], r.Header["X-Proxy-Roles"] = c.user, c.roles
			r.Header.Set("X-Forwarded-For", "10.0.0.1") // says nothing
			u, err := c.auth.Authenticate(r)
			if !c.isWanted(err) || !reflect.DeepEqual(u, c.want) {
				t.Errorf("%+v, %v; want %+v", u, err, c.want)
			}
		})
	}
	if !proxyOnly.Enabled() || proxyOnly.IsAdmin(auth.User{Name: "eve"}) || !proxyOnly.IsAdmin(auth.User{Name: "eve", Roles: []string{"admin"}}) {
		t.Error("behind a proxy the roles decide who is an admin")
	}
}
