// Package soak holds a test that puts the real server, as a process of its own, under a random mixture of everything at once, for as
// long as one likes:
//
//	go test ./test/soak -soak 10m -seed 7 -v
package soak
