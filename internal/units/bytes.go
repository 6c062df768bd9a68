package units

import (
	"strconv"
	"strings"
)

// The units of sizes, largest first.
var byteUnits = []unit{
	{"pb", 1 << 50},
	{"tb", 1 << 40},
	{"gb", 1 << 30},
	{"mb", 1 << 20},
	{"kb", 1 << 10},
	{"b", 1},
}

const byteRemedy = "write a whole number and a unit (b, kb, mb, gb, tb, pb), for example 64mb"

// ParseBytes reads a size in bytes such as "64mb"; units are powers of 1,024, in any
// case, and may be cut to their first letter. The result is not negative, or it is -1
// for none. Key names the setting in the error, which is always a *ParseError.
func ParseBytes(key, value string) (int64, error) {
	lower := strings.ToLower(strings.TrimSpace(value))
	if lower == "-1" {
		return -1, nil
	}
	if allDigits(lower, '0') {
		return 0, nil
	}
	u, number, ok := cutByteUnit(lower)
	if !ok {
		return 0, &ParseError{Key: key, Value: value, Reason: "the unit is missing or unknown; " + byteRemedy}
	}
	n, fault := whole(number, u, "a size")
	if fault != nil {
		fault.Key, fault.Value = key, value
		return 0, fault
	}
	return n, nil
}

// cutByteUnit splits a size in lower case into number and unit.
func cutByteUnit(s string) (u unit, number string, ok bool) {
	for _, u := range byteUnits {
		if number, found := strings.CutSuffix(s, u.suffix); found {
			return u, number, true
		}
		if letter := u.suffix[:1]; letter != "b" {
			if number, found := strings.CutSuffix(s, letter); found {
				return u, number, true
			}
		}
	}
	return unit{}, "", false
}

// FormatBytes prints n in the largest unit that says it exactly: "64mb", "1500b", "0b".
// Anything negative is none and prints as "-1b". ParseBytes reads it back.
func FormatBytes(n int64) string {
	switch {
	case n < 0:
		return "-1b"
	case n == 0:
		return "0b"
	}
	u := largestExact(n, byteUnits)
	return strconv.FormatInt(n/u.factor, 10) + u.suffix
}

// HumanBytes prints n in the largest unit that it fills, with one decimal at most:
// "1.4kb", "64mb". This is the form that the human parameter asks for.
func HumanBytes(n int64) string {
	if n < 0 {
		return "-1b"
	}
	return oneDecimal(n, largestWithin(n, byteUnits))
}
