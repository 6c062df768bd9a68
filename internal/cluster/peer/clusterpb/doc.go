// Package clusterpb is the generated code of cluster.proto: what the nodes of a cluster say to one another. make proto generates it.
package clusterpb
