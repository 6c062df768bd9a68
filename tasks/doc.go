// Package tasks knows which requests run on this node, and cancels them, each with its cause.
//
// Every request that may take a while is a [Task]: the coordinator of a search, the query that it sends to a shard, a listing
// of the tasks themselves. The one who starts a request registers it, works under the task's context, and ends it, best by
// defer, so that a panic ends it too:
//
//	t, err := manager.Register(ctx, tasks.Spec{Action: "indices:data/read/search", Type: tasks.Transport, Cancellable: true})
//	if err != nil {
//		return err // cancelled before it started
//	}
//	defer t.End()
//	work(t.Context())
//
// # Cancellation
//
// A cancelled task goes on running until its owner notices: cancelling ends the task's context, nothing else. Why it ended
// is the [Cause], which is also what [context.Cause] of that context answers. The rules:
//
//   - The first cause stays; later ones change nothing.
//   - The tasks under a cancelled task are cancelled with the same cause, down to the last one.
//   - No task starts under a cancelled one: registering it fails with a [CancelledError]. A child registered while its parent
//     is being cancelled is either refused or cancelled, never missed.
//   - A task is cancelled when the context that it was registered with ends, which for a request from outside means that its client
//     went away. That begins when its own context is first asked for: before, it has no work that could go on in vain.
//   - What a task waits for is cancelled with it, when its status is a [Waiter].
//   - A task that is not [Spec.Cancellable] runs in the context it was registered with and ignores every cancellation, but those
//     under it do not, and none starts under it once its own parent is cancelled.
//   - An ended task cannot be cancelled. Tasks that it leaves behind are orphans: still listed under its id, still cancellable,
//     but no longer reached from above.
//
// # Locks
//
// No lock is shared by all requests. The manager spreads the tasks over shards, and each task has a lock of its own. No two
// locks of tasks are ever held together, no lock is held while a context that somebody has is cancelled, a timer stopped or a
// hook called, and only [Manager.List] and [Manager.GroupUsage] take more than one lock at once: those of all shards, in order,
// for as long as it takes to copy their pointers.
package tasks
