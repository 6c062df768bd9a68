// Package meta keeps what the nodes of a cluster share in etcd: workload groups, rules, settings, indices, who is a
// member, and the ring.
//
// Below one prefix lie these keys:
//
//	schema               version of this layout, and the id of the cluster
//	sets/<kind>          one for each of settings, groups, rules, indices: written by every change of that set
//	sets/<kind>/<id>     a record of the set
//	members              written by every registration
//	members/<node id>    a member, for as long as its lease lives
//	ring                 the members of the ring; its mod revision is the epoch
//
// A set's revision is the mod revision of its key. Every change is one transaction that compares it, so that what
// must hold for the set as a whole holds however many nodes write; a transaction that fails brings back what is
// there now. It compares the schema as well: an older node does not write into a newer layout. Where a change needs
// something of all members, it compares the key members, too.
//
// A [Client] follows the prefix by a watch. What it has read is a view of one revision, which it replaces by another;
// after a compaction, a lost connection, or where somebody knows of a revision that the watch has not brought, it
// reads the whole prefix. Everything that the nodes share is small: some hundred records.
//
// The ring is read from its key and from nowhere else. Whichever member first sees that it does not name the members
// that are registered writes it anew, on the revision that it has read.
//
// The client keeps the last view in the node's own store. A node that starts while etcd is out of reach acts by that;
// it refuses changes until etcd is back.
package meta
