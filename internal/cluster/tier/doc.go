// Package tier is the shared tier over many nodes: [Tier] is the [wlm.Link] of a node in a cluster. Towards the owners of buckets it
// opens one session with each member that may own; towards coordinators it serves their sessions and drives the [sharedtier.Tenure]
// of what this node owns. A node has a session with itself as well, without a network.
//
// Which member owns a bucket is a matter of the ring. At every epoch all sessions are opened anew, and an owner grants only when every
// member of the epoch has announced what it holds. A member that hangs without leaving the ring stalls the shared tier for as long as its
// membership lasts: that is the price of never running more searches than the limit.
//
// Between a permit's owner and its holder stand leases. A coordinator uses a permit only while the owner surely still holds it for it:
// until a lease after the sending of the last beat that the owner has echoed. The owner frees the permits of a session a lease after
// the last beat that it has read, which is later. Before a grant the owner asks whether its own membership still holds. So what can run
// above the limit is only a search that already ran on a node that was cut off, from its owner or from etcd, for longer than a lease.
package tier
