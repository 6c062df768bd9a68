package field_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wlmserver/wlmserver/test/server"
)

func TestMain(m *testing.M) { server.Main(m) }

const searches = "indices:data/read/search"

// start runs a server with an index whose searches are long, and one whose searches are short.
func start(t *testing.T, overrides ...string) *server.Process {
	t.Helper()
	p := server.Start(t, overrides...)
	p.CreateIndex("slow", `"index.stub.query_time":"10m"`)
	p.CreateIndex("quick", `"index.stub.query_time":"5ms"`)
	return p
}

func limits(attribute string, node, shared, size int) string {
	tier := func(n int) string {
		if n < 0 {
			return "null"
		}
		return fmt.Sprint(n)
	}
	return fmt.Sprintf(`"throttling":{"attribute":%q,"node_limit":%s,"shared_limit":%s},"queue":{"size_per_bucket":%d}`,
		attribute, tier(node), tier(shared), size)
}

// hold sends one long search and returns once it runs. Its answer comes when it is cancelled.
func hold(t *testing.T, p *server.Process, id string) <-chan server.Answer {
	t.Helper()
	before := len(p.Tasks(searches))
	answer := make(chan server.Answer, 1)
	go func() { answer <- p.Send(t.Context(), http.MethodPost, "/slow/_search", "{}", "workloadGroupId", id) }()
	p.Await("the long search runs", func() bool { return len(p.Tasks(searches)) == before+1 })
	return answer
}

func cancelAll(p *server.Process) {
	p.Must(http.MethodPost, "/_tasks/_cancel?actions=*search*", "", nil)
}

// together sends n requests at once and gives their answers.
func together(n int, send func(i int) server.Answer) []server.Answer {
	out := make([]server.Answer, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { out[i] = send(i) })
	}
	wg.Wait()
	return out
}

func byStatus(answers []server.Answer) map[int]int {
	n := map[int]int{}
	for _, a := range answers {
		n[a.Status]++
	}
	return n
}

func TestP1CountersMoveWithTheEvent(t *testing.T) {
	p := start(t)
	id := p.CreateGroup("g", limits("group", 1, -1, 0))
	long := hold(t, p, id)
	got := byStatus(together(5, func(int) server.Answer {
		return p.Send(t.Context(), http.MethodPost, "/quick/_search", "{}", "workloadGroupId", id)
	}))
	if got[http.StatusTooManyRequests] != 5 {
		t.Errorf("answers by status: %v", got)
	}
	if s := p.Stats(id); s.Throttled != 5 || s.Completions != 0 || s.QueueRejections != 0 {
		t.Errorf("while the long one runs: %+v", s)
	}
	cancelAll(p)
	<-long
	// The search and the query on its one shard.
	p.Await("the long one is counted", func() bool { return p.Stats(id).Completions == 2 })
	if s := p.Stats(id); s.Throttled != 5 {
		t.Errorf("at the end: %+v", s)
	}
}

func TestP2MonitorOnlyWatches(t *testing.T) {
	for _, how := range []struct{ name, method, path, body string }{
		{"the group", http.MethodPut, "/_wlm/workload_group/g", `{"resiliency_mode":"monitor"}`},
		{"the cluster", http.MethodPut, "/_cluster/settings", `{"transient":{"wlm.workload_group.mode":"monitor_only"}}`},
	} {
		for name, block := range map[string]string{
			"node limit": limits("group", 1, -1, 0), "shared limit": limits("group", -1, 1, 0), "full queue": limits("group", 1, -1, 1),
		} {
			t.Run(how.name+", "+name, func(t *testing.T) {
				p := start(t)
				id := p.CreateGroup("g", block)
				p.Must(how.method, how.path, how.body, nil)
				done := make(chan []server.Answer, 1)
				go func() {
					done <- together(6, func(int) server.Answer {
						return p.Send(t.Context(), http.MethodPost, "/slow/_search", "{}", "workloadGroupId", id)
					})
				}()
				p.Await("all run", func() bool { return len(p.Tasks(searches)) == 6 })
				for _, task := range p.Tasks(searches) {
					if task.Status.State == "waiting" {
						t.Errorf("task %s is parked", task.ID)
					}
				}
				cancelAll(p)
				for _, a := range <-done {
					if a.Status != http.StatusInternalServerError || a.ErrorType() != "search_phase_execution_exception" {
						t.Errorf("a running search that was cancelled was answered %d: %s", a.Status, a.Body)
					}
				}
				s := p.Stats(id)
				would := 0
				if how.name == "the group" {
					would = 5
				}
				if s.Throttled+s.Queued+s.QueueRejections != 0 || s.WouldThrottle != would {
					t.Errorf("statistics %+v, want %d that would have been throttled", s, would)
				}
			})
		}
	}
}

// msearch is the body of a multi-search of n searches of an index.
func msearch(index string, n int) string {
	return strings.Repeat(fmt.Sprintf("{\"index\":%q}\n{\"size\":0}\n", index), n)
}

