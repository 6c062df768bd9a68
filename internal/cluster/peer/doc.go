// Package peer is how the nodes of a cluster talk: gRPC, one connection from each node to each other.
//
// [Server] is the side that is called, [Peers] the side that calls. Both show a certificate and look at the other's, unless all is on
// loopback addresses. Each call names the cluster and the two members; a node refuses a call of another cluster, and one that is meant
// for another node or for what ran at its address before.
//
// Four things travel:
//
//   - Sessions of the shared tier. [Peers.Session] opens one; see [tier.Stream]. A stream is bounded by the windows of its connection:
//     who sends faster than the other side receives waits.
//   - Questions to shards. [Shards] is a [shard.Transport] that asks whichever member has a copy.
//   - REST requests that one node answers for itself ([Peers.Local]): views over all nodes are made of them.
//   - [Peers.Await]: has that node applied this revision of the metadata?
//
// # Bounds
//
// A message has at most 256 MiB, either way. A frame of a session has at most 1,024 envelopes, and at most 16,384 wait to be sent in one.
// A connection on which nothing was heard for 10 s is asked, and broken when there is no answer for 5 s more: so long a half-open one is
// taken for alive. A connection that broke is tried again after 50 ms, then ever later, at most 2 s apart.
package peer
