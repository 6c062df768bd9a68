package units

import (
	"strconv"
	"strings"
	"time"
)

// None is the value of "-1": no limit.
const None time.Duration = -1

// The units of time, largest first.
var timeUnits = []unit{
	{"d", int64(24 * time.Hour)},
	{"h", int64(time.Hour)},
	{"m", int64(time.Minute)},
	{"s", int64(time.Second)},
	{"ms", int64(time.Millisecond)},
	{"micros", int64(time.Microsecond)},
	{"nanos", int64(time.Nanosecond)},
}

const timeRemedy = "write a whole number and a unit (nanos, micros, ms, s, m, h, d), for example 500ms"

// ParseTime reads a time such as "300ms". The result is not negative, or it is None.
// Key names the setting or parameter in the error, which is always a *ParseError.
func ParseTime(key, value string) (time.Duration, error) {
	trimmed := strings.TrimSpace(value)
	if digits, negative := strings.CutPrefix(trimmed, "-"); negative && strings.TrimLeft(digits, "0") == "1" {
		return None, nil
	}
	if allDigits(trimmed, '0') {
		return 0, nil
	}
	u, number, ok := cutTimeUnit(trimmed)
	if !ok {
		return 0, &ParseError{Key: key, Value: value, Reason: "the unit is missing or unknown; " + timeRemedy}
	}
	n, fault := whole(number, u, "a time")
	if fault != nil {
		fault.Key, fault.Value = key, value
		return 0, fault
	}
	return time.Duration(n), nil
}

// cutTimeUnit splits a time into number and unit. Units are known in any case, but
// for minutes: a capital M means months elsewhere, and there is no such time here.
func cutTimeUnit(s string) (u unit, number string, ok bool) {
	lower := strings.ToLower(s)
	for _, suffix := range []string{"nanos", "micros", "ms", "s", "m", "h", "d"} {
		text := lower
		if suffix == "m" {
			text = s
		}
		if number, found := strings.CutSuffix(text, suffix); found {
			for _, u := range timeUnits {
				if u.suffix == suffix {
					return u, number, true
				}
			}
		}
	}
	return unit{}, "", false
}

// FormatTime prints d in the largest unit that says it exactly: "90s", "2m", "0s".
// Anything negative is None and prints as "-1". ParseTime reads it back.
func FormatTime(d time.Duration) string {
	switch {
	case d < 0:
		return "-1"
	case d == 0:
		return "0s"
	}
	u := largestExact(int64(d), timeUnits)
	return strconv.FormatInt(int64(d)/u.factor, 10) + u.suffix
}

// HumanTime prints d in the largest unit that it fills, with one decimal at most:
// "1.5s", "309.4ms", "2m". This is the form that the human parameter asks for.
func HumanTime(d time.Duration) string {
	switch {
	case d < 0:
		return "-1"
	case d == 0:
		return "0s"
	}
	return oneDecimal(int64(d), largestWithin(int64(d), timeUnits))
}
