// Package nodes tests several nodes as processes of their own, with an etcd in the test's process, and with a link that can be disturbed
// on each way from one to another. What the nodes' admissions did goes into one checker over all of them.
package nodes
