package load

import (
	"math"
	"time"
)

// fate is what the client does to a request of its own.
type fate uint8

const (
	patient         fate = iota // waits for the answer
	cancelsByTask               // cancels it through _tasks/_cancel
	cancelsByItself             // sent with cancel_after_time_interval
	leaves                      // closes the connection
)

// plan says what each request of a load is. It depends on the seed and the request's number alone, however requests are
// spread over clients and time.
type plan struct {
	seed                            uint64
	cancelShare, afterShare, leaves float64
	giveUp                          time.Duration
	groups, users                   []Weighted // at least one each
}

func newPlan(o *Options) plan {
	nobody := []Weighted{{Weight: 1}}
	p := plan{seed: o.Seed, cancelShare: o.CancelShare, afterShare: o.CancelAfterShare, leaves: o.DisconnectShare,
		giveUp: o.GiveUp, groups: o.Groups, users: o.Users}
	if len(p.groups) == 0 {
		p.groups = nobody
	}
	if len(p.users) == 0 {
		p.users = nobody
	}
	return p
}

// identity is by whom a request is sent: places in plan.groups and plan.users.
type identity struct{ group, user int }

// The purposes that a number is drawn for.
const (
	drawFate uint64 = iota
	drawPatience
	drawGroup
	drawUser
)

// fate returns what happens to the request, and after how long.
func (p *plan) fate(request uint64) (fate, time.Duration) {
	if p.cancelShare+p.afterShare+p.leaves == 0 {
		return patient, 0
	}
	u := p.draw(request, drawFate)
	if u -= p.cancelShare; u < 0 {
		return cancelsByTask, p.patience(request)
	}
	if u -= p.leaves; u < 0 {
		return leaves, p.patience(request)
	}
	if u -= p.afterShare; u < 0 {
		return cancelsByItself, 0
	}
	return patient, 0
}

func (p *plan) patience(request uint64) time.Duration {
	return time.Duration(p.draw(request, drawPatience) * float64(p.giveUp))
}

// identity draws the sender of a request of an open loop.
func (p *plan) identity(request uint64) identity {
	var id identity
	if len(p.groups) > 1 {
		id.group = pick(p.groups, p.draw(request, drawGroup))
	}
	if len(p.users) > 1 {
		id.user = pick(p.users, p.draw(request, drawUser))
	}
	return id
}

// identities gives each of n clients of a closed loop its group, and within the group its user, by the weights. A client
// keeps them: one that is held up by its group holds up no other group's load.
func (p *plan) identities(n int) []identity {
	groups := newSpreader(p.groups)
	users := make([]*spreader, len(p.groups))
	for i := range users {
		users[i] = newSpreader(p.users)
	}
	ids := make([]identity, n)
	for i := range ids {
		g := groups.next()
		ids[i] = identity{g, users[g].next()}
	}
	return ids
}

// draw returns a number in [0, 1) that belongs to the request and the purpose: splitmix64 of both.
func (p *plan) draw(request, purpose uint64) float64 {
	x := p.seed + (request*4+purpose+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return float64(x>>11) / (1 << 53)
}

// schedule says when the requests of an open loop are meant to be sent: evenly, from the start on.
type schedule struct{ rate float64 }

// at returns when the request, counted from 0, is due after the start.
func (s schedule) at(request uint64) time.Duration {
	d := float64(request) / s.rate * float64(time.Second)
	if d >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(d)
}
