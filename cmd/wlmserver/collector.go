package main

import "strings"

// heapFloor is how many bytes the collector is made to count as live beside those that are.
const heapFloor = 16 << 20

// floorHeap gives memory that is to be kept for as long as the process serves and never touched, so that it takes
// addresses and no RAM. The collector lets the heap grow to twice what lives, and to 4 MiB at least; the objects of a busy
// server that has few searches waiting are hardly more than that. Without the floor it collects eighty times a second at
// full load, and walks the stacks of all connections each time; with it, eleven times. It is nil where the environment, of
// NAME=VALUE, says how to collect: then that holds.
func floorHeap(environment []string) []byte {
	for _, variable := range environment {
		switch name, _, _ := strings.Cut(variable, "="); name {
		case "GOGC", "GOMEMLIMIT":
			return nil
		}
	}
	return make([]byte, heapFloor)
}
