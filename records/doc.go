// Package records keeps a set of records of one kind, and the live view of it.
//
// A [Repository] stores the set durably, as bytes under ids, and numbers its states with
// a revision. Every change names the revision that it was decided on and is made on that
// one or not at all ([StaleError]). So whatever must hold for the set as a whole, such as
// unique names or the sum of limits, is decided by who sees the whole of it, and holds
// however many processes share the repository.
//
// A [Registry] is the set in memory: values in the place of bytes, and a snapshot that
// readers take by one atomic load. It decides a change, commits it, publishes the next
// snapshot, tells the listeners, answers. When somebody else has been faster it reads the
// set anew and decides again. Changes that others have made it takes in by
// [Registry.Reload].
//
// Records are JSON objects where a kind does not say otherwise. [Encode] and [Decode]
// carry along the members that this version does not know: what a newer one has written
// outlives a change by an older one.
package records
