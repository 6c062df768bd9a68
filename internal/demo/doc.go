// Package demo shows in a few seconds what admission control does: a server of its own, a group with a limit and a queue,
// and a burst of searches over both. It draws what runs, waits, was admitted, refused and cancelled, and ends with the
// group's statistics and the commands that repeat it by hand.
//
// The demonstration is a client like any other: it speaks HTTP to the server, and each figure that it shows comes from an
// answer (its own tally of them, GET _tasks, GET _wlm/stats).
package demo
