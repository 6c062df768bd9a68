package ring

import (
	"cmp"
	"strconv"
	"strings"
)

// Member is one node as the ring names it. A restart is another incarnation, and so another member. Members can be compared.
type Member struct {
	ID          string `json:"id"`
	Incarnation string `json:"incarnation"`
	Name        string `json:"name"`
	Transport   string `json:"transport_address"` // host:port where other nodes reach it
	HTTP        string `json:"http_address"`      // host:port where clients reach it
	Version     string `json:"version"`           // what it is compatible with: "3.7.0"
}

// Since is the version from which on members own buckets, are asked about them, and know a group's queue.
const Since = "3.7.0"

// Eligible tells whether the member takes part in the shared tier: it may own buckets, and is asked.
func (m Member) Eligible() bool { return m.Supports(Since) }

// Supports tells whether the member's version is the one given or a later one. A version that cannot be read is below all.
func (m Member) Supports(version string) bool {
	own, ok := parse(m.Version)
	if !ok {
		return false
	}
	needed, ok := parse(version)
	if !ok {
		return false
	}
	for i := range own {
		if c := cmp.Compare(own[i], needed[i]); c != 0 {
			return c > 0
		}
	}
	return true
}

// parse reads "3.7.0"; what follows a hyphen does not count.
func parse(version string) (numbers [3]int, ok bool) {
	version, _, _ = strings.Cut(version, "-")
	parts := strings.Split(version, ".")
	if len(parts) != len(numbers) {
		return numbers, false
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 31)
		if err != nil {
			return numbers, false
		}
		numbers[i] = int(n)
	}
	return numbers, true
}
