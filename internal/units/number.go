package units

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// A unit is one suffix of the notation and how many of the smallest unit it is worth.
type unit struct {
	suffix string
	factor int64
}

// whole reads the whole number before a unit and multiplies it. Its only negative
// result is -1, which means "none" whatever unit stands behind it. Reasons speak of
// kind, "a time" or "a size".
func whole(number string, u unit, kind string) (n int64, fault *ParseError) {
	number = strings.TrimSpace(number)
	n, err := strconv.ParseInt(number, 10, 64)
	if errors.Is(err, strconv.ErrRange) && n > 0 || err == nil && n > math.MaxInt64/u.factor {
		return 0, &ParseError{Reason: kind + " this large is not supported"}
	}
	if errors.Is(err, strconv.ErrRange) || err == nil && n < -1 {
		return 0, &ParseError{Reason: kind + " cannot be negative, only -1 for none"}
	}
	if err == nil {
		if n == -1 {
			return -1, nil
		}
		return n * u.factor, nil
	}
	if _, err := strconv.ParseFloat(number, 64); err == nil && strings.ContainsAny(number, ".eE") {
		return 0, &ParseError{Reason: "fractions are not supported; write " + kind + " as a whole number of a smaller unit", NumberFormat: true}
	}
	return 0, &ParseError{Reason: "what stands before the unit is not a whole number", NumberFormat: true}
}

// allDigits reports whether s is one or more times the digit d.
func allDigits(s string, d byte) bool {
	return s != "" && strings.Trim(s, string(d)) == ""
}

// oneDecimal prints n/unit with one decimal, cut, and without a decimal that is zero.
func oneDecimal(n int64, u unit) string {
	s := strconv.FormatInt(n/u.factor, 10)
	// No overflow: the largest factor is that of a pebibyte, 2^50.
	if tenth := n % u.factor * 10 / u.factor; tenth > 0 {
		s += "." + strconv.FormatInt(tenth, 10)
	}
	return s + u.suffix
}

// largestExact returns the largest unit that divides n without a rest.
func largestExact(n int64, units []unit) unit {
	for _, u := range units {
		if n%u.factor == 0 {
			return u
		}
	}
	return units[len(units)-1]
}

// largestWithin returns the largest unit that is at most n.
func largestWithin(n int64, units []unit) unit {
	for _, u := range units {
		if n >= u.factor {
			return u
		}
	}
	return units[len(units)-1]
}
