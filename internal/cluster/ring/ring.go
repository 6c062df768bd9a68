package ring

import (
	"cmp"
	"slices"
	"strconv"
)

// pointsPerMember evens out how much of the circle each member has: to within a few percent.
const pointsPerMember = 128

// Ring is the set of members of one epoch. It is immutable, and so safe for concurrent use.
type Ring struct {
	epoch   uint64
	members []Member // by id

	// The circle: points in ascending order, and beside each the place of its member.
	points []uint64
	owners []int32
}

// New returns the ring of an epoch. Of members with one id the last counts: there is one place for each.
func New(epoch uint64, members []Member) *Ring {
	r := &Ring{epoch: epoch}
	seen := make(map[string]bool, len(members))
	for _, m := range slices.Backward(members) {
		if !seen[m.ID] {
			seen[m.ID] = true
			r.members = append(r.members, m)
		}
	}
	slices.SortFunc(r.members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	r.lay()
	return r
}

// lay lays the points of the eligible members on the circle. Where two meet, the one with the smaller id comes first.
func (r *Ring) lay() {
	type point struct {
		at    uint64
		owner int32
	}
	var all []point
	for i, m := range r.members {
		if !m.Eligible() {
			continue
		}
		for n := range pointsPerMember {
			all = append(all, point{position(m.ID + "#" + strconv.Itoa(n)), int32(i)})
		}
	}
	slices.SortFunc(all, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.owner, b.owner))
	})
	r.points, r.owners = make([]uint64, len(all)), make([]int32, len(all))
	for i, p := range all {
		r.points[i], r.owners[i] = p.at, p.owner
	}
}

// Epoch numbers rings: a later one has a larger epoch.
func (r *Ring) Epoch() uint64 { return r.epoch }

// Members returns the members in the order of their ids. The slice must not be changed.
func (r *Ring) Members() []Member { return r.members }

// Has tells whether this very incarnation is a member.
func (r *Ring) Has(m Member) bool {
	i, ok := slices.BinarySearchFunc(r.members, m.ID, func(m Member, id string) int { return cmp.Compare(m.ID, id) })
	return ok && r.members[i] == m
}

// Owner returns the member that owns a key; there is none while no member is eligible.
func (r *Ring) Owner(key string) (Member, bool) {
	if len(r.points) == 0 {
		return Member{}, false
	}
	i, _ := slices.BinarySearch(r.points, position(key))
	if i == len(r.points) {
		i = 0
	}
	return r.members[r.owners[i]], true
}

// position is where on the circle a text lies: FNV-1a over its bytes, then the finalizer of MurmurHash3, without which
// texts that differ in their end only would lie close together.
func position(text string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
