// Package rules says which workload group a search belongs to that does not name one,
// and keeps the live set of the rules that say it.
//
// A [Rule] has patterns for up to three attributes: the indices of a search, its user
// and its user's roles. A pattern is a name, or the beginning of names with one * at
// its end. Patterns are kept as they were written: logs-a is that index alone.
//
// # Which rule a search follows
//
// A rule matches when all of this holds:
//
//   - it has no index patterns, or each index of the search matches one of them;
//   - it has no usernames and no roles, or the user matches one of the usernames, or
//     one of the user's roles matches one of the roles.
//
// Of several rules that match, those stay that fit the user best, of these the ones
// that fit the roles best, of these the ones that fit the indices best. A name fits
// better than a beginning, a long beginning better than a short one, and any better
// than a rule that says nothing of the attribute; several roles or indices that match
// add up. When the rules that are left are of two groups, none is followed.
//
// The indices of a search are compared as they stand in the request: the pattern logs-*
// in a request matches the pattern logs-* or log* of a rule, never logs-a. A search of
// all indices counts as one of the index _all, which the pattern * matches.
//
// # Changes
//
// The [Registry] commits one change at a time, as that of package groups does: decide,
// write to the [records.Repository], publish a new [Snapshot], tell the listeners, answer. A
// snapshot is ready to match; readers take it by one atomic load.
//
// A rule's group must exist when a change names it. That group may be deleted later:
// the rule stays, can be read, changed and deleted, and whoever follows it finds no
// group of that id.
package rules
