package auth_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/wlmserver/wlmserver/auth"
)

func ExampleAuthenticator_Authenticate() {
	a, err := auth.New(auth.Config{Proxy: auth.ProxyConfig{
		UserHeader:   "X-Proxy-User",
		RolesHeader:  "X-Proxy-Roles",
		AllowedPeers: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := httptest.NewRequest(http.MethodGet, "/_search", nil)
	r.RemoteAddr = "10.0.0.7:40000"
	r.Header.Set("X-Proxy-User", "ann")
	r.Header.Set("X-Proxy-Roles", "analyst, admin")
	u, err := a.Authenticate(r)
	fmt.Println(u.Name, u.Roles, a.IsAdmin(u), err)

	r.RemoteAddr = "192.0.2.1:40000"
	_, err = a.Authenticate(r)
	fmt.Println(err)
	// Output:
	// ann [analyst admin] true <nil>
	// the request names its user in a header of the proxy, but it comes from 192.0.2.1:40000, which is not among auth.proxy.allowed_peers
}
