// Package settings is the catalogue of cluster settings and the live values of the dynamic ones.
//
// A value comes from the first of these layers that has one:
//
//  1. transient: set by a request, lost when the server ends; in a cluster kept in the [records.Repository], too
//  2. persistent: set by a request, kept in the [records.Repository]
//  3. start: written in the configuration file; in a cluster, that of the server which gave one first
//  4. the value of the deprecated key that the setting replaces, found in the same way
//  5. the default
//
// A [Registry] checks the whole state that an update would lead to before it commits anything: every
// value against its type and bounds, and the dependencies between settings. It checks that state with
// the transient layer and without it, so that neither a restart nor a reset of all transient settings
// can lead into a state that is not allowed. An update is applied as a whole or not at all.
//
// Readers take a [Snapshot]: one atomic load, then look-ups of values that were parsed when they were set.
//
// A persisted value that this version does not know or no longer allows never stops the start. It is
// archived: kept in the repository, printed as "archived." and its key, reported by [Registry.Problems],
// and without an effect. Where it is known, and goes with the others, it is used again. Resetting it
// removes it. So the settings in force follow from the records alone, and are the same on all servers of
// one version.
package settings
