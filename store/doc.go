// Package store keeps the durable metadata of one node in a bbolt file in its data folder: workload
// groups, rules, persistent settings, and the node's id.
//
// Every change is one transaction and one wait for the disk; a call that returns nil has changed what
// the next start will read, whatever happens to the process or the machine. A call that fails has
// changed nothing.
//
// The file has these buckets:
//
//	node      schema_version, node_id
//	groups    group id -> groups.Encode
//	rules     rule id -> rules.Encode
//	settings  key -> text
//	cluster   last_seen, what a node of a cluster saw last of its metadata
//
// Each of groups, rules and settings is a [records.Repository]; its revision is the bucket's sequence.
//
// A file of an older schema is brought up to this one when it is opened; then the older server refuses
// it. A file of a newer schema is refused, and so is one that is damaged: nothing is repaired or dropped
// in silence. The file is made aside and gets its name when it is complete, so a server that dies
// during its first start leaves nothing behind that the next one would take for damage.
package store
