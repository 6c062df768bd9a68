// Package search runs one search from its arrival to its answer: it registers
// the task, finds the workload group, arms the deadline, asks for admission,
// lets the executor work and gives the permit back.
//
//	response, err := service.Run(ctx, request)
//
// What a search is, and whether one is valid, only the [Executor] knows: a
// request keeps its method, path, query, headers and body as they came, and a
// response is a status, headers and bytes. So the same service stands in front
// of an engine in this process or of a server elsewhere.
//
// A search takes these steps, in this order:
//
//  1. The executor prepares the request. An invalid one ends here: it has no
//     task, never waits and is counted nowhere.
//  2. The task is registered. Its context ends when somebody cancels it, with
//     the reason as the context's cause.
//  3. Rules, group and limits are read, from one snapshot each, and the deadline
//     is armed: it bounds the wait as well as the work.
//  4. The search asks for admission. It runs at once, waits for a permit, or is
//     refused. One that is cancelled while it waits never runs.
//  5. The executor works. Whoever was admitted gets that far, and ends like any
//     running search if it is cancelled meanwhile.
//  6. The permit ends as soon as the executor is done, before the answer is
//     written, so that a slow reader holds none; then the task ends.
//
// The task counts for its group from step 5 on: refused and evicted searches
// are not among the completions.
//
// Counts, the items of a multi-search and the pages of a scroll take the same
// way. [Service.RunMulti] adds a rule of its own, which keeps a multi-search
// from refusing itself. A scroll's pages are worked at one after the other, and
// the scroll cannot expire while a page of it waits or runs.
package search
