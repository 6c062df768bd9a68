// Package cluster makes one node a member of a cluster: metadata and membership in etcd (package meta), calls between nodes (package
// peer), and the shared limits (package tier), put together so that each hears of what it needs in the right order.
package cluster
