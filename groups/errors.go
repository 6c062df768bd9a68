package groups

import (
	"fmt"
	"unicode/utf8"
)

// An InvalidError says that a body or a change breaks a rule, and what to do instead.
// The fault is the client's.
type InvalidError struct {
	Reason string

	// Type is what OpenSearch calls the fault where it is not an
	// illegal_argument_exception: TypeNumberFormat or TypeParsing.
	Type string

	// Line and Column, both from 1, are where a fault of TypeParsing stands; else 0.
	Line, Column int
}

// The types that an InvalidError may have.
const (
	TypeNumberFormat = "number_format_exception"
	TypeParsing      = "parsing_exception"
)

func (e *InvalidError) Error() string { return e.Reason }

// A NotFoundError says that no group has the name.
type NotFoundError struct {
	Name string
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("no workload group has the name [%s]; create it, or see GET _wlm/workload_group for those there are", abridge(e.Name))
}

// A TooManyError says that there is no room for another group.
type TooManyError struct {
	Max int // the value of node.workload_group.max_count
}

func (e *TooManyError) Error() string {
	return fmt.Sprintf("there may be no more than %d workload groups; delete one, or raise [node.workload_group.max_count]", e.Max)
}

func invalidf(format string, args ...any) error {
	return &InvalidError{Reason: fmt.Sprintf(format, args...)}
}

// abridge shortens a text that a message quotes.
func abridge(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
