package rules

import (
	"slices"
	"time"

	"github.com/wlmserver/wlmserver/records"
)

const (
	// MaxDescriptionLength is the most characters that a description may have.
	MaxDescriptionLength = 256
	// MaxValues is the most patterns that a rule may have for an attribute.
	MaxValues = 10
	// MaxValueLength is the most characters that a pattern may have.
	MaxValueLength = 100
)

// The attributes, as they are called in filters and messages.
const (
	IndexPattern = "index_pattern"
	Username     = "principal.username"
	Role         = "principal.role"
)

// wildcard stands at the end of a pattern for any text, also for none.
const wildcard = "*"

// A Rule names the workload group of the searches that match it. It is immutable once
// published, and so safe for concurrent use.
type Rule struct {
	ID          string // a UUID
	Description string

	// The patterns of each attribute, as they were written, none of them twice. An
	// attribute without patterns matches everything; at least one has some.
	Indices, Usernames, Roles []string

	Group     string    // the workload group's id; there may be none with it any more
	UpdatedAt time.Time // UTC, in whole milliseconds; moves forward with every change

	unknown records.Unknown // what a newer version has written beside these
}

// Values returns the patterns of an attribute: IndexPattern, Username or Role. They are
// the rule's.
func (r *Rule) Values(attribute string) []string {
	switch attribute {
	case IndexPattern:
		return r.Indices
	case Username:
		return r.Usernames
	case Role:
		return r.Roles
	}
	return nil
}

// named reports whether the rule says anything of who searches.
func (r *Rule) named() bool { return len(r.Usernames)+len(r.Roles) > 0 }

// rivals reports whether two rules are about the same attributes and, in each, have a
// pattern in common. Username and role are one attribute, the principal.
func (r *Rule) rivals(other *Rule) bool {
	if r.named() != other.named() || (len(r.Indices) > 0) != (len(other.Indices) > 0) {
		return false
	}
	if len(r.Indices) > 0 && !meet(r.Indices, other.Indices) {
		return false
	}
	return !r.named() || meet(r.Usernames, other.Usernames) || meet(r.Roles, other.Roles)
}

func meet(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}
