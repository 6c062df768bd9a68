package faults

import "sync"

// Script is a list of faults, and how often each has acted. The zero Script has none. It is safe for concurrent use.
type Script struct {
	mu      sync.Mutex
	entries []entry
}

type entry struct {
	*Fault
	seen, acted int
}

// State is a fault and what has become of it.
type State struct {
	*Fault
	Acted int // how often it has acted
	Left  int // how often it is still going to; of one that acts always, 0
}

// Set has these faults replace all there were.
func (s *Script) Set(list []*Fault) {
	entries := make([]entry, len(list))
	for i, f := range list {
		entries[i].Fault = f
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = entries
}

// Take looks a request up and counts it: it returns the fault that is to act on it, and its place in the list from 0; nil and -1 if
// none is.
func (s *Script) Take(method, path string) (f *Fault, place int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.entries {
		e := &s.entries[i]
		if !e.isFor(method, path) {
			continue
		}
		e.seen++
		if e.seen > e.After && (e.Times == 0 || e.acted < e.Times) {
			e.acted++
			return e.Fault, i
		}
	}
	return nil, -1
}

// States lists the faults in their order.
func (s *Script) States() []State {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]State, len(s.entries))
	for i, e := range s.entries {
		list[i] = State{Fault: e.Fault, Acted: e.acted}
		if e.Times > 0 {
			list[i].Left = e.Times - e.acted
		}
	}
	return list
}
