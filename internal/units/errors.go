package units

import "fmt"

// A ParseError says why a text is not a time or a byte size.
type ParseError struct {
	Key    string // the setting or parameter that holds the value; may be empty
	Value  string // as it was written
	Reason string // what is wrong, and what would be right

	// NumberFormat is true where the unit was understood and the number before it
	// was not: OpenSearch then nests a number_format_exception as the cause.
	NumberFormat bool
}

// Error names the key, the beginning of the value, and the remedy.
func (e *ParseError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("cannot read [%.100s]: %s", e.Value, e.Reason)
	}
	return fmt.Sprintf("cannot read the value [%.100s] of [%s]: %s", e.Value, e.Key, e.Reason)
}
