package tasks

import (
	"fmt"
	"strconv"
	"strings"
)

// unset is how the id of no task is written.
const unset = "unset"

// ID names a task: the node that it runs on, and its number there. The zero ID names none.
type ID struct {
	Node   string
	Number int64
}

// ParseID reads the form "node:number". The empty text and "unset" give the zero ID. What cannot be read is a
// *[MalformedIDError]. A number that no task can have, such as -1, is read all the same: ask [ID.IsSet].
func ParseID(s string) (ID, error) {
	if s == "" || s == unset {
		return ID{}, nil
	}
	node, digits, ok := strings.Cut(s, ":")
	if !ok {
		return ID{}, &MalformedIDError{Value: s}
	}
	number, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return ID{}, &MalformedIDError{Value: s, NotANumber: true}
	}
	return ID{Node: node, Number: number}, nil
}

// IsSet reports whether the id can name a task. The zero ID and the number -1, by which clients say "none", cannot.
func (id ID) IsSet() bool { return id != ID{} && id.Number != -1 }

// String is the form that [ParseID] reads; of the zero ID it is "unset".
func (id ID) String() string {
	if (id == ID{}) {
		return unset
	}
	return id.Node + ":" + strconv.FormatInt(id.Number, 10)
}

// MalformedIDError says that a text is no task id.
type MalformedIDError struct {
	Value string
	// NotANumber: there is a node, but what follows the colon is not a whole number of 64 bits.
	NotANumber bool
}

func (e *MalformedIDError) Error() string {
	if e.NotANumber {
		return fmt.Sprintf("malformed task id %q: what follows the colon must be a number", e.Value)
	}
	return fmt.Sprintf("malformed task id %q: it must be a node id, a colon and a number", e.Value)
}
