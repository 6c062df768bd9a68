// Package trap has exactly one message of a gRPC connection be lost: it watches what passes a link between two processes, as
// [faultproxy.Proxy.Watch] has it, and where the message that a test has picked is complete the connection breaks before it.
//
// It reads connections without TLS and messages without compression, as tests on loopback have them.
package trap
