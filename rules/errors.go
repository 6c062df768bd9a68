package rules

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// An InvalidError says in which ways a body or a change breaks the rules for rules, and
// what to do instead. The fault is the client's.
type InvalidError struct {
	Problems []string // at least one

	// Line and Column, both from 1, are where a value of the wrong kind stands in the
	// body, which OpenSearch calls a parsing_exception; else 0.
	Line, Column int
}

// Error lists the problems with their numbers where there are several.
func (e *InvalidError) Error() string {
	if len(e.Problems) == 1 {
		return e.Problems[0]
	}
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%d: %s", i+1, p)
	}
	return b.String()
}

// A NotFoundError says that no rule has the id.
type NotFoundError struct {
	ID string
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("no rule has the id [%s]; see GET _rules/workload_group for those there are", abridge(e.ID))
}

// A TooManyError says that there is no room for another rule.
type TooManyError struct {
	Max int // the value of wlm.autotagging.max_rules
}

func (e *TooManyError) Error() string {
	return fmt.Sprintf("there may be no more than %d rules; delete one, or raise [wlm.autotagging.max_rules]", e.Max)
}

func invalid(problems ...string) error { return &InvalidError{Problems: problems} }

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
