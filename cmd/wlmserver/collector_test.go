package main

import (
	"runtime"
	"testing"
)

// nextCollection is the size of the heap at which the next collection begins.
func nextCollection() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NextGC
}

// With the floor the heap may grow by that much more at least before it is collected, whatever lives.
func TestHeapFloor(t *testing.T) {
	without := nextCollection()
	floor := floorHeap([]string{"HOME=/", "WLMSERVER_GOGC=50"})
	with := nextCollection()
	runtime.KeepAlive(floor)
	const garbage = heapFloor // what may be added to the live heap, which the floor is counted into: as much again
	if with < heapFloor+garbage || with < without+heapFloor {
		t.Errorf("collected at %d bytes with the floor, at %d without", with, without)
	}
}

func TestHeapFloorOfTheEnvironment(t *testing.T) {
	for _, variable := range []string{"GOGC=100", "GOGC=off", "GOMEMLIMIT=64MiB"} {
		if floorHeap([]string{"HOME=/", variable}) != nil {
			t.Errorf("a floor beside %s", variable)
		}
	}
}
