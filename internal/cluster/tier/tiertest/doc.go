// Package tiertest has streams of the shared tier in memory, and a network of them, for tests: with delays, lost messages, cuts and
// connections that are half open. Nothing in it starts a goroutine except a served session, and all waiting can be done by the clock of
// a bubble.
package tiertest
