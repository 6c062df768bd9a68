package soak_test

import (
	"flag"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/test/history"
	"github.com/wlmserver/wlmserver/test/server"
)

var (
	length   = flag.Duration("soak", 5*time.Second, "how long the load lasts")
	seedFlag = flag.Uint64("seed", 0, "what the load is chosen by; 0: the time")
)

func TestMain(m *testing.M) { server.Main(m) }

const (
	workers = 32
	// heapSlack is by how much the server's heap may end above where it began. Maps and pools keep the size of the highest load, and
	// where in the run that was is chance. A leak of a hundred bytes a search would pass it within seconds.
	heapSlack = 1 << 20
	// heapPerBucket is what the history's checker keeps of a bucket, in the server's process: its last events and its tally.
	heapPerBucket = 4 << 10
	// longestCheck is how long the self-check may take: it looks twice at what seems wrong, a second apart. The rest is for a machine
	// that is busy.
	longestCheck = 10 * time.Second
)

// TestSoak loads the server with everything that it can do while everything that can change changes. All the while the server checks
// itself; at the end everything was answered, the counters are what the clients saw, and nothing is left.
func TestSoak(t *testing.T) {
	lasts := *length
	if testing.Short() {
		lasts = min(lasts, 2*time.Second)
	}
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-soak %v -seed %d", lasts, seed)

	p := server.StartForgetful(t, "auth.proxy.user_header=x-proxy-user", "auth.proxy.roles_header=x-proxy-roles",
		"auth.proxy.allowed_peers=127.0.0.0/8", "thread_pool.search.size=4") // few workers: all have begun before the first reading
	p.Headers = []string{"x-proxy-user", "operator", "x-proxy-roles", "admin"}
	s := newSoak(t, p, seed)
	s.run(lasts / 5) // pools, maps and connections grow to their size
	before := s.atRest()
	s.run(lasts)
	after := s.atRest()

	// No slack: what runs when nobody asks anything is the same as before.
	if after.goroutines > before.goroutines {
		t.Errorf("%d goroutines, %d before", after.goroutines, before.goroutines)
	}
	s.compareWithCounters()
	r := p.Stop()
	if most := before.heap + heapSlack + heapPerBucket*int64(len(r.Tallies)); after.heap > most {
		t.Errorf("the heap ends at %d bytes, it began at %d; %d more are explained", after.heap, before.heap, most-before.heap)
	}
	s.compareWithHistory(r.Tallies)
	t.Logf("heap %d bytes before and %d after, goroutines %d and %d, %d buckets in the history",
		before.heap, after.heap, before.goroutines, after.goroutines, len(r.Tallies))
	t.Logf("%d checks, %d changes, answers: %v", s.checks.Load(), s.changes.Load(), s.all())
}

// run loads the server for a time. When it returns everything has been answered.
func (s *soak) run(lasts time.Duration) {
	s.Helper()
	s.round++
	stop := make(chan struct{})
	var load, rest sync.WaitGroup
	for i := range workers {
		load.Go(func() { s.client(uint64(i)).work(stop) })
	}
	rest.Go(func() { s.change(stop) })
	rest.Go(func() { s.cancel(stop) })
	rest.Go(func() { s.check(stop) })
	rest.Go(func() { s.read(stop) })
	time.Sleep(lasts)
	close(stop)
	done := make(chan struct{})
	go func() {
		load.Wait()
		rest.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Minute): // no search takes more than milliseconds, and no queue more than a few hundred of them
		s.Fatalf("requests are not answered. Tasks: %+v\n%s", s.Tasks("*search*"), s.Process.Log())
	}
}

// resting is what the server takes when it has nothing to do.
type resting struct {
	goroutines int
	heap       int64 // bytes
}

