package rest

import "github.com/wlmserver/wlmserver/wlm"

// isAdmin says whether the user may change what concerns others. Where nobody is asked who they are, everybody may.
func (c *call) isAdmin() bool { return c.s.cfg.Auth.IsAdmin(c.user) }

// needAdmin refuses users who may not change what concerns others.
func (c *call) needAdmin() error {
	if c.isAdmin() {
		return nil
	}
	return forbidden("user [%s] may not %s %s: that needs an administrator's role, see auth.admin_roles", c.user.Name, c.r.Method, c.r.URL.Path)
}

// principal is the user as admission knows them.
func (c *call) principal() wlm.Principal {
	return wlm.Principal{User: c.user.Name, Roles: c.user.Roles}
}
