// Package wlm decides when a search may start.
//
// A search belongs to a workload group. When the group throttles, the search needs a permit of its bucket: the whole group, or
// the group's searches of one user or one role. A bucket has up to two tiers of permits. The node tier is this node's own
// allowance (node_limit). The shared tier is a further allowance for all nodes together (shared_limit), whose permits are with the
// bucket's owner. What finds no permit parks in the bucket's queue, as far as size_per_bucket allows, and is admitted first in,
// first out, once a permit frees. What may not park is refused.
//
//	ticket, err := admission.Enter(ctx, wlm.Request{Group: id, Principal: who})
//	if err != nil { ... }           // refused, stopped, or cancelled already
//	permit, err := ticket.Wait(ctx) // blocks while parked
//	if err != nil { ... }           // cancelled while parked
//	defer permit.Close()            // hands the slot to the oldest waiter
//
// A parked search is a blocked goroutine and nothing else. There is no queue timeout: a wait ends by a permit, by the end of its
// context, or because nothing is left to wait for.
//
// # How it works
//
// Mode and groups form one policy, an immutable value behind an atomic pointer with a revision that only grows. Under a bucket's
// short lock everything about the bucket is decided, and little else is done: messages are sent after it is released, and of those
// who have been decided about the first, mostly the only one, is woken then too. An arrival looks at the policy again under its bucket's lock and starts over when its group's
// plan has changed, so nobody parks behind a change that has already passed the bucket. A change stores the policy first and then
// visits the buckets of the groups that it concerns, one at a time.
//
// Each group has one bucket for all its searches, which is part of it and has a lock of its own, and a sharded table of buckets for
// principals. A shard has one lock for its part of the table and for the buckets in it. So a principal's bucket is found, or made
// by the first search that needs it, and decided about in one step, and it is taken out in the step after which nothing is left in
// it. Nobody holds two of these locks at once.
//
// The first to decide a waiter wins, and every decision is made under the bucket's lock. Who grants looks at the waiter's context
// there: a cancelled waiter is evicted and the next one is taken. Once granted it is admitted, and counted so, even if its context
// ends a moment later.
//
// When a tier comes or goes, or a limit changes, waiters stay; a raised limit admits as many as fit, at once. When there is
// nothing left to wait for all waiters of the bucket are admitted at once without a permit ("untracked"): the group was deleted,
// has no limit any more, throttles by another attribute, entered the monitor mode, or workload management left the mode enabled.
//
// # Invariants
//
// Verification ([WithVerification]) checks them in code after each step.
//
//   - I1 every arrival has exactly one counted exit: admitted, refused, or cancelled. Counters move only where that is decided.
//   - I2 a waiter is decided once; no permit leaks.
//   - I3 the waiting waiters of a bucket are at most the plan's size_per_bucket at the moment of parking; a group's waiters,
//     pending ones too, are at most groups.MaxQueued.
//   - I4 a principal's bucket is kept exactly while it has waiters, permits, questions under way or an advertised depth; nothing
//     else grows with the number of principals.
//   - I5 first in, first out within a bucket; a newcomer never overtakes the parked.
//   - I6 tracked permits never grow past the plan's limit. A lowered limit stops admissions until it is kept again; it ends nobody.
//   - I7 node tier: after every call no waiter is parked while the bucket has a free permit.
//   - I8 monitor, of a group or of the mode, never parks, refuses, cancels or registers a waiter anywhere.
//   - I9 a permit closes once; a second close changes nothing and is reported to verification.
//   - I10 at rest the sums agree: tracked and untracked permits are the running searches of a group, waiters the parked ones. An
//     untracked permit never counts against a limit that is set later.
//   - I11 removing any waiter is O(1); cancelling N is O(N).
package wlm
