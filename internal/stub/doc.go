// Package stub is the search stub: it answers searches like a search engine
// without being one, and makes them cost what a test wants them to cost.
//
// # What it is
//
// Indices have shards, shards hold documents in memory, and a search asks every
// shard in a query phase and the shards with hits in a fetch phase, each with a
// task of its own, on a bounded pool of workers. All that is real: the waiting
// in the pool's queue, the tasks, the time, the processor time that is burnt and
// the memory that is held.
//
// The query is not real. It has to be well formed and of a type that OpenSearch
// knows; then it matches every document of the index, with the score 1.0.
// Aggregations, highlighting, suggestions and the other parts of a search body
// are accepted under their names and do nothing. A part that could not be
// ignored without misleading the client, such as search_after, is refused.
//
// # What a search costs
//
// The body of a search says it under "ext": {"stub": {...}}; what it leaves out
// comes from the index's settings index.stub.*, and then from the configuration.
// Every amount is that of one shard. See Cost for the keys. One more key, in a body
// alone, is nested: the indices of a search that is carried out first, on behalf of
// this one, as the lookup of a real query would be.
//
// A phase holds its memory, burns its processor time and then waits until its
// time is over, so a query that takes 300 ms and burns 50 ms lasts 300 ms. All
// of it goes in steps of 5 ms at most, and between steps the phase looks whether
// its task was cancelled or its time is over; with ignore_cancel it looks only
// at its end, as some real queries do.
//
// # How a search is carried out
//
// An execution resolves its indices when it runs, not when it is prepared: a
// search that waited for admission sees the indices as they are when it starts.
// It asks its shards through a shard.Transport; on a node alone that is the engine itself.
// When its task is cancelled it asks no further shard and begins no further
// phase, and returns when the shards that work have stopped.
//
// # Over several nodes
//
// What is known of the indices, and which node holds which copy of their shards, is one set of records that all engines of a cluster
// share (see Cluster). Each of them decides a change on the newest state of it, so that any may, and all come to the same. The documents
// are in the memory of the nodes that hold the copies. A copy has a number that is given once. Whoever asks for something by a number that
// is no copy any more is refused, and looks again.
//
// A primary carries changes out one after another, numbers them, and sends them to the copies that it knows of at that time. A copy that is
// to be filled reads the primary's documents in the order of these numbers once the primary knows of it; what comes twice, or late, is
// told by its number.
package stub
