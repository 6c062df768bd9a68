// Package openapi holds the server to openapi.yaml, its description for machines: an answer that the description does not
// allow is a mistake of one of the two.
//
// Tests that talk to a server put [Contract.Watch] between their client and the network, and need nothing more: every
// answer is checked in passing. That the description names just the routes that there are is tested beside the table of
// routes, in api/rest, and that docs/rest-api.md is made of it here.
package openapi
