// Package jsondoc reads one JSON document into a tree that keeps what encoding/json
// throws away: the order of members, where each value stands, and how numbers were
// written. It prints JSON the way OpenSearch does, prints a document as YAML, and leaves
// of one what a list of paths names. Those work on the text, in linear time, and need
// no tree.
//
// The parser is strict: RFC 8259 grammar, valid UTF-8, no key twice in an object,
// nesting up to [MaxDepth] and at most [MaxValues] values, so that neither the stack
// nor the heap grows without bound on a hostile body. It takes time linear in the
// size of its input. An escaped surrogate without its other half reads as U+FFFD,
// as encoding/json reads it.
//
// Values are not safe for concurrent change; nothing here changes them once parsed.
package jsondoc
