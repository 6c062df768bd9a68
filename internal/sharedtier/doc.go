// Package sharedtier holds the two state machines with which nodes share one limit on a bucket: the [Coordinator], which has
// searches of the bucket, and the [Owner], which has the permits. They talk in [Message] values.
//
// The machines are pure: no I/O, no clock, no goroutine, no lock. Each step changes the state that it is called on and appends
// what has to be done to a list of the caller's. The queue itself belongs to the caller; the coordinator keeps counts of it.
//
// The protocol in short:
//
//   - A search that finds no room asks the owner once (Acquire) and is pending meanwhile: parked before it asks, so that no
//     grant can find an empty queue. The owner grants, or remembers how many waiters the coordinator has and denies.
//   - While the owner remembers us (Advertised > 0) further searches wait without a message of their own.
//   - A slot that frees is pushed (Grant) to the coordinators in turn; it runs the oldest waiter, whoever asked for it. A grant
//     that finds nobody goes back (Unused), and the owner forgets us.
//   - Whenever waiters exist, nothing is advertised and nothing is outstanding, the coordinator says how many it has (Want).
//     This one rule keeps every waiter from being stranded.
//   - A search that may not wait asks for one slot or nothing (Try) and is never remembered.
//
// Messages between one coordinator and one owner travel in a session: they arrive in the order in which they were sent, in both
// directions, or the session is over, and with it every question in it. A new one begins with all that the coordinator has
// (Announce for each bucket, then Done).
//
// Which member owns a bucket is said by the ring, whose versions are the epochs. At every epoch each member that may own begins a
// [Tenure] from nothing, and grants only when every member of the epoch has announced: so no change of the ring, and no restart, lifts
// the number of searches that run above the limit. A session that is silent for its lease loses its permits; the coordinator, which
// knows by its own clock when the owner last heard of it, uses none after that.
//
// The exploration in this package's tests visits every order of events that small clusters can see, and shows by planted faults that
// each of these rules is needed.
package sharedtier
