package auth

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"
)

// ProxyConfig says which proxies are trusted to name the user. The zero ProxyConfig trusts none.
type ProxyConfig struct {
	UserHeader   string         // header with the user's name; empty for no proxy
	RolesHeader  string         // header with the roles, separated by commas; empty if the proxy tells none
	AllowedPeers []netip.Prefix // addresses of the proxies
}

// proxy reads the headers of trusted proxies.
type proxy struct {
	userHeader, rolesHeader string // in canonical form
	peers                   []netip.Prefix
}

func newProxy(c ProxyConfig) (*proxy, error) {
	const userKey, rolesKey, peersKey = "auth.proxy.user_header", "auth.proxy.roles_header", "auth.proxy.allowed_peers"
	if c.UserHeader == "" {
		if c.RolesHeader != "" || len(c.AllowedPeers) > 0 {
			return nil, &ConfigError{Key: userKey, Reason: "missing: name the header in which the proxy tells the user, or remove the other settings of auth.proxy"}
		}
		return nil, nil
	}
	if len(c.AllowedPeers) == 0 {
		return nil, &ConfigError{Key: peersKey, Reason: "missing: list the addresses of the proxies whose header " + c.UserHeader + " is to be believed"}
	}
	for _, s := range []struct{ key, header string }{{userKey, c.UserHeader}, {rolesKey, c.RolesHeader}} {
		if !validHeader(s.header) {
			return nil, &ConfigError{Key: s.key, Value: s.header, Reason: "not the name of a header: use letters, digits, '-' and '_'"}
		}
		if http.CanonicalHeaderKey(s.header) == "Authorization" {
			return nil, &ConfigError{Key: s.key, Value: s.header, Reason: "this header holds credentials: have the proxy use another one, such as X-Proxy-User"}
		}
	}
	p := &proxy{userHeader: http.CanonicalHeaderKey(c.UserHeader), rolesHeader: http.CanonicalHeaderKey(c.RolesHeader)}
	if p.userHeader == p.rolesHeader {
		return nil, &ConfigError{Key: rolesKey, Value: c.RolesHeader, Reason: "the same header as " + userKey + ": the roles need one of their own"}
	}
	for _, peer := range c.AllowedPeers {
		if !peer.IsValid() {
			return nil, &ConfigError{Key: peersKey, Value: peer.String(), Reason: "not an address or network: write it like 10.0.0.7 or 10.0.0.0/24"}
		}
		// A connection over IPv4 is known by its IPv4 address, however the list writes it.
		if peer.Addr().Is4In6() && peer.Bits() >= 96 {
			peer = netip.PrefixFrom(peer.Addr().Unmap(), peer.Bits()-96)
		}
		p.peers = append(p.peers, peer)
	}
	return p, nil
}

func validHeader(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

// user tells whom the proxy names, if it names anybody.
func (p *proxy) user(r *http.Request) (u User, told bool, err error) {
	names, roles := r.Header[p.userHeader], []string(nil)
	if p.rolesHeader != "" {
		roles = r.Header[p.rolesHeader]
	}
	if len(names) == 0 && len(roles) == 0 {
		return User{}, false, nil
	}
	if !p.trusts(r.RemoteAddr) {
		return User{}, false, &ForbiddenError{Reason: fmt.Sprintf(
			"the request names its user in a header of the proxy, but it comes from %s, which is not among auth.proxy.allowed_peers", r.RemoteAddr)}
	}
	if len(names) == 0 {
		return User{}, false, nil
	}
	if len(names) > 1 {
		return User{}, false, &ForbiddenError{Reason: fmt.Sprintf(
			"header %s is there %d times: the proxy must remove what its clients send in it", p.userHeader, len(names))}
	}
	name := strings.TrimSpace(names[0])
	if name == "" || !utf8.ValidString(name) {
		return User{}, false, &ForbiddenError{Reason: fmt.Sprintf("header %s names no user: it must be a name in UTF-8", p.userHeader)}
	}
	return User{Name: name, Roles: splitRoles(roles)}, true, nil
}

// trusts reports whether the other end of the connection is a listed proxy. What is not an IP address, such as the name of
// a Unix socket, is not.
func (p *proxy) trusts(remote string) bool {
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return false
	}
	addr := peer.Addr().Unmap().WithZone("")
	return slices.ContainsFunc(p.peers, func(listed netip.Prefix) bool { return listed.Contains(addr) })
}

// splitRoles reads the roles out of all lines of the header, each once.
func splitRoles(lines []string) []string {
	var roles []string
	for _, line := range lines {
		for role := range strings.SplitSeq(line, ",") {
			role = strings.TrimSpace(role)
			if role != "" && utf8.ValidString(role) && !slices.Contains(roles, role) {
				roles = append(roles, role)
			}
		}
	}
	return roles
}
