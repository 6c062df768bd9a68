// Package load drives a server with searches and says what became of them: how many were answered with what, how fast,
// how evenly, and whether the server's own counters agree. It knows nothing but HTTP, so it drives any server that speaks
// OpenSearch's REST API.
//
// The load is a closed loop of clients, each of which sends its next request when it has the answer to the one before, or
// an open loop of arrivals at a rate that no answer holds back. In an open loop the latency counts from the moment when a
// request was meant to be sent, so that a server that stalls does not hide it by holding up the driver.
//
// What a request is (its group, its user, whether it is cancelled) follows from the seed and its number alone.
//
// The driver is light, as it often shares the processors with the server: a connection is a goroutine that writes one
// prepared buffer and reads one answer (see conn), and figures are kept in fixed memory (see histogram).
package load
