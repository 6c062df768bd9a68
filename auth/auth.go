package auth

import (
	"net/http"
	"slices"
)

// DefaultAdminRole makes a user an administrator where the configuration names no such roles.
const DefaultAdminRole = "admin"

// User is who asks. The zero User is anonymous.
type User struct {
	Name  string
	Roles []string // must not be changed
}

// Config says how users are known. The zero Config lets everybody in as anonymous.
type Config struct {
	UsersFile  string   // path; empty for none
	AdminRoles []string // [DefaultAdminRole] if empty
	Proxy      ProxyConfig
}

// Authenticator tells who asks. It is safe for concurrent use.
type Authenticator struct {
	adminRoles []string
	passwords  *passwords // nil without a users file
	proxy      *proxy     // nil without a proxy
}

// New makes an Authenticator and reads the users file. It fails with a *[UsersFileError] if there is something wrong in the
// file, and with a *[ConfigError] if the settings do not go together.
func New(c Config) (*Authenticator, error) {
	a := &Authenticator{adminRoles: slices.Clone(c.AdminRoles)}
	if len(a.adminRoles) == 0 {
		a.adminRoles = []string{DefaultAdminRole}
	}
	var err error
	if a.proxy, err = newProxy(c.Proxy); err != nil {
		return nil, err
	}
	if c.UsersFile != "" {
		accounts, err := readUsers(c.UsersFile)
		if err != nil {
			return nil, err
		}
		a.passwords = newPasswords(accounts)
	}
	return a, nil
}

// Enabled reports whether users are known at all. If not, everybody is anonymous.
func (a *Authenticator) Enabled() bool { return a.passwords != nil || a.proxy != nil }

// IsAdmin reports whether u may do everything. Where users are not known, everybody may.
func (a *Authenticator) IsAdmin(u User) bool {
	return !a.Enabled() || slices.ContainsFunc(u.Roles, func(role string) bool { return slices.Contains(a.adminRoles, role) })
}

// Authenticate tells who sent r; if users are known, never the anonymous User. It fails with an *[UnauthenticatedError] if it
// does not know, with a *[ForbiddenError] if r claims what it must not, and with another error if the context of r ends
// while a check has to wait.
func (a *Authenticator) Authenticate(r *http.Request) (User, error) {
	if !a.Enabled() {
		return User{}, nil
	}
	if a.proxy != nil {
		if u, told, err := a.proxy.user(r); told || err != nil {
			return u, err
		}
	}
	if a.passwords == nil {
		return User{}, &UnauthenticatedError{Reason: "this server knows its users from a proxy (auth.proxy.user_header): send the request through it"}
	}
	name, password, ok := r.BasicAuth()
	if !ok {
		return User{}, &UnauthenticatedError{Reason: "no credentials: send a user name and a password by HTTP Basic authentication"}
	}
	return a.passwords.check(r.Context(), name, password)
}
