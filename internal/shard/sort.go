package shard

import (
	"cmp"
	"strings"
)

// Sort is one criterion of an order of documents.
type Sort struct {
	Field      string
	Descending bool
}

// Key is the value of a document under one Sort. The zero value is a document
// without the field; it comes last in either direction.
type Key struct {
	Kind   KeyKind
	Number float64
	Text   string
}

// KeyKind says which part of a Key counts.
type KeyKind uint8

// The kinds of a Key, in the order in which they sort among each other.
const (
	Missing KeyKind = iota
	Number
	Text
)

// Compare orders two documents by their keys under sorts: negative when a comes
// first. Both need one key for each criterion.
func Compare(sorts []Sort, a, b []Key) int {
	for i, s := range sorts {
		if c := compareKeys(s, a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

func compareKeys(s Sort, a, b Key) int {
	if a.Kind == Missing || b.Kind == Missing {
		return cmp.Compare(b.Kind, a.Kind) // the one that is there comes first
	}
	c := cmp.Compare(a.Kind, b.Kind)
	if c == 0 {
		switch a.Kind {
		case Number:
			c = cmp.Compare(a.Number, b.Number)
		case Text:
			c = strings.Compare(a.Text, b.Text)
		}
	}
	if s.Descending {
		return -c
	}
	return c
}
