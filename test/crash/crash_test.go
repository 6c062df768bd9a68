// Package crash holds a test that kills the real server while it is changed.
package crash_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/test/server"
)

func TestMain(m *testing.M) { server.Main(m) }

// state is what must survive: the node limit of each group, or the value of each setting.
type state map[string]string

// writer changes the server by one request after the other and knows which were acknowledged.
type writer struct {
	acknowledged state
	underWay     state // what holds if the request without an answer was carried out; nil if there is none
	changes      int
}

// run changes the server until there is no answer any more.
func (w *writer) run(p *server.Process, ctx context.Context, next func(state) (method, path, body string, after state)) error {
	w.underWay = nil
	for {
		method, path, body, after := next(maps.Clone(w.acknowledged))
		w.underWay = after
		a := p.Send(ctx, method, path, body)
		switch {
		case a.Err != nil:
			return nil
		case a.Status != http.StatusOK:
			return fmt.Errorf("%s %s %s: %d %s", method, path, body, a.Status, a.Body)
		}
		w.acknowledged, w.underWay = after, nil
		w.changes++
	}
}

// settle compares what the server has with what it must have, and takes that for the next round.
func (w *writer) settle(found state) error {
	if !maps.Equal(found, w.acknowledged) && !(w.underWay != nil && maps.Equal(found, w.underWay)) {
		return fmt.Errorf("found %v, acknowledged %v, under way %v", found, w.acknowledged, w.underWay)
	}
	w.acknowledged = found
	return nil
}

func changeGroup(r *rand.Rand) func(state) (string, string, string, state) {
	return func(s state) (string, string, string, state) {
		name := fmt.Sprint("g", r.IntN(6))
		limit := fmt.Sprint(1 + r.IntN(1000))
		throttling := fmt.Sprintf(`"throttling":{"attribute":"group","node_limit":%s}`, limit)
		_, exists := s[name]
		switch {
		case !exists:
			s[name] = limit
			return http.MethodPut, "/_wlm/workload_group", fmt.Sprintf(`{"name":%q,"resiliency_mode":"soft","resource_limits":{"cpu":0.1},%s}`, name, throttling), s
		case r.IntN(4) == 0:
			delete(s, name)
			return http.MethodDelete, "/_wlm/workload_group/" + name, "", s
		default:
			s[name] = limit
			return http.MethodPut, "/_wlm/workload_group/" + name, "{" + throttling + "}", s
		}
	}
}

func groupsOf(p *server.Process) state {
	var l struct {
		Groups []struct {
			Name       string
			Throttling struct {
				NodeLimit json.Number `json:"node_limit"`
			}
		} `json:"workload_groups"`
	}
	p.Must(http.MethodGet, "/_wlm/workload_group", "", &l)
	s := state{}
	for _, g := range l.Groups {
		s[g.Name] = string(g.Throttling.NodeLimit)
	}
	return s
}

// changeSettings sets two settings that depend on each other in one request: half a change would be seen, or be refused later.
func changeSettings(r *rand.Rand) func(state) (string, string, string, state) {
	const rejection, cancellation = "wlm.workload_group.node.cpu_rejection_threshold", "wlm.workload_group.node.cpu_cancellation_threshold"
	return func(s state) (string, string, string, state) {
		if r.IntN(5) == 0 {
			return http.MethodPut, "/_cluster/settings", `{"persistent":{"wlm.*":null}}`, state{}
		}
		low := 0.1 + 0.001*float64(r.IntN(400))
		s[rejection], s[cancellation] = fmt.Sprintf("%.3f", low), fmt.Sprintf("%.3f", low+0.001)
		return http.MethodPut, "/_cluster/settings", fmt.Sprintf(`{"persistent":{%q:%q,%q:%q}}`, rejection, s[rejection], cancellation, s[cancellation]), s
	}
}

func settingsOf(p *server.Process) state {
	var l struct{ Persistent state }
	p.Must(http.MethodGet, "/_cluster/settings?flat_settings", "", &l)
	return l.Persistent
}

// TestKilledAtRandomMoments kills the server again and again while groups and settings are changed: every acknowledged change is there
// after the restart, and none is half there.
func TestKilledAtRandomMoments(t *testing.T) {
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	groups, settings := &writer{acknowledged: state{}}, &writer{acknowledged: state{}}
	p := server.Start(t)
	for round := range rounds {
		var wg sync.WaitGroup
		var groupsErr, settingsErr error
		wg.Go(func() {
			groupsErr = groups.run(p, t.Context(), changeGroup(rand.New(rand.NewPCG(seed, uint64(2*round+1)))))
		})
		wg.Go(func() {
			settingsErr = settings.run(p, t.Context(), changeSettings(rand.New(rand.NewPCG(seed, uint64(2*round+2)))))
		})
		time.Sleep(time.Duration(r.IntN(40_000)) * time.Microsecond) // the random moment
		p.Kill()
		wg.Wait()
		p = p.Restart()
		for what, err := range map[string]error{
			"a change of groups": groupsErr, "a change of settings": settingsErr,
			"groups": groups.settle(groupsOf(p)), "settings": settings.settle(settingsOf(p)),
		} {
			if err != nil {
				t.Fatalf("round %d: %s: %v", round, what, err)
			}
		}
	}
	t.Logf("%d rounds, %d changes of groups, %d of settings", rounds, groups.changes, settings.changes)
	if groups.changes < rounds || settings.changes < rounds {
		t.Error("fewer than one change a round was acknowledged: the kills prove little")
	}
}
