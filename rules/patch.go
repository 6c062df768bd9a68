package rules

import "github.com/wlmserver/wlmserver/groups"

// A Patch is what the body of a create or an update says. What is absent keeps its
// value; patterns that are given replace all that the attribute had.
type Patch struct {
	Description groups.Field[string]
	Indices     groups.Field[[]string]
	Usernames   groups.Field[[]string]
	Roles       groups.Field[[]string]
	Group       groups.Field[string]

	unknown []string // what is wrong with keys that are no part of a rule
}

// Apply returns r with the change merged in. It checks nothing, changes neither r nor
// the patch, and leaves id and time of change as they are.
func (p Patch) Apply(r *Rule) *Rule {
	merged := *r
	set(&merged.Description, p.Description)
	set(&merged.Indices, p.Indices)
	set(&merged.Usernames, p.Usernames)
	set(&merged.Roles, p.Roles)
	set(&merged.Group, p.Group)
	return &merged
}

func set[T any](to *T, f groups.Field[T]) {
	if v, ok := f.Value(); ok {
		*to = v
	}
}

// problems lists what is wrong with the patch by itself.
func (p Patch) problems() []string {
	all := append([]string(nil), p.unknown...)
	for _, a := range []struct {
		name   string
		values groups.Field[[]string]
	}{{IndexPattern, p.Indices}, {Username, p.Usernames}, {Role, p.Roles}} {
		if values, given := a.values.Value(); given && len(values) == 0 {
			all = append(all, "the list [] of ["+a.name+"] is empty; give at least one pattern, or leave the attribute out")
		}
	}
	return all
}
