// Package indices keeps the live set of a cluster's indices: what each was made of, and which members hold copies of its
// shards.
//
// It knows the set, not what an index is: the document of settings and mappings is its users' to read. A [Registry]
// decides a change on the set as it is, commits it, publishes a new [Snapshot], tells the listeners, answers; when
// another member has been faster it decides anew. Documents of an index are not here: the members hold those.
package indices
