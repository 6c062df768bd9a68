package load

import (
	"fmt"
	"strconv"
	"strings"
)

// Weighted is a name with its share of the load, in relation to the weights of the others.
type Weighted struct {
	Name   string
	Weight float64
}

// ParseWeighted reads "name" or "name=3". Only what follows the last "=" is a weight, and only if it is a number, so that
// names and passwords may hold one.
func ParseWeighted(flag, s string) (Weighted, error) {
	w := Weighted{s, 1}
	if i := strings.LastIndexByte(s, '='); i >= 0 {
		if n, err := strconv.ParseFloat(s[i+1:], 64); err == nil {
			w = Weighted{s[:i], n}
		}
	}
	if w.Name == "" {
		return w, &FlagError{flag, s, "give a name, or a name and its weight such as name=3"}
	}
	if !(w.Weight > 0 && w.Weight <= 1e9) {
		return w, &FlagError{flag, s, "give a weight above 0, such as " + w.Name + "=3"}
	}
	return w, nil
}

// ParseRate reads requests a second: "200", "0.5", "200/s".
func ParseRate(flag, s string) (float64, error) {
	n, err := strconv.ParseFloat(strings.TrimSuffix(s, "/s"), 64)
	if err != nil || !(n > 0 && n <= maxRate) {
		return 0, &FlagError{flag, s, fmt.Sprintf("give requests a second, above 0 and at most %d, such as 200 or 200/s", maxRate)}
	}
	return n, nil
}

// maxRate bounds what is asked for to what one schedule can number.
const maxRate = 1_000_000

// pick returns the place of u, in [0, 1), among the weights.
func pick(ws []Weighted, u float64) int {
	var sum float64
	for _, w := range ws {
		sum += w.Weight
	}
	u *= sum
	for i, w := range ws {
		if u -= w.Weight; u < 0 {
			return i
		}
	}
	return len(ws) - 1 // rounding
}

// spreader gives out places among weights, one after the other, so that at any time each has had its share within one.
type spreader struct {
	weights []Weighted
	credit  []float64
}

func newSpreader(ws []Weighted) *spreader { return &spreader{ws, make([]float64, len(ws))} }

func (s *spreader) next() int {
	best, sum := 0, 0.0
	for i, w := range s.weights {
		s.credit[i] += w.Weight
		sum += w.Weight
		if s.credit[i] > s.credit[best] {
			best = i
		}
	}
	s.credit[best] -= sum
	return best
}
