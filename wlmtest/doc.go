// Package wlmtest runs a server inside a Go test: what a client of OpenSearch's workload management is tested against.
//
//	s := wlmtest.Start(t)
//	resp, err := http.Get(s.URL + "/_wlm/workload_group")
//
// Each server is alone: a free port of the loopback address, a data folder of its own, no log output. It is gone when
// the test ends. Many may run at once, also in parallel tests.
//
// What a search does is said by the search itself, so that a test needs no clock and no luck:
//
//	{"query": {"match_all": {}}, "ext": {"stub": {"query_time": "300ms"}}}
//
// And what goes wrong is scripted: [Server.Fault] has requests answered late, with an error, not at all, or with a body that is
// broken. [Server.Requests] tells what the client sent, and [Server.Reset] makes a server as new for the next test.
package wlmtest
