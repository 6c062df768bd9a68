// Package compat sends generated requests to this server and to a real OpenSearch node, the same to both, and compares what they
// answer: status, error type, content type, the shape of the answer and those values that two servers can share.
//
// The requests come in sequences. Each begins on two empty servers and carries its state along: indices, documents, groups,
// settings, scrolls. Ids that a server makes up are written as names and replaced for each side. A request is a valid one drawn from a
// grammar of the API, and then often damaged: in its method, path, parameters, headers or body.
//
// Rules are left out: the plugin that has _rules/workload_group is not on Maven Central, from where the launcher's node comes, and so
// is that of _wlm/workload_group, of which the launcher brings the four handlers itself.
//
// What is meant to differ stands in one list, with its reason and its place in docs/differences.md. All else fails the run, made as
// small as it stays different. The run of the default seed meets all that is on the list: every other sequence is of requests that are
// known to differ, which take turns.
//
// By itself the package only tests its own parts. With -opensearch, a launcher such as bench/opensearch/node.sh, it runs:
//
//	go test ./test/compat -v -timeout 0 -opensearch ../../bench/opensearch/node.sh -seed 7
package compat
