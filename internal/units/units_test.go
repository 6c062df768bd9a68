package units_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wlmserver/wlmserver/internal/units"
)

func TestParseTime(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"300ms":     300 * time.Millisecond,
		"5s":        5 * time.Second,
		"2m":        2 * time.Minute,
		"1h":        time.Hour,
		"1d":        24 * time.Hour,
		"10micros":  10 * time.Microsecond,
		"5nanos":    5,
		"-1":        units.None,
		"-01":       units.None,
		"-1ms":      units.None,
		"-1s":       units.None,
		"0":         0,
		"000":       0,
		"0s":        0,
		"0ms":       0,
		" 5s ":      5 * time.Second,
		"5 s":       5 * time.Second,
		"5S":        5 * time.Second,
		"5MS":       5 * time.Millisecond,
		"+5s":       5 * time.Second,
		"106751d":   106751 * 24 * time.Hour,
		"007micros": 7 * time.Microsecond,
	} {
		got, err := units.ParseTime("k", value)
		if err != nil || got != want {
			t.Errorf("ParseTime(%q) = %v, %v; want %v", value, got, err, want)
		}
	}
}

func TestParseTimeErrors(t *testing.T) {
	for _, c := range []struct {
		value        string
		fragment     string
		numberFormat bool
	}{
		{"soon", "the unit is missing or unknown", false},
		{"", "the unit is missing or unknown", false},
		{"-", "the unit is missing or unknown", false},
		{"10", "the unit is missing or unknown", false},
		{"1x", "the unit is missing or unknown", false},
		{"5M", "the unit is missing or unknown", false},
		{"5w", "the unit is missing or unknown", false},
		{"-5s", "cannot be negative", false},
		{"-2", "the unit is missing or unknown", false},
		{"-99999999999999999999s", "cannot be negative", false},
		{"1.5s", "fractions are not supported", true},
		{"1e3s", "fractions are not supported", true},
		{"s", "not a whole number", true},
		{"xs", "not a whole number", true},
		{"--1s", "not a whole number", true},
		{"1_000s", "not a whole number", true},
		{"106752d", "this large is not supported", false},
		{"99999999999999999999s", "this large is not supported", false},
	} {
		_, err := units.ParseTime("search.wait", c.value)
		checkParseError(t, err, "search.wait", c.value, c.fragment, c.numberFormat)
	}
}

func TestParseBytes(t *testing.T) {
	for value, want := range map[string]int64{
		"64mb":  64 << 20,
		"1kb":   1 << 10,
		"1k":    1 << 10,
		"2G":    2 << 30,
		"2gb":   2 << 30,
		"3tb":   3 << 40,
		"4PB":   4 << 50,
		"512b":  512,
		"0b":    0,
		"0":     0,
		"-1":    -1,
		"-1b":   -1,
		" 1 kb": 1 << 10,
	} {
		got, err := units.ParseBytes("k", value)
		if err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %v, %v; want %v", value, got, err, want)
		}
	}
}

func TestParseBytesErrors(t *testing.T) {
	for _, c := range []struct {
		value        string
		fragment     string
		numberFormat bool
	}{
		{"", "the unit is missing or unknown", false},
		{"64", "the unit is missing or unknown", false},
		{"64%", "the unit is missing or unknown", false},
		{"64mib", "not a whole number", true},
		{"1.5mb", "fractions are not supported", true},
		{"-2b", "cannot be negative", false},
		{"b", "not a whole number", true},
		{"8192pb", "this large is not supported", false},
	} {
		_, err := units.ParseBytes("node.heap", c.value)
		checkParseError(t, err, "node.heap", c.value, c.fragment, c.numberFormat)
	}
}

func checkParseError(t *testing.T, err error, key, value, fragment string, numberFormat bool) {
	t.Helper()
	var e *units.ParseError
	if !errors.As(err, &e) {
		t.Errorf("%q: error %v, want a *ParseError", value, err)
		return
	}
	if e.Key != key || e.Value != value || e.NumberFormat != numberFormat || !strings.Contains(e.Reason, fragment) {
		t.Errorf("%q: %+v, want a reason with %q and NumberFormat %v", value, *e, fragment, numberFormat)
	}
	for _, part := range []string{"[" + value + "]", "[" + key + "]", fragment} {
		if !strings.Contains(e.Error(), part) {
			t.Errorf("%q: message %q does not say %q", value, e.Error(), part)
		}
	}
}

func TestParseErrorWithoutKey(t *testing.T) {
	_, err := units.ParseTime("", "soon")
	if err == nil || strings.Contains(err.Error(), "[]") || !strings.Contains(err.Error(), "[soon]") {
		t.Errorf("message %v: want the value and no empty key", err)
	}
}

func TestFormat(t *testing.T) {
	for d, want := range map[time.Duration]string{
		units.None:              "-1",
		0:                       "0s",
		1:                       "1nanos",
		300 * time.Millisecond:  "300ms",
		1500 * time.Microsecond: "1500micros",
		5 * time.Second:         "5s",
		60 * time.Second:        "1m",
		90 * time.Second:        "90s",
		48 * time.Hour:          "2d",
		math.MaxInt64:           "9223372036854775807nanos",
	} {
		if got := units.FormatTime(d); got != want {
			t.Errorf("FormatTime(%d) = %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{
		-1: "-1b", 0: "0b", 1: "1b", 1023: "1023b", 1024: "1kb", 1500: "1500b", 64 << 20: "64mb", 1 << 50: "1pb",
	} {
		if got := units.FormatBytes(n); got != want {
			t.Errorf("FormatBytes(%d) = %q, want %q", n, got, want)
		}
	}
}

// Some of the times are what a real OpenSearch printed beside these nanoseconds.
func TestHuman(t *testing.T) {
	for d, want := range map[time.Duration]string{
		units.None:    "-1",
		0:             "0s",
		450_963:       "450.9micros",
		207_053:       "207micros",
		309_499_999:   "309.4ms",
		335_011_655:   "335ms",
		334_796_346:   "334.7ms",
		1_500_000_000: "1.5s",
		6_199_999_999: "6.1s",
		120e9:         "2m",
		90e9:          "1.5m",
		36 * 3600e9:   "1.5d",
		999:           "999nanos",
		math.MaxInt64: "106751.9d",
	} {
		if got := units.HumanTime(d); got != want {
			t.Errorf("HumanTime(%d) = %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{
		-1: "-1b", 0: "0b", 1023: "1023b", 1024: "1kb", 1535: "1.4kb", 1536: "1.5kb", 64 << 20: "64mb", math.MaxInt64: "8191.9pb",
	} {
		if got := units.HumanBytes(n); got != want {
			t.Errorf("HumanBytes(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestFormatReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Min(-1).Draw(t, "n")
		if d, err := units.ParseTime("", units.FormatTime(time.Duration(n))); err != nil || d != time.Duration(n) {
			t.Fatalf("time %d: %v, %v", n, d, err)
		}
		if b, err := units.ParseBytes("", units.FormatBytes(n)); err != nil || b != n {
			t.Fatalf("size %d: %v, %v", n, b, err)
		}
	})
}