func sendMulti(p *server.Process, ctx context.Context, path, body, id string) server.Answer {
	return p.Send(ctx, http.MethodPost, path, body, "Content-Type", "application/x-ndjson", "workloadGroupId", id)
}

func TestP3MultiSearchDoesNotRefuseItself(t *testing.T) {
	for name, size := range map[string]int{"with a queue": 10, "without a queue": 0} {
		t.Run(name, func(t *testing.T) {
			p := start(t)
			id := p.CreateGroup("g", limits("group", 2, -1, size))
			a := sendMulti(p, t.Context(), "/_msearch", msearch("quick", 8), id)
			if a.Status != http.StatusOK || strings.Count(string(a.Body), `"status":200`) != 8 {
				t.Errorf("answered %d: %s", a.Status, a.Body)
			}
			if s := p.Stats(id); s.Throttled != 0 || s.QueueRejections != 0 {
				t.Errorf("statistics %+v", s)
			}
			if b := p.Stop().Tallies[id+":group"]; b.MostTracked != 2 {
				t.Errorf("at most %d items ran at once", b.MostTracked)
			}
		})
	}
}

// A search that runs another one on its way must not wait for the permit that it holds itself.
func TestP3NestedSearchTakesNoSecondPermit(t *testing.T) {
	p := start(t)
	for name, size := range map[string]int{"with-queue": 5, "without-queue": 0} {
		id := p.CreateGroup(name, limits("group", 1, -1, size))
		a := p.Send(t.Context(), http.MethodPost, "/quick/_search", `{"ext":{"stub":{"nested":"quick"}}}`, "workloadGroupId", id)
		if a.Status != http.StatusOK {
			t.Errorf("%s: answered %d: %s", name, a.Status, a.Body)
		}
		// Twice the search and the query on its one shard.
		if s := p.Stats(id); s.Queued != 0 || s.Throttled != 0 || s.Completions != 4 {
			t.Errorf("%s: statistics %+v", name, s)
		}
	}
}

func TestP3LimitsOutOfRange(t *testing.T) {
	p := start(t)
	p.CreateGroup("g", limits("group", 3, -1, 5))
	var before, after struct {
		Groups []map[string]any `json:"workload_groups"`
	}
	p.Must(http.MethodGet, "/_wlm/workload_group", "", &before)
	for _, bad := range []string{`0`, `-5`, `1.5`, `"x"`, `2147483648`, `[]`, `{}`, `true`} {
		block := `"throttling":{"attribute":"group","node_limit":` + bad + `}`
		for path, body := range map[string]string{
			"/_wlm/workload_group":   `{"name":"new","resiliency_mode":"enforced","resource_limits":{"cpu":0.1},` + block + `}`,
			"/_wlm/workload_group/g": `{` + block + `}`,
		} {
			a := p.Send(t.Context(), http.MethodPut, path, body)
			if a.Status != http.StatusBadRequest || !strings.Contains(a.ErrorType(), "_exception") {
				t.Errorf("node_limit %s at %s: %d %s", bad, path, a.Status, a.Body)
			}
		}
	}
	p.Must(http.MethodGet, "/_wlm/workload_group", "", &after)
	if fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("the groups have changed: %v, before %v", after, before)
	}
}

func TestP4CancelledMultiSearchStartsNothingMore(t *testing.T) {
	for _, how := range []string{"cancelled", "disconnected"} {
		t.Run(how, func(t *testing.T) {
			p := start(t)
			id := p.CreateGroup("g", limits("group", 1, -1, 10))
			long := hold(t, p, id)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			answer := make(chan server.Answer, 1)
			go func() { answer <- sendMulti(p, ctx, "/_msearch?max_concurrent_searches=1", msearch("quick", 5), id) }()
			p.AwaitQueued(id, 1)
			if how == "cancelled" {
				for _, task := range p.Tasks("indices:data/read/msearch") {
					p.Must(http.MethodPost, "/_tasks/"+task.ID+"/_cancel", "", nil)
				}
			} else {
				leave()
			}
			a := <-answer
			if how == "cancelled" && (a.Status != http.StatusOK || strings.Count(string(a.Body), "task_cancelled_exception") < 5) {
				t.Errorf("answered %d: %s", a.Status, a.Body)
			}
			p.Await("only the long search is left", func() bool { return len(p.Tasks("*search*")) == 2 })
			if s := p.Stats(id); s.QueuedCurrent != 0 || s.Queued != 1 {
				t.Errorf("statistics %+v", s)
			}
			cancelAll(p)
			<-long
		})
	}
}

