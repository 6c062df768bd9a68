// Package node is one running server: its configuration, the wiring of all other packages, its start and its stop.
// It is the only package that knows all the others.
//
// # Configuration
//
// [Keys] is the one table of what can be configured: name, kind, default and meaning. [Load] lays the sources over one
// another, later ones winning: the defaults, a YAML file of dotted or nested keys, the environment (WLMSERVER_ and the
// key in capitals, dots as underscores), and key=value overrides. Any dynamic cluster setting may be given too and is
// its start value; what PUT _cluster/settings stored wins over it. A key that nobody knows, and a value that does not
// fit, are errors that name the source, the key, the value and the remedy; with an error nothing starts.
//
// # Life
//
// A [Node] is running from [Start] on. [Node.Shutdown] stops it gently:
//
//  1. the listener closes; parked searches are refused with 429 and Retry-After, and so are those that were on their way;
//  2. running searches may end within node.shutdown_timeout;
//  3. what still runs is cancelled, with the cause that the node stops, and answers; what does not heed that is ended;
//  4. everything is closed, the store last.
//
// [Node.Close] does the same without the second step. Every change that was acknowledged is on disk before its
// answer, so even an end without any of these steps loses nothing.
package node
