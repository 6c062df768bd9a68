package soak_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

const firstLimits = `"throttling":{"attribute":"group","node_limit":2},"queue":{"size_per_bucket":5}`

// pause waits a random time; false when the run is over.
func pause(r *rand.Rand, most time.Duration, stop <-chan struct{}) bool {
	select {
	case <-stop:
		return false
	case <-time.After(time.Duration(r.Int64N(int64(most)))):
		return true
	}
}

// change makes one change after the other: of limits, sizes, attributes, tiers and modes, and of which groups there are.
func (s *soak) change(stop <-chan struct{}) {
	r := rand.New(rand.NewPCG(s.seed, s.round<<32|1000))
	for pause(r, 60*time.Millisecond, stop) {
		s.changes.Add(1)
		name := append(fickle, steady)[r.IntN(3)]
		switch r.IntN(12) {
		case 0:
			s.UpdateGroup(name, `{"throttling":null,"queue":null}`)
		case 1:
			s.UpdateGroup(name, `{"resiliency_mode":"monitor"}`)
		case 2, 3:
			s.UpdateGroup(name, `{"resiliency_mode":"enforced"}`)
		case 4:
			// Groups cannot be changed while the mode is another one, so it does not last.
			s.mode([]string{"disabled", "monitor_only"}[r.IntN(2)])
			pause(r, 5*time.Millisecond, stop)
			s.mode("enabled")
		case 5:
			if name != steady {
				s.Must(http.MethodDelete, "/_wlm/workload_group/"+name, "", nil)
				pause(r, 5*time.Millisecond, stop)
				id := s.CreateGroup(name, randomLimits(r))
				s.ids[name].Store(&id)
			}
		default:
			s.UpdateGroup(name, "{"+randomLimits(r)+"}")
		}
	}
}

func (s *soak) mode(mode string) {
	s.Must(http.MethodPut, "/_cluster/settings", fmt.Sprintf(`{"transient":{"wlm.workload_group.mode":%q}}`, mode), nil)
}

// randomLimits has a tier at least. Limits and sizes are small beside the number of clients, so that all ways out are taken.
func randomLimits(r *rand.Rand) string {
	node, shared := r.IntN(4), r.IntN(3)
	if node+shared == 0 {
		node = 1
	}
	return fmt.Sprintf(`"throttling":{"attribute":%q,"node_limit":%d,"shared_limit":%d},"queue":{"size_per_bucket":%d}`,
		[]string{"group", "username", "role"}[r.IntN(3)], node, shared, []int{0, 2, 5, 50}[r.IntN(4)])
}

// cancel cancels searches by the API: mostly one, now and then all.
func (s *soak) cancel(stop <-chan struct{}) {
	r := rand.New(rand.NewPCG(s.seed, s.round<<32|1001))
	for pause(r, 60*time.Millisecond, stop) {
		if r.IntN(20) == 0 {
			s.Must(http.MethodPost, "/_tasks/_cancel?actions=*search*", "", nil)
			continue
		}
		all := s.Tasks("indices:data/read/*search")
		if len(all) == 0 {
			continue
		}
		// It may have ended meanwhile, which is answered with 404.
		id := all[r.IntN(len(all))].ID
		if a := s.Send(s.Context(), http.MethodPost, "/_tasks/"+id+"/_cancel", ""); a.Err != nil || a.Status != http.StatusOK && a.Status != http.StatusNotFound {
			s.wrong("cancelling %s: %d %v %s", id, a.Status, a.Err, a.Body)
		}
	}
}

// check has the server check itself, again and again.
func (s *soak) check(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(10 * time.Millisecond):
			s.checkOnce()
			s.checks.Add(1)
		}
	}
}

func (s *soak) checkOnce() {
	began := time.Now()
	a := s.Send(s.Context(), http.MethodGet, "/_wlm/check", "")
	if a.Err != nil || a.Status != http.StatusOK {
		s.wrong("the server's check of itself: %d %v %s", a.Status, a.Err, a.Body)
	}
	if d := time.Since(began); d > longestCheck {
		s.wrong("the server's check of itself took %v", d)
	}
}

// read asks for everything that can be read.
func (s *soak) read(stop <-chan struct{}) {
	r := rand.New(rand.NewPCG(s.seed, s.round<<32|1002))
	for pause(r, 100*time.Millisecond, stop) {
		for _, path := range []string{"/_wlm/stats", "/_tasks?detailed&group_by=parents", "/metrics", "/_wlm/workload_group", "/_nodes"} {
			if a := s.Send(s.Context(), http.MethodGet, path, ""); a.Err != nil || a.Status != http.StatusOK {
				s.wrong("%s: %d %v %s", path, a.Status, a.Err, a.Body)
			}
		}
	}
}

// freeScrolls frees those whose opening no client has waited for.
func (s *soak) freeScrolls() {
	if a := s.Send(s.Context(), http.MethodDelete, "/_search/scroll/_all", ""); a.Err != nil || a.Status != http.StatusOK && a.Status != http.StatusNotFound {
		s.wrong("freeing scrolls: %d %v %s", a.Status, a.Err, a.Body)
	}
}
