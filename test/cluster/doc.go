// Package cluster tests what several nodes do together, with an etcd within the test's own process. It is a module of
// its own, so that the server's does not come to know the server of etcd.
package cluster