func TestP7NothingInvalidIsStored(t *testing.T) {
	p := start(t)
	for _, c := range []struct{ key, body string }{
		{"cpu_cancellation_threshold", `{"persistent":{"wlm.workload_group.node.cpu_cancellation_threshold":0.98}}`},
		{"cpu_rejection_threshold", `{"persistent":{"wlm.workload_group.node.cpu_rejection_threshold":0.9,"wlm.workload_group.node.cpu_cancellation_threshold":0.85}}`},
		{"cancellation_rate", `{"persistent":{"search_backpressure.search_task.cancellation_rate":0}}`},
		{"cancellation_burst", `{"persistent":{"search_backpressure.search_task.cancellation_burst":0.5}}`},
		{"no.such.setting", `{"persistent":{"search.cancel_after_time_interval":"5s","no.such.setting":1}}`},
	} {
		a := p.Send(t.Context(), http.MethodPut, "/_cluster/settings", c.body)
		if a.Status != http.StatusBadRequest || !strings.Contains(string(a.Body), c.key) {
			t.Errorf("%s: %d %s", c.body, a.Status, a.Body)
		}
	}
	if a := p.Send(t.Context(), http.MethodGet, "/_cluster/settings", ""); string(a.Body) != `{"persistent":{},"transient":{}}` {
		t.Errorf("something was applied: %s", a.Body)
	}
	p.Must(http.MethodPut, "/_cluster/settings", `{"persistent":{"wlm.workload_group.node.cpu_rejection_threshold":0.5}}`, nil)
	p.Stop()
	again := p.Restart()
	want := `{"persistent":{"wlm.workload_group.node.cpu_rejection_threshold":"0.5"},"transient":{}}`
	if a := again.Send(t.Context(), http.MethodGet, "/_cluster/settings?flat_settings", ""); string(a.Body) != want {
		t.Errorf("after the restart: %s", a.Body)
	}
}

func TestP9PermitsOfClientsThatLeave(t *testing.T) {
	const clients = 300
	p := start(t)
	id := p.CreateGroup("g", limits("group", 3, -1, 1000))
	host := strings.TrimPrefix(p.URL, "http://")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			c, err := net.Dial("tcp", host)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			body := `{"size":0}` + strings.Repeat(" ", 200)
			request := fmt.Sprintf("POST /quick/_search HTTP/1.1\r\nHost: x\r\nworkloadGroupId: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
				id, len(body), body)
			cut := len(request)
			if r.IntN(3) == 0 {
				cut = r.IntN(len(request)) // gone before the body is whole
			}
			if _, err := c.Write([]byte(request[:cut])); err != nil {
				t.Error(err)
				return
			}
			time.Sleep(time.Duration(r.IntN(500)) * time.Millisecond) // gone while parked, running, answered
			if r.IntN(2) == 0 {
				_ = c.(*net.TCPConn).SetLinger(0) // a reset, not an orderly end
			}
		})
	}
	wg.Wait()
	p.Await("nothing is left of them", func() bool { return len(p.Tasks(searches)) == 0 && p.Stats(id).QueuedCurrent == 0 })
	longs := []<-chan server.Answer{hold(t, p, id), hold(t, p, id), hold(t, p, id)}
	for _, task := range p.Tasks(searches) {
		if task.Status.State == "waiting" {
			t.Error("a permit is lost: one of three searches is parked under a limit of 3")
		}
	}
	cancelAll(p)
	for _, l := range longs {
		<-l
	}
}

func TestP13ClientsThatLeaveWhileParked(t *testing.T) {
	p := start(t)
	id := p.CreateGroup("g", limits("group", 1, -1, 10))
	long := hold(t, p, id)
	host := strings.TrimPrefix(p.URL, "http://")
	padding := func(n int) string { return `{"size":0}` + strings.Repeat(" ", n) }
	head := "POST /quick/_search HTTP/1.1\r\nHost: x\r\nworkloadGroupId: " + id + "\r\nContent-Type: application/json\r\n"
	whole := func(body string) string { return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), body) }
	for _, c := range []struct {
		name, request string
		later         string        // sent once the search is parked: from then on net/http does not look at the connection
		most          time.Duration // from the client's end to the eviction; the server's own watch is slower than net/http's
	}{
		{name: "1 KiB", request: whole(padding(1 << 10)), most: time.Second},
		{name: "5 MiB", request: whole(padding(5 << 20)), most: time.Second},
		{name: "chunked", request: head + "Transfer-Encoding: chunked\r\n\r\na\r\n" + padding(0) + "\r\n0\r\n\r\n", most: time.Second},
		{name: "a stray byte with the request", request: whole(padding(0)) + "x", most: 2 * time.Second},
		{name: "a stray byte later", request: whole(padding(0)), later: "x", most: 2 * time.Second},
		{name: "a second request later", request: whole(padding(0)), later: whole(padding(0)), most: 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", host)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Write([]byte(c.request)); err != nil {
				t.Fatal(err)
			}
			p.AwaitQueued(id, 1)
			if _, err := conn.Write([]byte(c.later)); err != nil {
				t.Fatal(err)
			}
			left := time.Now()
			conn.Close()
			p.AwaitQueued(id, 0)
			if d := time.Since(left); d > c.most {
				t.Errorf("evicted %v after the client had gone", d)
			} else {
				t.Logf("evicted %v after the client had gone", d)
			}
		})
	}
	cancelAll(p)
	<-long
	a := p.Send(t.Context(), http.MethodGet, "/metrics", "")
	if !strings.Contains(string(a.Body), `cause="disconnect"`) {
		t.Errorf("the metrics do not tell of evictions by disconnect:\n%s", a.Body)
	}
}