// atRest waits until the server has nothing to do, checks that nothing is left of the searches, and measures it.
func (s *soak) atRest() resting {
	s.Helper()
	s.Must(http.MethodPut, "/_cluster/settings", `{"transient":{"wlm.workload_group.mode":"enabled"}}`, nil)
	s.freeScrolls()
	s.Await("all tasks have ended", func() bool { return len(s.Tasks("*search*")) == 0 })
	s.checkOnce()
	m := s.metrics()
	for name, want := range map[string]float64{
		"wlmserver_buckets": 0, "wlmserver_waiters": 0, `wlmserver_running{tracked="true"}`: 0, `wlmserver_running{tracked="false"}`: 0,
		"wlmserver_sweep_recovered_total": 0, "wlmserver_permits_reclosed_total": 0, "wlmserver_http_body_bytes": 0,
		"wlmserver_search_pool_active": 0, "wlmserver_search_pool_queue": 0,
	} {
		if got, ok := m[name]; !ok || got != want {
			s.Errorf("at rest %s is %v, want %v", name, got, want)
		}
	}
	s.Client.CloseIdleConnections()
	// A connection has goroutines until the server notices that it was closed, and the goroutine that looks for clients who have left
	// ends half a second after the last request: the lowest number of a second counts.
	lowest := resting{goroutines: math.MaxInt}
	for since := 0; since < 50; since++ {
		var now resting
		if now.goroutines, now.heap = s.Collect(); now.goroutines < lowest.goroutines {
			since = 0
			lowest.goroutines = now.goroutines
		}
		lowest.heap = now.heap
		time.Sleep(20 * time.Millisecond)
	}
	return lowest
}

// metrics reads all metrics: the name with its labels, and the value.
func (s *soak) metrics() map[string]float64 {
	s.Helper()
	a := s.Send(s.Context(), http.MethodGet, "/metrics", "")
	if a.Err != nil || a.Status != http.StatusOK {
		s.Fatalf("/metrics: %d %v", a.Status, a.Err)
	}
	m := map[string]float64{}
	for line := range strings.Lines(string(a.Body)) {
		line = strings.TrimSpace(line)
		name, value, ok := cutLast(line, " ")
		if strings.HasPrefix(line, "#") || !ok {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			s.Fatalf("/metrics: %q: %v", line, err)
		}
		m[name] = v
	}
	return m
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// compareWithCounters compares what the server has counted of the group that stays with what its clients saw.
func (s *soak) compareWithCounters() {
	s.Helper()
	m := s.metrics()
	of := func(name string) int {
		return int(m[fmt.Sprintf(`wlmserver_group_%s{group=%q,group_id=%q}`, name, steady, s.steadyID)])
	}
	saw := s.tally(steady)
	admitted, refused, cancelled := of("admitted_total"), of("refused_total"), of("cancelled_total")
	if refused != saw.refused || of("throttled_total") != saw.refused {
		s.Errorf("clients were refused %d times, counted are %d (%d by limits)", saw.refused, refused, of("throttled_total"))
	}
	if n := admitted + refused + cancelled; n != saw.sent {
		s.Errorf("clients sent %d searches, counted are %d: %d admitted, %d refused, %d cancelled", saw.sent, n, admitted, refused, cancelled)
	}
	// A cancelled search was admitted or not: only its sum with those that ran is known to the client.
	if admitted < saw.ran || cancelled > saw.cancelled {
		s.Errorf("clients saw %d run and %d cancelled, counted are %d admitted, %d cancelled", saw.ran, saw.cancelled, admitted, cancelled)
	}
	if q, w, e := of("queued_total"), of("queue_waits_total"), of("evictions_total"); q != w+e || e > cancelled {
		s.Errorf("%d were queued, %d admitted out of the queue, %d evicted, %d cancelled in all", q, w, e, cancelled)
	}
	if saw.ran == 0 || saw.refused == 0 || saw.cancelled == 0 || of("queue_waits_total") == 0 {
		s.Errorf("the load was none: clients saw %+v", saw)
	}
}

// compareWithHistory compares what clients saw of the group that stays with what was decided under the locks of its buckets.
func (s *soak) compareWithHistory(buckets map[string]history.Tally) {
	s.Helper()
	refused := 0
	for name, b := range buckets {
		if strings.HasPrefix(name, s.steadyID+":") {
			refused += b.Refused
		}
	}
	if saw := s.tally(steady); refused != saw.refused {
		s.Errorf("clients were refused %d times, in the history are %d", saw.refused, refused)
	}
}
