// Package faults holds a script of faults for whoever tests a client: which requests are to be answered late, with an error, not
// at all, or with a body that is broken.
//
// A [Fault] says which requests it is for (by method and by path), when it acts (After so many of them, and then so many Times),
// and what it does. A [Script] is a list of them. Each request is looked up once, by [Script.Take]: the first fault of the list
// that is for it and is due acts, and no other one does. One that is passed over because others are to go before has seen the
// request all the same, and so have those above the one that acts; those below have not.
//
// The package decides and counts. It knows nothing of connections; what a fault does is done by whoever answers the request.
package faults
