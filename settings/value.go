package settings

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/wlmserver/wlmserver/internal/units"
)

// value is a setting's text and what it means.
type value struct {
	text   string
	number int64   // whole numbers, byte sizes, nanoseconds of times, 1 for true
	float  float64 // doubles
}

// parser reads the text of a value of one setting. Its error is an [InvalidError].
type parser func(key, text string) (value, error)

// invalid is the usual refusal of a value.
func invalid(key, text, format string, args ...any) *InvalidError {
	return &InvalidError{Key: key, Value: text, Reason: fmt.Sprintf(format, args...), Type: illegalArgument}
}

func parseText(_, text string) (value, error) { return value{text: text}, nil }

func parseBoolean(key, text string) (value, error) {
	switch text {
	case "true":
		return value{text: text, number: 1}, nil
	case "false":
		return value{text: text}, nil
	}
	return value{}, invalid(key, text, "only [true] or [false] are allowed")
}

func parseEnum(words []string) parser {
	return func(key, text string) (value, error) {
		if !slices.Contains(words, text) {
			return value{}, invalid(key, text, "must be one of [%s], written exactly so", strings.Join(words, ", "))
		}
		return value{text: text}, nil
	}
}

func parseTime(key, text string) (value, error) {
	d, err := units.ParseTime(key, text)
	if err != nil {
		return value{}, unitsError(key, text, err)
	}
	return value{text: text, number: int64(d)}, nil
}

func parseSize(key, text string) (value, error) {
	n, err := units.ParseBytes(key, text)
	if err != nil {
		return value{}, unitsError(key, text, err)
	}
	if n < 0 {
		return value{}, invalid(key, text, "must not be negative")
	}
	return value{text: text, number: n}, nil
}

// unitsError keeps what was wrong with a time or a size.
func unitsError(key, text string, err error) *InvalidError {
	e := invalid(key, text, "%v", err)
	if p, ok := errors.AsType[*units.ParseError](err); ok {
		e.Reason, e.NumberFormat = p.Reason, p.NumberFormat
	}
	return e
}

func parseWhole(least, most int64, bits int) parser {
	return func(key, text string) (value, error) {
		n, err := strconv.ParseInt(text, 10, bits)
		if err != nil {
			e := invalid(key, text, "must be a whole number of at most %d bits", bits)
			e.NumberFormat = true
			return value{}, e
		}
		switch {
		case n < least:
			return value{}, invalid(key, text, "must be at least %d", least)
		case n > most:
			return value{}, invalid(key, text, "must be at most %d", most)
		}
		return value{text: text, number: n}, nil
	}
}

func parseDouble(i interval) parser {
	return func(key, text string) (value, error) {
		f, err := parseDecimal(text)
		if err != nil {
			e := invalid(key, text, "must be a finite decimal number")
			e.NumberFormat = true
			return value{}, e
		}
		if !i.contains(f) {
			return value{}, invalid(key, text, "must be %s", i.words())
		}
		return value{text: text, float: f}, nil
	}
}

// parseDecimal reads a finite number in decimal notation. strconv alone would also take hexadecimal
// digits, underscores and the words for infinity and not-a-number.
func parseDecimal(text string) (float64, error) {
	if strings.Trim(text, "0123456789+-.eE") != "" {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(text, 64)
}

// interval is a range of doubles; its upper end always belongs to it.
type interval struct {
	least, most float64
	open        bool // least itself does not belong to it
}

// upTo is from 0 to most.
func upTo(most float64) interval { return interval{most: most} }

func atLeast(least float64) interval { return interval{least: least, most: math.Inf(1)} }

func aboveZero() interval { return interval{most: math.Inf(1), open: true} }

// shareAboveZero is above 0 and at most 1.
func shareAboveZero() interval { return interval{most: 1, open: true} }

func (i interval) contains(f float64) bool {
	return f <= i.most && (f > i.least || f == i.least && !i.open)
}

// words completes "must be".
func (i interval) words() string {
	least := fmt.Sprintf("at least %v", i.least)
	if i.open {
		least = fmt.Sprintf("above %v", i.least)
	}
	if math.IsInf(i.most, 1) {
		return least
	}
	return fmt.Sprintf("%s and at most %v", least, i.most)
}

// String prints the range for the catalogue.
func (i interval) String() string {
	switch unbounded := math.IsInf(i.most, 1); {
	case unbounded && i.open:
		return fmt.Sprintf("> %v", i.least)
	case unbounded:
		return fmt.Sprintf(">= %v", i.least)
	case i.open:
		return fmt.Sprintf("> %v, <= %v", i.least, i.most)
	default:
		return fmt.Sprintf("%v..%v", i.least, i.most)
	}
}
