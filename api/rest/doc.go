// Package rest is the HTTP interface: OpenSearch's paths, parameters and JSON on one side, the packages that do the
// work on the other. It decides nothing about searches; it reads, checks, asks and prints.
//
// # How a request goes through
//
// Every request becomes one call (call.go), which is also the http.ResponseWriter of everything below. Limits on the
// request line and the headers, echoes of X-Opaque-Id and X-Request-Id, the user, the query string: all that comes
// before routing, so that it holds for unknown paths too. Each entry of the route table (router.go) names what it
// takes: its query parameters, whether it reads a body, whether it needs an administrator. A handler works in two
// steps: it prepares, which reads and checks and changes nothing, and it returns what is to be done. Between the two,
// query parameters that nobody knows are refused, so that they never hide a mistake in the body, and what a request
// would register or change is not touched by a request that fails.
//
// A body is read whole, within limits, before anything waits: net/http notices that a client has gone only when the
// body has been read. All bodies in flight share a budget (budget.go), and a sender without progress is cut off.
//
// While a request waits or runs, its client's leaving ends its context with the cause [tasks.DisconnectCause]. Where a
// stray byte behind the request keeps net/http from seeing that, a watch of the connections does (disconnect.go).
//
// # Forms of bodies and answers
//
// Everything between reading and answering works on plain JSON. A body that is gzip is inflated as it comes, within the
// limits, and one in YAML is turned into JSON (yamlbody.go). An answer is JSON until the last step: then filter_path leaves
// some of it, it is laid out for people or as YAML (format.go), and compressed (compress.go), as the request wants.
//
// # Errors
//
// There is one table (errors.go): the type of an error decides status, exception type, extra fields and causes. An
// error that is not in it is a mistake of the program: it is logged and answered 500 without its text.
//
// # Tables
//
// What is a table in OpenSearch is one here (table.go): columns, and rows of cells that know what they are, so that they
// sort as numbers, times and sizes, and print in the unit that is asked for. It is text, or, where a request asks for it,
// a document like every other answer. The statistics of groups come in pages (statspage.go): a token names the last row of
// a page and all the rows there were, and leads nowhere once those have changed.
//
// # Several nodes
//
// What a node tells or does for itself is a part of an answer (view.go): statistics, tasks, rows of tables. A node alone has one part to
// make its answer of. In a cluster it asks the nodes that are meant (discovery.go), all at once, for theirs, by sending them the
// request as it came, with the user that it has found; ServeLocal (local.go) answers such a request with the part alone, in JSON. So
// the fields of a part are what nodes of different versions must agree on: one that is not there counts as zero, or not known. Who
// gives no answer in time is counted, and keeps nobody else's part away. What is about one task is answered by its node. How nodes reach
// one another is nothing that this package knows: see Cluster.
//
// # Control
//
// For tests of clients a server can have routes under /_stub (control.go), where faults are scripted (package faults), what came in
// is read (requestlog.go), and all is forgotten (reset.go). Faults act around everything else: after a request has been opened
// and before it is dispatched, and once more when its answer is sent.
//
// # Left to later versions
//
// Statistics of nodes have the shape of search backpressure, which there is none of: all that it counts is zero.
package rest
