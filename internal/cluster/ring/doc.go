// Package ring says which member of a cluster owns a bucket.
//
// A [Ring] is the members of one epoch. Every member that may own has 128 points on a circle of 64 bits, which
// follow from its id alone; a key belongs to the member whose point comes next. So all nodes that know the same
// members name the same owner, in whatever process, and a member that comes or goes moves only keys of its own.
// The positions are a promise between versions: nodes of different ones share a ring.
package ring
