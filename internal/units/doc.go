// Package units reads and prints times and byte sizes in OpenSearch's notation.
//
// Values are whole numbers with a unit: "300ms", "5s", "64mb". Two times and two
// sizes need no unit: "-1", which stands for "none" or "not set", and "0".
// Fractions are refused, so that what was written is exactly what counts.
//
// The Format functions print the shortest form that reads back as the same value.
// The Human functions print what a person reads at a glance, with at most one
// decimal, cut and not rounded; that form does not read back.
package units
