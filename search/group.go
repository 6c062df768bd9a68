package search

import (
	"github.com/wlmserver/wlmserver/rules"
	"github.com/wlmserver/wlmserver/settings"
	"github.com/wlmserver/wlmserver/tasks"
	"github.com/wlmserver/wlmserver/wlm"
)

// groupID is the id of the workload group that a search is to run in: the one
// that the request names, be there such a group or not; else that of the search
// on whose behalf it runs; else that of the rule that it follows. It may be
// empty, or unknown, for the default group.
func (q *query) groupID(parent *tasks.Task) string {
	r := q.request
	if r.GroupID != "" {
		return r.GroupID
	}
	if parent != nil {
		if id := parent.Group(); id != "" {
			return id
		}
	}
	now := q.service.config.Rules()
	if now.Len() == 0 || q.service.config.Settings().String(settings.WLMMode) == string(wlm.ModeDisabled) {
		return ""
	}
	indices := r.Indices
	if q.page != nil {
		indices = q.page.indices
	}
	id, _ := now.Match(rules.Request{Indices: indices, Username: r.Principal.User, Roles: r.Principal.Roles})
	return id
}
