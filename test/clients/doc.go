// Package clients drives the real server with OpenSearch's own clients, each written as its users write it, and with
// opensearch-benchmark.
//
// The client for Go, and curl where there is one, run with every go test. The others need toolchains of their own and, the first
// time, package registries:
//
//	go test ./test/clients -v -clients all
//
// Every client goes through the same list of checks. A program that is one of them is told the two servers by environment variables
// and prints a line a check: "ok NAME" or "not ok NAME: REASON". What passes over the wire is looked at by the test, for all of them.
package clients
